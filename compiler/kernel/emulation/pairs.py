"""64-bit integers as pairs of 32-bit words: the primitives of `i64` and `ui64`, written with those of `ui32`.

A function takes and gives `Pair`s, and `Number`s of type i1 or f32. `PAIRS` is the index: (primitive, kind of its last
operand) -> function. No function has a loop or a branch. Sources: D. Knuth, The Art of Computer Programming, volume 2,
section 4.3.1 (multiplication, division by digits); H. S. Warren, Hacker's Delight, sections 9-4 and 9-5 (`divide`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from orchestrion.compiler.scalars.math.number import Number, select

DIGIT = 0xFFFF
WORD_SCALE, WORD_UNIT = 2.0**32, 2.0**-32


@dataclass(frozen=True, slots=True)
class Pair:
    """A 64-bit integer: both words are `ui32`."""

    low: Number
    high: Number

    def each(self, function: Callable[..., Number], *others: Pair) -> Pair:
        """A function of words, applied to the low ones and to the high ones."""
        return Pair(
            function(self.low, *(other.low for other in others)), function(self.high, *(other.high for other in others))
        )


def _zero(x: Pair) -> Number:
    return x.low.constant(0)


def extended(word: Number) -> Pair:
    """An `i32` or `ui32` as 64 bits."""
    low = word.bits()
    return Pair(low, (word >> 31).bits() if word.dtype == "i32" else low.constant(0))


def is_negative(x: Pair) -> Number:
    """Whether the top bit is set."""
    return x.high.bits_as("i32") < 0


# arithmetic


def add(x: Pair, y: Pair) -> Pair:
    """The sum, modulo 2^64."""
    low = x.low + y.low
    return Pair(low, x.high + y.high + (low < x.low).to("ui32"))


def subtract(x: Pair, y: Pair) -> Pair:
    """The difference, modulo 2^64."""
    return Pair(x.low - y.low, x.high - y.high - (x.low < y.low).to("ui32"))


def negate(x: Pair) -> Pair:
    """-x, modulo 2^64."""
    return subtract(Pair(_zero(x), _zero(x)), x)


def _magnitude(x: Pair) -> Pair:
    return _select(is_negative(x), negate(x), x)


def product_of_words(x: Number, y: Number) -> Pair:
    """All 64 bits of the product of two words, from four products of 16-bit digits."""
    x_low, x_high, y_low, y_high = x & DIGIT, x >> 16, y & DIGIT, y >> 16
    first = x_high * y_low + (x_low * y_low >> 16)
    second = x_low * y_high + (first & DIGIT)
    return Pair(x * y, x_high * y_high + (first >> 16) + (second >> 16))


def multiply(x: Pair, y: Pair) -> Pair:
    """The product, modulo 2^64."""
    whole = product_of_words(x.low, y.low)
    return Pair(whole.low, whole.high + (x.low * y.high + x.high * y.low))


def _digit(rest: Number, digit: Number, divisor: Number) -> tuple[Number, Number]:
    """A digit of a quotient and the new rest: (rest * 2^16 + digit) / divisor, for rest < divisor and a divisor with
    its top bit set. The estimate from the divisor's upper digit is at most 2 too large.
    """
    upper, lower = divisor >> 16, divisor & DIGIT
    quotient = rest / upper
    left = rest - quotient * upper
    whole = rest << 16 | digit
    for _ in range(2):
        too_large = (quotient > DIGIT) | (quotient * lower > (left << 16 | digit))
        too_large = (left <= DIGIT) & too_large
        quotient, left = select(too_large, quotient - 1, quotient), select(too_large, left + upper, left)
    return quotient, whole - quotient * divisor


def divide(x: Pair, y: Pair) -> Pair:
    """x / y of unsigned numbers; y is not 0.

    The divisor, or its high word, is shifted until its top bit is set. One division of 64 by 32 bits then gives the low
    word of the quotient if the divisor fits in a word, else the quotient with an error of at most 1.
    """
    wide, zero = y.high.differs(0), _zero(x)
    word = select(wide, zero.constant(1), y.low)
    top = select(wide, zero, x.high / word)
    shift = select(wide, y.high, y.low).op("count_leading_zeros")
    halved = shift_right_logical(x, Pair(zero.constant(1), zero))
    narrow = shift_left(Pair(x.low, x.high % word), Pair(shift, zero))
    rest = select(wide, halved.high, narrow.high)
    digits = select(wide, halved.low, narrow.low)
    divisor = select(wide, shift_left(y, Pair(shift, zero)).high, y.low << shift)
    first, rest = _digit(rest, digits >> 16, divisor)
    second, _ = _digit(rest, digits & DIGIT, divisor)
    quotient = first << 16 | second
    estimate = quotient >> (31 - shift)
    estimate = select(estimate.equals(0), estimate, estimate - 1)
    fits = compare_ge(subtract(x, multiply(Pair(estimate, zero), y)), y)
    return Pair(select(wide, estimate + fits.to("ui32"), quotient), top)


def divide_signed(x: Pair, y: Pair) -> Pair:
    """x / y of signed numbers towards zero; y is not 0."""
    quotient = divide(_magnitude(x), _magnitude(y))
    return _select(is_negative(x.each(Number.__xor__, y)), negate(quotient), quotient)


def remainder(x: Pair, y: Pair) -> Pair:
    """x - x / y * y of unsigned numbers; y is not 0."""
    return subtract(x, multiply(divide(x, y), y))


# shifts, by 0 to 63 bits


def _amount(y: Pair) -> tuple[Number, Number]:
    """The amount within a word, and whether a whole word is shifted as well."""
    return y.low & 31, y.low > 31


def shift_left(x: Pair, y: Pair) -> Pair:
    """x << y, filling zeros."""
    amount, by_word = _amount(y)
    low, carried = x.low << amount, (x.low >> 1) >> (31 - amount)
    return Pair(select(by_word, _zero(x), low), select(by_word, low, x.high << amount | carried))


def shift_right_logical(x: Pair, y: Pair) -> Pair:
    """x >> y, filling zeros."""
    amount, by_word = _amount(y)
    high = x.high >> amount
    return Pair(*_shifted_right(x, amount, by_word, high, _zero(x)))


def shift_right_arithmetic(x: Pair, y: Pair) -> Pair:
    """x >> y, filling the top bit of x."""
    amount, by_word = _amount(y)
    signed = x.high.bits_as("i32")
    high, filling = (signed >> amount.bits_as("i32")).bits(), (signed >> 31).bits()
    return Pair(*_shifted_right(x, amount, by_word, high, filling))


def _shifted_right(x: Pair, amount: Number, by_word: Number, high: Number, filling: Number) -> tuple[Number, Number]:
    carried = (x.high << 1) << (31 - amount)
    return select(by_word, high, x.low >> amount | carried), select(by_word, filling, high)


# comparisons


def compare_eq(x: Pair, y: Pair) -> Number:
    """x = y."""
    return ((x.low ^ y.low) | (x.high ^ y.high)).equals(0)


def compare_ne(x: Pair, y: Pair) -> Number:
    """x != y."""
    return ((x.low ^ y.low) | (x.high ^ y.high)).differs(0)


def _less(x: Pair, y: Pair, last: str, type: str) -> Number:
    """Whether the high words, read as a type, decide, or else the low ones by the comparison `last`."""
    first = x.high.bits_as(type) < y.high.bits_as(type)
    return first | (x.high.equals(y.high) & x.low.op(last, y.low))


def compare_ge(x: Pair, y: Pair) -> Number:
    """x >= y of unsigned numbers."""
    return _less(y, x, "compare_le", "ui32")


def _ordered(type: str, last: str, swapped: bool) -> Callable[[Pair, Pair], Number]:
    return lambda x, y: _less(y, x, last, type) if swapped else _less(x, y, last, type)


# conversions


def to_f32(x: Pair) -> Number:
    """An unsigned number, rounded once, to nearest even: the top 32 significant bits, of which the last one also stands
    for the bits below it, are rounded by the conversion of a word.
    """
    shift = x.high.op("count_leading_zeros")
    digits = shift_left(x, Pair(shift & 31, _zero(x)))
    top = digits.high | digits.low.differs(0).to("ui32")
    scale = ((159 - shift) << 23).bits_as("f32")
    return _word_to_f32(select(x.high.equals(0), x.low, top)) * scale


def _word_to_f32(x: Number) -> Number:
    """A word, rounded once, by a signed conversion: SwiftShader's unsigned one rounds numbers from 2^31 on wrongly. The
    half of such a number keeps the bit that it loses in its last one.
    """
    large = x.bits_as("i32") < 0
    found = select(large, x >> 1 | x & 1, x).bits_as("i32").to("f32")
    return select(large, found + found, found)


def signed_to_f32(x: Pair) -> Number:
    """A signed number, rounded once, to nearest even."""
    size = to_f32(_magnitude(x))
    return select(is_negative(x), -size, size)


def from_f32(x: Number) -> Pair:
    """The integral part of a number above -1 and below 2^64."""
    high = (x * WORD_UNIT).op("trunc")
    low = x - high * WORD_SCALE
    return Pair(low.op("unchecked_convert", to="ui32"), high.op("unchecked_convert", to="ui32"))


def signed_from_f32(x: Number) -> Pair:
    """The integral part of a number from -2^63 up to below 2^63."""
    size = from_f32(abs(x))
    return _select(x < 0.0, negate(size), size)


def _select(condition: Number, x: Pair, y: Pair) -> Pair:
    return x.each(lambda yes, no: select(condition, yes, no), y)


#: (primitive, kind of its last operand) -> its function
PAIRS: dict[tuple[str, str], Callable[..., Any]] = {
    (name, kind): function
    for name, kinds, function in (
        ("not", "su", lambda x: x.each(Number.__invert__)),
        ("and", "su", lambda x, y: x.each(Number.__and__, y)),
        ("or", "su", lambda x, y: x.each(Number.__or__, y)),
        ("xor", "su", lambda x, y: x.each(Number.__xor__, y)),
        ("add", "su", add),
        ("subtract", "su", subtract),
        ("multiply", "su", multiply),
        ("negate", "su", negate),
        ("unchecked_divide", "s", divide_signed),
        ("unchecked_divide", "u", divide),
        ("unchecked_remainder", "u", remainder),
        ("unchecked_shift_left", "su", shift_left),
        ("unchecked_shift_right_logical", "su", shift_right_logical),
        ("unchecked_shift_right_arithmetic", "su", shift_right_arithmetic),
        ("compare_eq", "su", compare_eq),
        ("compare_ne", "su", compare_ne),
        ("compare_lt", "s", _ordered("i32", "compare_lt", swapped=False)),
        ("compare_lt", "u", _ordered("ui32", "compare_lt", swapped=False)),
        ("compare_le", "s", _ordered("i32", "compare_le", swapped=False)),
        ("compare_le", "u", _ordered("ui32", "compare_le", swapped=False)),
        ("compare_gt", "s", _ordered("i32", "compare_lt", swapped=True)),
        ("compare_gt", "u", _ordered("ui32", "compare_lt", swapped=True)),
        ("compare_ge", "s", _ordered("i32", "compare_le", swapped=True)),
        ("compare_ge", "u", _ordered("ui32", "compare_le", swapped=True)),
        ("select", "su", _select),
    )
    for kind in kinds
}
