"""Padded copies in native code: lines of any length, with padding on any side, of all sizes of elements."""

import math
from typing import Any

import numpy as np
import pytest
from cpu_devices import best_level

pytest.importorskip("llvmlite")

from orchestrion import compiler, vm
from orchestrion.compiler.driver import Compilation

TYPES = {"f32": np.float32, "f64": np.float64, "i8": np.int8, "i1": np.bool_}
#: shapes, padding in front and behind
CASES = [
    ((1, 9, 8, 3), (0, 2, 2, 0), (0, 3, 3, 0)),
    ((1, 9, 16, 1), (0, 0, 0, 0), (0, 1, 1, 0)),
    ((7, 5, 5), (3, 1, 0), (0, 2, 0)),
    ((2, 150, 2), (0, 17, 0), (0, 40, 0)),
    ((2, 5, 40), (1, 0, 17), (0, 2, 30)),
    ((3, 17), (2, 0), (1, 0)),
    ((30,), (3,), (40,)),
    ((1, 1, 50, 1, 1), (0, 1, 1, 0, 0), (0, 0, 0, 0, 0)),
]
SCHEDULE = "[bind(e, local, 16), bind(grid, workgroup)]"


def text_of(shape: tuple[int, ...], low: tuple[int, ...], high: tuple[int, ...], dtype: str) -> str:
    """Pads an argument with the other one."""
    x = f"tensor<{'x'.join(map(str, shape))}x{dtype}>"
    sums = [sum(sizes) for sizes in zip(shape, low, high, strict=True)]
    out = f"tensor<{'x'.join(map(str, sums))}x{dtype}>"
    edges = f"low = {list(low)}, high = {list(high)}, interior = {[0] * len(shape)}"
    return f"""
    func.func @main(%x: {x}, %y: tensor<{dtype}>) -> {out} {{
      %r = stablehlo.pad %x, %y, {edges} : ({x}, tensor<{dtype}>) -> {out}
      return %r : {out}
    }}"""


@pytest.mark.sampled
@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize(("shape", "low", "high"), CASES)
def test_every_level_pads(shape: tuple[int, ...], low: Any, high: Any, dtype: str) -> None:
    rng, text = np.random.default_rng(3), text_of(shape, low, high, dtype)
    last = max(axis for axis in range(len(shape)) if low[axis] or high[axis])
    is_copied_in_parts = SCHEDULE in Compilation(targets=("cpu",)).text(text, "hl_seq")
    assert is_copied_in_parts == (math.prod(shape[last + 1 :]) > 1), "neighbours that are padded alike"
    x, y = rng.integers(0, 2 if dtype == "i1" else 60, shape).astype(TYPES[dtype]), TYPES[dtype](1)
    want = np.pad(x, list(zip(low, high, strict=True)), constant_values=y)
    levels = [level for level in ("x86-64-v2", "x86-64-v3", "x86-64-v4") if best_level() >= (level,)]
    for level in levels if levels and dtype == "f32" else best_level():
        module = compiler.compile(text, targets=["cpu"], target_cpu=level)
        with vm.load(module, device="cpu", allow_native_code=True) as program:
            np.testing.assert_array_equal(program.main(x, y), want)


@pytest.mark.parametrize(
    ("shape", "low", "high", "wanted"),
    [
        ((4, 5, 32), (0, 1, 0), (0, 1, 0), "[bind(grid, invocation, 64)]"),
        ((4, 40), (0, -1), (0, 2), "[bind(e, local, 32), bind(grid, workgroup), guard(e, shift)]"),
        ((4, 9), (0, 1), (0, 1), "[bind(e, local, 8), bind(grid, workgroup), guard(e, shift)]"),
    ],
)
def test_other_padding_has_other_schedules(shape: tuple[int, ...], low: Any, high: Any, wanted: str) -> None:
    """Whole vectors that are padded alike, padding of less than nothing, short lines."""
    assert wanted in Compilation(targets=("cpu",)).text(text_of(shape, low, high, "f32"), "hl_seq")
