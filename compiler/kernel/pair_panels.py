"""Dots of bf16 with panels of words: a word has two elements of an operand along the innermost contracted axis.

`kernel.multiply_add_pairs` adds two products to an f32, one after the other. It takes subnormal numbers for zeros, in
elements and in sums. For each slice and operand, a workgroup therefore finds the least exponent of the elements that
are not 0. An element is a multiple of 2^(exponent - 7). If no element is subnormal and all products are multiples of
2^-126, then all sums are multiples of it, too, so none is subnormal. The op then gives the sums of multiply-adds.
Else, and where the instruction set has no such op, the workgroup widens its operands and adds the products of the slice
as `PanelDot` does. Results have the same bits in both ways: the first element of a pair is the upper half of its word.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial, reduce
from math import prod
from typing import Final

from orchestrion.compiler.flow.fusion_reads import BF16_SHIFT
from orchestrion.compiler.ir.core import Value
from orchestrion.compiler.ir.dims import is_dynamic
from orchestrion.compiler.stablehlo.ops.contraction import DotGeneral

from .dialect import VECTOR_LANES, length_of
from .loops import Reduction, Scalars
from .operands import bf16_of
from .panels import Panel, PanelDot, contracted, slice_of
from .schedule import Schedule, Step
from .word_panels import WordPanelDot

#: elements of a word
PAIR: Final = 2
#: the sign of each half of a word, and 1 in each
_SIGNS, _ONES = 0x80008000, 0x00010001
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


def pair_panel_bytes(dot: DotGeneral, schedule: Schedule) -> int:
    """Bytes of the shared arrays of a workgroup: results, and both panels, of words and of f32."""
    rows, columns = (schedule.block(dim) for dim in ("m", "n"))
    depth = prod(slice_of(dot, schedule.count("stage", "out"))[1:])
    return 4 * (rows * columns + (depth + depth // PAIR) * (rows + columns))


class WidenedDot(PanelDot):
    """The same block from widened operands."""

    in_strips = False


class PairPanelDot(WordPanelDot):
    """A block of f32 results of a dot of bf16 under construction."""

    per_word = PAIR

    def __post_init__(self) -> None:
        out = Step("stage", "out", "panel", self.schedule.count("stage", "out"))
        panels = [out, *(Step("stage", operand, "panel") for operand in ("lhs", "rhs"))]
        others = [step for step in self.schedule.steps if step.name != "stage"]
        self.plain = WidenedDot(self.elemental, self.dot, Schedule.of(*others, *panels), self.place, self.writes)
        super().__post_init__()
        size = self.schedule.workgroup_size
        self.exponents = [self.builder.shared(size, "i32") for _ in self.dot.operands]

    def _sums(self) -> Value:
        return self.plain.block

    def _division(self) -> tuple[tuple[int, ...], tuple[int, int, int]]:
        axis, places, inside = self.plain.slice
        words = (axis, places // PAIR, 1) if inside == 1 else (axis, places, inside // PAIR)
        return (*self.plain.sizes[:-1], self.plain.sizes[-1] // PAIR), words

    def _source(self, left: bool) -> Value:
        source = bf16_of(self.dot.operands[not left])
        assert source is not None
        return source

    def _loaded(self, word: Value) -> Value:
        b, places = self.builder, self._same(BF16_SHIFT, word)
        upper = b.op("unchecked_shift_left", word, places)
        return b.op("or", upper, b.op("unchecked_shift_right_logical", word, places))

    def _joined(self, left: bool, number: Value, outer: Sequence[Value], first: Value) -> Value:
        b = self.builder
        pair = [PanelDot._factor(self, left, number, [*outer, b.op("add", first, b.index(at))]) for at in range(PAIR)]
        upper, lower = (b.op("bitcast", value, to="ui32") for value in pair)
        return b.op("or", upper, b.op("unchecked_shift_right_logical", lower, b.const(BF16_SHIFT, "ui32")))

    def _same(self, bits: int, like: Value) -> Value:
        """A number of the type of a word or a vector of words."""
        b = self.builder
        number = b.const(bits, "ui32")
        return number if like.type == number.type else b.vector([number] * length_of(like))

    # slices

    def _slice(self, outer: Sequence[Value], bounds: tuple[Value, Value, int]) -> None:
        b, (_, _, inside), base = self.builder, self.slice, self._base(outer, bounds)
        count = b.op("multiply", b.op("subtract", bounds[1], bounds[0]), b.index(inside))
        for exponents in self.exponents:
            b.store_shared(b.const(0, "i32"), exponents, b.local_id())
        branch = b.begin_if(b.has_pair_products())
        self._fetch_panels(outer, bounds)
        for panel, exponents in zip((self.left, self.right), self.exponents, strict=True):
            assert panel is not None
            b.store_shared(self._least(panel, b.op("convert", count, to="ui32")), exponents, b.local_id())
        b.end_if(branch)
        b.barrier()  # the exponents are there
        branch = b.begin_if(b.op("and", b.has_pair_products(), self._is_exact()))
        self._multiply(outer, bounds, base)
        b.barrier()
        b.begin_else(branch)
        self.plain._slice(outer, self._elements(outer, bounds))
        b.end_if(branch)

    def _elements(self, outer: Sequence[Value], bounds: tuple[Value, Value, int]) -> tuple[Value, Value, int]:
        """The bounds of a slice in elements."""
        if len(outer) < len(self.sizes) - 1:
            return bounds
        lower, upper = (self.builder.op("multiply", bound, self.builder.index(PAIR)) for bound in bounds[:2])
        return lower, upper, bounds[2] * PAIR

    def _least(self, panel: Panel, count: Value) -> Value:
        """The least exponent in the part of a panel that this invocation reads, or 1 less if that number is a power of
        two; 511 if there are only zeros. `count`: places of the slice, in words.
        """
        b, local = self.builder, self.schedule.workgroup_size
        lines, length, pitch = b.const(panel.size, "ui32"), count, panel.depth
        if not panel.deep:
            lines, length, pitch = length, lines, panel.size
        lanes = max(lanes for lanes in VECTOR_LANES if lanes <= (local if panel.deep else panel.size))
        step, most = b.const(lanes, "ui32"), b.vector([b.const(2**31 - 1, "i32")] * lanes)
        loop = b.begin_loop(b.local_id(), lines, b.const(local, "ui32"), [most])
        inner = b.begin_loop(b.const(0, "ui32"), length, step, loop.carried)
        at = b.op("minimum", inner.index, b.op("subtract", length, step))
        at = b.op("add", b.op("multiply", loop.index, b.const(pitch, "ui32")), at)
        words = b.load_shared_lanes(panel.array, at, lanes)
        # as numbers with signs, halves are ordered by magnitude; 1 is subtracted, so that 0 is the greatest
        words = b.op("subtract", b.op("or", words, self._same(_SIGNS, words)), self._same(_ONES, words))
        halves = words, b.op("unchecked_shift_left", words, self._same(BF16_SHIFT, words))
        found = inner.carried[0]
        for half in halves:
            half = b.op("bitcast", half, to="i32")
            found = b.select(b.op("compare_lt", half, found), half, found)
        (least,) = b.end_loop(loop, b.end_loop(inner, [found]))
        half = reduce(partial(b.op, "minimum"), b.lanes(least))
        half = b.op("unchecked_shift_right_arithmetic", half, b.const(BF16_SHIFT, "i32"))
        magnitude = b.op("add", half, b.const(_HALF, "i32"))
        return b.op("unchecked_shift_right_arithmetic", magnitude, b.const(_FRACTION, "i32"))

    def _is_exact(self) -> Value:
        """Whether no element of the slice is subnormal, and no sum of products can be."""
        b = self.builder
        numbers = [b.const(number, "ui32") for number in range(self.schedule.workgroup_size)]
        left, right = (
            reduce(partial(b.op, "minimum"), [b.load_shared(exponents, number) for number in numbers])
            for exponents in self.exponents
        )
        tests = [b.op("compare_ge", value, b.const(1, "i32")) for value in (left, right)]
        tests.append(b.op("compare_ge", b.op("add", left, right), b.const(LEAST_EXPONENTS, "i32")))
        return reduce(partial(b.op, "and"), tests)

    def _products(self, rows: int, zeros: Sequence[Value], factors: Callable[[Sequence[Value]], Scalars]) -> Reduction:
        b, lanes = self.builder, self.lanes

        def accumulate(values: Sequence[Value], reduced: Sequence[Value]) -> Scalars:
            found, sums = (yield from factors(reduced)), iter(values)
            xs, ys = [b.vector([x] * lanes) for x in found[:rows]], found[rows:]
            return [b.multiply_add_pairs(x, y, next(sums)) for x in xs for y in ys]

        return replace(super()._products(rows, zeros, factors), accumulate=accumulate, width=PAIR)
