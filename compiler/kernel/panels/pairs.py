"""Dots of bf16 with panels of words: a word has two elements of an operand along the innermost contracted axis.

`kernel.multiply_add_pairs` adds two products to an f32, one after the other. It takes subnormal numbers for zeros, in
elements and in sums. A workgroup therefore finds the least exponents of the elements that are not 0, in a slice of
columns and in a strip of rows. An element is a multiple of 2^(exponent - 7). If none is subnormal and all products
are multiples of 2^-126, then all sums are multiples of it, too, so none is subnormal. The op then gives the sums of
multiply-adds. Else, and where the instruction set has no such op, the workgroup widens the words and adds the products
of the strip one by one. Results have the same bits in both ways: the first element of a pair is the upper half of its
word.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial, reduce
from itertools import product
from math import prod
from typing import Final

from orchestrion.compiler.ir.core import Value
from orchestrion.compiler.ir.dims import ceildiv, is_dynamic, numbers, typical
from orchestrion.compiler.kernel.dialect import VECTOR_LANES, HasPairProducts, MultiplyAddPairs, length_of
from orchestrion.compiler.kernel.elements.index import linearize
from orchestrion.compiler.kernel.elements.loops import Reduction, Scalars
from orchestrion.compiler.kernel.products.operands import bf16_of, is_read
from orchestrion.compiler.kernel.schedule import Schedule
from orchestrion.compiler.stablehlo.ops.contraction import DotGeneral

from .dot import MIN_PREFETCHED, Panel, PanelDot, contracted, is_divided, slice_of
from .words import WordPanelDot, reads_words

#: elements of a word
PAIR: Final = 2
#: panels of the left operand: of words, and of their halves
FORMS: Final = 1 + PAIR
#: the sign of each half of a word, and 1 in each
_SIGNS, _ONES = 0x80008000, 0x00010001
#: the upper half of a word
_UPPER: Final = 0xFFFF0000
#: bits of an f32 below those of a bf16
BF16_SHIFT: Final = 16
#: bits of the fraction of a bf16, and half of the numbers that 16 bits hold
_FRACTION, _HALF = 7, 1 << 15
#: least sum of two exponents, as bf16 stores them, of which all products are multiples of the least normal f32: their
#: sum, less twice the bias, less the bits of both fractions, is -126
LEAST_EXPONENTS: Final = -126 + 2 * 127 + 2 * _FRACTION


def has_pairs(dot: DotGeneral) -> bool:
    """Whether a dot multiplies widened numbers of bf16, in pairs along its innermost contracted axis."""
    sizes = contracted(dot)
    if not sizes or is_dynamic(*sizes) or sizes[-1] % PAIR:
        return False
    return all(bf16_of(operand) is not None for operand in dot.operands)


def reads_rows(dot: DotGeneral) -> bool:
    """Whether words of the left operand lie in memory, so that its panel has the rows of a strip, else of the block."""
    source = bf16_of(dot.lhs)
    return source is not None and reads_words(dot, True, source, PAIR)


def pair_panel_bytes(dot: DotGeneral, schedule: Schedule) -> int:
    """Bytes of the shared arrays of a workgroup: results, the panel of columns, and that of rows in three forms."""
    tile, (rows, columns) = schedule.count("tile", "m"), (schedule.block(dim) for dim in ("m", "n"))
    slice = slice_of(dot, schedule.count("stage", "out"))
    depth, sums = prod(slice[1:]) // PAIR, rows if is_divided(slice, numbers(contracted(dot))) else tile
    return 4 * (sums * columns + depth * (columns + FORMS * (tile if reads_rows(dot) else rows)))


class PairPanelDot(WordPanelDot):
    """A block of f32 results of a dot of bf16 under construction. The panel of rows has those of a strip if words of it
    lie in memory, else those of the block.
    """

    per_word = PAIR
    in_strips = True
    strips_slices = True
    #: whether products of pairs are under construction
    multiplies_pairs = True

    def __post_init__(self) -> None:
        super().__post_init__()
        assert self.left is not None
        shared, size = self.builder.shared, self.left.size * self.left.depth
        #: the upper and the lower halves of the words of the left panel, widened
        self.halves = [replace(self.left, array=shared(size, "f32")) for _ in range(PAIR)]
        #: the least exponents of the left and of the right panel
        self.exponents = shared(len(self.dot.operands), "i32")

    def _division(self) -> tuple[tuple[int, ...], tuple[int, int, int]]:
        sizes = numbers(contracted(self.dot))
        axis, places, inside = slice_of(self.dot, self.schedule.count("stage", "out"))
        words = (axis, places // PAIR, 1) if inside == 1 else (axis, places, inside // PAIR)
        return (*sizes[:-1], sizes[-1] // PAIR), words

    def _panel_rows(self) -> int:
        return self.tile[0] if reads_rows(self.dot) else self.rows

    def _source(self, left: bool) -> Value:
        source = bf16_of(self.dot.operands[not left])
        assert source is not None
        return source

    def _loaded(self, word: Value) -> Value:
        return self.builder.op("or", self._shifted(word, "left"), self._shifted(word, "right_logical"))

    def _shifted(self, word: Value, way: str) -> Value:
        return self.builder.op(f"unchecked_shift_{way}", word, self._same(BF16_SHIFT, word))

    def _joined(self, left: bool, number: Value, outer: Sequence[Value], first: Value) -> Value:
        b = self.builder
        pair = [PanelDot._factor(self, left, number, [*outer, b.op("add", first, b.index(at))]) for at in range(PAIR)]
        upper, lower = (b.op("bitcast", value, to="ui32") for value in pair)
        return b.op("or", upper, self._shifted(lower, "right_logical"))

    def _same(self, bits: int, like: Value) -> Value:
        """A number of the type of a word or a vector of words."""
        b = self.builder
        number = b.word(bits)
        return number if like.type == number.type else b.vector([number] * length_of(like))

    # slices

    def _fetch_panels(self, outer: Sequence[Value], bounds: tuple[Value, Value, int]) -> Value:
        assert self.left is not None and self.right is not None
        b, base, (_, _, inside) = self.builder, self._base(outer, bounds), self.slice
        count = b.op("multiply", b.op("subtract", bounds[1], bounds[0]), b.index(inside))
        self.count = b.word(count)
        if self.left.size == self.rows:
            self._fetch(self.left, True, outer, bounds[:2], base)
            b.barrier()
        self._fetch(self.right, False, outer, bounds[:2], base)
        b.barrier()  # the panels are there
        self._search(self.right)
        return base

    def _slice(self, outer: Sequence[Value], bounds: tuple[Value, Value, int]) -> None:
        base = self._fetch_panels(outer, bounds)
        with self._each_strip():
            self._multiply(outer, bounds, base)
            self.builder.barrier()  # the panel of rows is read
        self.builder.barrier()  # that of columns, too, and the results are there

    def _multiply(self, outer: Sequence[Value], bounds: tuple[Value, Value, int], base: Value) -> None:
        """Adds the products of a strip and a slice."""
        assert self.left is not None
        b = self.builder
        if self.left.size < self.rows:
            self._fetch(self.left, True, outer, bounds[:2], base)
            b.barrier()  # the panel of rows is there
        self._search(self.left)
        branch = b.begin_if(b.op("and", b.fact(HasPairProducts, "i1"), self._is_exact()))
        super()._multiply(outer, bounds, base)
        b.barrier()
        b.begin_else(branch)
        self._each_vector(self.left, lambda _: (), self._widen, lambda _: None)
        b.barrier()  # the halves are there
        self.multiplies_pairs = False
        super()._multiply(outer, bounds, base)
        self.multiplies_pairs = True
        b.end_if(branch)

    def _widen(self, at: Value, words: Value, values: Sequence[Value]) -> Sequence[Value]:
        b = self.builder
        for panel, half in zip(self.halves, self._halves(words), strict=True):
            b.store_shared_lanes(half, panel.array, at)
        return values

    def _halves(self, words: Value) -> list[Value]:
        """The upper and the lower halves of words, widened."""
        b = self.builder
        halves = b.op("and", words, self._same(_UPPER, words)), self._shifted(words, "left")
        return [b.op("bitcast", half, to="f32") for half in halves]

    def _each_vector(
        self,
        panel: Panel,
        start: Callable[[int], Sequence[Value]],
        combine: Callable[[Value, Value, Sequence[Value]], Sequence[Value]],
        finish: Callable[[Sequence[Value]], None],
    ) -> None:
        """Combines values with all vectors of words of a panel of columns, or of the rows of this strip, in the first
        invocation. `start`: the values, from the number of lanes; `combine`: the next ones, from the position of a
        vector in the array, the vector, and the values; `finish`: uses the last ones.
        """
        b, zero, tile = self.builder, self.builder.word(0), self.tile[0]
        of_rows, first = panel is self.left, b.word(0)
        if panel.deep:
            lines, length, pitch = b.word(panel.size), self.count, panel.depth
        else:
            lines, length, pitch = self.count, b.word(tile if of_rows else panel.size), panel.size
            first = self.strip if of_rows and panel.size > tile else first
        most = self.schedule.workgroup_size if panel.deep else tile if of_rows else panel.size
        lanes = max(lanes for lanes in VECTOR_LANES if lanes <= most)
        step = b.word(lanes)
        with b.when(b.op("compare_eq", b.local_id(), zero)):
            loop = b.begin_loop(zero, lines, b.word(1), start(lanes))
            inner = b.begin_loop(zero, length, step, loop.carried)
            at = b.op("add", first, b.op("minimum", inner.index, b.op("subtract", length, step)))
            at = b.place(loop.index, pitch, at)
            words = b.load_shared_lanes(panel.array, at, lanes)
            finish(b.end_loop(loop, b.end_loop(inner, combine(at, words, inner.carried))))

    def _search(self, panel: Panel) -> None:
        """Finds the least exponent in a panel of columns, or in the rows of this strip, or 1 less if that number is a
        power of two; 511 if there are only zeros.
        """
        b = self.builder

        def least(at: Value, words: Value, values: Sequence[Value]) -> list[Value]:
            # as numbers with signs, halves are ordered by magnitude; 1 is subtracted, so that 0 is the greatest
            words = b.op("subtract", b.op("or", words, self._same(_SIGNS, words)), self._same(_ONES, words))
            halves = [b.op("bitcast", half, to="i32") for half in (words, self._shifted(words, "left"))]
            tests = [b.op("compare_lt", half, value) for half, value in zip(halves, values, strict=True)]
            return [b.select(*three) for three in zip(tests, halves, values, strict=True)]

        def keep(values: Sequence[Value]) -> None:
            found = [lane for value in values for lane in b.lanes(value)]
            while len(found) > 1:
                found = [b.op("minimum", *pair) for pair in zip(found[::2], found[1::2], strict=True)]
            half = b.op("unchecked_shift_right_arithmetic", found[0], b.const(BF16_SHIFT, "i32"))
            magnitude = b.op("add", half, b.const(_HALF, "i32"))
            exponent = b.op("unchecked_shift_right_arithmetic", magnitude, b.const(_FRACTION, "i32"))
            b.store_shared(exponent, self.exponents, b.word(0 if panel is self.left else 1))

        with b.when(b.fact(HasPairProducts, "i1")):
            self._each_vector(panel, lambda lanes: [b.vector([b.const(2**31 - 1, "i32")] * lanes)] * PAIR, least, keep)
            b.barrier()  # the exponent is there

    def _is_exact(self) -> Value:
        """Whether no element is subnormal, and no sum of products can be."""
        b = self.builder
        both = [b.load_shared(self.exponents, b.word(at)) for at in range(len(self.dot.operands))]
        tests = [b.op("compare_ge", value, b.const(1, "i32")) for value in both]
        tests.append(b.op("compare_ge", b.op("add", *both), b.const(LEAST_EXPONENTS, "i32")))
        return reduce(partial(b.op, "and"), tests)

    # products

    def _tile_factors(
        self, rows: Sequence[Value], vectors: Sequence[Value], base: Value
    ) -> Callable[[Sequence[Value]], Scalars]:
        assert self.left is not None and self.right is not None
        b, left, right = self.builder, self.left, self.right
        panels = [left] if self.multiplies_pairs else self.halves
        numbers = [b.op("add", self.strip, row) for row in rows] if left.size > self.tile[0] else rows

        def factors(reduced: Sequence[Value]) -> Scalars:
            yield from ()
            place = b.op("subtract", linearize(b, reduced, self.sizes), base)
            if left.size < self.rows:
                self._prefetch_strip(reduced)
            if self.reads_columns:
                self._prefetch_slice(place, base)
            xs = [b.load_shared(panel.array, panel.at(number, place)) for panel in panels for number in numbers]
            return [*xs, *(b.load_shared_lanes(right.array, right.at(first, place), self.lanes) for first in vectors)]

        return factors

    def _prefetch_strip(self, reduced: Sequence[Value]) -> None:
        """Prefetches the rows of the next strip while products at a place are added. Each tile prefetches some rows."""
        b, (*outer, word) = self.builder, reduced
        rows = max(self.tile[0] // (self.columns // self.tile[1]), 1)
        own = b.op("unchecked_remainder", b.word(word), b.word(rows))
        row = b.place(self.tile_column, rows, own)
        place = b.op("multiply", word, b.index(PAIR))
        b.prefetch(self._load(True, b.op("add", row, b.word(self.tile[0])), [*outer, place]).output)

    @property
    def reads_columns(self) -> bool:
        """Whether the columns of the right operand are contiguous in memory, so that the next slice is prefetched."""
        source, across = self._source(False), int(self.column_count) * prod(self.sizes)
        return len(self.sizes) == 1 and is_read(source) and not self._reads_words(False) and across >= MIN_PREFETCHED

    def _prefetch_slice(self, place: Value, base: Value) -> None:
        """Prefetches the next slice of columns, or the first one of the next block, while products at a place are
        added: each tile its columns, each strip a part of the rows.
        """
        b, depth, size = self.builder, self.slice[1], self.sizes[0]
        strips = ceildiv(min(self.rows, int(typical(self.row_count))), self.tile[0])
        strip = b.op("unchecked_divide", self.strip, b.word(self.tile[0]))
        number = b.place(b.index(strip), depth, place)
        next = b.op("add", base, b.index(depth))
        is_behind = b.op("compare_ge", next, b.index(size))
        word = b.select(is_behind, b.index(0), next)
        after = b.op("add", self.start, b.index(self.columns))
        after = b.select(b.op("compare_ge", after, b.index(self.column_count)), b.index(0), after)
        column = b.op("multiply", self.tile_column, b.word(self.tile[1]))
        column = b.op("add", b.select(is_behind, after, self.start), b.index(column))
        for at in range(PAIR if strips == 1 else 1):
            row = b.op("unchecked_divide", b.op("multiply", number, b.index(PAIR)), b.index(strips))
            row = b.op("add", b.op("multiply", word, b.index(PAIR)), b.op("add", row, b.index(at)))
            (value,) = self.elemental.run(self._factors(None, column)(False, [row]))
            b.prefetch(self._load_of(value).output)

    def _products(self, rows: int, zeros: Sequence[Value], factors: Callable[[Sequence[Value]], Scalars]) -> Reduction:
        b, lanes = self.builder, self.lanes

        def pairs(values: Sequence[Value], reduced: Sequence[Value]) -> Scalars:
            found, sums = (yield from factors(reduced)), iter(values)
            xs, ys = [b.vector([x] * lanes) for x in found[:rows]], found[rows:]
            return [b.multiply_add_words(MultiplyAddPairs, x, y, next(sums)) for x in xs for y in ys]

        def halves(values: Sequence[Value], reduced: Sequence[Value]) -> Scalars:
            found = [b.vector([x] * lanes) if length_of(x) == 1 else x for x in (yield from factors(reduced))]
            words, sums = [self._halves(word) for word in found[PAIR * rows :]], list(values)
            for at in range(PAIR):
                factors_at = product(found[at * rows : (at + 1) * rows], [word[at] for word in words])
                sums = [b.multiply_add(x, y, z) for (x, y), z in zip(factors_at, sums, strict=True)]
            return sums

        accumulate = pairs if self.multiplies_pairs else halves
        return replace(super()._products(rows, zeros, factors), accumulate=accumulate, width=PAIR)
