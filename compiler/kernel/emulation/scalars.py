"""Primitives on integers that a device lacks, written with those that it has.

An emulated value is a tuple of values that the device has, its *parts*:
- An integer of 8 or 16 bits is one `i32` or `ui32` of the same value. A result that may exceed the narrow type wraps.
- A `ui64` or `i64` is two `ui32`, the low word first (`pairs.py`).
- A value of any other type has itself as its only part.

`Emulator` works over every emitter: the compiler rewrites kernels with it, and tests compute with NumPy.
"""

from collections.abc import Sequence
from typing import Generic, TypeVar

from orchestrion.compiler.scalars.lowering import LoweringEmitter
from orchestrion.compiler.scalars.math.number import Number
from orchestrion.compiler.scalars.primitives import CONVERSIONS, KINDS, Primitive
from orchestrion.schema.dtypes import FLOAT, SIGNED, UNSIGNED, DType

from . import pairs
from .pairs import PAIRS, Pair

V = TypeVar("V")
Parts = tuple[V, ...]

WORD = 32
#: feature of devices -> bits of the integers that need it
WIDTHS: dict[str, int] = {"int8": 8, "int16": 16, "int64": 64}
#: primitives on narrow integers whose results in a word may exceed the narrow type
_EXCEEDING = (
    "not", "add", "subtract", "multiply", "negate", "unchecked_shift_left", "unchecked_shift_right_logical",
    "unchecked_shift_right_arithmetic",
)  # fmt: skip
#: those of which the low bits of a result depend on the low bits of the operands alone
_LOW = ("not", "add", "subtract", "multiply", "negate")
#: shift of a narrow integer -> the kind whose extension its left operand needs
_EXTENDING = {"unchecked_shift_right_logical": UNSIGNED, "unchecked_shift_right_arithmetic": SIGNED}


class Emulator(Generic[V]):
    """Emits primitives on parts. `widths`: bits of the integers that the device lacks."""

    def __init__(self, emitter: LoweringEmitter[V], widths: frozenset[int]) -> None:
        self.emitter = emitter
        self.widths = widths

    def lacks(self, dtype: DType) -> bool:
        """Whether values of a type are emulated."""
        return dtype.kind in (SIGNED, UNSIGNED) and dtype.bits in self.widths

    def parts_of(self, dtype: DType) -> tuple[str, ...]:
        """The types of the parts of a value."""
        if not self.lacks(dtype):
            return (dtype.name,)
        return ("ui32", "ui32") if dtype.bits > WORD else (_word(dtype),)

    def constant(self, pattern: int, dtype: DType) -> Parts[V]:
        """A constant by its bits."""
        if not self.lacks(dtype):
            return (self.emitter.bits(pattern, dtype.name),)
        if dtype.bits > WORD:
            return tuple(self.emitter.bits(word, "ui32") for word in (pattern % (1 << WORD), pattern >> WORD))
        negative = dtype.kind == SIGNED and pattern >> dtype.bits - 1
        return (self.emitter.bits(pattern + (1 << WORD) - (1 << dtype.bits) if negative else pattern, _word(dtype)),)

    def primitive(
        self, row: Primitive, operands: Sequence[Parts[V]], types: Sequence[DType], result: DType
    ) -> Parts[V]:
        """A primitive on operands of these types."""
        subject = types[-1]
        if row.name in CONVERSIONS:
            return self._conversion(row, operands[-1], subject, result)
        if not self.lacks(subject):
            return (self.emitter.primitive(row, [operand[0] for operand in operands], result),)
        if subject.bits <= WORD:
            return (self._on_words(row, operands, subject).value,)
        function = PAIRS[row.name, KINDS[subject.kind]]
        found = function(*(self._pair(one) if len(one) > 1 else self._number(one[0]) for one in operands))
        return _parts(found)

    def _number(self, value: V) -> Number:
        return Number(self.emitter, value)

    def _pair(self, parts: Parts[V]) -> Pair:
        return Pair(*map(self._number, parts))

    def _on_words(self, row: Primitive, operands: Sequence[Parts[V]], subject: DType) -> Number:
        """A primitive on integers of 8 or 16 bits, computed in words."""
        first, *rest = (self._number(operand[0]) for operand in operands)
        if row.name in _EXTENDING:
            first = wrapped(first, subject.bits, _EXTENDING[row.name])
            rest = [one.bits_as(first.dtype) for one in rest]
        elif row.name in _LOW:
            first, *rest = (_low(one, subject.bits) for one in (first, *rest))
        found = first.op(row.name, *rest)
        return self.narrowed(found, subject) if row.name in _EXCEEDING else found

    def narrowed(self, word: Number, dtype: DType) -> Number:
        """The low bits of a word as a value of a narrow type."""
        return wrapped(word, dtype.bits, dtype.kind)

    def _conversion(self, row: Primitive, operand: Parts[V], source: DType, result: DType) -> Parts[V]:
        """A `convert`, `bitcast` or `unchecked_convert`."""
        lacks_source, lacks_result = self.lacks(source), self.lacks(result)
        if not lacks_source and not lacks_result:
            return (self.emitter.primitive(row, operand, result),)
        if FLOAT in (source.kind, result.kind):
            return self._between_floats(operand, source, result)
        if len(operand) > 1 and lacks_result and result.bits > WORD:
            return operand
        word = self._number(operand[0])
        if not lacks_source and source.bits != WORD:
            word = word.to(_word(source))
        if not lacks_result:
            return (word.to(result.name).value,)
        return _parts(pairs.extended(word)) if result.bits > WORD else (self.narrowed(word, result).value,)

    def _between_floats(self, operand: Parts[V], source: DType, result: DType) -> Parts[V]:
        """A conversion between f32 and an emulated integer."""
        if source.kind == FLOAT:
            function = pairs.signed_from_f32 if result.kind == SIGNED else pairs.from_f32
            return _parts(function(self._number(operand[0])))
        if source.bits <= WORD:
            return (self._number(operand[0]).to(result.name).value,)
        convert = pairs.signed_to_f32 if source.kind == SIGNED else pairs.to_f32
        return (convert(self._pair(operand)).value,)


def _word(dtype: DType) -> str:
    return "i32" if dtype.kind == SIGNED else "ui32"


def _parts(found: Pair | Number) -> Parts[V]:
    return (found.low.value, found.high.value) if isinstance(found, Pair) else (found.value,)


def wrapped(word: Number, bits: int, kind: int) -> Number:
    """The low bits of a word, extended as a number of that kind, as an `i32` or `ui32`."""
    word = _low(word, bits)
    if kind == UNSIGNED:
        return word & (1 << bits) - 1
    return word.bits_as("i32") << WORD - bits >> WORD - bits


def _low(word: Number, bits: int) -> Number:
    """A `ui32` with the same low bits."""
    return Number(word.emitter, word.emitter.low_bits(word.value, bits)).bits()
