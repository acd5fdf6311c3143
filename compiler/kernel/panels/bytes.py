"""Dots of bytes with panels of words: a word has four elements of an operand along the innermost contracted axis.

`kernel.multiply_add_bytes` adds the products of four pairs to an i32. The instruction sets that have it as one
instruction take the first factor without signs, so panels hold its elements plus `kernel.byte_offset`, which is 0 where
bytes are signed. Elements of ui8 count from their middle, 128, in the same way. What both add to a sum is a multiple of
the sum of the column, which is subtracted once per slice. Sums are exact, modulo 2^32.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Final

from orchestrion.compiler.ir.core import Value
from orchestrion.compiler.ir.dims import ceildiv, numbers
from orchestrion.compiler.kernel.dialect import ByteOffset, MultiplyAddBytes
from orchestrion.compiler.kernel.elements.rules import element_of
from orchestrion.compiler.kernel.products.blocks import Finish
from orchestrion.compiler.kernel.products.operands import bytes_of
from orchestrion.compiler.kernel.schedule import Schedule
from orchestrion.compiler.stablehlo.ops.contraction import DotGeneral

from .dot import PanelDot, contracted
from .words import WordPanelDot, innermost

#: elements of a word
WORD: Final = 4
#: 128 and 1 in each byte of a word
_MIDDLES, _ONES = 0x80808080, 0x01010101


def has_bytes(dot: DotGeneral) -> bool:
    """Whether a dot adds products of bytes in i32, of which the right ones have signs."""
    left, right = (bytes_of(operand) for operand in dot.operands)
    return left is not None and right is not None and element_of(right) == "i8" and element_of(dot.out) == "i32"


def words_of(dot: DotGeneral) -> tuple[int, ...]:
    """The sizes of the contracted axes, the last one in words."""
    *outer, _ = numbers(contracted(dot))
    return *outer, ceildiv(innermost(dot), WORD)


def words_of_slice(dot: DotGeneral, depth: int) -> tuple[int, int, int]:
    """As `panels.slice_of`, in words; `depth` counts elements."""
    sizes, most = words_of(dot), max(depth // WORD, 1)
    if most >= prod(sizes):
        return 0, sizes[0], prod(sizes[1:])
    axis = next(axis for axis in range(len(sizes)) if prod(sizes[axis + 1 :]) <= most)
    inside = prod(sizes[axis + 1 :])
    return axis, ceildiv(sizes[axis], ceildiv(sizes[axis], most // inside)), inside


def byte_panel_bytes(dot: DotGeneral, schedule: Schedule) -> int:
    """Bytes of the shared arrays of a workgroup: results, sums of columns, and both panels."""
    rows, columns = (schedule.block(dim) for dim in ("m", "n"))
    depth = prod(words_of_slice(dot, schedule.count("stage", "out"))[1:])
    return 4 * (rows * columns + columns + depth * (rows + columns))


class BytePanelDot(WordPanelDot):
    """A block of i32 results of a dot of bytes under construction, with vectors along `n` and both operands in panels
    of words.
    """

    per_word = WORD

    def __post_init__(self) -> None:
        super().__post_init__()
        self.sums = self.builder.shared(self.columns, "i32")

    def emit(self, finish: Finish) -> None:
        b = self.builder
        if self.is_sliced:
            with self._each(b.word(1), self.columns) as (_, column):
                b.store_shared(self.zero, self.sums, column)
        super().emit(finish)

    def _division(self) -> tuple[tuple[int, ...], tuple[int, int, int]]:
        return words_of(self.dot), words_of_slice(self.dot, self.schedule.count("stage", "out"))

    def _source(self, left: bool) -> Value:
        source = bytes_of(self.dot.operands[not left])
        assert source is not None
        return source

    def _loaded(self, word: Value) -> Value:
        return word

    def _factor(self, left: bool, number: Value, along: Sequence[Value]) -> Value:
        """The word of an operand at a row or column of the block. Behind the last element, the right one has zeros."""
        b, made = self.builder, super()._factor(left, number, along)
        if not left:
            return made
        made = b.op("xor", made, b.word(_MIDDLES)) if element_of(self._source(True)) == "ui8" else made
        return b.op("xor", made, b.fact(ByteOffset, "ui32"))

    def _joined(self, left: bool, number: Value, outer: Sequence[Value], first: Value) -> Value:
        b, size = self.builder, innermost(self.dot)
        made: Value | None = None
        for at in range(WORD):
            place = b.op("add", first, b.index(at))
            inside = b.op("compare_lt", place, b.index(size)) if at >= (size % WORD or WORD) else None
            read = place if inside is None else b.op("minimum", place, b.index(size - 1))
            value = b.word(PanelDot._factor(self, left, number, [*outer, read]))
            value = b.op("and", value, b.word(0xFF))
            if inside is not None and not left:
                value = b.select(inside, value, b.word(0))
            value = b.op("unchecked_shift_left", value, b.word(8 * at)) if at else value
            made = value if made is None else b.op("or", made, value)
        assert made is not None
        return made

    # products

    def _multiply(self, outer: Sequence[Value], bounds: tuple[Value, Value, int], base: Value) -> None:
        b, (_, _, inside) = self.builder, self.slice
        count = b.word(b.op("multiply", b.op("subtract", bounds[1], bounds[0]), b.index(inside)))
        self._sum_columns(count)
        with self._tile_with_rows() as (rows, vectors):
            self._add_words(rows, vectors, count)

    def _sum_columns(self, count: Value) -> None:
        """Adds the columns of the panel to their sums."""
        b, lanes, size = self.builder, self.lanes, self.schedule.workgroup_size
        assert self.right is not None
        with b.words(ceildiv(self.columns, lanes * size)) as group:
            number = b.place(group, size, b.local_id())
            with b.when(b.op("compare_lt", number, b.word(self.columns // lanes))):
                column = b.op("multiply", number, b.word(lanes))
                one, zero = (b.vector([value] * lanes) for value in (b.word(_ONES), self.zero))
                start = b.load_shared_lanes(self.sums, column, lanes) if self.is_sliced else zero
                loop = b.begin_loop(b.word(0), count, b.word(1), [start])
                words = b.load_shared_lanes(self.right.array, self.right.at(column, loop.index), lanes)
                (sums,) = b.end_loop(loop, [b.multiply_add_words(MultiplyAddBytes, one, words, loop.carried[0])])
                b.store_shared_lanes(sums, self.sums, column)

    def _add_words(self, rows: Sequence[Value], vectors: Sequence[Value], count: Value) -> None:
        """Adds the products of a slice to a tile."""
        b, lanes, left, right = self.builder, self.lanes, self.left, self.right
        assert left is not None and right is not None
        places = [self._at(row, at) for row in rows for at in vectors]
        zero = b.vector([self.zero] * lanes)
        start = [b.load_shared_lanes(self.block, at, lanes) if self.is_sliced else zero for at in places]
        loop = b.begin_loop(b.word(0), count, b.word(1), start)
        ys = [b.load_shared_lanes(right.array, right.at(at, loop.index), lanes) for at in vectors]
        xs = [b.load_shared(left.array, left.at(row, loop.index)) for row in rows]
        factors = [(b.vector([x] * lanes), y) for x in xs for y in ys]
        terms = zip(factors, loop.carried, strict=True)
        found = [b.multiply_add_words(MultiplyAddBytes, *pair, z) for pair, z in terms]
        for value, at in zip(b.end_loop(loop, found), places, strict=True):
            b.store_shared_lanes(value, self.block, at)

    def _sum(self, row: Value, column: Value) -> Value:
        """A sum without what each element of the left panel is more than its number, times the sum of the column."""
        b = self.builder
        more = b.op("unchecked_shift_right_logical", b.fact(ByteOffset, "ui32"), b.word(24))
        if element_of(self._source(True)) == "ui8":
            more = b.op("subtract", more, b.word(128))
        surplus = b.op("multiply", b.load_shared(self.sums, column), b.op("convert", more, to="i32"))
        return b.op("subtract", PanelDot._sum(self, row, column), surplus)
