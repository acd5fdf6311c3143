"""Dots whose workgroup computes a block of results with vectors, and keeps panels of the operands in shared memory.

A panel holds a slice of an operand along the contracted dimensions, for all rows or columns of the block. Neighbouring
invocations fetch neighbouring elements, with the ops fused in front of the dot. Each invocation then adds the products
of a tile: vectors of columns, times elements of rows. The sums of the block lie in shared memory, from where
neighbouring invocations finish neighbouring results, with the ops fused behind the dot.

A CPU thus reads panels from its caches in the order of memory, and runs fused ops in vectors. The products of a result
are added in blocks of 64, as by other schedules (`loops.Nest`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from math import prod

from orchestrion.compiler.flow.structure import fastest_axis
from orchestrion.compiler.ir.core import Value
from orchestrion.compiler.ir.dims import ceildiv
from orchestrion.compiler.stablehlo.ops.contraction import DotGeneral

from .axes import Axes
from .body import Extents
from .builder import KernelBuilder
from .dots import remember, together, vector_sums
from .elemental import Elemental
from .grid import dot_places, side_of
from .index import Index, linearize
from .loops import BLOCK, Nest, Reduction, Scalars
from .reductions import Factors
from .rules import element_of
from .schedule import Schedule

#: computes the results at a place of the dot whose element is known, and writes them
Finish = Callable[[Index], None]


def slice_of(dot: DotGeneral, depth: int) -> tuple[int, int]:
    """Places along the outermost contracted axis in a slice of up to `depth` elements, and elements per place. Slices
    are about equal, and end at the end of a block of the sum. `depth` 0: the slice is everything. The first number is 0
    if a block has more elements than a slice.
    """
    sizes = contracted(dot)
    inside = prod(sizes[1:])
    if not depth or depth >= sizes[0] * inside:
        return sizes[0], inside
    block = max(BLOCK // inside, 1)
    most = depth // inside // block
    return most and block * ceildiv(ceildiv(sizes[0], block), ceildiv(sizes[0], most * block)), inside


def contracted(dot: DotGeneral) -> tuple[int, ...]:
    """The sizes of the contracted axes, of which those that are contiguous in both operands count as one."""
    dims = dot.dimensions
    return Axes([(dot.lhs, dims.lhs_contract), (dot.rhs, dims.rhs_contract)]).sizes


def shared_elements(dot: DotGeneral, schedule: Schedule) -> int:
    """Elements of the shared arrays of a workgroup: its block of results, and the panels of operands."""
    rows, columns = (schedule.count("tile", dim) * schedule.local(dim) for dim in ("m", "n"))
    used = rows * columns
    for operand, size in (("lhs", rows), ("rhs", columns)):
        if (step := schedule.find("stage", operand)) is not None:
            used += prod(slice_of(dot, step.count)) * size
    return used


@dataclass(frozen=True, slots=True)
class Panel:
    """A slice of an operand in shared memory: `depth` places along the contracted axes, `size` rows or columns each.
    `deep`: neighbours in the array are places of one row, else rows or columns of one place.
    """

    builder: KernelBuilder
    array: Value
    size: int
    depth: int
    deep: bool

    def at(self, number: Value, place: Value) -> Value:
        """The position of an element in the array, as a word. `number`: its row or column in the block, as a word;
        `place`: along the contracted axes, from the start of the slice.
        """
        b = self.builder
        word = b.op("convert", place, to="ui32")
        outer, pitch, inner = (number, self.depth, word) if self.deep else (word, self.size, number)
        return b.op("add", b.op("multiply", outer, b.const(pitch, "ui32")), inner)


@dataclass
class PanelDot:
    """A block of results under construction. `place`: the block along the dimensions of the grid. `writes`: whether
    this workgroup writes its block.
    """

    elemental: Elemental
    dot: DotGeneral
    schedule: Schedule
    place: dict[str, Value]
    writes: Value

    def __post_init__(self) -> None:
        b, dot, schedule = self.builder, self.dot, self.schedule
        extents = Extents.of(dot)
        self.extents = extents
        self.tile = schedule.count("tile", "m"), schedule.count("tile", "n")
        self.rows = self.tile[0] * schedule.local("m")
        self.sizes = contracted(dot)
        self.first_row = b.op("multiply", self.place["m"], b.index(self.rows))
        self.across = side_of(b, schedule, "n", extents.columns, self.place["n"])
        self.block = b.shared(self.rows * self.tile[1], element_of(dot.out))
        self.left = self._panel("lhs", self.rows, fastest_axis(dot.lhs) in dot.dimensions.lhs_contract)
        self.right = self._panel("rhs", self.tile[1], False)

    @property
    def builder(self) -> KernelBuilder:
        """The builder of the code."""
        return self.elemental.builder

    def _panel(self, operand: str, size: int, deep: bool) -> Panel | None:
        step = self.schedule.find("stage", operand)
        if step is None:
            return None
        places, inside = slice_of(self.dot, step.count)
        depth, least = places * inside, self.sizes[-1] if inside > 1 else self.sizes[0] % places or places
        deep = deep and least >= self.schedule.workgroup_size
        b, dtype = self.builder, element_of(self.dot.out)
        return Panel(b, b.shared(depth * size, dtype), size, depth, deep)

    def emit(self, finish: Finish) -> None:
        """The code of the block."""
        b, size = self.builder, self.sizes[0]
        depth = next((step.count for step in self.schedule.named("stage") if step.dim != "out"), 0)
        places, _ = slice_of(self.dot, depth)
        zero = b.index(0)
        if places == size:
            self._slice((zero, b.index(size), size), sliced=False)
        else:
            with self._each(b.const(self.rows, "ui32"), self.tile[1]) as elements:
                for row, column in elements:
                    b.store_shared(b.const(0, element_of(self.dot.out)), self.block, self._at(row, column))
            loop = b.begin_loop(zero, b.index(size), b.index(places), ())
            end = b.op("add", loop.index, b.index(places))
            end = b.op("minimum", end, b.index(size)) if size % places else end
            self._slice((loop.index, end, places), sliced=True)
            b.end_loop(loop, ())
        self._finish(finish)

    def _at(self, row: Value, column: Value) -> Value:
        """The position of a result in the block, as a word."""
        b = self.builder
        return b.op("add", b.op("multiply", row, b.const(self.tile[1], "ui32")), column)

    @contextmanager
    def _each(self, outer: Value, inner: int) -> Iterator[list[tuple[Value, Value]]]:
        """A loop over the elements of an array of `outer` by `inner` elements, of which this invocation takes some in
        each iteration: the numbers of their row and column, as words.
        """
        b, lanes = self.builder, self.schedule.workgroup_size
        first, step, columns = b.const(0, "ui32"), 1, [b.local_id()]
        if lanes >= inner:
            first = b.op("unchecked_divide", b.local_id(), b.const(inner, "ui32"))
            step, columns = lanes // inner, [b.op("unchecked_remainder", b.local_id(), b.const(inner, "ui32"))]
        else:
            columns = [b.op("add", b.local_id(), b.const(at, "ui32")) for at in range(0, inner, lanes)]
        loop = b.begin_loop(first, outer, b.const(step, "ui32"), ())
        yield [(loop.index, column) for column in columns]
        b.end_loop(loop, ())

    # panels

    def _slice(self, bounds: tuple[Value, Value, int], sliced: bool) -> None:
        """Adds the products of a slice to the block. `bounds`: its first place along the outermost contracted axis, the
        one behind its last, and the greatest number of places.
        """
        b = self.builder
        base = b.op("multiply", bounds[0], b.index(prod(self.sizes[1:])))
        for panel, left in ((self.left, True), (self.right, False)):
            if panel is not None:
                self._fetch(panel, left, bounds[:2], base)
        b.barrier()  # the panels are there
        self._multiply(bounds, base, sliced)
        b.barrier()  # the panels are read, and the results are there

    def _fetch(self, panel: Panel, left: bool, bounds: tuple[Value, Value], base: Value) -> None:
        """Copies a slice of an operand to its panel. A loop per axis needs no division to find an element."""
        b = self.builder
        ends = [bounds, *((b.index(0), b.index(size)) for size in self.sizes[1:])]
        loops = [b.begin_loop(*ends[level], b.index(1), ()) for level in range(len(self.sizes) - 1)]
        first, end = ends[-1]
        count = b.op("convert", b.op("subtract", end, first), to="ui32")
        with self._shares(panel, count) as elements:
            for place, number in elements:
                last = b.op("add", first, b.op("convert", place, to=b.index_type))
                along = [*(loop.index for loop in loops), last]
                at = b.op("subtract", linearize(b, along, self.sizes), base)
                b.store_shared(self._factor(left, number, along), panel.array, panel.at(number, at))
        for loop in reversed(loops):
            b.end_loop(loop, ())

    @contextmanager
    def _shares(self, panel: Panel, count: Value) -> Iterator[list[tuple[Value, Value]]]:
        """Loops over `count` places of a panel, of which this invocation takes some: places and rows, as words. The
        last places of a row are taken twice, if their number is no multiple of the lanes.
        """
        b, lanes = self.builder, self.schedule.workgroup_size
        if not panel.deep:
            with self._each(count, panel.size) as elements:
                yield elements
            return
        rows = b.begin_loop(b.const(0, "ui32"), b.const(panel.size, "ui32"), b.const(1, "ui32"), ())
        places = b.begin_loop(b.const(0, "ui32"), count, b.const(lanes, "ui32"), ())
        first = b.op("minimum", places.index, b.op("subtract", count, b.const(lanes, "ui32")))
        yield [(b.op("add", first, b.local_id()), rows.index)]
        b.end_loop(places, ())
        b.end_loop(rows, ())

    def _factor(self, left: bool, number: Value, along: Sequence[Value]) -> Value:
        """The element of an operand at a row or column of the block."""
        position = self.builder.op("convert", number, to=self.builder.index_type)
        row, column = (self._row(position, self.rows), None) if left else (None, self._column(position))
        factors = Factors(self.builder, self.dot, self._result(row, column))
        (value,) = self.elemental.run(factors.left(along) if left else factors.right(along))
        return value

    def _row(self, number: Value, unit: int) -> Value:
        """The row of the matrix with that number in the block. Blocks of `unit` rows may end behind the last row."""
        b, rows = self.builder, self.extents.rows
        row = b.op("add", self.first_row, number)
        return b.op("minimum", row, b.index(rows - 1)) if rows % unit != 0 else row

    def _column(self, number: Value) -> Value:
        return self.builder.op("add", self.across.results[0], number)

    def _result(self, row: Value | None, column: Value | None) -> Index:
        """The place of a result; 0 for a row or a column that does not matter."""
        b, zero = self.builder, self.builder.index(0)
        (place,) = dot_places(b, self.extents, self.place["b"], [row or zero], [column or zero])
        return place

    # products

    def _multiply(self, bounds: tuple[Value, Value, int], base: Value, sliced: bool) -> None:
        """Adds the products of a slice to a tile, in the invocations whose tile has a row."""
        b, extent, (count, width) = self.builder, self.extents.rows, self.tile
        branch = None
        if extent % self.rows != 0:
            left = b.op("add", b.op("subtract", b.index(extent), self.first_row), b.index(count - 1))
            left = b.op("unchecked_divide", left, b.index(count))
            branch = b.begin_if(b.op("compare_lt", b.local_id(), b.op("convert", left, to="ui32")))
        lanes = self.schedule.count("vectorize", "n")
        first = b.op("multiply", b.local_id(), b.const(count, "ui32"))
        rows = [b.op("add", first, b.const(at, "ui32")) for at in range(count)]
        places = [self._at(row, b.const(at, "ui32")) for row in rows for at in range(0, width, lanes)]
        zero = b.vector([b.const(0, element_of(self.dot.out))] * lanes)
        starts = [b.load_shared_lanes(self.block, at, lanes) if sliced else zero for at in places]
        sums = Nest(b, self._sums(rows, base, lanes)).part(bounds, starts)
        for value, at in zip(self.elemental.run(sums), places, strict=True):
            b.store_shared_lanes(value, self.block, at)
        if branch is not None:
            b.end_if(branch)

    def _sums(self, rows: Sequence[Value], base: Value, lanes: int) -> Reduction:
        """The sums of a tile. `rows`: the numbers of its rows in the block."""
        b, width = self.builder, self.tile[1]
        positions = [self._row(b.op("convert", row, to=b.index_type), len(rows)) for row in rows]
        of_rows = [Factors(b, self.dot, self._result(row, None)) for row in positions]
        columns = self.across.results if self.right is None else ()
        of_columns = [Factors(b, self.dot, self._result(None, column)) for column in columns]
        zero = b.vector([b.const(0, element_of(self.dot.out))] * lanes)

        def factors(reduced: Sequence[Value]) -> Scalars:
            place = b.op("subtract", linearize(b, reduced, self.sizes), base)
            if self.left is not None:
                xs = [b.load_shared(self.left.array, self.left.at(row, place)) for row in rows]
            else:
                xs = yield from together(row.left(reduced) for row in of_rows)
            if self.right is not None:
                at = [self.right.at(b.const(first, "ui32"), place) for first in range(0, width, lanes)]
                return [*xs, *(b.load_shared_lanes(self.right.array, one, lanes) for one in at)]
            ys = yield from together(column.right(reduced) for column in of_columns)
            return [*xs, *(b.vector(ys[first : first + lanes]) for first in range(0, width, lanes))]

        return vector_sums(b, self.sizes, len(rows), [zero] * (len(rows) * width // lanes), factors)

    # results

    def _finish(self, finish: Finish) -> None:
        """Writes the results of the block that exist, and that no other block has."""
        b, extent = self.builder, self.extents.rows
        branch = b.begin_if(self.writes)
        count = b.const(self.rows, "ui32")
        if extent % self.rows != 0:
            left = b.op("convert", b.op("subtract", b.index(extent), self.first_row), to="ui32")
            count = b.op("minimum", count, left)
        with self._each(count, self.tile[1]) as elements:
            for row, column in elements:
                self._write(row, column, finish)
        b.end_if(branch)

    def _write(self, row: Value, column: Value, finish: Finish) -> None:
        b = self.builder
        across = self._column(b.op("convert", column, to=b.index_type))
        own = None if not self.across.guard else b.begin_if(b.op("compare_ge", across, self.across.first))
        at = self._result(b.op("add", self.first_row, b.op("convert", row, to=b.index_type)), across)
        remember(b, self.dot, [at], [b.load_shared(self.block, self._at(row, column))])
        finish(at)
        if own is not None:
            b.end_if(own)
