"""Lowers a body by a schedule to `kernel` IR for one invocation.

The kernel computes its place of the grid from the linear workgroup index and does nothing behind the last place. It
computes all results of its tile before it writes the first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial

from orchestrion.compiler.ir.core import Block, Operation, Value
from orchestrion.compiler.ir.dims import Shape, Size, ceildiv, dim_max, is_dynamic, typical
from orchestrion.compiler.ir.locations import UNKNOWN, Location
from orchestrion.compiler.kernel.code.builder import KernelBuilder
from orchestrion.compiler.kernel.code.pack_lanes import pack_lanes
from orchestrion.compiler.kernel.code.vectors import load_lanes
from orchestrion.compiler.kernel.elements.elemental import Elemental
from orchestrion.compiler.kernel.elements.encodings import store, stored_shape
from orchestrion.compiler.kernel.elements.extrema import from_bits, in_any_order, is_free
from orchestrion.compiler.kernel.elements.index import Index, delinearize
from orchestrion.compiler.kernel.elements.indexing import moved, starts_of
from orchestrion.compiler.kernel.elements.parts import Parts, parts_of, place_beside
from orchestrion.compiler.kernel.elements.reductions import REDUCTIONS
from orchestrion.compiler.kernel.elements.rules import shape_of
from orchestrion.compiler.kernel.panels.attention import AttentionBlock
from orchestrion.compiler.kernel.panels.bytes import BytePanelDot
from orchestrion.compiler.kernel.panels.dot import PanelDot
from orchestrion.compiler.kernel.panels.lane_sums import LaneSumDot
from orchestrion.compiler.kernel.panels.lines import LineDot, copies_lines
from orchestrion.compiler.kernel.panels.pairs import PairPanelDot
from orchestrion.compiler.kernel.panels.streamed import StreamedDot
from orchestrion.compiler.kernel.products.blocks import DotBlock
from orchestrion.compiler.kernel.products.depthwise import DepthwiseDot
from orchestrion.compiler.kernel.products.dots import reduced_tile, remember
from orchestrion.compiler.kernel.products.grid import (
    Write,
    dot_places,
    grid_place,
    grid_size,
    is_in_grid,
    is_tiled_dot,
    side_of,
    tiles,
    write_tile,
)
from orchestrion.compiler.kernel.products.staged import staged_results
from orchestrion.compiler.kernel.products.winograd import SquareDot
from orchestrion.compiler.kernel.rows.kernel import Row
from orchestrion.compiler.kernel.rows.registers import emit_rows
from orchestrion.compiler.stablehlo.ops.contraction import DotGeneral, Reduce
from orchestrion.compiler.stablehlo.ops.indexing import DynamicSlice, DynamicUpdateSlice
from orchestrion.compiler.stablehlo.ops.reducers import is_commutative

from .body import Body, Extents, Output, Rows, count_of
from .dialect import Return
from .library import KERNELS
from .machine import PLAIN, Machine
from .reduction_limits import longest
from .schedule import Schedule, Step

#: the schedule by which an invocation computes one element of each result
THREAD = Schedule.of(Step("bind", "grid", "invocation", 64))


def emit(body: Body, schedule: Schedule, machine: Machine = PLAIN, loc: Location = UNKNOWN) -> Block:
    """The code of an entry. The schedule must be legal for the body. `loc`: location of code that belongs to no op.

    Raises CompileError for an op that has no lowering, or for a reduction with more iterations than the machine
    supports.
    """
    block = body.block()
    builder = KernelBuilder(block, body.index_type, machine, body.symbols, schedule.count("unroll", "k"))
    builder.loc = loc
    inputs: dict[Value, Value] = {value: block.arguments[number] for value, number in body.inputs.items()}
    Kernel(body, schedule, Elemental(builder, inputs)).emit()
    builder.insert(Return())
    if any(schedule.named("vectorize")):
        load_lanes(block, builder)
        if machine.quirks.packs_lanes:
            pack_lanes(builder, schedule.count("vectorize", "n"))
    return block


def invocations(body: Body, schedule: Schedule) -> Size:
    """Number of invocations of a dispatch."""
    if schedule.library is not None:
        return KERNELS[body.kind].invocations(body.hero)
    places = grid_size(body, schedule)
    return places * schedule.workgroup_size if schedule.by_workgroups else places


#: how the sums of a dot are staged -> the class that emits a block
BLOCKS: dict[str, type[DotBlock]] = {
    "panel": PanelDot,
    "stream": StreamedDot,
    "lanes": LaneSumDot,
    "bytes": BytePanelDot,
    "pairs": PairPanelDot,
    "winograd": SquareDot,
    "windows": DepthwiseDot,
}


@dataclass(slots=True)
class Kernel:
    """The code of an entry under construction."""

    body: Body
    schedule: Schedule
    elemental: Elemental
    builder: KernelBuilder = field(init=False)

    def __post_init__(self) -> None:
        self.builder = self.elemental.builder

    def emit(self) -> None:
        """Appends the code to the block of the builder."""
        self._prepare()
        body, schedule = self.body, self.schedule
        if schedule.library is not None:
            bindings = {output.value: self.binding(output) for output in body.outputs}
            KERNELS[body.kind].emit(self.elemental, body.hero, bindings)
        elif body.kind == "rows":
            outputs = [(output.value, partial(self.store, output)) for output in body.outputs]
            emit_rows(self.elemental, body, schedule, outputs)
        elif is_tiled_dot(schedule):
            self._tile_of_dot()
        else:
            self._elements()

    def _prepare(self) -> None:
        """Computes the starts of slices in front of all loops and branches, because every element needs them."""
        for op in self.body.ops:
            if isinstance(op, DynamicSlice | DynamicUpdateSlice):
                self.elemental.run(starts_of(self.builder, op))

    def binding(self, output: Output) -> Value:
        """The binding that an output is written to."""
        return self.builder.entry.arguments[output.binding]

    def store(self, output: Output, places: Sequence[Index], values: Sequence[Value]) -> None:
        """Writes elements of an output at some places."""
        b = self.builder
        if output.window is not None:
            starts = self.elemental.run(starts_of(b, output.window))
            places = [at.at(shape_of(output.window.out), moved(b, starts, at)) for at in places]
        store(b, values, self.binding(output), [at.linear for at in places])

    def _store_line(self, output: Output, position: Value, value: Value) -> None:
        store(self.builder, [value], self.binding(output), [position])

    # elements of results, in the order of memory

    def _elements(self) -> None:
        """A tile of neighbouring elements of each result. Results of one size are computed together, those of different
        sizes one after the other.
        """
        b, body, schedule = self.builder, self.body, self.schedule
        size, lanes = schedule.count("tile", "e"), schedule.lanes
        places = grid_size(body, schedule)
        number = grid_place(b, schedule, places)
        if schedule.by_lines:
            self._line(number, is_in_grid(b, schedule, places))
            return
        if (beside := schedule.local("e")) > 1:
            number = b.place(number, beside, b.index(place_beside(b, beside)))
        parts = [self._parts(body.hero, at) for at in self._positions(number, size)] if lanes > 1 and body.hero else []
        counts = {count_of(value) for value in body.results}
        if (across := body.across) is not None and schedule.find("tile", "t") is not None:
            with b.when(self._writes(places)):
                self._write(body.outputs, [across.places(b, schedule, number)] * len(body.outputs))
            return
        for count in sorted(counts, key=lambda one: (typical(one), str(one))):
            with b.when(self._writes(places if len(counts) == 1 else count, number)):
                for part in parts:
                    self._combine(*part)
                outputs = [one for one in body.outputs if count_of(one.value) == count]
                self._write(outputs, [self._places(stored_shape(one.value), number, size) for one in outputs])

    def _line(self, number: Value, exists: Value) -> None:
        """An element of a line of every result, a padded line, or a row of dynamic size."""
        b, body, schedule = self.builder, self.body, self.schedule
        if body.padding is not None:
            (output,) = body.outputs
            with b.when(exists):
                body.padding.emit(self.elemental, schedule.workgroup_size, number, partial(self._store_line, output))
        elif body.dynamic_rows is not None:
            rows = Rows(body.ops, body.dynamic_rows.count, body.results)
            row = Row(self.elemental, rows, number, schedule.workgroup_size)
            with b.when(exists):
                row.emit([(one.value, partial(self.store, one)) for one in body.outputs], b.const(True, "i1"))
        else:
            assert body.lines is not None
            at, is_inside = body.lines.place(b, schedule, number)
            with b.when(b.op("and", exists, is_inside)):
                self._write(body.outputs, [[at]] * len(body.outputs))

    def _parts(self, hero: Operation, position: Value) -> tuple[Operation, Index, Parts]:
        """The parts of the element of the hero at a position, which the invocations of the workgroup share."""
        b, lanes, beside = self.builder, self.schedule.lanes, self.schedule.local("e")
        if beside > 1 and _is_ragged(count := count_of(hero.results[0]), beside):
            position = b.op("minimum", position, b.index(count - 1))
        at = Index(b, shape_of(hero.results[0]), None, position)
        reduction = REDUCTIONS[hero.name](b, hero, at)
        most = longest(dim_max(ceildiv(reduction.count, lanes), 1), b.machine)
        in_order = not b.machine.staging or isinstance(hero, Reduce) and not is_commutative(hero.body.block)
        if b.machine.lanes and isinstance(hero, Reduce) and is_free(hero):
            in_order, reduction = False, in_any_order(b, hero, reduction)
        return hero, at, parts_of(self.elemental, reduction, lanes, in_order, most, beside)

    def _combine(self, hero: Operation, at: Index, parts: Parts) -> None:
        """Combines the parts, and remembers the results of the hero at their place, in one invocation."""
        values = self.elemental.run(parts.total())
        if len(values) > len(hero.results):  # the bits of an extremum
            assert isinstance(hero, Reduce)
            values = [from_bits(self.builder, hero, values)]
        for result, value in zip(hero.results, values, strict=True):
            self.builder.memo.set((result, at.key), value)

    def _writes(self, places: Size, number: Value | None = None) -> Value:
        """Whether this invocation writes the results of its place. `places`: number of places; `number`: the element of
        the invocation, if several of a workgroup write one each.
        """
        b, schedule = self.builder, self.schedule
        if schedule.lanes == 1:
            return is_in_grid(b, schedule, places)
        if (beside := schedule.local("e")) > 1:
            first = b.op("compare_lt", b.local_id(), b.word(beside))
            if number is not None and _is_ragged(count := self.body.largest_result, beside):
                first = b.op("and", first, b.op("compare_lt", number, b.index(count)))
            return b.op("and", first, is_in_grid(b, schedule, places))
        first = b.op("compare_eq", b.local_id(), b.word(0))
        return b.op("and", first, is_in_grid(b, schedule, places))

    def _positions(self, number: Value, size: int) -> list[Value]:
        """The positions in memory of the elements of tile `number`."""
        b = self.builder
        first = number if size == 1 else b.op("multiply", number, b.index(size))
        return [b.op("add", first, b.index(at)) for at in range(size)]

    def _write(self, outputs: Sequence[Output], places: Sequence[Sequence[Index]]) -> None:
        """Writes outputs at places of their own, of which all have equally many."""
        values = [
            [self.elemental.element(output.value, at) for output, at in zip(outputs, row, strict=True)]
            for row in zip(*places, strict=True)
        ]
        for output, at, column in zip(outputs, places, zip(*values, strict=True), strict=True):
            self.store(output, at, column)

    def _places(self, shape: Shape, number: Value, size: int) -> list[Index]:
        """The indices of the elements of a tile of a result. The tile divides the last dimension, so all coordinates
        but the last are computed once.
        """
        b = self.builder
        positions = self._positions(number, size)
        if size == 1:
            return [Index(b, shape, None, positions[0])]
        *outer, last = shape
        *before, tile = delinearize(b, number, (*outer, last // size))
        first = b.op("multiply", tile, b.index(size))
        return [
            Index(b, shape, (*before, b.op("add", first, b.index(at))), position)
            for at, position in enumerate(positions)
        ]

    # tiles of a dot

    def _tile_of_dot(self) -> None:
        b, body, schedule, dot = self.builder, self.body, self.schedule, self.body.hero
        assert isinstance(dot, DotGeneral)
        grid = tiles(body, schedule)
        count = grid_size(body, schedule)
        number = grid_place(b, schedule, count)
        branch = None if schedule.by_workgroups else b.begin_if(is_in_grid(b, schedule, count))
        at = dict(zip((dim for dim, _ in grid), delinearize(b, number, tuple(n for _, n in grid)), strict=True))
        if schedule.sums:
            writes = is_in_grid(b, schedule, count)
            if body.attention is not None:
                AttentionBlock(self.elemental, body.attention, schedule, at, writes).emit(self._finish)
            else:
                kind = LineDot if copies_lines(dot, schedule) else BLOCKS[schedule.sums]
                kind(self.elemental, dot, schedule, at, writes).emit(self._finish)
            return
        extents = Extents.of(dot)
        rows = side_of(b, schedule, "m", extents.rows, at["m"])
        columns = side_of(b, schedule, "n", extents.columns, at["n"])
        places = dot_places(b, extents, at["b"], rows.results, columns.results)
        if schedule.find("stage", "lhs") is not None:
            values = self.elemental.run(staged_results(b, dot, schedule, (at["b"], at["m"], at["n"]), places))
        else:
            read = places
            if "pad" in (rows.guard, columns.guard):
                read = dot_places(b, extents, at["b"], rows.reads, columns.reads)
            lanes, unroll = schedule.count("vectorize", "n"), schedule.count("unroll", "k")
            values = self.elemental.run(reduced_tile(b, dot, read, len(columns.reads), lanes, unroll))
        remember(b, dot, places, values)
        branch = b.begin_if(is_in_grid(b, schedule, count)) if branch is None else branch
        write_tile(b, rows, columns, self._writer(places, len(columns.results)))
        b.end_if(branch)

    def _finish(self, place: Index) -> None:
        """Computes the results at a place, and writes them. Coordinates stay known where shapes differ in axes of one
        element.
        """
        assert place.linear is not None
        outputs = [(output, place.reshaped(shape_of(output.value))) for output in self.body.outputs]
        values = [self.elemental.element(output.value, at) for output, at in outputs]
        for (output, at), value in zip(outputs, values, strict=True):
            self.store(output, [at], [value])

    def _writer(self, places: Sequence[Index], columns: int) -> Write:
        """Computes all results of a tile. Returns the function that writes them."""
        b, outputs = self.builder, self.body.outputs
        results = [[self.elemental.element(o.value, _same(b, place, o.value)) for o in outputs] for place in places]

        def write(row: int, column: int) -> None:
            at = row * columns + column
            for output, value in zip(outputs, results[at], strict=True):
                self.store(output, [_same(b, places[at], output.value)], [value])

        return write


def _is_ragged(count: Size, beside: int) -> bool:
    """Whether a workgroup of `beside` elements may be partly behind the last one."""
    return is_dynamic(count) or count % beside > 0


def _same(b: KernelBuilder, place: Index, value: Value) -> Index:
    """The same position in a value that may have another shape."""
    return place if shape_of(value) == place.shape else Index(b, shape_of(value), None, place.linear)
