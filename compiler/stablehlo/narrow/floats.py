"""Floats of 8 and 16 bits by ops that every device has: bits in ui8 or ui16, numbers in f32.

`decode` returns the number for the bits, exactly. `round_to_format` returns the nearest f32 that the format can hold,
ties to even, with the format's own treatment of overflow. `encode` returns the bits of a number that the format can
hold. They use only integer ops, and additions that round at the format's least bit, so results do not depend on the
device.

`round_to_odd` and `from_integer` convert wider numbers to f32 such that a second rounding gives the same result as a
single one: an inexact number gets its last bit set (Boldo and Melquiond, "When double rounding is odd", 2005).
"""

from __future__ import annotations

import struct

from orchestrion.compiler.ir.core import Value
from orchestrion.compiler.ir.rewriter import Rewriter
from orchestrion.compiler.ir.types import F32
from orchestrion.compiler.stablehlo.builders.basic import bitcast, compare, constant, convert, elementwise
from orchestrion.compiler.stablehlo.ops.base import dtype_of, tensor_of
from orchestrion.schema.dtypes import SIGNED
from orchestrion.schema.float_formats import FloatFormat, Special

#: Of f32: mantissa bits and exponent bias; sign bit, infinity, and the NaN that is returned.
_MANTISSA, _BIAS = 23, 127
_SIGN, _INFINITY, _NAN = 1 << 31, 0x7F800000, 0x7FC00000


class _Bits:
    """Integer arithmetic on values of one type, with Python numbers as operands."""

    def __init__(self, rewriter: Rewriter) -> None:
        self.rewriter = rewriter

    def op(self, name: str, x: Value, by: Value | int) -> Value:
        return elementwise(self.rewriter, name, x, self._value(by, x))

    def compare(self, direction: str, x: Value, by: Value | int) -> Value:
        return compare(self.rewriter, direction, x, self._value(by, x))

    def select(self, predicate: Value, x: Value | int, otherwise: Value) -> Value:
        return elementwise(self.rewriter, "select", predicate, self._value(x, otherwise), otherwise)

    def _value(self, given: Value | int, like: Value) -> Value:
        return given if isinstance(given, Value) else constant(self.rewriter, given, tensor_of(like))


def decode(rewriter: Rewriter, bits: Value, row: FloatFormat) -> Value:
    """The f32 for bits in ui8 or ui16."""
    b = _Bits(rewriter)
    word = convert(rewriter, bits, "ui32")
    if row.special is Special.FNU:
        return bitcast(rewriter, _power_of_two(b, word, row), "f32")
    shift = _MANTISSA - row.mantissa
    if row.exponent == 8:  # f32's exponent: the bits are the upper half of an f32
        return bitcast(rewriter, b.op("shift_left", word, shift), "f32")
    magnitude = b.op("and", word, (1 << row.bits - 1) - 1)
    sign = b.op("shift_left", b.op("and", word, 1 << row.bits - 1), 32 - row.bits)
    moved = b.op("shift_left", magnitude, shift)
    number = b.op("add", moved, _BIAS - row.bias << _MANTISSA)
    unit = constant(rewriter, 2.0**row.least_exponent, tensor_of(word).with_element(F32))
    small = elementwise(rewriter, "multiply", convert(rewriter, magnitude, "f32"), unit)
    number = b.select(b.compare("LT", magnitude, 1 << row.mantissa), bitcast(rewriter, small, "ui32"), number)
    match row.special:
        case Special.IEEE:
            number = b.select(b.compare("GT", magnitude, row.greatest), b.op("or", moved, _INFINITY), number)
        case Special.FN:
            number = b.select(b.compare("EQ", magnitude, row.nan), _NAN, number)
        case _:
            number = b.select(b.compare("EQ", word, row.nan), _NAN, number)
    return bitcast(rewriter, b.op("or", number, sign), "f32")


def round_to_format(rewriter: Rewriter, x: Value, row: FloatFormat) -> Value:
    """The f32 nearest to `x` that `row` can hold."""
    b = _Bits(rewriter)
    word = bitcast(rewriter, x, "ui32")
    if row.special is Special.FNU:
        return bitcast(rewriter, _nearest_power(b, word), "f32")
    shift = _MANTISSA - row.mantissa
    if row.exponent == 8:
        number = _to_even(b, word, shift)
        return bitcast(rewriter, b.select(compare(rewriter, "NE", x, x), _NAN, number), "f32")
    magnitude = b.op("and", word, _SIGN - 1)
    sign = b.op("and", word, _SIGN)
    number = _to_even(b, magnitude, shift)
    adder = _adder(rewriter, row, x)
    low = elementwise(rewriter, "subtract", elementwise(rewriter, "add", _float(rewriter, magnitude), adder), adder)
    small = b.compare("LT", magnitude, _BIAS - row.bias + 1 << _MANTISSA)
    number = b.select(small, bitcast(rewriter, low, "ui32"), number)
    most = _f32_bits(row.value(row.greatest))
    number = b.select(b.compare("GT", number, most), _INFINITY if row.special is Special.IEEE else _NAN, number)
    if row.special is Special.IEEE:
        number = b.select(b.compare("GT", magnitude, _INFINITY), _NAN, number)
    signed = b.op("or", number, sign)
    if row.special is Special.FNUZ:
        signed = b.select(b.compare("EQ", number, 0), number, signed)
    return bitcast(rewriter, signed, "f32")


def encode(rewriter: Rewriter, x: Value, row: FloatFormat) -> Value:
    """The bits, in ui8 or ui16, of an f32 from `round_to_format`."""
    b = _Bits(rewriter)
    word = bitcast(rewriter, x, "ui32")
    shift, storage = _MANTISSA - row.mantissa, f"ui{8 * row.itemsize}"
    if row.exponent == 8 and row.special is Special.IEEE:
        return convert(rewriter, b.op("shift_right_logical", word, shift), storage)
    magnitude = b.op("and", word, _SIGN - 1)
    if row.special is Special.FNU:
        above = b.op("shift_right_logical", magnitude, shift)  # 2^-127 is subnormal, and 0 here as required
        return convert(rewriter, b.select(b.compare("GT", magnitude, _INFINITY), row.nan, above), storage)
    sign = b.op("shift_right_logical", b.op("and", word, _SIGN), 32 - row.bits)
    number = b.op("subtract", b.op("shift_right_logical", magnitude, shift), _BIAS - row.bias << row.mantissa)
    adder = _adder(rewriter, row, x)
    low = bitcast(rewriter, elementwise(rewriter, "add", _float(rewriter, magnitude), adder), "ui32")
    low = b.op("subtract", low, bitcast(rewriter, adder, "ui32"))
    number = b.select(b.compare("LT", magnitude, _BIAS - row.bias + 1 << _MANTISSA), low, number)
    if row.special is Special.IEEE:
        number = b.select(b.compare("EQ", magnitude, _INFINITY), row.greatest + 1, number)
    number = b.select(b.compare("GT", magnitude, _INFINITY), row.nan, number)
    return convert(rewriter, b.op("or", number, sign), storage)


def round_to_odd(rewriter: Rewriter, x: Value) -> Value:
    """An f64 as f32, rounded towards zero, with the last bit set if it is inexact."""
    b = _Bits(rewriter)
    near = convert(rewriter, x, "f32")
    back = convert(rewriter, near, "f64")
    magnitude, given = elementwise(rewriter, "abs", back), elementwise(rewriter, "abs", x)
    word = bitcast(rewriter, near, "ui32")
    above = b.select(compare(rewriter, "GT", magnitude, given), b.op("subtract", word, 1), word)
    odd = b.select(compare(rewriter, "NE", back, x), b.op("or", above, 1), word)
    return bitcast(rewriter, odd, "f32")


def from_integer(rewriter: Rewriter, x: Value) -> Value:
    """An integer as f32, with the last bit set if it is inexact."""
    dtype = dtype_of(x)
    if dtype.bits <= 16:
        return convert(rewriter, x, "f32")
    b = _Bits(rewriter)
    magnitude = x
    if dtype.kind == SIGNED:
        magnitude = bitcast(rewriter, elementwise(rewriter, "abs", x), f"ui{dtype.bits}")
    excess = dtype.bits - _MANTISSA - 1
    zeros = b.op("minimum", elementwise(rewriter, "count_leading_zeros", magnitude), excess)
    dropped = elementwise(rewriter, "subtract", constant(rewriter, excess, tensor_of(magnitude)), zeros)
    high = b.op("shift_right_logical", magnitude, dropped)
    inexact = b.compare("NE", b.op("shift_left", high, dropped), magnitude)
    high = b.select(inexact, b.op("or", high, 1), high)
    power = b.op("shift_left", b.op("add", convert(rewriter, dropped, "ui32"), _BIAS), _MANTISSA)
    scale = bitcast(rewriter, power, "f32")
    number = elementwise(rewriter, "multiply", convert(rewriter, high, "f32"), scale)
    if dtype.kind != SIGNED:
        return number
    below = compare(rewriter, "LT", x, constant(rewriter, 0, tensor_of(x)))
    return elementwise(rewriter, "select", below, elementwise(rewriter, "negate", number), number)


def _to_even(b: _Bits, word: Value, shift: int) -> Value:
    """Rounds away the lowest bits, ties to even; a carry into the exponent is correct."""
    odd = b.op("and", b.op("shift_right_logical", word, shift), 1)
    raised = b.op("add", b.op("add", word, (1 << shift - 1) - 1), odd)
    return b.op("and", raised, -(1 << shift))


def _adder(rewriter: Rewriter, row: FloatFormat, like: Value) -> Value:
    """An f32 such that adding it to a number rounds the sum at the format's subnormal spacing."""
    return constant(rewriter, 2.0 ** (row.least_exponent + _MANTISSA), tensor_of(like).with_element(F32))


def _float(rewriter: Rewriter, word: Value) -> Value:
    return bitcast(rewriter, word, "f32")


def _f32_bits(value: float) -> int:
    """The bits of an f32, for a power of two times a small integer, as the formats' greatest numbers are."""
    return int.from_bytes(struct.pack("<f", value), "little")


def _power_of_two(b: _Bits, word: Value, row: FloatFormat) -> Value:
    """The f32 bits of 2^(word - bias); the least one is subnormal."""
    number = b.select(b.compare("EQ", word, 0), 1 << _MANTISSA - 1, b.op("shift_left", word, _MANTISSA))
    return b.select(b.compare("EQ", word, row.nan), _NAN, number)


def _nearest_power(b: _Bits, word: Value) -> Value:
    """The f32 bits of the nearest power of two, ties to the greater; NaN for numbers that are not positive or too
    large.
    """
    normal = b.op("and", b.op("add", word, 1 << _MANTISSA - 1), _INFINITY)
    least = 1 << _MANTISSA - 1
    low = b.compare("LT", word, least + (least >> 1))
    number = b.select(low, least, normal)
    # numbers that are not positive have the sign bit or are 0; those of at least 1.5 * 2^127 round to infinity
    beyond = b.compare("GE", b.op("subtract", word, 1), _INFINITY - (1 << _MANTISSA - 1) - 1)
    return b.select(beyond, _NAN, number)
