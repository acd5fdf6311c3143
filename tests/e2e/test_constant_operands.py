"""Float ops with a constant on one side, on every device, bit for bit as StableHLO's interpreter has them.

A driver's compiler knows constants and simplifies; some forget about NaN, infinities and the sign of zero.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from stablehlo_text import DTYPES, literal, main, reducer, tensor

from orchestrion import compiler

Oracle = Callable[..., list[np.ndarray]]
LoadOn = Callable[[bytes, str], Any]

VALUES = (0.0, -0.0, 1.0, -1.0, 0.5, 2.0, np.inf, -np.inf, np.nan, 3e38, -7.25)
#: power is exact for these values, or 0, infinite or NaN
OPS = ("add", "subtract", "multiply", "divide", "maximum", "minimum", "remainder", "power")
DEVICES = ("reference", "opencl", "vulkan", "swiftshader")
#: devices that compute with zeros instead of subnormal numbers (docs/numerics.md)
FLUSHING = ("swiftshader",)
NO_DOUBLES = ("swiftshader", "f64")


def program(dtype: str) -> str:
    """Every op on the argument and every value as a constant, on both sides."""
    t = tensor([len(VALUES)], dtype)
    lines, results = [], []
    for at, value in enumerate(VALUES):
        splat = literal(np.full(len(VALUES), value, DTYPES[dtype]))
        lines.append(f'%c{at} = "stablehlo.constant"() <{{value = {splat}}}> : () -> {t}')
        for op in OPS:
            for side, operands in enumerate((f"%a0, %c{at}", f"%c{at}, %a0")):
                results.append((f"%{op}{at}_{side}", t))
                lines.append(f'{results[-1][0]} = "stablehlo.{op}"({operands}) : ({t}, {t}) -> {t}')
    return main([t], lines, results)


def compiled(text: str, device: str) -> bytes:
    return compiler.compile(text, targets=["vulkan" if device == "swiftshader" else device])


def same_bits(got: np.ndarray, want: np.ndarray) -> bool:
    return np.array_equal(got, want, equal_nan=True) and bool(
        np.all((np.signbit(got) == np.signbit(want)) | np.isnan(got))
    )


@pytest.mark.sampled(every=3)
@pytest.mark.parametrize(
    ("device", "dtype"), [(name, dtype) for name in DEVICES for dtype in ("f32", "f64") if (name, dtype) != NO_DOUBLES]
)
def test_constants(device: str, dtype: str, interpreter: Oracle, load_on: LoadOn) -> None:
    x, text = np.array(VALUES, DTYPES[dtype]), program(dtype)
    wanted = interpreter(text, x)
    if device in FLUSHING:
        wanted = [np.where(np.abs(want) < np.finfo(want.dtype).tiny, np.copysign(0, want), want) for want in wanted]
    found = load_on(compiled(text, device), device).main(x)
    names = [(op, value, side) for value in VALUES for op in OPS for side in ("right", "left")]
    wrong = [
        f"{op} with {value} on the {side}: {got}, wanted {want}"
        for (op, value, side), got, want in zip(names, found, wanted, strict=True)
        if op != "power" and not same_bits(got, want) or op == "power" and not near(got, want)
    ]
    assert not wrong, "\n".join(wrong)


def near(got: np.ndarray, want: np.ndarray) -> bool:
    """Within 4 ulp, and the same sign."""
    finite = np.isfinite(want) & (want != 0)
    with np.errstate(all="ignore"):
        close = np.abs(got - want) <= 4 * np.spacing(np.abs(want))
    return same_bits(np.where(finite & close, want, got), want)


@pytest.mark.parametrize("device", DEVICES)
def test_zeros_that_a_device_may_compute_beforehand(device: str, interpreter: Oracle, load_on: LoadOn) -> None:
    """What is a constant once a loop is unrolled: a place converted to a float, a padding value."""
    t, u, v, s = tensor([4], "f32"), tensor([3, 4], "f32"), tensor([3], "f32"), "tensor<f32>"
    total = f"<{{dimensions = array<i64: 1>}}> {reducer('add', 'f32')} : ({u}, {s}) -> {v}"
    lines = [
        f'%i = "stablehlo.iota"() <{{iota_dimension = 1 : i64}}> : () -> {u}',
        f'%p = "stablehlo.multiply"(%a0, %i) : ({u}, {u}) -> {u}',
        f'%c = "stablehlo.constant"() <{{value = dense<0.0> : {s}}}> : () -> {s}',
        f'%r = "stablehlo.reduce"(%p, %c) {total}',
        f'%q = "stablehlo.pad"(%a1, %c) <{{edge_padding_low = array<i64: 1>, edge_padding_high = array<i64: 0>, '
        f"interior_padding = array<i64: 0>}}> : ({v}, {s}) -> {t}",
        f'%b = "stablehlo.broadcast_in_dim"(%q) <{{broadcast_dimensions = array<i64: 1>}}> : ({t}) -> {u}',
        f'%m = "stablehlo.multiply"(%b, %a0) : ({u}, {u}) -> {u}',
        f'%n = "stablehlo.reduce"(%m, %c) {total}',
    ]
    text = main([u, v], lines, [("%r", v), ("%n", v)])
    x = np.ones((3, 4), np.float32)
    x[0, 0], x[1, 0] = np.nan, np.inf
    y = np.ones(3, np.float32)
    for got, want in zip(load_on(compiled(text, device), device).main(x, y), interpreter(text, x, y), strict=True):
        assert same_bits(got, want), (got, want)
