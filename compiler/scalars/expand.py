"""Expansions: scalar ops written in primitives, once for all targets, with exactly the meaning of `schema/scalars.py`.

A row names the op, the kinds of operand and a function of `Number`s (`math/number.py`). The function of `convert` and
other ops with a free result type takes the name of the type last. A function may use any scalar op, not only
primitives. NaNs are detected by their bits, since a Vulkan device need not honour NaN in comparisons.

Transcendental functions and the float remainder are in the folder `math/`. An op without a row is refused by name.
"""

import operator
from collections.abc import Callable

from orchestrion.schema.dtypes import BY_NAME, SIGNED, DType

from .math.number import Number, select, sign_of

Expansion = Callable[..., Number]


def _type(x: Number) -> DType:
    return BY_NAME[x.dtype]


# Integers


def sign_int(x: Number) -> Number:
    """-1, 0 or 1, the sign of an integer."""
    zero = x.constant(0)
    negative = select(x < zero, x.constant(-1), zero)
    return select(x > zero, x.constant(1), negative)


def popcnt(x: Number) -> Number:
    """Counts one bits by sums of ever wider bit fields, side by side in one word."""
    bits, size = x.bits(), _type(x).bits // 8

    def masked(value: Number, byte: int) -> Number:
        return value & int.from_bytes(bytes([byte]) * size, "little")

    pairs = bits - masked(bits.op("shift_right_logical", 1), 0x55)
    nibbles = masked(pairs, 0x33) + masked(pairs.op("shift_right_logical", 2), 0x33)
    count = masked(nibbles + nibbles.op("shift_right_logical", 4), 0x0F)
    if size > 1:
        ones = int.from_bytes(b"\x01" * size, "little")
        count = (count * ones).op("shift_right_logical", 8 * size - 8)
    return count.bits_as(x.dtype)


def count_leading_zeros(x: Number) -> Number:
    """Spreads the highest one bit to all lower bits, and counts the zeros that remain."""
    bits, step = x.bits(), 1
    while step < _type(x).bits:
        bits = bits | bits.op("shift_right_logical", step)
        step *= 2
    return popcnt(~bits).bits_as(x.dtype)


def _divisor(y: Number) -> tuple[Number, Number, Number | None]:
    """A valid divisor for `unchecked_divide`; whether y is 0; whether y is -1 (None if unsigned)."""
    one, zero = y.constant(1), y.equals(0)
    if _type(y).kind != SIGNED:
        return select(zero, one, y), zero, None
    minus = y.equals(-1)
    return select(zero | minus, one, y), zero, minus


def divide_int(x: Number, y: Number) -> Number:
    """x / y of integers, towards zero."""
    divisor, zero, minus = _divisor(y)
    quotient = x / divisor
    if minus is not None:
        quotient = select(minus, -x, quotient)
    return select(zero, ~x.constant(0), quotient)


def remainder_int(x: Number, y: Number) -> Number:
    """Signed ones by multiplying back: Vulkan leaves OpSRem of negative operands open."""
    divisor, zero, minus = _divisor(y)
    rest = x % divisor if minus is None else x - x / divisor * divisor
    return select(zero, x, rest)


def power_int(x: Number, y: Number) -> Number:
    """Square and multiply over the bits of a non-negative exponent."""
    signed = _type(x).kind == SIGNED
    zero, one = x.constant(0), x.constant(1)
    result, base = one, x
    for bit in range(_type(x).bits - signed):
        chosen = (y & (1 << bit)).differs(zero)
        result = select(chosen, result * base, result)
        base = base * base
    if not signed:
        return result
    odd = (y & one).differs(zero)
    of_minus_one = select(odd, x, one)
    inverse = select(x.equals(-1), of_minus_one, zero)
    inverse = select(x.equals(one), one, inverse)
    return select(y < zero, inverse, result)


def _filling_zeros(unchecked: str) -> Expansion:
    def shift(x: Number, y: Number) -> Number:
        amount = y.bits()
        fits, zero = amount < _type(y).bits, x.constant(0)
        safe = select(fits, amount, 0).bits_as(x.dtype)
        return select(fits, x.op(unchecked, safe), zero)

    return shift


def shift_right_arithmetic(x: Number, y: Number) -> Number:
    """x shifted right, filled with its sign bit."""
    amount, width = y.bits(), _type(y).bits
    safe = select(amount < width, amount, width - 1)
    return x.op("unchecked_shift_right_arithmetic", safe.bits_as(x.dtype))


# Floats


def _magnitude(x: Number) -> Number:
    return x.bits() & ((1 << (x.format.width - 1)) - 1)


def is_nan(x: Number) -> Number:
    """Whether a float is NaN, by its bits."""
    return _magnitude(x) > x.format.infinity


def is_finite(x: Number) -> Number:
    """Whether a float is neither infinite nor NaN, by its bits."""
    return _magnitude(x) < x.format.infinity


def _signed_one(x: Number) -> Number:
    """1 with the sign bit of x."""
    return (sign_of(x) | x.constant(1.0).bits()).bits_as(x.dtype)


def sign_float(x: Number) -> Number:
    """-1, 1, or x itself if it is a zero or NaN."""
    return select(x.equals(0.0) | is_nan(x), x, _signed_one(x))


def round_nearest_afz(x: Number) -> Number:
    """The nearest integral value, ties away from zero."""
    whole = x.op("trunc")
    rest = abs(x - whole)
    away = whole + _signed_one(x)
    return select(rest >= 0.5, away, whole)


def _extremum(compare: str, zeros: str) -> Expansion:
    """Equal operands differ at most in the sign of zero, and `zeros` of their bits chooses it."""

    def extremum(x: Number, y: Number) -> Number:
        equal = x.bits().op(zeros, y.bits()).bits_as(x.dtype)
        first = is_nan(x) | x.op(compare, y)
        return select(x.equals(y), equal, select(first, x, y))

    return extremum


def _order_key(x: Number) -> Number:
    """A signed integer that sorts as IEEE 754 totalOrder does."""
    bits = x.bits_as(x.format.signed)
    flipped = bits ^ ((1 << (x.format.width - 1)) - 1)
    return select(bits < 0, flipped, bits)


def _total(compare: str) -> Expansion:
    return lambda x, y: _order_key(x).op(compare, _order_key(y))


# Conversions; primitives are those among numbers that cannot fail


def convert_bool(x: Number, to: str) -> Number:
    """An i1 as a number of another type."""
    return x if to == "i1" else select(x, x.constant(1, to), 0)


def convert_float(x: Number, to: str) -> Number:
    """To the same type, to i1 (NaN is true), or to an integer: saturating, NaN to 0."""
    target = BY_NAME[to]
    if x.dtype == to:
        return x
    if to == "i1":
        return is_nan(x) | x.differs(0.0)
    signed = target.kind == SIGNED
    least = -(1 << (target.bits - 1)) if signed else 0
    beyond = 1 << (target.bits - 1 if signed else target.bits)
    below, above = x < float(least), x >= float(beyond)
    outside = is_nan(x) | (below | above)
    wide = to if target.bits >= 32 else ("i32" if signed else "ui32")
    whole = select(outside, x.constant(0.0), x).op("unchecked_convert", to=wide)
    inside = whole if wide == to else whole.to(to)
    return select(above, x.constant(beyond - 1, to), select(below, x.constant(least, to), inside))


#: (op, kind of its last operand) -> how it is computed
EXPANSIONS: dict[tuple[str, str], Expansion] = {
    (name, kind): function
    for name, kinds, function in (
        ("add", "b", operator.or_),
        ("multiply", "b", operator.and_),
        ("maximum", "b", operator.or_),
        ("minimum", "b", operator.and_),
        ("compare_eq", "b", lambda x, y: ~(x ^ y)),
        ("compare_ne", "b", operator.xor),
        ("compare_lt", "b", lambda x, y: ~x & y),
        ("compare_le", "b", lambda x, y: ~x | y),
        ("compare_gt", "b", lambda x, y: ~y & x),
        ("compare_ge", "b", lambda x, y: ~y | x),
        ("abs", "s", lambda x: select(x < 0, -x, x)),
        ("sign", "s", sign_int),
        ("popcnt", "su", popcnt),
        ("count_leading_zeros", "su", count_leading_zeros),
        ("divide", "su", divide_int),
        ("remainder", "su", remainder_int),
        ("power", "su", power_int),
        ("maximum", "su", lambda x, y: select(x > y, x, y)),
        ("minimum", "su", lambda x, y: select(x < y, x, y)),
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
        ("clamp", "bsuf", lambda low, x, high: x.op("maximum", low).op("minimum", high)),
        ("convert", "b", convert_bool),
        ("convert", "su", lambda x, to: x if x.dtype == to else x.differs(0)),
        ("convert", "f", convert_float),
        ("bitcast", "suf", lambda x, to: x),
    )
    for kind in kinds
}
