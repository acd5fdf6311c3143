"""Dots whose workgroup computes a block of results with vectors, and keeps panels of the operands in shared memory.

A panel holds a slice of an operand along the contracted dimensions, for all rows or columns of the block. Neighbouring
invocations fetch neighbouring elements, with the ops fused in front of the dot. Each invocation then adds the products
of a tile: vectors of columns, times elements of rows. The sums lie in shared memory, from where neighbouring
invocations finish neighbouring results, with the ops fused behind the dot. If there is one slice, the block is computed
in strips of one row of tiles: the results of a strip are written while the products of the next one are added.

A CPU thus reads panels from its caches in the order of memory, and runs fused ops in vectors. The products of a result
are added in blocks of 64, as by other schedules (`loops.Nest`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from math import prod
from typing import ClassVar

from orchestrion.compiler.ir.core import Value
from orchestrion.compiler.ir.dims import Shape, ceildiv, is_dynamic, numbers
from orchestrion.compiler.kernel.body import Extents
from orchestrion.compiler.kernel.code.builder import KernelBuilder
from orchestrion.compiler.kernel.code.vectors import neighbours_of
from orchestrion.compiler.kernel.dialect import Call, Load, Scalar
from orchestrion.compiler.kernel.elements.axes import Axes
from orchestrion.compiler.kernel.elements.index import Index, delinearize, linearize
from orchestrion.compiler.kernel.elements.loops import BLOCK, Nest, Reduction, Scalars
from orchestrion.compiler.kernel.elements.reductions import Factors
from orchestrion.compiler.kernel.elements.rules import element_of
from orchestrion.compiler.kernel.products.blocks import DotBlock, Finish
from orchestrion.compiler.kernel.products.dots import remember, together, vector_sums
from orchestrion.compiler.kernel.products.grid import dot_places
from orchestrion.compiler.kernel.products.operands import is_element, lies_along, packed_tile
from orchestrion.compiler.kernel.schedule import Schedule
from orchestrion.compiler.stablehlo.ops.contraction import DotGeneral

from .joined_axes import UnitFactors, units_of

#: most groups of columns that have code of their own in the loop that fetches a panel
MAX_GROUPS = 4
#: fewest elements of an operand with panels in memory that are prefetched; caches may hold fewer between calls
MIN_PREFETCHED = 16 << 10


def slice_of(dot: DotGeneral, depth: int) -> tuple[int, int, int]:
    """The contracted axis that slices of up to `depth` elements divide, their places along it, and the elements per
    place: those of the inner axes. A slice has one place of each outer axis. Slices are about equal, and end at the end
    of a block of the sum. `depth` 0: the slice is everything. The places are 0 if a block has more elements than a
    slice. The axes inside of the one that slices divide have static sizes; slices of a dynamic one are as long as they
    can be.
    """
    sizes = contracted(dot)
    if not is_dynamic(*sizes) and (not depth or depth >= prod(sizes)):
        return 0, int(sizes[0]), prod(numbers(sizes[1:]))
    inner = [sizes[axis + 1 :] for axis in range(len(sizes))]
    fits = [not is_dynamic(*rest) and prod(rest) <= max(depth, BLOCK - 1) for rest in inner]
    axis = fits.index(True)
    size, inside = sizes[axis], prod(numbers(inner[axis]))
    block = max(BLOCK // inside, 1)
    most = depth // inside // block
    if is_dynamic(size) or not most:
        return axis, most * block, inside
    return axis, block * ceildiv(ceildiv(int(size), block), ceildiv(int(size), most * block)), inside


def is_divided(slice: tuple[int, int, int], sizes: Shape) -> bool:
    """Whether the sums of a block are those of several slices. `sizes`: of the contracted axes."""
    return slice[0] > 0 or slice[1] != sizes[0]


def contracted(dot: DotGeneral) -> Shape:
    """The sizes of the contracted axes, of which those that are contiguous in both operands count as one. An axis that
    joins others counts as two: the units, and the places of a unit (`joined_axes.py`).
    """
    return units_of(dot) or Axes(dot.sides).sizes


def vector_dimension(schedule: Schedule) -> str:
    """The dimension along which vectors of sums lie, `n` or `m`; that which invocations share if they lie along `k`."""
    if schedule.find("vectorize", "k") is not None:
        return max("nm", key=schedule.local)
    return "m" if schedule.find("vectorize", "m") is not None else "n"


def shared_elements(dot: DotGeneral, schedule: Schedule) -> int:
    """Elements of the shared arrays of a workgroup: its block of sums or a strip, and the panels of operands, or the
    sums of another slice.
    """
    rows, columns = (schedule.block(dim) for dim in ("m", "n"))
    if schedule.sums in ("stream", "lanes"):
        return rows * columns * (1 + schedule.count("vectorize", "k"))
    slice = slice_of(dot, schedule.count("stage", "out"))
    depth, down = prod(slice[1:]), "n" if vector_dimension(schedule) == "m" else "m"
    staged = {step.dim for step in schedule.named("stage")}
    whole = schedule.keeps_scores or is_divided(slice, contracted(dot))
    sums = rows * columns // (1 if whole else schedule.local(down))
    return sums + depth * (rows * ("lhs" in staged) + columns * ("rhs" in staged))


@dataclass(frozen=True, slots=True)
class Panel:
    """A slice of an operand in shared memory: `depth` places along the contracted axes, `size` rows or columns each.
    `deep`: neighbours in the array are places of one row, else rows or columns of one place. `turned`: neighbours in
    memory are the places of one column. `ragged`: a slice may have too few places for that. `whole`: the array
    has the places of all slices.
    """

    builder: KernelBuilder
    array: Value
    size: int
    depth: int
    deep: bool
    turned: bool
    ragged: bool = False
    whole: bool = False

    def at(self, number: Value, place: Value) -> Value:
        """The position of an element in the array, as a word. `number`: its row or column in the block, as a word;
        `place`: along the contracted axes, from the start of the slice.
        """
        b = self.builder
        word = b.word(place)
        outer, pitch, inner = (number, self.depth, word) if self.deep else (word, self.size, number)
        return b.place(outer, pitch, inner)


@dataclass
class PanelDot(DotBlock):
    """A block of results under construction. Its vectors are parts of its rows. If they lie along `m`, the block is
    transposed: its rows are columns of the result, and its left operand is the right one of the dot.

    `height`: the rows that are computed before they are finished, those of the block or of a strip; `strip`: the first
    one in the block; `first_row`: in the matrix.
    """

    #: whether blocks of one slice are computed in strips; whether those of several are, too
    in_strips: ClassVar[bool] = True
    strips_slices: ClassVar[bool] = False
    #: whether the schedule says how long slices along the reduction are; otherwise one slice is everything
    in_slices: ClassVar[bool] = True

    def __post_init__(self) -> None:
        b, dot, schedule = self.builder, self.dot, self.schedule
        across = vector_dimension(schedule)
        self.transposed = across == "m"
        dims = ("n", "m") if self.transposed else ("m", "n")
        self.extents = Extents.of(dot)
        sides = self.extents.rows, self.extents.columns
        self.row_count, self.column_count = sides[::-1] if self.transposed else sides
        self.tile = schedule.count("tile", dims[0]), schedule.count("tile", across)
        self.rows, self.columns = (size * schedule.local(dim) for size, dim in zip(self.tile, dims, strict=True))
        self.lanes = next(schedule.named("vectorize")).count
        self.sizes, self.slice = self._division()
        self.first_row = b.op("multiply", self.place[dims[0]], b.index(self.rows))
        self.first_column = b.op("multiply", self.place[across], b.index(self.columns))
        self.start, guard = self.first_column, schedule.find("guard", across)
        self.guard = "" if guard is None else guard.how
        if self.guard == "shift":
            self.start = b.op("minimum", self.start, b.index(self.column_count - self.columns))
        self.has_strips, zero = self.in_strips and (self.strips_slices or not self.is_sliced), b.word(0)
        self.strip, self.height = zero, self.tile[0] if self.has_strips and not self.is_sliced else self.rows
        self.tile_row, self.tile_column = zero, b.local_id()
        if not self.has_strips:
            groups = b.word(schedule.local(across))
            self.tile_row = b.op("unchecked_divide", b.local_id(), groups)
            self.tile_column = b.op("unchecked_remainder", b.local_id(), groups)
        self.zero = b.const(0, element_of(dot.out))
        self.block = self._sums()
        self.left, self.right = self._panel(True), self._panel(False)

    def _sums(self) -> Value:
        """The array of the sums of the block."""
        return self.builder.shared(self.height * self.columns, element_of(self.dot.out))

    def _division(self) -> tuple[Shape, tuple[int, int, int]]:
        """The sizes of the contracted axes, and how slices divide them."""
        depth = self.schedule.count("stage", "out") if self.in_slices else 0
        return contracted(self.dot), slice_of(self.dot, depth)

    def _panel(self, left: bool) -> Panel | None:
        """The panel of an operand of the block; None if it has none."""
        b, number = self.builder, int(left == self.transposed)
        if self.schedule.find("stage", ("lhs", "rhs")[number]) is None:
            return None
        operand, contract = self.dot.sides[number]
        size, depth = self.rows if left else self.columns, prod(self.slice[1:])
        array = b.shared(depth * size, element_of(self.dot.out))
        along = lies_along(operand, contract) and self._fills_lanes(left)
        turned = (
            along
            and not left
            and size % self.lanes == 0
            and is_element(operand, encoded=False)
            and element_of(operand) == element_of(self.dot.out)
        )
        return Panel(b, array, size, depth, left and along, turned, self._least_places() is None)

    def _fills_lanes(self, left: bool) -> bool:
        """Whether each slice has places for all invocations, or lanes of a vector, that copy neighbours along it; or
        may have them, if its size is dynamic.
        """
        least = self._least_places()
        return least is None or least >= (self.schedule.workgroup_size if left else self.lanes)

    def _least_places(self) -> int | None:
        """The fewest places of a slice along its innermost axis; None if they depend on a dynamic size."""
        axis, places, inside = self.slice
        least = self.sizes[-1] if inside > 1 else self.sizes[axis] % places
        return None if is_dynamic(least) else int(least) or places

    def emit(self, finish: Finish) -> None:
        if self.has_strips and not self.is_sliced:
            self._strips(finish)
        else:
            self.sum()
            self._finish(finish)

    def sum(self) -> None:
        """The sums of the block."""
        b, (axis, places, _) = self.builder, self.slice
        size = self.sizes[axis]
        if not self.is_sliced:
            self._slice((), (b.index(0), b.index(size), places))
        else:
            with self._each(self._rows_of(self.rows), self.columns) as (row, column):
                b.store_shared(self.zero, self.block, self._at(row, column))
            steps = zip(self.sizes[: axis + 1], [1] * axis + [places], strict=True)
            loops = [b.begin_loop(b.index(0), b.index(count), b.index(step), ()) for count, step in steps]
            *outer, first = (loop.index for loop in loops)
            end = b.op("add", first, b.index(places))
            self._slice(outer, (first, b.op("minimum", end, b.index(size)) if size % places != 0 else end, places))
            for loop in reversed(loops):
                b.end_loop(loop, ())

    @property
    def is_sliced(self) -> bool:
        """Whether the sums of the block are those of several slices."""
        return is_divided(self.slice, self.sizes)

    def _at(self, row: Value, column: Value) -> Value:
        """The position of a result in the block, as a word."""
        return self.builder.place(row, self.columns, column)

    # panels

    def _slice(self, outer: Sequence[Value], bounds: tuple[Value, Value, int]) -> None:
        """Adds the products of a slice to the block. `outer`: its place along the outer axes; `bounds`: its first place
        along the axis that slices divide, the one behind its last, and the greatest number of places.
        """
        base = self._fetch_panels(outer, bounds)
        self._multiply(outer, bounds, base)
        self.builder.barrier()  # the panels are read, and the results are there

    def _base(self, outer: Sequence[Value], bounds: tuple[Value, Value, int]) -> Value:
        """The number of the first place of a slice along all contracted axes."""
        b, inside = self.builder, len(self.sizes) - len(outer) - 1
        return linearize(b, [*outer, bounds[0], *[b.index(0)] * inside], self.sizes)

    def _fetch_panels(self, outer: Sequence[Value], bounds: tuple[Value, Value, int]) -> Value:
        """Copies a slice of the operands to their panels; returns the place where the slice begins. A barrier divides
        code with vectors of its own from code that lanes run.
        """
        base = self._base(outer, bounds)
        if self.left is not None and not self.left.whole:
            self._fetch(self.left, True, outer, bounds[:2], base)
            if self.right is not None and self.right.turned:
                self.builder.barrier()
        if self.right is not None and not self.right.whole:
            self._fetch(self.right, False, outer, bounds[:2], base)
        self.builder.barrier()  # the panels are there
        return base

    def _strips(self, finish: Finish) -> None:
        """Computes and finishes one strip of the block after the other."""
        b, size = self.builder, self.slice[1]
        bounds = b.index(0), b.index(size), size
        base = self._fetch_panels((), bounds)
        with self._each_strip():
            self._multiply((), bounds, base)
            b.barrier()  # the results are there
            self._finish(finish)
            b.barrier()  # the results are read

    @contextmanager
    def _each_strip(self) -> Iterator[None]:
        """A loop over the strips of the block that have rows of the matrix."""
        b, first, zero = self.builder, self.first_row, self.strip
        with b.words(self._rows_of(self.rows), zero, self.tile[0]) as strip:
            self.strip, self.first_row = strip, b.op("add", first, b.index(strip))
            yield
        self.strip, self.first_row = zero, first

    def _rows_of(self, most: int) -> Value:
        """The rows from the first one on that the matrix has, up to a number of which blocks or strips are made."""
        b = self.builder
        if self.row_count % most == 0:
            return b.word(most)
        left = b.word(b.op("subtract", b.index(self.row_count), self.first_row))
        return b.op("minimum", b.word(most), left)

    def _fetch(
        self, panel: Panel, left: bool, outer: Sequence[Value], bounds: tuple[Value, Value], base: Value
    ) -> None:
        """Copies a slice of an operand to its panel. A loop per axis needs no division to find an element."""
        b = self.builder
        ends = [bounds, *((b.index(0), b.index(size)) for size in self.sizes[len(outer) + 1 :])]
        loops = [b.begin_loop(*end, b.index(1), ()) for end in ends[:-1]]
        places, (first, end) = [*outer, *(loop.index for loop in loops)], ends[-1]
        count = b.word(b.op("subtract", end, first))

        def along(place: Value) -> list[Value]:
            return [*places, b.op("add", first, b.index(place))]

        def copy(place: Value, number: Value) -> None:
            at = b.op("subtract", linearize(b, along(place), self.sizes), base)
            b.store_shared(self._factor(left, number, along(place)), panel.array, panel.at(number, at))

        lanes = self.schedule.workgroup_size if panel.deep else self.lanes if panel.turned else 0
        few = b.op("compare_lt", count, b.word(lanes)) if panel.ragged and lanes else None
        if few is not None or not lanes:
            with b.when(few), self._each_place(count, panel.size) as elements:
                for place, number in elements:
                    copy(place, number)
        if few is not None:
            b.barrier()  # divides code with vectors of its own from code that lanes run
        with b.when(None if few is None else b.op("compare_ge", count, b.word(lanes))):
            if panel.deep:
                with self._rows_and_places(panel, count, lanes) as (number, place):
                    copy(b.op("add", place, b.local_id()), number)
            elif panel.turned:
                self._copy_transposed(panel, count, base, along)
        for loop in reversed(loops):
            b.end_loop(loop, ())

    @contextmanager
    def _each_place(self, count: Value, size: int) -> Iterator[list[tuple[Value, Value]]]:
        """A loop over `count` places of `size` rows or columns, of which this invocation takes some. A few have code of
        their own each, so that index maps of columns are evaluated in front of the loop.
        """
        b, lanes = self.builder, self.schedule.workgroup_size
        if size % lanes or size > MAX_GROUPS * lanes:
            with self._each(count, size) as element:
                yield [element]
            return
        numbers = [b.op("add", b.word(first), b.local_id()) for first in range(0, size, lanes)]
        with b.words(count) as place:
            yield [(place, number) for number in numbers]

    @contextmanager
    def _rows_and_places(self, panel: Panel, count: Value, lanes: int) -> Iterator[tuple[Value, Value]]:
        """Loops over the rows of a panel and groups of `lanes` of its `count` places: the row and the first place. The
        last group is moved back, so that it ends at the last place.
        """
        b = self.builder
        with b.words(panel.size) as row, b.words(count, step=lanes) as first:
            yield row, b.op("minimum", first, b.op("subtract", count, b.word(lanes)))

    def _copy_transposed(self, panel: Panel, count: Value, base: Value, along: Callable[[Value], list[Value]]) -> None:
        """Copies `count` places of columns whose places are neighbours in memory: squares of vectors, transposed."""
        b, lanes = self.builder, self.lanes
        groups = b.op("unchecked_divide", b.op("add", count, b.word(lanes - 1)), b.word(lanes))
        with self._each(groups, panel.size // lanes) as (group, square):
            place = b.op("multiply", group, b.word(lanes))
            place = b.op("minimum", place, b.op("subtract", count, b.word(lanes)))
            column = b.op("multiply", square, b.word(lanes))
            numbers = [b.op("add", column, b.word(at)) for at in range(lanes)]
            turned = b.transpose([self._neighbours(number, along(place)) for number in numbers])
            at = b.op("subtract", linearize(b, along(place), self.sizes), base)
            for number, vector in enumerate(turned):
                b.store_shared_lanes(vector, panel.array, panel.at(column, b.op("add", at, b.index(number))))

    def _neighbours(self, number: Value, along: Sequence[Value]) -> Value:
        """A vector of the neighbours in memory of an element of a column, along the contracted axes."""
        return neighbours_of(PanelDot._factor(self, False, number, along), self.lanes, self.builder)

    def _load(self, left: bool, number: Value, along: Sequence[Value]) -> Load:
        """The load of an element of an operand that is read, and perhaps widened."""
        return self._load_of(PanelDot._factor(self, left, number, along))

    def _load_of(self, value: Value) -> Load:
        op = value.defining_op
        while isinstance(op, Scalar | Call):
            op = op.operands[0].defining_op
        assert isinstance(op, Load), "an operand that is read gives loads"
        return op

    def _factor(self, left: bool, number: Value, along: Sequence[Value]) -> Value:
        """The element of an operand at a row or column of the block."""
        position = self.builder.index(number)
        row, column = (self._row(position, self.rows), None) if left else (None, self._column(position))
        (value,) = self.elemental.run(self._factors(row, column)(left, along))
        return value

    def _row(self, number: Value, unit: int) -> Value:
        """The row of the matrix with that number in the block. Blocks of `unit` rows may end behind the last row."""
        b, rows = self.builder, self.row_count
        row = b.op("add", self.first_row, number)
        return b.op("minimum", row, b.index(rows - 1)) if rows % unit != 0 else row

    def _column(self, number: Value) -> Value:
        b = self.builder
        column = b.op("add", self.start, number)
        return b.op("minimum", column, b.index(self.column_count - 1)) if self.guard == "clamp" else column

    def _result(self, row: Value | None, column: Value | None) -> Index:
        """The place of a result; 0 for a row or a column that does not matter."""
        b, zero = self.builder, self.builder.index(0)
        at = [row or zero, column or zero]
        down, across = at[::-1] if self.transposed else at
        (place,) = dot_places(b, self.extents, self.place["b"], [down], [across])
        return place

    def _factors(self, row: Value | None, column: Value | None) -> Callable[[bool, Sequence[Value]], Scalars]:
        """The elements of the left and the right operand of the block for a result."""
        at, units = self._result(row, column), units_of(self.dot)
        factors = (UnitFactors(self.builder, self.dot, at, units) if units is not None
                   else Factors(self.builder, self.dot, at))  # fmt: skip
        return lambda left, along: factors.of(int(left == self.transposed), along)

    # products

    def _multiply(self, outer: Sequence[Value], bounds: tuple[Value, Value, int], base: Value) -> None:
        """Adds the products of a slice to a tile, in the invocations whose tile has a row."""
        with self._tile_with_rows() as (rows, vectors):
            self._add_products(rows, vectors, outer, bounds, base)

    @contextmanager
    def _tile_with_rows(self) -> Iterator[tuple[list[Value], list[Value]]]:
        """Code of the invocations whose tile has a row: the numbers of its rows, and of the first columns of its
        vectors, in the block.
        """
        b, (count, width) = self.builder, self.tile
        across, lanes, busy = self.columns // width, self.schedule.workgroup_size, None
        all_tiles = across if self.has_strips else self.rows // count * across
        if not self.has_strips and self.row_count % self.rows != 0:
            tiles = b.op("add", b.op("subtract", b.index(self.row_count), self.first_row), b.index(count - 1))
            tiles = b.op("unchecked_divide", tiles, b.index(count))
            busy = b.word(b.op("multiply", tiles, b.index(across)))
            busy = b.op("minimum", busy, b.word(all_tiles)) if all_tiles < lanes else busy
        elif all_tiles < lanes:
            busy = b.word(all_tiles)
        with b.when(None if busy is None else b.op("compare_lt", b.local_id(), busy)):
            first = b.op("multiply", self.tile_row, b.word(count))
            rows = [b.op("add", first, b.word(at)) for at in range(count)]
            column = b.op("multiply", self.tile_column, b.word(width))
            starts = (min(at, width - self.lanes) for at in range(0, width, self.lanes))  # the last ends with the tile
            yield rows, [b.op("add", column, b.word(at)) for at in starts]

    def _add_products(
        self,
        rows: Sequence[Value],
        vectors: Sequence[Value],
        outer: Sequence[Value],
        bounds: tuple[Value, Value, int],
        base: Value,
    ) -> None:
        b, count = self.builder, len(rows)
        in_block = [b.op("add", self.strip, row) for row in rows] if self.is_sliced else rows
        places = [self._at(row, at) for row in in_block for at in vectors]
        zero = b.vector([self.zero] * self.lanes)

        def sums_of_slices() -> list[Value]:
            return [b.load_shared_lanes(self.block, at, self.lanes) for at in places]

        start = sums_of_slices if self.is_sliced else None
        sums = self._products(count, [zero] * len(places), self._tile_factors(rows, vectors, base))
        for value, at in zip(self.elemental.run(Nest(b, sums).part(outer, bounds, start)), places, strict=True):
            b.store_shared_lanes(value, self.block, at)

    def _products(self, rows: int, zeros: Sequence[Value], factors: Callable[[Sequence[Value]], Scalars]) -> Reduction:
        """The sums of a tile, as vectors that start as `zeros`."""
        return vector_sums(self.builder, self.sizes, rows, zeros, factors)

    def _tile_factors(
        self, rows: Sequence[Value], vectors: Sequence[Value], base: Value
    ) -> Callable[[Sequence[Value]], Scalars]:
        """The factors of a tile at a place: a scalar per row, then the vectors. `rows`, `vectors`: their numbers in the
        block.
        """
        b, lanes = self.builder, self.lanes
        positions = [self._row(b.index(row), len(rows)) for row in rows]
        of_rows = [self._factors(row, None) for row in positions] if self.left is None else []
        columns = [b.op("add", first, b.word(lane)) for first in vectors for lane in range(lanes)]
        of_columns = [
            self._factors(None, self._column(b.index(column))) for column in (columns if self.right is None else ())
        ]

        def factors(reduced: Sequence[Value]) -> Scalars:
            linear = linearize(b, reduced, self.sizes)
            place = b.op("subtract", linear, base)
            if self.reads_panels:
                self._prefetch(linear)
            if self.left is not None:
                numbers = [b.op("add", self.strip, row) for row in rows]
                at_left = linear if self.left.whole else place
                xs = [b.load_shared(self.left.array, self.left.at(number, at_left)) for number in numbers]
            else:
                xs = yield from together(row(True, reduced) for row in of_rows)
            if self.right is not None:
                at = [self.right.at(first, place) for first in vectors]
                return [*xs, *(b.load_shared_lanes(self.right.array, one, lanes) for one in at)]
            ys = yield from together(column(False, reduced) for column in of_columns)
            return [*xs, *(b.vector(ys[first : first + lanes]) for first in range(0, len(ys), lanes))]

        return factors

    @property
    def reads_panels(self) -> bool:
        """Whether many panels of columns follow each other in memory."""
        if self.transposed or self.right is not None or packed_tile(self.dot, 1) != self.columns:
            return False  # any other operand may have a dynamic number of columns
        return self.column_count > self.columns and prod(self.sizes) * self.column_count >= MIN_PREFETCHED

    def _prefetch(self, place: Value) -> None:
        """Prefetches the panel of the next block: each tile a part of it, one element for each `place` along the
        contracted axes.
        """
        b, width = self.builder, self.builder.index(self.columns)
        rows = self.rows if is_dynamic(self.row_count) else min(self.rows, int(self.row_count))
        tile_row = b.op("add", b.op("unchecked_divide", self.strip, b.word(self.tile[0])), self.tile_row)
        first = b.op("multiply", b.index(tile_row), b.index(prod(self.sizes)))
        apart = b.index(ceildiv(self.columns, ceildiv(rows, self.tile[0])))
        element = b.op("multiply", b.op("add", first, place), apart)
        column = b.op("add", width, b.op("unchecked_remainder", element, width))
        along = delinearize(b, b.op("unchecked_divide", element, width), self.sizes)
        (value,) = self.elemental.run(self._factors(None, self._column(column))(False, along))
        b.prefetch(value)

    # results

    def _finish(self, finish: Finish) -> None:
        """Writes the results of the block that exist, and that no other block has."""
        b = self.builder
        with b.when(self.writes):
            count = self._rows_of(self.height)
            lanes = self.schedule.workgroup_size
            if self.columns < lanes or self.columns % lanes == 0:
                with self._each(count, self.columns) as (row, column):
                    self._write(row, column, finish)
            else:  # a result may replace an operand, so none is computed twice
                with b.words(count) as row:
                    for first in range(0, self.columns, lanes):
                        start = min(first, self.columns - lanes)
                        own = b.op("compare_ge", b.local_id(), b.word(first - start)) if start < first else None
                        with b.when(own):
                            self._write(row, b.op("add", b.word(start), b.local_id()), finish)

    def _sum(self, row: Value, column: Value) -> Value:
        """The sum of a result, from its row and column in the block, as words."""
        return self.builder.load_shared(self.block, self._at(row, column))

    def _write(self, row: Value, column: Value, finish: Finish) -> None:
        b = self.builder
        across = b.op("add", self.start, b.index(column))
        own = None
        if self.guard in ("clamp", "pad"):
            own = b.op("compare_lt", across, b.index(self.column_count))
        elif self.guard == "shift":
            own = b.op("compare_ge", across, self.first_column)
        with b.when(own):
            at = self._result(b.op("add", self.first_row, b.index(row)), across)
            remember(b, self.dot, [at], [self._sum(row, column)])
            finish(at)
