"""The meanings of scalar ops that no single NumPy ufunc computes. `scalars.py` has the table that refers to them.

Every function takes its operands (arrays of one shape and type) and `out`, computes elementwise, and returns the
result. `out` may be None or one of the operands: nothing is written before all operands were read, except by one ufunc
call.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
Meaning = Callable[..., Array]


def _into(result: Any, out: Array | None) -> Array:
    if out is None:
        return np.asarray(result)
    out[...] = result
    return out


def _signed(x: Array) -> Array:
    """The same bits as signed integers."""
    return x.view(f"<i{x.itemsize}")


def _unsigned(x: Array) -> Array:
    """The same bits as unsigned integers."""
    return x.view(f"<u{x.itemsize}")


class Widened:
    """A ufunc computed in f64 and rounded once to the operands' type. NumPy converts in small pieces, without
    temporaries.
    """

    __slots__ = ("ufunc",)

    def __init__(self, ufunc: np.ufunc) -> None:
        self.ufunc = ufunc

    def __call__(self, *operands_and_out: Any) -> Array:
        *operands, given = operands_and_out
        out: Array = np.empty_like(operands[0]) if given is None else given
        self.ufunc(*operands, out=out, dtype=np.float64, casting="same_kind")
        return out


class Mapped:
    """A Python function of one float, for functions that NumPy lacks; computed in f64, rounded once."""

    __slots__ = ("function",)

    def __init__(self, function: Callable[[float], float]) -> None:
        self.function = function

    def __call__(self, x: Array, out: Array | None = None) -> Array:
        values = np.fromiter(map(self.function, x.reshape(-1).tolist()), np.float64, x.size)
        return _into(values.reshape(x.shape), np.empty_like(x) if out is None else out)


def sign(x: Array, out: Array | None = None) -> Array:
    return _into(np.where((x == 0) | np.isnan(x), x, np.sign(x)), out)


def popcnt(x: Array, out: Array | None = None) -> Array:
    return _into(np.bitwise_count(_unsigned(x)).astype(x.dtype), out)


def clz(x: Array, out: Array | None = None) -> Array:
    bits = 8 * x.itemsize
    rest = _unsigned(x).copy()
    count = np.where(rest == 0, bits, 0).astype(x.dtype)
    step = bits // 2
    while step:
        high_is_zero = (rest != 0) & (rest >> rest.dtype.type(bits - step) == 0)
        count += np.where(high_is_zero, step, 0).astype(x.dtype)
        rest = np.where(high_is_zero, rest << rest.dtype.type(step), rest)
        step //= 2
    return _into(count, out)


def round_afz(x: Array, out: Array | None = None) -> Array:
    whole = np.trunc(x)
    away = np.copysign(x.dtype.type(1), x)
    return _into(np.where(np.absolute(x - whole) >= 0.5, whole + away, whole), out)


def logistic(x: Array, out: Array | None = None) -> Array:
    wide = x.astype(np.float64)
    decay = np.exp(-np.absolute(wide))
    return _into(np.where(wide >= 0, 1.0, decay) / (1.0 + decay), out if out is not None else np.empty_like(x))


def rsqrt(x: Array, out: Array | None = None) -> Array:
    return _into(1.0 / np.sqrt(x.astype(np.float64)), out if out is not None else np.empty_like(x))


def divide(x: Array, y: Array, out: Array | None = None) -> Array:
    by_zero = y == 0
    quotient = np.floor_divide(x, np.where(by_zero, y.dtype.type(1), y))
    short = x - quotient * y
    quotient += (short != 0) & ((x < 0) != (y < 0)) & ~by_zero
    return _into(np.where(by_zero, ~x.dtype.type(0), quotient), out)


def remainder(x: Array, y: Array, out: Array | None = None) -> Array:
    by_zero = y == 0
    return _into(np.where(by_zero, x, np.fmod(x, np.where(by_zero, y.dtype.type(1), y))), out)


def power_int(x: Array, y: Array, out: Array | None = None) -> Array:
    one = x.dtype.type(1)
    result, base, rest = np.full_like(x, one), x.copy(), _unsigned(y).copy()
    while np.any(rest):
        result = np.where(rest & rest.dtype.type(1), result * base, result)
        base, rest = base * base, rest >> rest.dtype.type(1)
    small = np.where(x == one, one, np.where(x == ~x.dtype.type(0), np.where(y & one, x, one), x.dtype.type(0)))
    return _into(np.where(y < 0, small, result), out)


def power_float(x: Array, y: Array, out: Array | None = None) -> Array:
    """C's pow. NumPy replaces a single exponent of 0.5 by a square root, which differs for -0 and -inf."""
    if 0 in y.strides or not y.ndim:
        x = np.where(y == 0.5, np.where(x == -np.inf, np.inf, x + 0), x).astype(x.dtype, copy=False)
    return _power(x, y, out)


_power = Widened(np.power)


def maximum(x: Array, y: Array, out: Array | None = None) -> Array:
    return np.asarray(np.maximum(x, y, out=out))


def minimum(x: Array, y: Array, out: Array | None = None) -> Array:
    return np.asarray(np.minimum(x, y, out=out))


def maximum_float(x: Array, y: Array, out: Array | None = None) -> Array:
    zeros = (_unsigned(x) & _unsigned(y)).view(x.dtype)
    return _into(np.where(x == y, zeros, np.maximum(x, y)), out)


def minimum_float(x: Array, y: Array, out: Array | None = None) -> Array:
    zeros = (_unsigned(x) | _unsigned(y)).view(x.dtype)
    return _into(np.where(x == y, zeros, np.minimum(x, y)), out)


def shift_left(x: Array, y: Array, out: Array | None = None) -> Array:
    return _into(np.left_shift(_unsigned(x), _unsigned(y)).view(x.dtype), out)


def shift_arithmetic(x: Array, y: Array, out: Array | None = None) -> Array:
    return _into(np.right_shift(_signed(x), _signed(y)).view(x.dtype), out)


def shift_logical(x: Array, y: Array, out: Array | None = None) -> Array:
    return _into(np.right_shift(_unsigned(x), _unsigned(y)).view(x.dtype), out)


def _order_key(x: Array) -> Array:
    bits = _signed(x)
    return np.where(bits < 0, bits ^ np.iinfo(bits.dtype).max, bits)


def total(ufunc: np.ufunc) -> Meaning:
    """The comparison on integer keys that sort as IEEE 754 totalOrder does."""

    def apply(x: Array, y: Array, out: Array | None = None) -> Array:
        return _into(ufunc(_order_key(x), _order_key(y)), out)

    return apply


def select(chosen: Array, x: Array, y: Array, out: Array | None = None) -> Array:
    return _into(np.where(chosen, x, y), out)


def clamp_bool(low: Array, x: Array, high: Array, out: Array | None = None) -> Array:
    return _into((x | low) & high, out)


def clamp_int(low: Array, x: Array, high: Array, out: Array | None = None) -> Array:
    return _into(np.minimum(np.maximum(x, low), high), out)


def clamp_float(low: Array, x: Array, high: Array, out: Array | None = None) -> Array:
    return minimum_float(maximum_float(x, low), high, out)


def fma(x: Array, y: Array, z: Array, out: Array | None = None) -> Array:
    return _into(_fma32(x, y, z) if x.itemsize == 4 else _fma64(x, y, z), out)


def _fma32(x: Array, y: Array, z: Array) -> Array:
    """The product is exact in f64. The sum is rounded to odd there, so that rounding to f32 is the only rounding."""
    product, addend = x.astype(np.float64) * y, z.astype(np.float64)
    total = np.asarray(product + addend)
    part = total - product
    error = (product - (total - part)) + (addend - part)
    inexact = np.isfinite(total) & (error != 0)
    towards_zero = _signed(total) - ((error < 0) != (total < 0))
    return np.where(inexact, (towards_zero | 1).view(np.float64), total).astype(np.float32)


def _fma64(x: Array, y: Array, z: Array) -> Array:
    from fractions import Fraction  # imported here, because it takes 5 ms

    plain = np.where(np.isfinite(x) & np.isfinite(y) & ~np.isfinite(z), z, x * y + z)
    result = plain.reshape(-1)
    finite = np.isfinite(x) & np.isfinite(y) & np.isfinite(z)
    flat = [operand.reshape(-1) for operand in (x, y, z)]
    for i in np.flatnonzero(finite).tolist():
        a, b, c = (float(operand[i]) for operand in flat)
        exact = Fraction(a) * Fraction(b) + Fraction(c)
        if exact:
            result[i] = _nearest(exact.numerator, exact.denominator)
    return result.reshape(plain.shape)


def _nearest(numerator: int, denominator: int) -> float:
    """Divides integers with one rounding, including subnormal results."""
    try:
        return numerator / denominator
    except OverflowError:
        return float("inf") if numerator > 0 else float("-inf")


def convert_exact(x: Array, out: Array) -> Array:
    """Converts from i1 and integers; `out` determines the type."""
    return _into(x != 0, out) if out.dtype == np.bool_ else _cast(x, out)


def _cast(x: Array, out: Array) -> Array:
    np.copyto(out, x, casting="unsafe")
    return out


def convert_float(x: Array, out: Array) -> Array:
    """Converts from floats; `out` determines the type."""
    if out.dtype == np.bool_:
        return _into(x != 0, out)
    if out.dtype.kind == "f":
        return _cast(x, out)
    info = np.iinfo(out.dtype)
    beyond = 2.0 ** (info.bits - (1 if info.min else 0))
    above, below = x >= beyond, x < float(info.min)
    inside = np.where(above | below | np.isnan(x), 0, x).astype(out.dtype)
    return _into(np.where(above, info.max, np.where(below, info.min, inside)).astype(out.dtype), out)


def bitcast(x: Array, out: Array) -> Array:
    """Reinterprets the bits; `out` determines the type."""
    return _into(x.view(out.dtype), out)
