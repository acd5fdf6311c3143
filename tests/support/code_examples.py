"""Programs that generated code is tested with, and their results on devices."""

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from orchestrion import compiler, vm

Array = npt.NDArray[Any]
EXAMPLES = Path(__file__).parents[2] / "examples"
#: example -> shapes of its inputs
SHAPES: dict[str, list[tuple[int, ...]]] = {
    "simple_mul": [(4,), (4,)],
    "mlp": [(8, 32)],
    "matmul_static": [(64, 128)],
    "spectral_norm": [(4, 4)],
}
#: functions that a compiled program may need
ALLOWED = {"memcpy", "memset", "memmove"}

#: a program with a dynamic size
DYNAMIC = """
func.func @main(%x: tensor<?x4xf32>, %y: tensor<4x4xf32>) -> (tensor<?x4xf32>, tensor<4xf32>) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %p = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0]
    : (tensor<?x4xf32>, tensor<4x4xf32>) -> tensor<?x4xf32>
  %e = stablehlo.exponential %p : tensor<?x4xf32>
  %q = stablehlo.dot_general %e, %y, contracting_dims = [1] x [0]
    : (tensor<?x4xf32>, tensor<4x4xf32>) -> tensor<?x4xf32>
  %s = stablehlo.reduce(%e init: %zero) applies stablehlo.add across dimensions = [0]
    : (tensor<?x4xf32>, tensor<f32>) -> tensor<4xf32>
  return %q, %s : tensor<?x4xf32>, tensor<4xf32>
}
"""


def need(*commands: str) -> None:
    """Skips the test unless the commands are installed."""
    for command in commands:
        if shutil.which(command) is None:
            pytest.skip(f"{command} is not installed")


def inputs(name: str) -> list[Array]:
    """Inputs of an example."""
    random = np.random.default_rng(3)
    return [random.normal(size=shape).astype(np.float32) for shape in SHAPES[name]]


def on_device(source: Any, *arrays: Array, target: str, device: str = "", machine: str = "cpu") -> list[Array]:
    """The results of the only function of a program on a device, by default that of the name of the target."""
    module = compiler.compile(source, targets=[target], machines=[machine])
    program = vm.load(module, device=device or target, allow_native_code=True)
    (name,) = program.functions
    found = getattr(program, name)(*arrays)
    return [np.asarray(one) for one in (found if isinstance(found, tuple) else [found])]


def same_bits(got: list[Array], want: list[Array]) -> None:
    """Asserts equal bytes, types and shapes."""
    assert len(got) == len(want)
    for x, y in zip(got, want, strict=True):
        assert x.dtype == y.dtype and x.shape == y.shape
        assert x.tobytes() == np.ascontiguousarray(y).tobytes()
