"""Floats of 4 to 16 bits by ops that every device has: bits in ui8 or ui16, numbers in f32.

`decode` returns the number for the bits, exactly. `round_to_format` returns the nearest f32 that the format can hold,
ties to even, with the format's own treatment of overflow. `encode` returns the bits of a number that the format can
hold. They use only integer ops, and additions that round at the format's least bit, so results do not depend on the
device.

`round_to_odd` and `from_integer` convert wider numbers to f32 such that a second rounding gives the same result as a
single one: an inexact number gets its last bit set (Boldo and Melquiond, "When double rounding is odd", 2005).
"""

from __future__ import annotations

import struct

from orchestrion.compiler.ir.types import F32
from orchestrion.compiler.stablehlo.builders.tensors import Tensor
from orchestrion.schema.dtypes import SIGNED
from orchestrion.schema.float_formats import FloatFormat, Special

from .reduce_precision import rounded_to_even

#: Of f32: mantissa bits and exponent bias; sign bit, infinity, and the NaN that is returned.
_MANTISSA, _BIAS = 23, 127
_SIGN, _INFINITY, _NAN = 1 << 31, 0x7F800000, 0x7FC00000


def decode(bits: Tensor, row: FloatFormat) -> Tensor:
    """The f32 for bits in ui8 or ui16."""
    word = bits.convert("ui32")
    if row.special is Special.FNU:
        return _power_of_two(word, row).bitcast("f32")
    shift = _MANTISSA - row.mantissa
    if row.exponent == 8:  # f32's exponent: the bits are the upper half of an f32
        return (word << shift).bitcast("f32")
    magnitude = word & (1 << row.bits - 1) - 1
    sign = (word & 1 << row.bits - 1) << 32 - row.bits
    moved = magnitude << shift
    number = moved + (_BIAS - row.bias << _MANTISSA)
    small = magnitude.convert("f32") * 2.0**row.least_exponent
    number = (magnitude < 1 << row.mantissa).select(small.bitcast("ui32"), number)
    match row.special:
        case Special.IEEE:
            number = (magnitude > row.greatest).select(moved | _INFINITY, number)
        case Special.FN:
            number = magnitude.eq(row.nan).select(_NAN, number)
        case Special.FNUZ:
            number = word.eq(row.nan).select(_NAN, number)
    return (number | sign).bitcast("f32")


def round_to_format(x: Tensor, row: FloatFormat) -> Tensor:
    """The f32 nearest to `x` that `row` can hold."""
    word = x.bitcast("ui32")
    if row.special is Special.FNU:
        return _nearest_power(word).bitcast("f32")
    shift = _MANTISSA - row.mantissa
    if row.exponent == 8:
        number = rounded_to_even(word, shift)
        return x.is_nan.select(_NAN, number).bitcast("f32")
    magnitude, sign = word & _SIGN - 1, word & _SIGN
    number, adder = rounded_to_even(magnitude, shift), _adder(row, x)
    low = magnitude.bitcast("f32") + adder - adder
    number = (magnitude < _BIAS - row.bias + 1 << _MANTISSA).select(low.bitcast("ui32"), number)
    most = _f32_bits(row.value(row.greatest))
    above = {Special.IEEE: _INFINITY, Special.FINITE: most}.get(row.special, _NAN)
    number = (number > most).select(above, number)
    if row.special is Special.IEEE:
        number = (magnitude > _INFINITY).select(_NAN, number)
    if row.special is Special.FINITE:
        number = (magnitude > _INFINITY).select(_SIGN, number)
    signed = number | sign
    if row.special is Special.FNUZ:
        signed = number.eq(0).select(number, signed)
    return signed.bitcast("f32")


def encode(x: Tensor, row: FloatFormat) -> Tensor:
    """The bits, in ui8 or ui16, of an f32 from `round_to_format`."""
    word = x.bitcast("ui32")
    shift, storage = _MANTISSA - row.mantissa, f"ui{8 * row.itemsize}"
    if row.exponent == 8 and row.special is Special.IEEE:
        return (word >> shift).convert(storage)
    magnitude = word & _SIGN - 1
    if row.special is Special.FNU:
        above = magnitude >> shift  # 2^-127 is subnormal, and 0 here as required
        return (magnitude > _INFINITY).select(row.nan, above).convert(storage)
    sign = (word & _SIGN) >> 32 - row.bits
    number, adder = (magnitude >> shift) - (_BIAS - row.bias << row.mantissa), _adder(row, x)
    low = (magnitude.bitcast("f32") + adder).bitcast("ui32") - adder.bitcast("ui32")
    number = (magnitude < _BIAS - row.bias + 1 << _MANTISSA).select(low, number)
    if row.special is Special.IEEE:
        number = magnitude.eq(_INFINITY).select(row.greatest + 1, number)
    number = (magnitude > _INFINITY).select(row.nan, number)
    return (number | sign).convert(storage)


def round_to_odd(x: Tensor) -> Tensor:
    """An f64 as f32, rounded towards zero, with the last bit set if it is inexact."""
    near = x.convert("f32")
    back = near.convert("f64")
    magnitude, given, word = abs(back), abs(x), near.bitcast("ui32")
    above = (magnitude > given).select(word - 1, word)
    return back.ne(x).select(above | 1, word).bitcast("f32")


def from_integer(x: Tensor) -> Tensor:
    """An integer as f32, with the last bit set if it is inexact."""
    if x.dtype.bits <= 16:
        return x.convert("f32")
    is_signed = x.dtype.kind == SIGNED
    magnitude = abs(x).bitcast(f"ui{x.dtype.bits}") if is_signed else x
    excess = x.dtype.bits - _MANTISSA - 1
    dropped = excess - magnitude.op("count_leading_zeros").op("minimum", excess)
    high = magnitude >> dropped
    inexact = (high << dropped).ne(magnitude)
    high = inexact.select(high | 1, high)
    scale = (dropped.convert("ui32") + _BIAS << _MANTISSA).bitcast("f32")
    number = high.convert("f32") * scale
    return (x < 0).select(-number, number) if is_signed else number


def _adder(row: FloatFormat, like: Tensor) -> Tensor:
    """An f32 such that adding it to a number rounds the sum at the format's subnormal spacing."""
    return like.splat(2.0 ** (row.least_exponent + _MANTISSA), like.type.with_element(F32))


def _f32_bits(value: float) -> int:
    """The bits of an f32, for a power of two times a small integer, as the formats' greatest numbers are."""
    return int.from_bytes(struct.pack("<f", value), "little")


def _power_of_two(word: Tensor, row: FloatFormat) -> Tensor:
    """The f32 bits of 2^(word - bias); the least one is subnormal."""
    number = word.eq(0).select(1 << _MANTISSA - 1, word << _MANTISSA)
    return word.eq(row.nan).select(_NAN, number)


def _nearest_power(word: Tensor) -> Tensor:
    """The f32 bits of the nearest power of two, ties to the greater; NaN for numbers not positive or too large."""
    least = 1 << _MANTISSA - 1
    normal = word + least & _INFINITY
    number = (word < least + (least >> 1)).select(least, normal)
    # numbers that are not positive have the sign bit or are 0; those of at least 1.5 * 2^127 round to infinity
    return (word - 1 >= _INFINITY - least - 1).select(_NAN, number)
