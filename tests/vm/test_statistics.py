"""`Program.statistics`: every figure of a call and of a load, provoked to be more than nothing by one program each."""

import json
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from orchestrion import vm
from orchestrion.schema import tensor_encoding
from orchestrion.schema.assembler import assemble
from orchestrion.schema.dtypes import BY_NAME
from orchestrion.schema.hal_imports import HAL_IMPORTS
from orchestrion.schema.tensor_bytecode import EntryCode
from orchestrion.schema.tensor_shapes import TensorType
from orchestrion.schema.writer import write
from orchestrion.vm.load_times import STAGES

IMPORTS = "\n".join(f"import @{row.name} {row.signature}" for row in HAL_IMPORTS.values())
X = np.arange(4, dtype=np.float32)
#: what a call costs in any case: its argument in, its result out
PLAIN = {"host_to_device_bytes": 16, "device_to_host_bytes": 16}
RECORD = "%r3 = call_import @hal.recording.create(%i0) "
FINISH = "call_import @hal.recording.finish(%r3) call_import @hal.execute(%r3) "
FILL = "call_import @hal.recording.fill(%r3, %r2, %i0, %l0, %l1, %l0, %i1) "
DISPATCH = (
    "%r4 = call_import @hal.executable.create(%i0) "
    "call_import @hal.recording.dispatch(%r3, %r4, %i0, %l1, %l2, %l2, %r2, %i0, %l0, %l1) "
)
ALLOCATE = "%r2 = call_import @hal.allocate(%l1) "

#: what a function does -> what its call costs beside `PLAIN`, and what else a load counts when an initializer does it
ACTS: dict[str, tuple[str, dict[str, int], dict[str, int]]] = {
    "nothing": ("", {}, {}),
    "allocates": (ALLOCATE, {"allocations": 1}, {}),
    "creates an executable": (
        "%r4 = call_import @hal.executable.create(%i0)",
        {"executables_created": 1},
        {"executables_created": 1},
    ),
    "copies a constant": (
        "%r4 = call_import @hal.constant(%i0, %l3, %l1)",
        {"constant_bytes": 16, "allocations": 1, "host_to_device_bytes": 16},
        {},
    ),
    "records": (RECORD, {}, {}),
    "fills": (
        ALLOCATE + RECORD + FILL + FINISH,
        {"allocations": 1, "submissions": 1, "waits": 1},
        {"command_buffers_recorded": 1, "bytes_copied": 16},
    ),
    "dispatches": (
        ALLOCATE + RECORD + DISPATCH + FINISH,
        {"allocations": 1, "submissions": 1, "waits": 1, "dispatches": 1, "executables_created": 1},
        {"command_buffers_recorded": 1, "dispatches": 1, "executables_created": 1},
    ),
    "enqueues": (
        ALLOCATE + RECORD + DISPATCH + "call_import @hal.recording.finish(%r3) "
        "call_import @hal.enqueue(%r3) call_import @hal.enqueue(%r3) call_import @hal.execute(%r3)",
        {"allocations": 1, "submissions": 1, "waits": 1, "dispatches": 3, "executables_created": 1},
        {"command_buffers_recorded": 1, "dispatches": 3, "executables_created": 1},
    ),
    "reads": (
        ALLOCATE + "%i3 = call_import @hal.read(%r2, %l0, %i2)",
        {"allocations": 1, "device_to_host_bytes": 4},
        {},
    ),
}
NUMBERS = """
    %i0 = i32.const 0 %i1 = i32.const 1 %i2 = i32.const 4
    %l0 = i64.const 0 %l1 = i64.const 16 %l2 = i64.const 1 %l3 = i64.const 8
"""


def payload() -> str:
    code = EntryCode(1)
    (values,) = code.emit("iota", (), TensorType(BY_NAME["i32"], (4,)), 0)
    code.emit("store_output", (values,), 0)
    return tensor_encoding.encode([code]).hex()


def source(in_call: str = "", kind: str = "", in_initializer: str = "") -> bytes:
    initializer = f"initializer {kind} @begin" if kind else ""
    return write(
        assemble(f"""{IMPORTS}
    export @main (x: tensor<4xf32>) -> (z: tensor<4xf32>)
    program @reference profile "reference" {{
      constant @c : tensor<32xi8> = hex "{bytes(range(32)).hex()}"
      executable @e {{ entry @iota bindings [write 16] variant "tensor-bytecode" workgroups [(1, 1, 1)]
        payload hex "{payload()}" }}
      func @begin () -> () {{ {NUMBERS} {in_initializer} return () }}
      func @main (hal.view, hal.view) -> hal.view {{ {NUMBERS} {in_call} return (%r1) }}
      {initializer}
      entry @main
    }}""")
    )


@pytest.fixture
def copying(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A device that imports no host memory."""
    from orchestrion.hal.reference.device import ReferenceDevice

    monkeypatch.setattr(ReferenceDevice, "import_host", lambda self, memory: None)
    yield


@pytest.mark.usefixtures("copying")
@pytest.mark.parametrize("act", ACTS)
def test_a_call(act: str) -> None:
    body, costs, _ = ACTS[act]
    program: Any = vm.load(source(in_call=body))
    program.main(X)
    program.main.submit(X).result(30)
    blocking, submitted = program.statistics()["calls"]
    for row in (blocking, submitted):
        assert row.pop("seconds") > 0 and row.pop("function") == "main"
    none = ("submissions", "dispatches", "waits", "allocations", "constant_bytes", "executables_created")
    want = dict.fromkeys(none, 0) | PLAIN
    want |= {name: want[name] + cost for name, cost in costs.items()}
    assert blocking == want  # the slots of the function were made by the load
    want["executables_created"] = submitted["executables_created"]  # the same code again may be found built
    assert submitted == want
    program.close()


@pytest.mark.parametrize("kind", ["program", "context"])
@pytest.mark.parametrize("act", ACTS)
def test_a_load(act: str, kind: str) -> None:
    body, _, costs = ACTS[act]
    program: Any = vm.load(source(kind=kind, in_initializer=body))
    found = json.loads(json.dumps(program.statistics()))
    load = found["load"]
    stages = load.pop("stages")
    assert list(stages) == list(STAGES) and load.pop("seconds") >= sum(stages.values()) > 0
    want = dict.fromkeys(("executables_created", "command_buffers_recorded", "dispatches", "bytes_copied"), 0)
    assert load == {"initializers": 1, **want, **costs}
    assert found["calls"] == []
    with vm.load(source(kind=kind, in_initializer=body), build="lazy") as lazy:  # it has no slots
        peak = lazy.statistics()["memory"]["peak_device_bytes"]
    assert (peak >= 16) == ("hal.allocate" in body)
    assert (found["memory"]["peak_host_bytes"] > 0) == ("hal.recording.create" in body)
    program.close()
