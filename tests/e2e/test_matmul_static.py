"""The example with constant weights: they are encoded when the module is loaded; a call encodes its argument."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from orchestrion import compiler

LoadOn = Callable[[bytes, str], Any]
EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "matmul_static.mlir"
PROFILE = {"reference": "reference", "opencl": "opencl", "vulkan": "spirv"}
#: device, encodings -> dispatches of the load, and of a call
DISPATCHES = {
    ("reference", "default"): (1, 1),
    ("reference", "test"): (2, 2),
    ("opencl", "default"): (1, 1),
    ("opencl", "always"): (2, 2),
    ("opencl", "test"): (2, 2),
    ("vulkan", "none"): (1, 1),
    ("vulkan", "default"): (2, 2),
    ("vulkan", "test"): (2, 2),
}


@pytest.mark.parametrize(("device", "encodings"), DISPATCHES)
def test_a_call_encodes_its_argument_and_multiplies(
    device: str, encodings: str, load_on: LoadOn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ORCHESTRION_CACHE", str(tmp_path))  # else the weights may be there from another run
    program = load_on(compiler.compile(EXAMPLE, targets=[PROFILE[device]], encodings=encodings), device)
    x = np.random.default_rng(0).standard_normal((64, 128)).astype(np.float32)
    weights = np.sin(np.arange(32768, dtype=np.float32)).reshape(128, 256)
    argument, out = program.put(x), program.empty((64, 256), np.float32)
    for _ in range(3):
        program.matmul_static(argument, out=out)
    np.testing.assert_allclose(np.asarray(out), x @ weights, rtol=1e-4, atol=1e-4)
    statistics = program.statistics()
    last = statistics["calls"][-1]
    assert (statistics["load"]["dispatches"], last["dispatches"]) == DISPATCHES[device, encodings]
    assert (last["submissions"], last["waits"], last["allocations"], last["executables_created"]) == (1, 1, 0, 0)
    assert (last["constant_bytes"], last["host_to_device_bytes"]) == (0, 0)


def test_the_function_only_loads_what_is_constant() -> None:
    text = compiler.Compilation(targets=("spirv",)).text(EXAMPLE, "flow")
    _, _, function = text.partition('sym_name = "matmul_static"}> ({')
    ops = [line.split('"')[1] for line in function.splitlines() if ' = "' in line or line.strip().startswith('"func')]
    assert ops == ["util.global_load", "flow.hoistable_dispatch", "flow.set_encoding", "flow.dispatch", "func.return"]
