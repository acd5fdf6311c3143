"""Convolutions by windows of 3 x 3 whose workgroup computes squares of 2 x 2 results from transformed operands.

A square needs 4 x 4 elements of each channel of the image. These 16 and the 9 elements of the kernel are transformed to
16 factors each. Products of factors are summed over the channels, and 16 sums are transformed to the 4 results: 16
products per channel instead of 36 (Winograd's F(2 x 2, 3 x 3); Lavin and Gray, "Fast Algorithms for Convolutional
Neural Networks", arXiv:1509.09308). The transforms of images and sums only add. Sums are rounded otherwise than those
of other schedules, within the same bounds.

A transform of an infinity or a NaN affects all results of a square. If a result of the block is not finite, the
workgroup computes the block anew by plain sums.

Invocation `p` of 16 sums the products of factor `p`. All 16 fetch and transform neighbouring elements.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial, reduce
from itertools import chain, product
from math import prod
from typing import Final

from orchestrion.compiler.flow.dialect import Windows
from orchestrion.compiler.ir.core import Value
from orchestrion.compiler.ir.dims import ceildiv, is_dynamic, numbers
from orchestrion.compiler.kernel.body import Extents
from orchestrion.compiler.kernel.code.builder import KernelBuilder
from orchestrion.compiler.kernel.elements.index import Index, delinearize
from orchestrion.compiler.kernel.elements.loops import sequential
from orchestrion.compiler.kernel.elements.reductions import reduction_of_dot
from orchestrion.compiler.kernel.elements.rules import element_of, shape_of
from orchestrion.compiler.kernel.schedule import Schedule
from orchestrion.compiler.stablehlo.ops.contraction import HIGHEST, DotGeneral

from .blocks import DotBlock, Finish
from .dots import remember

#: factors of a square, and invocations of a workgroup
FACTORS: Final = 16
#: elements of f32 in a line of a cache
LINE: Final = 16
#: results of a square
RESULTS: Final = 4


@dataclass(frozen=True, slots=True)
class Squares:
    """Squares of 2 x 2 results of a convolution. `counts`: squares along the free axes of its left operand, of which
    the last two are those of the windows. `window`, `channel`: positions among the contracted axes; `channels`: number
    of elements along the last.
    """

    counts: tuple[int, ...]
    window: tuple[int, int]
    channel: int
    channels: int

    @property
    def rows(self) -> int:
        """Results of all squares, with those behind the edges: the rows that the grid divides."""
        return RESULTS * prod(self.counts)

    @classmethod
    def of(cls, dot: DotGeneral) -> Squares | None:
        """The squares of a dot; None if it does not sum windows of 3 x 3, side by side, over one axis of channels, or
        has the precision HIGHEST.
        """
        windows, dims = dot.lhs.defining_op, dot.dimensions
        if dot.precision_config == HIGHEST or not isinstance(windows, Windows):
            return None
        if dims.lhs_batch or is_dynamic(*shape_of(dot.lhs), *shape_of(dot.rhs)):
            return None
        shape = numbers(shape_of(dot.lhs))
        axes, free, contract = windows.axes.ints, dims.free(len(shape), True), list(dims.lhs_contract)
        own = (len(shape) - 2, len(shape) - 1)
        others = [at for at, axis in enumerate(contract) if axis not in own]
        plain = windows.sizes.sizes == (3, 3) and windows.strides.sizes == windows.dilations.sizes == (1, 1)
        if not plain or tuple(free[-2:]) != tuple(axes) or len(contract) != 3 or len(others) != 1:
            return None
        *outer, height, width = (shape[axis] for axis in free)
        counts = (*outer, ceildiv(height, 2), ceildiv(width, 2))
        window = contract.index(own[0]), contract.index(own[1])
        return cls(counts, window, others[0], shape[contract[others[0]]])


def pitches(schedule: Schedule) -> tuple[int, int, int]:
    """Elements between two factors in the shared arrays of sums, of the left, and of the right operand. Each has a line
    of a cache more than there are elements: lines a power of two apart would share few places of it.
    """
    depth, columns = schedule.count("stage", "out"), schedule.count("tile", "n")
    squares = schedule.block("m") // RESULTS
    return squares * columns + FACTORS, squares * depth + FACTORS, depth * columns + FACTORS


def transformed_elements(schedule: Schedule) -> int:
    """Elements of the shared arrays of a workgroup: sums, factors of both operands, and a test of each invocation."""
    return FACTORS * (sum(pitches(schedule)) + 1)


@dataclass
class SquareDot(DotBlock):
    """A block of results under construction."""

    def __post_init__(self) -> None:
        b, schedule, found, dtype = self.builder, self.schedule, Squares.of(self.dot), element_of(self.dot.out)
        assert found is not None
        self.geometry, self.extents = found, Extents.of(self.dot)
        self.total = prod(found.counts)
        self.rows, self.columns = schedule.count("tile", "m"), schedule.count("tile", "n")
        self.squares = self.rows * FACTORS // RESULTS
        self.lanes, self.depth = schedule.count("vectorize", "n"), schedule.count("stage", "out")
        self.first_square = b.op("multiply", self.place["m"], b.index(self.squares))
        self.first_column = self.start = b.op("multiply", self.place["n"], b.index(self.columns))
        if schedule.find("guard", "n") is not None:
            self.start = b.op("minimum", self.start, b.index(self.extents.columns - self.columns))
        self.zero = b.const(0, dtype)
        self.sums_pitch, self.left_pitch, self.right_pitch = pitches(schedule)
        sizes = self.sums_pitch, self.left_pitch, self.right_pitch, 1
        self.sums, self.left, self.right, self.test = (b.shared(FACTORS * size, dtype) for size in sizes)

    def emit(self, finish: Finish) -> None:
        b, busy = self.builder, self._busy()
        with self._each(b.word(self.sums_pitch), FACTORS) as (row, place):
            b.store_shared(self.zero, self.sums, b.place(row, FACTORS, place))
        b.store_shared(self.zero, self.test, b.local_id())
        with b.indices(self.geometry.channels, step=self.depth) as first:
            with self._each(busy, self.depth) as (square, channel):
                self._fetch_left(square, channel, first)
            with self._each(b.word(self.depth), self.columns) as (channel, column):
                self._fetch_right(channel, column, first)
            b.barrier()  # the factors are there
            self._multiply(busy, first)
            b.barrier()  # the factors are read, and the sums are there
        with self._each(busy, self.columns) as (square, column):
            self._transform_sums(square, column)
        b.barrier()  # the results and their tests are there
        self._replace(busy)
        b.barrier()  # the results are finite, or right
        self._finish(busy, finish)

    def _busy(self) -> Value:
        """The squares of the block, with those behind the last one that fill its tile."""
        b = self.builder
        if self.total % self.squares == 0:
            return b.word(self.squares)
        left = b.op("subtract", b.index(self.total + self.rows - 1), self.first_square)
        tiles = b.op("unchecked_divide", left, b.index(self.rows))
        return b.word(b.op("minimum", b.op("multiply", tiles, b.index(self.rows)), b.index(self.squares)))

    def _square(self, number: Value) -> tuple[list[Value], list[Value]]:
        """The place of the first result of a square of the block along the outer axes, and along the last two. A square
        behind the last one is the last.
        """
        b = self.builder
        number = b.op("minimum", b.op("add", self.first_square, b.index(number)), b.index(self.total - 1))
        *outer, row, column = delinearize(b, number, self.geometry.counts)
        return outer, [b.op("multiply", at, b.index(2)) for at in (row, column)]

    def _inside(self, place: Value, side: int) -> Value:
        """A place along one of the last two free axes; the last one for a place behind it, as in half of a square."""
        b, extent = self.builder, self.extents.left[len(self.extents.left) - 2 + side]
        return b.op("minimum", place, b.index(extent - 1)) if extent % 2 else place

    # factors

    def _fetch_left(self, square: Value, channel: Value, first: Value) -> None:
        """Stores the factors of a channel of a square. `first`: the first channel of the slice."""
        b, (outer, firsts) = self.builder, self._square(square)
        at = b.op("add", first, b.index(channel))
        one = b.index(1)
        last = [self._inside(b.op("add", place, one), side) for side, place in enumerate(firsts)]
        rows, columns = ([*((place, u) for u in range(3)), (end, 2)] for place, end in zip(firsts, last, strict=True))
        pairs = product(rows, columns)
        found = [self._element(0, [*outer, row, column], at, (u, v)) for (row, u), (column, v) in pairs]
        lines = [_along_image(b, found[line::4]) for line in range(4)]
        factors = list(chain.from_iterable(_along_image(b, line) for line in zip(*lines, strict=True)))
        self._store(factors, self.left, b.place(square, self.depth, channel), self.left_pitch)

    def _fetch_right(self, channel: Value, column: Value, first: Value) -> None:
        """Stores the factors of a channel of a column of the kernel."""
        b, at = self.builder, self.builder.op("add", first, self.builder.index(channel))
        free = delinearize(b, self._column(column), self.extents.right)
        found = [self._element(1, free, at, window) for window in product(range(3), repeat=2)]
        lines = [_along_kernel(b, found[line::3]) for line in range(3)]
        factors = list(chain.from_iterable(_along_kernel(b, line) for line in zip(*lines, strict=True)))
        self._store(factors, self.right, b.place(channel, self.columns, column), self.right_pitch)

    def _store(self, factors: Sequence[Value], array: Value, at: Value, pitch: int) -> None:
        b = self.builder
        for number, factor in enumerate(factors):
            b.store_shared(factor, array, b.op("add", at, b.word(number * pitch)))

    def _element(self, side: int, free: Sequence[Value], channel: Value, window: tuple[int, ...]) -> Value:
        """The element of an operand at a place of its free axes, a channel, and a place in the window."""
        b, dims, operand = self.builder, self.dot.dimensions, self.dot.operands[side]
        rank, contract = len(shape_of(operand)), (dims.lhs_contract, dims.rhs_contract)[side]
        coordinates = dict(zip(dims.free(rank, side == 0), free, strict=True)) | {
            contract[self.geometry.channel]: channel
        }
        coordinates |= {contract[at]: b.index(place) for at, place in zip(self.geometry.window, window, strict=True)}
        place = Index(b, shape_of(operand), [coordinates[axis] for axis in range(rank)])
        return b.op("convert", self.elemental.element(operand, place), to=element_of(self.dot.out))

    def _column(self, number: Value) -> Value:
        return self.builder.op("add", self.start, self.builder.index(number))

    # sums and results

    def _multiply(self, busy: Value, first: Value) -> None:
        """Adds the products of a slice, of the factor whose number this invocation has. `first`: its first channel."""
        self._prefetch(first)
        b, factor = self.builder, self.builder.local_id()
        left, right, sums = (
            b.op("multiply", factor, b.word(pitch)) for pitch in (self.left_pitch, self.right_pitch, self.sums_pitch)
        )
        vectors = [b.word(at) for at in range(0, self.columns, self.lanes)]
        zero, one = b.vector([self.zero] * self.lanes), b.word(1)
        with b.words(busy, step=self.rows) as square:
            rows = [b.op("add", square, b.word(at)) for at in range(self.rows)]
            starts = [b.op("add", left, b.place(row, self.depth, b.word(0))) for row in rows]
            loop = b.begin_loop(b.word(0), b.word(self.depth), one, [zero] * len(rows) * len(vectors))
            xs = [b.load_shared(self.left, b.op("add", start, loop.index)) for start in starts]
            line = b.op("add", right, b.place(loop.index, self.columns, b.word(0)))
            ys = [b.load_shared_lanes(self.right, b.op("add", line, at), self.lanes) for at in vectors]
            pairs = zip(product(xs, ys), loop.carried, strict=True)
            found = b.end_loop(loop, [b.multiply_add(b.vector([x] * self.lanes), y, total) for (x, y), total in pairs])
            for (row, at), value in zip(product(rows, vectors), found, strict=True):
                place = b.op("add", sums, b.place(row, self.columns, at))
                before = b.load_shared_lanes(self.sums, place, self.lanes)
                b.store_shared_lanes(b.op("add", before, value), self.sums, place)

    def _prefetch(self, first: Value) -> None:
        """Prefetches the elements of the kernel of the next slice: invocation `p` for those of channel `p`."""
        b = self.builder
        own = b.op("add", b.index(self.depth), b.index(b.local_id()))
        at = b.op("minimum", b.op("add", first, own), b.index(self.geometry.channels - 1))
        for column in range(0, self.columns, LINE):
            free = delinearize(b, self._column(b.word(column)), self.extents.right)
            for window in product(range(3), repeat=2):
                b.prefetch(self._element(1, free, at, window))

    def _transform_sums(self, square: Value, column: Value) -> None:
        """Replaces the first sums of a square by its results, and tests them: a test is not 0 if one is not finite."""
        b, at = self.builder, self.builder.place(square, self.columns, column)
        found = [b.load_shared(self.sums, b.op("add", at, b.word(p * self.sums_pitch))) for p in range(FACTORS)]
        lines = [_along_sums(b, found[line::4]) for line in range(4)]
        results = list(chain.from_iterable(_along_sums(b, line) for line in zip(*lines, strict=True)))
        self._store(results, self.sums, at, self.sums_pitch)
        tests = [b.op("subtract", value, value) for value in results]
        tests.append(b.load_shared(self.test, b.local_id()))
        b.store_shared(reduce(partial(b.op, "add"), tests), self.test, b.local_id())

    def _replace(self, busy: Value) -> None:
        """Computes the results of the block by plain sums, if one of those that it has is not finite."""
        b = self.builder
        tests = [b.load_shared(self.test, b.word(number)) for number in range(FACTORS)]
        with b.when(b.op("compare_ne", reduce(partial(b.op, "add"), tests), self.zero), rare=True):
            with self._each_result(busy) as (at, place, _):
                plain = reduction_of_dot(b, self.dot, place)
                b.store_shared(self.elemental.run(sequential(b, plain))[0], self.sums, at)

    def _finish(self, busy: Value, finish: Finish) -> None:
        """Writes the results of the block that exist, and that no other block has."""
        b = self.builder
        with b.when(self.writes):
            with self._each_result(busy) as (at, place, exists):
                with b.when(exists):
                    remember(b, self.dot, [place], [b.load_shared(self.sums, at)])
                    finish(place)

    @contextmanager
    def _each_result(self, busy: Value) -> Iterator[tuple[Value, Index, Value]]:
        """Loops over the results of the block: the position in the array of sums, the place, and whether the result
        exists and no other block has it. The place of one that does not exist is another.
        """
        b, two = self.builder, self.builder.word(2)
        with self._each(busy, self.columns) as (square, column):
            outer, firsts = self._square(square)
            across = self._column(column)
            exists = [b.op("compare_ge", across, self.first_column)] if self.start is not self.first_column else []
            if self.total % self.squares:
                own = b.op("add", self.first_square, b.index(square))
                exists.append(b.op("compare_lt", own, b.index(self.total)))
            with b.words(RESULTS) as number:
                corner = [b.op(name, number, two) for name in ("unchecked_divide", "unchecked_remainder")]
                places = [b.op("add", first, b.index(at)) for first, at in zip(firsts, corner, strict=True)]
                extents = self.extents.left[-2:]
                ends = zip(places, extents, strict=True)
                exists += [b.op("compare_lt", place, b.index(extent)) for place, extent in ends if extent % 2]
                inside = [self._inside(place, side) for side, place in enumerate(places)]
                right = delinearize(b, across, self.extents.right)
                at = b.place(number, self.sums_pitch, b.place(square, self.columns, column))
                place = Index(b, shape_of(self.dot.out), [*outer, *inside, *right])
                yield at, place, reduce(partial(b.op, "and"), exists, b.const(True, "i1"))


def _along_image(b: KernelBuilder, x: Sequence[Value]) -> list[Value]:
    """The factors of 4 neighbours of an image."""
    pairs = ("subtract", 0, 2), ("add", 1, 2), ("subtract", 2, 1), ("subtract", 1, 3)
    return [b.op(name, x[first], x[second]) for name, first, second in pairs]


def _along_kernel(b: KernelBuilder, x: Sequence[Value]) -> list[Value]:
    """The factors of the 3 elements of a line of the kernel."""
    outer, half = b.op("add", x[0], x[2]), b.const(0.5, b.dtype(x[0]))
    means = [b.op("multiply", b.op(name, outer, x[1]), half) for name in ("add", "subtract")]
    return [x[0], *means, x[2]]


def _along_sums(b: KernelBuilder, x: Sequence[Value]) -> list[Value]:
    """The 2 results of the sums of 4 products."""
    return [b.op("add", b.op("add", x[0], x[1]), x[2]), b.op("subtract", b.op("subtract", x[1], x[2]), x[3])]
