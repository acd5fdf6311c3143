"""Kernels that differ in scalar constants alone are one, with the constants as arguments: results stay, to the bit."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from phase_texts import check_phases_continue

from orchestrion import compiler, vm
from orchestrion.compiler.driver import Compilation
from orchestrion.compiler.flow import share_scalars
from orchestrion.compiler.flow.dialect import Executable
from orchestrion.compiler.flow.share_scalars import MIN_SHARED_EXECUTABLES
from orchestrion.hal.registry import list_devices

jax = pytest.importorskip("jax")
jnp = jax.numpy

DEVICES = {"reference": "reference", "opencl": "opencl", "vulkan": "spirv"}
THERE = [name for name in DEVICES if name in {status.name for status in list_devices() if status.devices}]
X = np.random.default_rng(1).normal(size=(50, 100)).astype(np.float32)
#: also what a code generator might take for something else than any number
VALUES = [0.1, -3.7, 2.0, 0.5, -2.0, 1e-30, 3e38, 1 + 2**-23, 1e-42, 7.0]
FUNCTIONS: dict[str, Any] = {
    "scaled sums": lambda x, c: (x * c).sum(),
    "quotients": lambda x, c: (x / c).sum(axis=0).max(),
    "elementwise": lambda x, c: jnp.sin(x - c),
    "columns": lambda x, c: (x + c).max(axis=0),
}


def lowered(function: Any, values: Any) -> Any:
    @jax.jit
    def program(x: Any) -> Any:
        """Each in a dispatch of its own."""
        results = []
        for value in values:
            results.append(function(jnp.roll(x, 1, 0), value))
        return results

    return program.lower(X)


def executables(source: Any) -> int:
    module = Compilation(targets=("opencl",)).module(source, "flow")
    return sum(isinstance(op, Executable) for op in module.block)


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("device", THERE)
def test_results_are_those_of_kernels_of_their_own(device: str, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    source, found, counts = lowered(FUNCTIONS[name], VALUES), list[bytes](), list[int]()
    for least in (MIN_SHARED_EXECUTABLES, len(VALUES) + 1):
        monkeypatch.setattr(share_scalars, "MIN_SHARED_EXECUTABLES", least)
        counts.append(executables(source))
        program = vm.load(compiler.compile(source, targets=[DEVICES[device]]), device)
        found.append(b"".join(np.asarray(result).tobytes() for result in program.main(X)))
        program.close()
    assert found[0] == found[1] and counts[0] < counts[1]


def test_a_program_of_many_scaled_sums_has_one_kernel_for_them() -> None:
    one, many = (executables(lowered(FUNCTIONS["scaled sums"], VALUES * count)) for count in (1, 10))
    apart = executables(lowered(FUNCTIONS["scaled sums"], VALUES[: MIN_SHARED_EXECUTABLES - 1]))
    assert one == many < apart


def test_every_phase_continues_to_the_same_bytes(tmp_path: Path) -> None:
    source = lowered(FUNCTIONS["elementwise"], VALUES)
    check_phases_continue(source, tmp_path, targets=("reference", "opencl", "spirv"))
