"""Expansions: scalar ops written in primitives, once for all targets, with exactly the meaning of `schema/scalars.py`.

A row names the op, the kinds of operand and a function `(e, *operands) -> value`. The function of `convert` and other
ops with a free result type takes the name of the type last. A function may use any scalar op, not only primitives:
`e.op` expands others. NaNs are detected by their bits, since a Vulkan device need not honour NaN in comparisons.

Transcendental functions and the float remainder are in the folder `math/`. An op without a row is refused by name.
"""

from collections.abc import Callable
from typing import Any, TypeVar

from orchestrion.schema.dtypes import BY_NAME, SIGNED, DType

from . import math
from .emitter import Emitter

V = TypeVar("V")
Expansion = Callable[..., Any]


# Helpers


def _type(e: Emitter[V], x: V) -> DType:
    return BY_NAME[e.dtype(x)]


def _like(e: Emitter[V], x: V, value: int | float) -> V:
    return e.const(value, e.dtype(x))


def _unsigned_name(dtype: DType) -> str:
    return f"ui{dtype.bits}"


def _cast(e: Emitter[V], x: V, to: str) -> V:
    return x if e.dtype(x) == to else e.op("bitcast", x, to=to)


def _bits(e: Emitter[V], x: V) -> V:
    """The same bits as an unsigned integer."""
    return _cast(e, x, _unsigned_name(_type(e, x)))


def _exponent_mask(dtype: DType) -> int:
    """The bits of infinity."""
    return 0x7F800000 if dtype.bits == 32 else 0x7FF0000000000000


def _magnitude(e: Emitter[V], x: V) -> V:
    bits = _bits(e, x)
    return e.op("and", bits, _like(e, bits, (1 << (_type(e, x).bits - 1)) - 1))


def is_nan(e: Emitter[V], x: V) -> V:
    """Whether a float is NaN, by its bits."""
    magnitude = _magnitude(e, x)
    return e.op("compare_gt", magnitude, _like(e, magnitude, _exponent_mask(_type(e, x))))


def copy_sign(e: Emitter[V], value: float, x: V) -> V:
    """A positive float constant with the sign bit of x."""
    bits = _bits(e, x)
    sign = e.op("and", bits, _like(e, bits, 1 << (_type(e, x).bits - 1)))
    return e.op("bitcast", e.op("or", sign, _bits(e, _like(e, x, value))), to=e.dtype(x))


def is_finite(e: Emitter[V], x: V) -> V:
    """Whether a float is neither infinite nor NaN, by its bits."""
    magnitude = _magnitude(e, x)
    return e.op("compare_lt", magnitude, _like(e, magnitude, _exponent_mask(_type(e, x))))


# i1


def _same(name: str) -> Expansion:
    return lambda e, x, y: e.op(name, x, y)


def bool_eq(e: Emitter[V], x: V, y: V) -> V:
    """x == y of two i1."""
    return e.op("not", e.op("xor", x, y))


def bool_lt(e: Emitter[V], x: V, y: V) -> V:
    """x < y of two i1."""
    return e.op("and", e.op("not", x), y)


def bool_le(e: Emitter[V], x: V, y: V) -> V:
    """x <= y of two i1."""
    return e.op("or", e.op("not", x), y)


def bool_gt(e: Emitter[V], x: V, y: V) -> V:
    """x > y of two i1."""
    return bool_lt(e, y, x)


def bool_ge(e: Emitter[V], x: V, y: V) -> V:
    """x >= y of two i1."""
    return bool_le(e, y, x)


# Integers


def abs_int(e: Emitter[V], x: V) -> V:
    """The absolute value of an integer, modulo its range."""
    return e.op("select", e.op("compare_lt", x, _like(e, x, 0)), e.op("negate", x), x)


def sign_int(e: Emitter[V], x: V) -> V:
    """-1, 0 or 1, the sign of an integer."""
    zero = _like(e, x, 0)
    negative = e.op("select", e.op("compare_lt", x, zero), _like(e, x, -1), zero)
    return e.op("select", e.op("compare_gt", x, zero), _like(e, x, 1), negative)


def popcnt(e: Emitter[V], x: V) -> V:
    """Counts one bits by sums of ever wider bit fields, side by side in one word."""
    bits, width = _bits(e, x), _type(e, x).bits

    def shifted(value: V, amount: int) -> V:
        return e.op("shift_right_logical", value, _like(e, bits, amount))

    def masked(value: V, byte: int) -> V:
        return e.op("and", value, _like(e, bits, int.from_bytes(bytes([byte]) * (width // 8), "little")))

    pairs = e.op("subtract", bits, masked(shifted(bits, 1), 0x55))
    nibbles = e.op("add", masked(pairs, 0x33), masked(shifted(pairs, 2), 0x33))
    count = masked(e.op("add", nibbles, shifted(nibbles, 4)), 0x0F)
    if width > 8:
        ones = _like(e, bits, int.from_bytes(b"\x01" * (width // 8), "little"))
        count = shifted(e.op("multiply", count, ones), width - 8)
    return _cast(e, count, e.dtype(x))


def count_leading_zeros(e: Emitter[V], x: V) -> V:
    """Spreads the highest one bit to all lower bits, and counts the zeros that remain."""
    bits, width = _bits(e, x), _type(e, x).bits
    step = 1
    while step < width:
        bits = e.op("or", bits, e.op("shift_right_logical", bits, _like(e, bits, step)))
        step *= 2
    return _cast(e, popcnt(e, e.op("not", bits)), e.dtype(x))


def _divisor(e: Emitter[V], y: V) -> tuple[V, V, V | None]:
    """A valid divisor for `unchecked_divide`; whether y is 0; whether y is -1 (None if unsigned)."""
    one = _like(e, y, 1)
    zero = e.op("compare_eq", y, _like(e, y, 0))
    if _type(e, y).kind != SIGNED:
        return e.op("select", zero, one, y), zero, None
    minus = e.op("compare_eq", y, _like(e, y, -1))
    return e.op("select", e.op("or", zero, minus), one, y), zero, minus


def divide_int(e: Emitter[V], x: V, y: V) -> V:
    """x / y of integers, towards zero."""
    divisor, zero, minus = _divisor(e, y)
    quotient = e.op("unchecked_divide", x, divisor)
    if minus is not None:
        quotient = e.op("select", minus, e.op("negate", x), quotient)
    return e.op("select", zero, e.op("not", _like(e, x, 0)), quotient)


def remainder_int(e: Emitter[V], x: V, y: V) -> V:
    """Signed ones by multiplying back: Vulkan leaves OpSRem of negative operands open."""
    divisor, zero, minus = _divisor(e, y)
    if minus is None:
        rest = e.op("unchecked_remainder", x, divisor)
    else:
        rest = e.op("subtract", x, e.op("multiply", e.op("unchecked_divide", x, divisor), divisor))
    return e.op("select", zero, x, rest)


def power_int(e: Emitter[V], x: V, y: V) -> V:
    """Square and multiply over the bits of a non-negative exponent."""
    dtype = _type(e, x)
    zero, one = _like(e, x, 0), _like(e, x, 1)
    result, base = one, x
    for bit in range(dtype.bits - (dtype.kind == SIGNED)):
        chosen = e.op("compare_ne", e.op("and", y, _like(e, y, 1 << bit)), zero)
        result = e.op("select", chosen, e.op("multiply", result, base), result)
        base = e.op("multiply", base, base)
    if dtype.kind != SIGNED:
        return result
    odd = e.op("compare_ne", e.op("and", y, one), zero)
    of_minus_one = e.op("select", odd, x, one)
    inverse = e.op("select", e.op("compare_eq", x, _like(e, x, -1)), of_minus_one, zero)
    inverse = e.op("select", e.op("compare_eq", x, one), one, inverse)
    return e.op("select", e.op("compare_lt", y, zero), inverse, result)


def maximum_int(e: Emitter[V], x: V, y: V) -> V:
    """The larger of two integers."""
    return e.op("select", e.op("compare_gt", x, y), x, y)


def minimum_int(e: Emitter[V], x: V, y: V) -> V:
    """The smaller of two integers."""
    return e.op("select", e.op("compare_lt", x, y), x, y)


def _amount(e: Emitter[V], y: V) -> tuple[V, V]:
    """The amount as an unsigned number, and whether it is below the width."""
    amount = _bits(e, y)
    return amount, e.op("compare_lt", amount, _like(e, amount, _type(e, y).bits))


def _filling_zeros(unchecked: str) -> Expansion:
    def shift(e: Emitter[V], x: V, y: V) -> V:
        amount, fits = _amount(e, y)
        zero = _like(e, x, 0)
        safe = _cast(e, e.op("select", fits, amount, _like(e, amount, 0)), e.dtype(x))
        return e.op("select", fits, e.op(unchecked, x, safe), zero)

    return shift


def shift_right_arithmetic(e: Emitter[V], x: V, y: V) -> V:
    """x shifted right, filled with its sign bit."""
    amount, fits = _amount(e, y)
    safe = e.op("select", fits, amount, _like(e, amount, _type(e, y).bits - 1))
    return e.op("unchecked_shift_right_arithmetic", x, _cast(e, safe, e.dtype(x)))


# Floats


def sign_float(e: Emitter[V], x: V) -> V:
    """-1, 1, or x itself if it is a zero or NaN."""
    itself = e.op("or", e.op("compare_eq", x, _like(e, x, 0.0)), is_nan(e, x))
    return e.op("select", itself, x, copy_sign(e, 1.0, x))


def round_nearest_afz(e: Emitter[V], x: V) -> V:
    """The nearest integral value, ties away from zero."""
    whole = e.op("trunc", x)
    rest = e.op("abs", e.op("subtract", x, whole))
    away = e.op("add", whole, copy_sign(e, 1.0, x))
    return e.op("select", e.op("compare_ge", rest, _like(e, x, 0.5)), away, whole)


def _extremum(compare: str, zeros: str) -> Expansion:
    """Equal operands differ at most in the sign of zero, and `zeros` of their bits chooses it."""

    def extremum(e: Emitter[V], x: V, y: V) -> V:
        equal = e.op("bitcast", e.op(zeros, _bits(e, x), _bits(e, y)), to=e.dtype(x))
        first = e.op("or", is_nan(e, x), e.op(compare, x, y))
        return e.op("select", e.op("compare_eq", x, y), equal, e.op("select", first, x, y))

    return extremum


def _order_key(e: Emitter[V], x: V) -> V:
    """A signed integer that sorts as IEEE 754 totalOrder does."""
    dtype = _type(e, x)
    bits = e.op("bitcast", x, to=f"i{dtype.bits}")
    flipped = e.op("xor", bits, _like(e, bits, (1 << (dtype.bits - 1)) - 1))
    return e.op("select", e.op("compare_lt", bits, _like(e, bits, 0)), flipped, bits)


def _total(compare: str) -> Expansion:
    return lambda e, x, y: e.op(compare, _order_key(e, x), _order_key(e, y))


# All kinds


def clamp(e: Emitter[V], low: V, x: V, high: V) -> V:
    """min(max(x, low), high)."""
    return e.op("minimum", e.op("maximum", x, low), high)


# Conversions; primitives are those among numbers that cannot fail


def convert_bool(e: Emitter[V], x: V, to: str) -> V:
    """An i1 as a number of another type."""
    return x if to == "i1" else e.op("select", x, e.const(1, to), e.const(0, to))


def convert_int(e: Emitter[V], x: V, to: str) -> V:
    """To the same type or to i1."""
    return x if e.dtype(x) == to else e.op("compare_ne", x, _like(e, x, 0))


def convert_float(e: Emitter[V], x: V, to: str) -> V:
    """To the same type, to i1 (NaN is true), or to an integer: saturating, NaN to 0."""
    target = BY_NAME[to]
    if e.dtype(x) == to:
        return x
    if to == "i1":
        return e.op("or", is_nan(e, x), e.op("compare_ne", x, _like(e, x, 0.0)))
    signed = target.kind == SIGNED
    least = -(1 << (target.bits - 1)) if signed else 0
    beyond = 1 << (target.bits - 1 if signed else target.bits)
    below = e.op("compare_lt", x, _like(e, x, float(least)))
    above = e.op("compare_ge", x, _like(e, x, float(beyond)))
    outside = e.op("or", is_nan(e, x), e.op("or", below, above))
    wide = to if target.bits >= 32 else ("i32" if signed else "ui32")
    whole = e.op("unchecked_convert", e.op("select", outside, _like(e, x, 0.0), x), to=wide)
    inside = whole if wide == to else e.op("convert", whole, to=to)
    return e.op("select", above, e.const(beyond - 1, to), e.op("select", below, e.const(least, to), inside))


def bitcast_same(e: Emitter[V], x: V, to: str) -> V:
    """To the same type; all others are primitives."""
    assert e.dtype(x) == to
    return x


#: (op, kind of its last operand) -> how it is computed
EXPANSIONS: dict[tuple[str, str], Expansion] = {
    (name, kind): function
    for name, kinds, function in (
        ("add", "b", _same("or")),
        ("multiply", "b", _same("and")),
        ("maximum", "b", _same("or")),
        ("minimum", "b", _same("and")),
        ("compare_eq", "b", bool_eq),
        ("compare_ne", "b", _same("xor")),
        ("compare_lt", "b", bool_lt),
        ("compare_le", "b", bool_le),
        ("compare_gt", "b", bool_gt),
        ("compare_ge", "b", bool_ge),
        ("abs", "s", abs_int),
        ("sign", "s", sign_int),
        ("popcnt", "su", popcnt),
        ("count_leading_zeros", "su", count_leading_zeros),
        ("divide", "su", divide_int),
        ("remainder", "su", remainder_int),
        ("power", "su", power_int),
        ("maximum", "su", maximum_int),
        ("minimum", "su", minimum_int),
        ("shift_left", "su", _filling_zeros("unchecked_shift_left")),
        ("shift_right_logical", "su", _filling_zeros("unchecked_shift_right_logical")),
        ("shift_right_arithmetic", "su", shift_right_arithmetic),
        ("sign", "f", sign_float),
        ("round_nearest_afz", "f", round_nearest_afz),
        ("is_finite", "f", is_finite),
        ("maximum", "f", _extremum("compare_gt", "and")),
        ("minimum", "f", _extremum("compare_lt", "or")),
        ("compare_total_eq", "f", _total("compare_eq")),
        ("compare_total_ne", "f", _total("compare_ne")),
        ("compare_total_lt", "f", _total("compare_lt")),
        ("compare_total_le", "f", _total("compare_le")),
        ("compare_total_gt", "f", _total("compare_gt")),
        ("compare_total_ge", "f", _total("compare_ge")),
        ("clamp", "bsuf", clamp),
        ("convert", "b", convert_bool),
        ("convert", "su", convert_int),
        ("convert", "f", convert_float),
        ("bitcast", "suf", bitcast_same),
    )
    for kind in kinds
} | {(name, "f"): function for name, function in math.EXPANSIONS.items()}
