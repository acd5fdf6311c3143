"""Depthwise convolutions whose workgroup computes lines of results from lines of the image in shared memory.

A workgroup has some channels, an invocation one of them, so neighbouring invocations have neighbours in memory. It goes
through the rows of its block. The rows of the image that a line of results needs are a ring in shared memory, with the
columns of the padding: an element is fetched once per block, with the ops fused in front of the dot, and without a test
of its place. An invocation then computes some neighbouring results of the line from elements and weights in registers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import Final

from orchestrion.compiler.flow.dialect import Windows
from orchestrion.compiler.ir.core import Value
from orchestrion.compiler.ir.dims import ceildiv, is_dynamic, numbers
from orchestrion.compiler.kernel.body import Extents
from orchestrion.compiler.kernel.elements.index import Index, delinearize
from orchestrion.compiler.kernel.elements.loops import BLOCK
from orchestrion.compiler.kernel.elements.rules import element_of, scalar_index, shape_of
from orchestrion.compiler.kernel.schedule import Schedule
from orchestrion.compiler.stablehlo.ops.contraction import DotGeneral
from orchestrion.compiler.stablehlo.ops.structural import Pad

from .blocks import DotBlock, Finish
from .dots import remember
from .operands import is_read

#: most products of a result: one block of a sum
MOST_PRODUCTS: Final = BLOCK
#: columns that an iteration copies, if they need no computation
COPIED: Final = 8


@dataclass(frozen=True, slots=True)
class Lines:
    """Lines of results. `shape`: that of the results. `row`, `column`, `channel`: axes of it, of which the last is the
    fastest. `sizes`, `strides`, `dilations`: those of the windows, along rows and columns.
    """

    shape: tuple[int, ...]
    row: int
    column: int
    channel: int
    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]

    @classmethod
    def of(cls, dot: DotGeneral) -> Lines | None:
        """The lines of a dot; None if it does not sum windows along two axes of one channel each, of known sizes."""
        windows, dims = dot.lhs.defining_op, dot.dimensions
        extents, shape = Extents.of(dot), shape_of(dot.lhs)
        if not isinstance(windows, Windows) or is_dynamic(*shape, *shape_of(dot.rhs)):
            return None
        axes, sizes, batch = windows.axes.ints, windows.sizes.ints, extents.batch
        length = prod(shape[axis] for axis in dims.lhs_contract)
        if len(axes) != 2 or prod(extents.left + extents.right) != 1 or tuple(dims.lhs_batch) != (*range(len(batch)),):
            return None
        own = {len(shape) - 2, len(shape) - 1} <= set(dims.lhs_contract) and length == prod(sizes)
        wide = [axis for axis, size in enumerate(batch) if size != 1]
        if not own or length > MOST_PRODUCTS or not wide or not axes[0] < axes[1] < wide[-1]:
            return None
        return cls(numbers(batch), *axes, wide[-1], sizes, windows.strides.ints, windows.dilations.ints)

    @property
    def spans(self) -> tuple[int, ...]:
        """Elements from the first of a window to its last, along rows and columns."""
        return tuple((size - 1) * gap + 1 for size, gap in zip(self.sizes, self.dilations, strict=True))

    @property
    def width(self) -> int:
        """Columns of the image that the windows of a line have."""
        return (self.shape[self.column] - 1) * self.strides[1] + self.spans[1]

    def grid(self, schedule: Schedule) -> tuple[int, ...]:
        """Blocks of a workgroup along each axis of the results: some rows, all columns, some channels."""
        sizes = {self.row: schedule.count("stage", "out"), self.column: self.shape[self.column]}
        sizes[self.channel] = schedule.local("b")
        return tuple(ceildiv(size, sizes.get(axis, 1)) for axis, size in enumerate(self.shape))

    def elements(self, schedule: Schedule) -> int:
        """Elements of the shared array of a workgroup: the rows of the image that one line of results needs."""
        return self.spans[0] * self.width * schedule.local("b")


def image_of(dot: DotGeneral) -> Value:
    """The image whose windows are the left operand of a dot, without padding."""
    image = dot.lhs
    while isinstance(op := image.defining_op, Windows | Pad):
        image = op.operand_
    return image


@dataclass
class DepthwiseDot(DotBlock):
    """Lines of results under construction."""

    def __post_init__(self) -> None:
        lines, windows = Lines.of(self.dot), self.dot.lhs.defining_op
        assert lines is not None and isinstance(windows, Windows)
        self.lines, self.image, self.dtype = lines, windows.operand_, element_of(self.dot.out)
        self.lanes, self.results = self.schedule.local("b"), self.schedule.count("tile", "b")
        self.ring = self.builder.shared(lines.elements(self.schedule), self.dtype)
        pad = self.image.defining_op
        self.pad = pad if isinstance(pad, Pad) and self._is_border(pad) else None

    def _is_border(self, pad: Pad) -> bool:
        """Whether a pad only adds rows and columns around an image."""
        own = self.lines.row, self.lines.column
        ends = zip(pad.edge_padding_low.ints, pad.edge_padding_high.ints, pad.interior_padding.ints, strict=True)
        return all(
            not inside and (min(low, high) >= 0 if axis in own else low == high == 0)
            for axis, (low, high, inside) in enumerate(ends)
        )

    def emit(self, finish: Finish) -> None:
        b, lines = self.builder, self.lines
        with b.when(self.writes):
            self.at = delinearize(b, self.place["b"], lines.grid(self.schedule))
            self.lane = b.local_id()
            first = b.op("multiply", self.at[lines.channel], b.index(self.lanes))
            self.at[lines.channel] = b.op("add", first, b.index(self.lane))
            height, rows = lines.shape[lines.row], self.schedule.count("stage", "out")
            first = b.op("multiply", self.at[lines.row], b.index(rows))
            end = b.op("minimum", b.op("add", first, b.index(rows)), b.index(height))
            if self.pad is not None:
                self._fill(b.word(0), lines.spans[0] * lines.width)
            weights = self._weights()
            with b.indices(end, first) as row:
                self._fetch(row, first)
                self._line(row, weights, finish)

    def _coordinates(self, row: Value, column: Value) -> list[Value]:
        """The place of an element of this channel along the axes of the results."""
        return [{self.lines.row: row, self.lines.column: column}.get(axis, at) for axis, at in enumerate(self.at)]

    def _element(self, operand: Value, at: Sequence[Value]) -> Value:
        """An element of an operand, whose axes behind those of the results have one element."""
        b, shape = self.builder, shape_of(operand)
        place = Index(b, shape, [*at, *[b.index(0)] * (len(shape) - len(at))])
        return b.op("convert", self.elemental.element(operand, place), to=self.dtype)

    def _weights(self) -> dict[tuple[int, int], Value]:
        """The weight for each place of the window, in the order of the sum."""
        b, dims, rhs = self.builder, self.dot.dimensions, self.dot.rhs
        rank, own = len(shape_of(self.dot.lhs)), {}
        for place in product(*(range(shape_of(rhs)[axis]) for axis in dims.rhs_contract)):
            coordinates = [b.index(0)] * len(shape_of(rhs))
            for axis, at in zip(dims.rhs_batch, self._coordinates(b.index(0), b.index(0)), strict=True):
                coordinates[axis] = at
            for axis, number in zip(dims.rhs_contract, place, strict=True):
                coordinates[axis] = b.index(number)
            window = dict(zip(dims.lhs_contract, place, strict=True))
            own[window[rank - 2], window[rank - 1]] = self._element(rhs, coordinates)
        return own

    # the image

    def _fetch(self, row: Value, first: Value) -> None:
        """Copies the rows of the image that a row of results needs, and the one before it in the block did not."""
        b, span, stride = self.builder, self.lines.spans[0], self.lines.strides[0]
        start = b.op("multiply", row, b.index(stride))
        end = b.op("add", start, b.index(span))
        if stride < span:
            known = b.op("add", start, b.index(span - stride))
            start = b.select(b.op("compare_eq", row, first), start, known)
        with b.indices(end, start) as at:
            line = self._line_of(at)
            if self.pad is None:
                self._copy(self.image, at, line, self.lines.width)
            else:
                low, size = self.pad.edge_padding_low.ints, shape_of(self.pad.operand_)
                axis, pad = self.lines.row, self.pad
                source = b.op("subtract", at, b.index(low[axis]))
                columns = b.word(low[self.lines.column] * self.lanes)
                width = min(int(size[self.lines.column]), self.lines.width - low[self.lines.column])
                inside = b.op("compare_lt", source, b.index(size[axis]))  # in front of the first row, it wraps
                branch = b.begin_if(inside)
                self._copy(pad.operand_, source, b.op("add", line, columns), width)
                b.begin_else(branch)
                self._fill(line, self.lines.width)
                b.end_if(branch)

    def _line_of(self, row: Value) -> Value:
        """The start of a row of the image in the ring, as a word."""
        b = self.builder
        slot = b.op("unchecked_remainder", b.word(row), b.word(self.lines.spans[0]))
        return b.op("multiply", slot, b.word(self.lines.width * self.lanes))

    def _own(self, start: Value, column: Value, behind: int = 0) -> Value:
        """The position of an element of this channel: `behind` columns behind a `column` of the line that starts at
        `start`; words.
        """
        b = self.builder
        at = b.op("add", b.op("add", start, b.op("multiply", column, b.word(self.lanes))), self.lane)
        return b.op("add", at, b.word(behind * self.lanes))

    @contextmanager
    def _groups(self, count: int, size: int) -> Iterator[Value]:
        """A loop over groups of `size` of `count` columns: the first of each, as a word. The last group ends at the
        last column.
        """
        b = self.builder
        with b.words(count, step=size) as first:
            yield b.op("minimum", first, b.word(count - size)) if count % size else first

    def _fill(self, start: Value, count: int) -> None:
        """Stores the padding in `count` columns."""
        b = self.builder
        assert self.pad is not None
        padding = self.elemental.element(self.pad.padding_value, scalar_index(b))
        value = b.op("convert", padding, to=self.dtype)
        with self._groups(count, 1) as column:
            b.store_shared(value, self.ring, self._own(start, column))

    def _copy(self, image: Value, row: Value, start: Value, count: int) -> None:
        """Copies `count` columns of a row of an image."""
        b, size = self.builder, min(COPIED, count) if is_read(image) else 1
        with self._groups(count, size) as first:
            columns = [b.op("add", first, b.word(number)) for number in range(size)]
            places = [self._coordinates(row, b.index(column)) for column in columns]
            values = [self._element(image, place) for place in places]
            for number, value in enumerate(values):
                b.store_shared(value, self.ring, self._own(start, first, number))

    # the results

    def _line(self, row: Value, weights: dict[tuple[int, int], Value], finish: Finish) -> None:
        """Computes the results of a row, and writes them."""
        b, lines = self.builder, self.lines
        top = b.op("multiply", row, b.index(lines.strides[0]))
        starts = [self._line_of(b.op("add", top, b.index(u * lines.dilations[0]))) for u in range(lines.sizes[0])]
        with self._groups(lines.shape[lines.column], self.results) as first:
            left = b.op("multiply", first, b.word(lines.strides[1]))
            sums = [b.const(0, self.dtype)] * self.results
            for (u, v), weight in weights.items():
                for number in range(self.results):
                    x = self._known(starts[u], left, number * lines.strides[1] + v * lines.dilations[1])
                    sums[number] = b.add_product(x, weight, sums[number])
            at = b.index(first)
            columns = [b.op("add", at, b.index(number)) for number in range(self.results)]
            shape = shape_of(self.dot.out)
            ones = [b.index(0)] * (len(shape) - len(lines.shape))
            places = [Index(b, shape, [*self._coordinates(row, column), *ones]) for column in columns]
            remember(b, self.dot, places, sums)
            for place in places:
                finish(place)

    def _known(self, start: Value, column: Value, behind: int) -> Value:
        """An element of a line in the ring, loaded once per group of results."""
        b = self.builder
        at = self._own(start, column, behind)
        found = b.memo.get((self.ring, at))
        if found is None:
            found = b.load_shared(self.ring, at)
            b.memo.set((self.ring, at), found)
        return found
