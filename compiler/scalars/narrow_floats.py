"""Floats of 4 to 16 bits, as three scalar ops per format: bits in ui8 or ui16, numbers in f32.

`decode_` gives the number for the bits, exactly. `round_to_` gives the nearest f32 that the format can hold, ties to
even, with the format's own treatment of overflow. `encode_` gives the bits of a number that the format can hold. The
expansions use only integer ops, and additions that round at the format's least bit, so results do not depend on the
device. A target may have instructions for a format: of a NaN, the payload may then differ.
"""

import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from orchestrion.schema.dtypes import BY_NAME, FLOAT, FLOAT_FORMATS, UNSIGNED, DType
from orchestrion.schema.float_formats import FloatFormat, Special
from orchestrion.schema.scalar_meanings import Array, Meaning
from orchestrion.schema.scalars import ScalarOp

from .math.number import Number, select

#: Of f32: mantissa bits and exponent bias; sign bit, infinity, and the NaN that is returned.
_MANTISSA, _BIAS = 23, 127
_SIGN, _INFINITY, _NAN = 1 << 31, 0x7F800000, 0x7FC00000


@dataclass(frozen=True, slots=True)
class Conversion(ScalarOp):
    """A scalar op from one element type to another."""

    source: str = ""
    target: str = ""

    def accepts(self, operands: Sequence[DType], result: DType) -> bool:
        """Whether these are the two types."""
        return [dtype.name for dtype in operands] == [self.source] and result.name == self.target


def decode(bits: Number, to: str, row: FloatFormat) -> Number:
    """The f32 for bits in ui8 or ui16."""
    word = bits.to("ui32")
    if row.special is Special.FNU:
        return _power_of_two(word, row).bits_as(to)
    shift = _MANTISSA - row.mantissa
    if row.exponent == 8:  # f32's exponent: the bits are the upper half of an f32
        return (word << shift).bits_as(to)
    magnitude = word & (1 << row.bits - 1) - 1
    sign = (word & 1 << row.bits - 1) << 32 - row.bits
    moved = magnitude << shift
    number = moved + (_BIAS - row.bias << _MANTISSA)
    small = magnitude.to("f32") * 2.0**row.least_exponent
    number = select(magnitude < 1 << row.mantissa, small.bits(), number)
    match row.special:
        case Special.IEEE:
            number = select(magnitude > row.greatest, moved | _INFINITY, number)
        case Special.FN:
            number = select(magnitude.equals(row.nan), word.constant(_NAN), number)
        case Special.FNUZ:
            number = select(word.equals(row.nan), word.constant(_NAN), number)
    return (number | sign).bits_as(to)


def round_to_format(x: Number, row: FloatFormat) -> Number:
    """The f32 nearest to `x` that `row` can hold."""
    word = x.bits()
    if row.special is Special.FNU:
        return _nearest_power(word).bits_as(x.dtype)
    shift = _MANTISSA - row.mantissa
    if row.exponent == 8:
        return select(x.differs(x), word.constant(_NAN), _rounded_to_even(word, shift)).bits_as(x.dtype)
    magnitude, sign = word & _SIGN - 1, word & _SIGN
    number, adder = _rounded_to_even(magnitude, shift), _adder(row)
    low = magnitude.bits_as(x.dtype) + adder - adder
    number = select(magnitude < _BIAS - row.bias + 1 << _MANTISSA, low.bits(), number)
    most = _f32_bits(row.value(row.greatest))
    above = {Special.IEEE: _INFINITY, Special.FINITE: most}.get(row.special, _NAN)
    number = select(number > most, word.constant(above), number)
    if row.special is Special.IEEE:
        number = select(magnitude > _INFINITY, word.constant(_NAN), number)
    if row.special is Special.FINITE:
        number = select(magnitude > _INFINITY, word.constant(_SIGN), number)
    signed = number | sign
    if row.special is Special.FNUZ:
        signed = select(number.equals(0), number, signed)
    return signed.bits_as(x.dtype)


def encode(x: Number, to: str, row: FloatFormat) -> Number:
    """The bits, in ui8 or ui16, of an f32 from `round_to_format`."""
    word = x.bits()
    shift = _MANTISSA - row.mantissa
    if row.exponent == 8 and row.special is Special.IEEE:
        return (word >> shift).to(to)
    magnitude = word & _SIGN - 1
    if row.special is Special.FNU:
        above = magnitude >> shift  # 2^-127 is subnormal, and 0 here as required
        return select(magnitude > _INFINITY, word.constant(row.nan), above).to(to)
    sign = (word & _SIGN) >> 32 - row.bits
    number, adder = (magnitude >> shift) - (_BIAS - row.bias << row.mantissa), _adder(row)
    low = (magnitude.bits_as(x.dtype) + adder).bits() - _f32_bits(adder)
    number = select(magnitude < _BIAS - row.bias + 1 << _MANTISSA, low, number)
    if row.special is Special.IEEE:
        number = select(magnitude.equals(_INFINITY), word.constant(row.greatest + 1), number)
    number = select(magnitude > _INFINITY, word.constant(row.nan), number)
    return (number | sign).to(to)


def _rounded_to_even(bits: Number, dropped: int) -> Number:
    """Rounds away the lowest `dropped` bits, ties to even; a carry into the exponent is correct."""
    odd = bits >> dropped & 1
    return bits + ((1 << dropped - 1) - 1) + odd & (1 << 32) - (1 << dropped)


def _adder(row: FloatFormat) -> float:
    """A number such that adding it to an f32 rounds the sum at the format's subnormal spacing."""
    return 2.0 ** (row.least_exponent + _MANTISSA)


def _f32_bits(value: float) -> int:
    """The bits of an f32, for a power of two times a small integer, as the formats' greatest numbers are."""
    return int.from_bytes(struct.pack("<f", value), "little")


def _power_of_two(word: Number, row: FloatFormat) -> Number:
    """The f32 bits of 2^(word - bias); the least one is subnormal."""
    number = select(word.equals(0), word.constant(1 << _MANTISSA - 1), word << _MANTISSA)
    return select(word.equals(row.nan), word.constant(_NAN), number)


def _nearest_power(word: Number) -> Number:
    """The f32 bits of the nearest power of two, ties to the greater; NaN for numbers not positive or too large."""
    least = 1 << _MANTISSA - 1
    normal = word + least & _INFINITY
    number = select(word < least + (least >> 1), word.constant(least), normal)
    # numbers that are not positive have the sign bit or are 0; those of at least 1.5 * 2^127 round to infinity
    return select(word - 1 >= _INFINITY - least - 1, word.constant(_NAN), number)


def _meaning(name: str, target: str) -> Meaning:
    """The expansion over NumPy arrays."""

    def compute(operand: Array, out: Array) -> Array:
        from .numpy_emitter import NumpyEmitter  # here: it is made of this table

        out[...] = NumpyEmitter().op(name, operand, to=target)
        return out

    return compute


def _rows(format: str) -> dict[str, ScalarOp]:
    """The three ops of a format."""
    bits = BY_NAME[format].storage
    table = (
        (f"decode_{format}", UNSIGNED, bits, "f32", f"the number of the bits of an {format}"),
        (f"round_to_{format}", FLOAT, "f32", "f32", f"the nearest number that an {format} can hold, ties to even"),
        (f"encode_{format}", FLOAT, "f32", bits, f"the bits of a number that an {format} can hold"),
    )
    return {
        name: Conversion(
            name, ("T",), "T" if source == target else "U", {kind: _meaning(name, target)}, doc, source, target
        )
        for name, kind, source, target, doc in table
    }


def _expansions(format: str) -> dict[tuple[str, str], Callable[..., Number]]:
    """(op, kind of its operand) -> how it is computed."""
    row = FLOAT_FORMATS[format]
    return {
        (f"decode_{format}", "u"): partial(decode, row=row),
        (f"round_to_{format}", "f"): partial(round_to_format, row=row),
        (f"encode_{format}", "f"): partial(encode, row=row),
    }


EXPANSIONS: Final = {key: way for format in FLOAT_FORMATS for key, way in _expansions(format).items()}
ROWS: Final[dict[str, ScalarOp]] = {name: row for format in FLOAT_FORMATS for name, row in _rows(format).items()}
