"""The native module `hal`: every number that bytecode can give is checked, and the error says whose fault it is."""

import sys

import numpy as np
import pytest

from orchestrion import vm
from orchestrion.schema.assembler import assemble
from orchestrion.schema.dtypes import BY_NAME as DTYPES
from orchestrion.schema.hal_imports import HAL_IMPORTS
from orchestrion.schema.writer import write
from orchestrion.vm.errors import CallerError, MemoryExceeded, MissingType, Trap

IMPORTS = "\n".join(f"import @{row.name} {row.signature}" for row in HAL_IMPORTS.values())
F32 = 1056
BASE = """
    %i0 = i32.const 0
    %i1 = i32.const 1
    %i2 = i32.const 1056
    %l0 = i64.const 0
    %l1 = i64.const 16
    %l2 = i64.const -1
    %l3 = i64.const 4611686018427387904
    %r0 = call_import @hal.allocate(%l1)
"""


def run(body: str, format: str = "tensor-bytecode") -> None:
    """The body of a function, run on the reference device. `format`: of executable `e`."""
    source = f"""{IMPORTS}
    export @f
    program @p profile "reference" {{
      constant @c : tensor<16xi8> = hex "{bytes(range(16)).hex()}"
      executable @e {{ entry @x bindings [] variant "{format}" workgroups [(1, 1, 1)] payload hex "" }}
      executable @broken {{ entry @x bindings [] variant "tensor-bytecode" workgroups [(1, 1, 1)] payload hex "00" }}
      func @f () -> () {{ {BASE} {body} return () }}
      entry @f
    }}"""
    program = vm.load(write(assemble(source)), memory=1 << 20)
    try:
        program["f"]()
    finally:
        program.close()


RECORD = "%r1 = call_import @hal.recording.create(%i1) "
VIEW = "%r1 = call_import @hal.view.create(%r0, %l0, %i2, %l0) "

TRAPS = {
    "%r1 = call_import @hal.constant(%i1, %l0, %l1)": "constant 1 out of range (1 constants)",
    "%r1 = call_import @hal.constant(%i0, %l1, %l1)": "bytes 16 to 32 are outside a constant of 16 bytes",
    "%r1 = call_import @hal.constant(%i0, %l2, %l1)": "bytes -1 to 15 are outside a constant of 16 bytes",
    "%r1 = call_import @hal.allocate(%l2)": "allocation of -1 bytes",
    "%r1 = call_import @hal.view.create(%r0, %l0, %i1, %l1)": "0x1 is not an element type code",
    "%r1 = call_import @hal.view.create(%r0, %l0, %i2, %l1)": "bytes 0 to 64 are outside a buffer of 16 bytes",
    "%r1 = call_import @hal.view.create(%r0, %l0, %i2, %l2)": "f32[?] is not a valid tensor type",
    "%r1 = call_import @hal.view.create(%r0, %l0, %i2, %l0, %l3, %l3)": (
        "f32[0,4611686018427387904,4611686018427387904] is not a valid tensor type"
    ),
    f"%r1 = call_import @hal.view.create(%r0, %l0, %i2{', %l0' * 65})": "is not a valid tensor type",
    "%r1 = call_import @hal.view.create(%r2, %l0, %i2)": "argument 0 of hal.view.create: expected hal.buffer, got null",
    "%r1 = ref.null %r1 = call_import @hal.view.destination(%r1, %i2, %l2)": "f32[?] is not a valid tensor type",
    VIEW + "%l0 = call_import @hal.view.dim(%r1, %i1)": "axis 1 of f32[0]",
    "%l0 = i64.const 4 %r1 = call_import @hal.view.create(%r0, %l0, %i2) %r1 = call_import @hal.view.buffer(%r1)": (
        "f32[] starts at byte 4 of its buffer, expected 0"
    ),
    "%i2 = i32.const 2 %r1 = call_import @hal.executable.create(%i2)": "executable 2 out of range (2 executables)",
    "%i2 = i32.const -1 %r1 = call_import @hal.executable.create(%i2)": "executable -1 out of range (2 executables)",
    "%i2 = i32.const -1 %r1 = call_import @hal.recording.create(%i2)": "command buffer with -1 slots",
    "%i2 = i32.const 100000 %r1 = call_import @hal.recording.create(%i2)": "a recording with 100000 slots",
    "%l4 = i64.const 4 %l5 = i64.const 12 "
    + RECORD
    + "call_import @hal.recording.copy(%r1, %r0, %i0, %l0, %r0, %i0, %l4, %l5)": "overlaps itself",
    RECORD + "call_import @hal.recording.copy(%r1, %r0, %i0, %l0, %r2, %i1, %l0, %l1)": (
        "slot 1 of a command buffer with 1 slots"
    ),
    RECORD + "call_import @hal.recording.copy(%r1, %r0, %i0, %l2, %r2, %i0, %l0, %l1)": "bytes -1 to 15 are outside",
    RECORD + "call_import @hal.recording.fill(%r1, %r0, %i0, %l0, %l1, %l0, %i0)": "fill pattern of 0 bytes",
    RECORD + "call_import @hal.recording.fill(%r1, %r0, %i0, %l0, %l3, %l0, %i1)": "are outside a buffer of 16 bytes",
    RECORD + "call_import @hal.execute(%r1)": "command buffer is recording, not finished",
    RECORD + "call_import @hal.recording.finish(%r1) call_import @hal.execute(%r1)": (
        "0 buffers for a command buffer with 1 slots"
    ),
    RECORD + "call_import @hal.enqueue(%r1) call_import @hal.execute(%r1)": "command buffer is recording, not finished",
    RECORD + "call_import @hal.recording.finish(%r1) call_import @hal.enqueue(%r1, %r0)": (
        "the call returns with 1 recording enqueued that it never executes"
    ),
    RECORD
    + "call_import @hal.recording.finish(%r1) call_import @hal.enqueue(%r1, %r0) call_import @hal.execute(%r1)": (
        "0 buffers for a command buffer with 1 slots"
    ),
    RECORD + "call_import @hal.enqueue(%r1, %r2)": "argument 1 of hal.enqueue: expected hal.buffer, got null",
    "%i0 = call_import @hal.read(%r0, %l1, %i1)": "bytes 16 to 17 are outside a buffer of 16 bytes",
    "%i0 = call_import @hal.read(%r0, %l2, %i1)": "bytes -1 to 0 are outside a buffer of 16 bytes",
    "%i2 = i32.const 2 %i0 = call_import @hal.read(%r0, %l0, %i2)": "hal.read of 2 bytes, expected 1 or 4",
    RECORD + "call_import @hal.recording.finish(%r1) call_import @hal.recording.finish(%r1)": (
        "command buffer is finished, not recording"
    ),
    RECORD + "call_import @hal.recording.finish(%r1) call_import @hal.execute(%r1, %r2)": (
        "argument 1 of hal.execute: expected hal.buffer, got null"
    ),
}


@pytest.mark.parametrize("body", TRAPS, ids=lambda body: body[-60:])
def test_the_programs_fault(body: str) -> None:
    with pytest.raises(Trap) as caught:
        run(body)
    assert TRAPS[body] in caught.value.message
    assert caught.value.chain[0].function == "f"


def test_types_that_numpy_lacks(monkeypatch: pytest.MonkeyPatch) -> None:
    """The package that has them is an extra."""
    monkeypatch.setitem(sys.modules, "ml_dtypes", None)
    code = DTYPES["f8E5M2"].code
    monkeypatch.delitem(vars(DTYPES["f8E5M2"]), "numpy", raising=False)
    for call in ("%r1 = call_import @hal.view.create(%r0, %l0, %i3)",
                 "%r1 = ref.null %r1 = call_import @hal.view.destination(%r1, %i3)"):  # fmt: skip
        with pytest.raises(MissingType, match="need ml_dtypes"):
            run(f"%i3 = i32.const {code} {call}")


def test_the_devices_limits() -> None:
    """A program is not begun when an executable of it cannot be created."""
    with pytest.raises(vm.VmError, match="no variant of executable e runs on device reference: spirv: the device runs"):
        run("", "spirv")


def test_damaged_executable() -> None:
    from orchestrion.schema.errors import ModuleError

    with pytest.raises(ModuleError):
        run("%r1 = call_import @hal.executable.create(%i1)")


@pytest.mark.parametrize(
    "body",
    [
        "%r1 = call_import @hal.allocate(%l3)",
        "%l3 = i64.const 1152921504606846976 %r1 = ref.null %r1 = call_import @hal.view.destination(%r1, %i2, %l3)",
        RECORD + "^again: call_import @hal.recording.barrier(%r1) br ^again ^end:",
        "%l1 = i64.const 1000 %r1 = list.ref.new %l1 ^again: %r2 = call_import @hal.allocate(%l1) "
        "list.ref.set %r1, %l0, %r2 %l4 = i64.const 1 %l0 = i64.add %l0, %l4 br ^again ^end:",
    ],
)
def test_memory(body: str) -> None:
    with pytest.raises(MemoryExceeded):
        run(body)


def test_the_callers_fault() -> None:
    """A view of the wrong type can only come from outside."""
    source = f"""{IMPORTS}
    export @f (x: tensor<4xf32>) -> (y: tensor<4xf32>)
    program @p profile "reference" {{
      func @f (hal.view, hal.view) -> hal.view {{
        %l0 = i64.const 3
        %i0 = i32.const {F32}
        %r0 = call_import @hal.view.check(%r0, %i0, %l0)
        return (%r1)
      }}
      entry @f
    }}"""
    program = vm.load(write(assemble(source)))
    with pytest.raises(CallerError, match=r"expected f32\[3\], got f32\[4\]\n  at f pc 0x"):
        program.f(np.zeros(4, np.float32))


def test_constants_are_not_copied_where_memory_is_imported() -> None:
    """A constant in a mapped file becomes a device buffer over the file's own pages."""
    source = f"""{IMPORTS}
    export @f () -> (y: tensor<4xf32>)
    program @p profile "reference" {{
      constant @c : tensor<4xf32> = hex "{np.arange(4, dtype=np.float32).tobytes().hex()}"
      func @f (hal.view) -> hal.view {{
        %l0 = i64.const 0
        %l1 = i64.const 16
        %l2 = i64.const 4
        %i0 = i32.const 0
        %i1 = i32.const {F32}
        %r1 = call_import @hal.constant(%i0, %l0, %l1)
        %r2 = call_import @hal.view.create(%r1, %l0, %i1, %l2)
        return (%r2)
      }}
      entry @f
    }}"""
    program = vm.load(write(assemble(source)))
    np.testing.assert_array_equal(program.f(), np.arange(4, dtype=np.float32))
    call = program.statistics()["calls"][0]
    assert call["constant_bytes"] == 0 and call["host_to_device_bytes"] == 0
