"""Which schedule a body gets on a machine: a table of patterns per kind of body, first come, first served.

Each row of `PATTERNS` makes a schedule of a body that fits it, or none. The sizes in this file were measured on the
machines that `docs/decisions/` names; `vm-tune` finds better ones for a device.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import prod
from typing import Final

from orchestrion.compiler.errors import CompileError, Diagnostic
from orchestrion.compiler.flow.fusion_reads import elements
from orchestrion.compiler.flow.layout import layout_of
from orchestrion.compiler.ir.dims import TYPICAL, Dim, bounds, ceildiv, is_less, typical
from orchestrion.compiler.stablehlo.ops.base import tensor_of
from orchestrion.compiler.stablehlo.ops.contraction import DotGeneral, Reduce
from orchestrion.schema.dtypes import BY_NAME, FLOAT

from .body import Body, count_of
from .dialect import VECTOR
from .emit import THREAD, emit
from .library import KERNELS
from .machine import Machine
from .operands import is_loaded, packed_tile
from .reduction_limits import FEW_REDUCTIONS, lanes_per_reduction, longest, max_counted_iterations, max_elements
from .row_values import (
    MAX_SERIAL_ROW,
    REGISTER_ROW_LANES,
    LengthRange,
    register_lanes,
    register_ranges,
    row_iterations,
    row_length,
    shared_values,
)
from .rules import element_of
from .schedule import Schedule, Step
from .staged import can_stage

#: invocations of a workgroup whose invocations do not meet: of elements, and of tiles of a dot
ELEMENTS, TILES = 64, 32
#: a reduction of more elements than this is worth a workgroup, if there are few; an iteration of its loop takes several
LONG_REDUCTION = 256
#: invocations that share a reduction of static length
SHARING = 128
#: elements of an encoded result that one invocation makes, at most
LONGEST_RUN = 32
#: up to this length a tile that shares its loads well beats a workgroup for each of few results
LONG_TILED = 1024
#: a tile of fewer columns than this has no neighbours in memory to gain from
LEAST_COLUMNS = 4
#: a tile of this many results needs half as many loads as it has products, or fewer
SHARING_TILE = 16
#: rows of a tile for dispatches that have fewer rows than the tile for others
FEW_ROWS = 2
#: the ops of one result times the results of a tile stay below this: the code of a tile grows with both
MOST_OPS = 4096
#: the same for packed operands: their elements are there to be computed with
MOST_PACKED_OPS = 2 * MOST_OPS
#: invocations of a workgroup that stages operands, down and across: no more than every Vulkan device takes
DOWN, ACROSS = 8, 16
#: bytes of a slice of 64 rows or columns, a quarter of the shared memory that every Vulkan device has
SLICE_BYTES = 4096
#: places of the reduction in a slice, at most
DEEPEST = 16
#: the least tile of a staged dot: every invocation then has an element of a slice to fetch
LEAST_STAGED = (2, 1)
#: fewer rows, columns, or places of the reduction than this leave most of a workgroup's block empty
LEAST_SIZE = 8
#: blocks are halved while there are fewer than this: a GPU has tens of compute units
MANY_BLOCKS = 64
#: rows from which on an invocation may take a longer one by itself, if the machine likes it
MANY_ROWS = 1024
#: greatest row length -> invocations that share a row; most have an element in every reduction
ROW_LANES = {63: 16, 255: 32, 1023: 64, 1 << 62: 128}


@dataclass(frozen=True, slots=True)
class Choice:
    """The schedule of an entry, and those for dispatches of some sizes, each with a `specialize` step, which are tried
    in order. `missed`: why dispatches of some sizes have none; empty if nothing is missed.
    """

    schedule: Schedule
    specialized: tuple[Schedule, ...] = ()
    missed: str = ""


def choose(body: Body, machine: Machine) -> Choice:
    """The schedules of a body on a machine.

    Raises CompileError if no schedule of the machine takes rows as long as the body's.
    """
    if body.kind in KERNELS:
        return Choice(Schedule.of(Step("library", body.kind, count=KERNELS[body.kind].workgroup_size(body.hero))))
    if body.kind == "rows":
        return _rows(body, machine)
    task = Task(body, machine, Code(body))
    name, schedule = next((name, found) for name, pattern in PATTERNS if (found := pattern(task)) is not None)
    return _specialized(task, name, schedule)


@dataclass(frozen=True)
class Code:
    """The code of one result of a body, as an invocation for each element has it."""

    body: Body

    @cached_property
    def ops(self) -> int:
        """How many ops it has, found by writing it."""
        return sum(1 for outer in emit(self.body, THREAD).ops[:-1] for _ in outer.walk())


@dataclass(frozen=True)
class Task:
    """A body and a machine, with what patterns ask of both. `few`: the schedule is for dispatches with few rows of a
    dot, or few elements of a reduction.
    """

    body: Body
    machine: Machine
    code: Code
    few: bool = False

    @cached_property
    def dot(self) -> DotGeneral | None:
        """The dot whose results may be taken in tiles."""
        hero = self.body.hero
        return hero if isinstance(hero, DotGeneral) and self.body.has_one_size else None

    @cached_property
    def results(self) -> int:
        """Results of the reduction or dot."""
        assert self.body.hero is not None
        return count_of(self.body.hero.results[0])

    @cached_property
    def is_long_and_few(self) -> bool:
        """Whether the reductions are worth a workgroup each. A dynamic length is taken for a long one, a dynamic number
        for a large one.
        """
        if self.few or isinstance(self.results, Dim):
            return False
        return bounds(self.body.extents["k"])[1] > LONG_REDUCTION and self.results < FEW_REDUCTIONS

    @cached_property
    def tiles_long(self) -> bool:
        """Whether few long reductions are tiled, too. A dynamic length may be what a workgroup alone can reduce."""
        return self.machine.units < FEW_REDUCTIONS and not isinstance(self.body.extents["k"], Dim)

    @cached_property
    def may_tile(self) -> bool:
        """Whether a tile is worth looking for: not if each long reduction takes a workgroup anyway."""
        if self.dot is None:
            return False
        length = self.body.extents["k"]
        if longest(length, self.machine) > max_elements(self.machine):
            return False
        return self.tiles_long or typical(length) <= LONG_TILED or typical(self.results) >= FEW_REDUCTIONS

    @cached_property
    def packed(self) -> tuple[int, int] | None:
        """The tile of a dot of which both operands lie in tiles along their free axes."""
        if not self.may_tile or self.dot is None:
            return None
        rows, columns = packed_tile(self.dot, 0), packed_tile(self.dot, 1)
        if rows is None or columns is None:
            return None
        while rows > 1 and rows * columns * self.code.ops > MOST_PACKED_OPS and rows % 2 == 0:
            rows //= 2
        while columns > 1 and rows * columns * self.code.ops > MOST_PACKED_OPS and columns % 2 == 0:
            columns //= 2
        return rows, columns

    @cached_property
    def tile(self) -> tuple[int, int] | None:
        """The largest tile of a dot, halved until it fits; None if it is not worth it."""
        if not self.may_tile:
            return None
        extents, (rows, columns) = self.body.extents, self.machine.tile
        while rows > typical(extents["m"]):
            rows //= 2
        while columns > typical(extents["n"]):
            columns //= 2
        while rows > 1 and rows * columns * self.code.ops > MOST_OPS:
            rows //= 2
        while columns > LEAST_COLUMNS and rows * columns * self.code.ops > MOST_OPS:
            columns //= 2
        if not rows or columns < LEAST_COLUMNS or rows * columns * self.code.ops > MOST_OPS:
            return None
        return min(rows, FEW_ROWS) if self.few else rows, columns

    def lanes(self, columns: int) -> Step | None:
        """The vectors of a tile."""
        lanes = min(self.machine.vector_lanes, columns)
        assert self.dot is not None
        if lanes < 2 or columns % lanes or BY_NAME[element_of(self.dot.out)].kind != FLOAT:
            return None
        return Step("vectorize", "n", count=lanes)

    @property
    def unrolled(self) -> Step | None:
        """As many products in an iteration as one load may give."""
        return Step("unroll", "k", count=VECTOR) if self.machine.wide_loads else None


def _tile(rows: int, columns: int) -> tuple[Step, Step]:
    return Step("tile", "m", count=rows), Step("tile", "n", count=columns)


# patterns


def encoded_run(task: Task) -> Schedule | None:
    """An invocation makes what lies in one row of a tile of an encoded result: it divides once for all of it."""
    body = task.body
    if body.hero is not None or len(body.outputs) != 1:
        return None
    layout = layout_of(tensor_of(body.outputs[0].value))
    length = layout.tiles[layout.inner[-1]] if layout is not None and layout.inner else 0
    if not 0 < length <= LONGEST_RUN:
        return None
    return Schedule.of(Step("tile", "e", count=length), Step("bind", "grid", "invocation", ELEMENTS))


def packed_dot(task: Task) -> Schedule | None:
    """An invocation computes a tile of the left operand's layout by one of the right operand's."""
    if task.packed is None:
        return None
    extents, sizes = task.body.extents, dict(zip(("m", "n"), task.packed, strict=True))
    guards = [Step("guard", dim, "pad") for dim, size in sizes.items() if extents[dim] % size != 0]
    grid = Step("bind", "grid", "invocation", TILES)
    return Schedule.of(*_tile(*task.packed), grid, task.lanes(task.packed[1]), *guards)


def staged_dot(task: Task) -> Schedule | None:
    """A workgroup computes a block of results, with slices of the operands in shared memory."""
    if not task.may_tile or task.machine.staged_tile is None or task.dot is None or task.is_long_and_few:
        return None
    extents, length = task.body.extents, task.body.extents["k"]
    if isinstance(length, Dim) or length < LEAST_SIZE or not can_stage(task.dot, task.machine):
        return None
    rows, columns = typical(extents["m"]), typical(extents["n"])
    if min(rows, columns) < LEAST_SIZE:
        return None
    tile = task.machine.staged_tile
    while tile[0] > LEAST_STAGED[0] and tile[0] * DOWN >= 2 * rows:
        tile = tile[0] // 2, tile[1]
    while tile[1] > LEAST_STAGED[1] and tile[1] * ACROSS >= 2 * columns:
        tile = tile[0], tile[1] // 2
    while tile != LEAST_STAGED and (_blocks(tile, extents) < MANY_BLOCKS or prod(tile) * task.code.ops > MOST_OPS):
        tile = _halved(tile)
    if prod(tile) * task.code.ops > MOST_OPS:
        return None
    depth = min(DEEPEST, SLICE_BYTES // (64 * BY_NAME[element_of(task.dot.out)].itemsize))
    sizes = {"m": tile[0] * DOWN, "n": tile[1] * ACROSS}
    return Schedule.of(
        *_tile(*tile),
        Step("bind", "grid", "workgroup"),
        Step("bind", "m", "local", DOWN),
        Step("bind", "n", "local", ACROSS),
        *(Step("stage", operand, "shared", depth) for operand in ("lhs", "rhs")),
        *(Step("guard", dim, "clamp") for dim, size in sizes.items() if extents[dim] % size != 0),
    )


def _blocks(tile: tuple[int, int], extents: Mapping[str, int]) -> int:
    counts = extents["b"], ceildiv(extents["m"], tile[0] * DOWN), ceildiv(extents["n"], tile[1] * ACROSS)
    return typical(prod(counts))


def _halved(tile: tuple[int, int]) -> tuple[int, int]:
    """Half as many results, of a block that is as square as can be."""
    wide = tile[1] > LEAST_STAGED[1] and tile[1] * ACROSS >= tile[0] * DOWN
    return (tile[0], tile[1] // 2) if wide or tile[0] == LEAST_STAGED[0] else (tile[0] // 2, tile[1])


def tiled_dot(task: Task) -> Schedule | None:
    """An invocation computes a tile of a dot's results, so that an element that it loads serves many products."""
    if task.tile is None:
        return None
    shares = min(task.tile) > 1 and prod(task.tile) >= SHARING_TILE
    if task.is_long_and_few and not shares and not task.tiles_long:
        return None
    return _tiled(task, {})


def _tiled(task: Task, assumed: dict[str, int], *more: Step) -> Schedule:
    """Tiles of a dot, if there are at least so many rows and columns."""
    assert task.tile is not None
    sizes, extents = dict(zip(("m", "n"), task.tile, strict=True)), task.body.extents
    return Schedule.of(
        *_tile(*task.tile),
        Step("bind", "grid", "invocation", TILES),
        task.lanes(task.tile[1]),
        task.unrolled,
        *(_guard(dim, extents[dim], size, assumed.get(dim, 0)) for dim, size in sizes.items()),
        *(Step("assume", dim, count=least) for dim, least in assumed.items()),
        *more,
    )


def _guard(dim: str, extent: int, size: int, assumed: int) -> Step | None:
    if max(bounds(extent)[0], assumed) < size:
        return Step("guard", dim, "clamp")
    return Step("guard", dim, "shift") if extent % size != 0 else None


def shared_reduction(task: Task) -> Schedule | None:
    """A workgroup computes one element, if there are few and long reductions, or one that is too long for all else."""
    body, machine = task.body, task.machine
    if body.hero is None or not body.has_one_size or task.few:
        return None
    length = body.extents["k"]
    if not task.is_long_and_few and longest(length, machine) <= max_elements(machine):
        return None
    lanes = lanes_per_reduction(task.results) if isinstance(length, Dim) else SHARING
    return Schedule.of(Step("bind", "grid", "workgroup"), Step("reduce", "k", "tree", lanes)) if lanes > 1 else None


def each_element(task: Task) -> Schedule | None:
    """An invocation computes one element of every result, with reductions in loops of its own."""
    hero = task.body.hero
    unrolled = task.unrolled if isinstance(hero, DotGeneral) else None
    if isinstance(hero, Reduce) and typical(task.body.extents["k"]) >= LONG_REDUCTION and is_loaded(hero):
        unrolled = Step("unroll", "k", count=VECTOR)
    return Schedule.of(*THREAD.steps, unrolled)


#: name -> what makes the schedule of a body that fits the pattern. The first that fits is taken
PATTERNS: Final[tuple[tuple[str, Callable[[Task], Schedule | None]], ...]] = (
    ("encoded run", encoded_run),
    ("packed dot", packed_dot),
    ("staged dot", staged_dot),
    ("tiled dot", tiled_dot),
    ("shared reduction", shared_reduction),
    ("each element", each_element),
)


# dispatches of some sizes


def _specialized(task: Task, name: str, schedule: Schedule) -> Choice:
    """Schedules for dispatches with few rows, few columns, or few elements of a reduction beside the one for others."""
    few = _few(task, name)
    missed = ""
    if few is not None and not task.machine.quick_builds:
        missed = f"dispatches with {_size(task, few)} have no kernel of their own on this machine"
        few = None
    special = [] if few is None else [_for_few(task, few)]
    if name != "tiled dot" or task.tile is None:
        return Choice(schedule, tuple(special), missed)
    rows, columns = task.tile
    assumed = {} if few is None else {"m": rows}
    narrow, extents = _condition(task, "n", columns - 1), task.body.extents
    if narrow is not None:
        if few is None or extents["m"] != extents["n"] or few.count < narrow.count:
            special.append(_tiled(task, assumed, narrow))
        assumed = assumed | {"n": columns}
        dynamic = isinstance(extents["m"], Dim)
        if dynamic and rows <= columns and is_less(extents["n"] - 1, extents["m"]):  # no fewer rows than columns
            assumed["m"] = rows
    return Choice(_tiled(task, assumed), tuple(special), missed)


def _size(task: Task, condition: Step) -> str:
    return f"{task.body.extents[condition.dim]} <= {condition.count}"


def _few(task: Task, name: str) -> Step | None:
    """A size up to which another schedule is faster, such as a static size would have."""
    if name == "tiled dot" and task.tile is not None and task.tile[0] > FEW_ROWS:
        return _condition(task, "m", task.tile[0] - 1)
    return _condition(task, "k", LONG_REDUCTION) if name == "shared reduction" else None


def _condition(task: Task, dim: str, most: int) -> Step | None:
    """A `specialize` step, if the extent is dynamic and may be so small."""
    extent = task.body.extents[dim]
    return Step("specialize", dim, count=most) if isinstance(extent, Dim) and bounds(extent)[0] <= most else None


def _for_few(task: Task, condition: Step) -> Schedule:
    fewer = replace(task, few=True)
    schedule = next(found for _, pattern in PATTERNS if (found := pattern(fewer)) is not None)
    return Schedule.of(condition, *schedule.steps)


# rows


def _rows(body: Body, machine: Machine) -> Choice:
    """Rows, in registers if there is a number of invocations that can hold one; of dynamic length in one kernel for
    each range of lengths.
    """
    length = body.extents["k"]
    spans = register_ranges(body.ops, body.rows, body.results, machine)
    special = [_held(body, span, machine) for span in spans]
    if spans and spans[-1].most == bounds(length)[1]:
        return Choice(Schedule.of(*[s for s in special[-1].steps if s.name != "specialize"]), tuple(special[:-1]))
    lanes = _row_lanes(body, machine)
    held = not isinstance(length, Dim) and register_lanes(body.ops, length, machine) == lanes
    return Choice(_by_rows(lanes, held), tuple(special))


def _held(body: Body, span: LengthRange, machine: Machine) -> Schedule:
    """Rows in registers, of a range of lengths."""
    least = [Step("assume", "k", count=span.least)] if span.least > bounds(span.length)[0] else []
    steps = _by_rows(register_lanes(body.ops, span.most, machine), True).steps
    return Schedule.of(*steps, *least, Step("specialize", "k", count=span.most))


def _by_rows(lanes: int, held: bool) -> Schedule:
    stage = Step("stage", "k", "register") if held else None
    if lanes == 1:
        return Schedule.of(Step("bind", "grid", "invocation", ELEMENTS), stage)
    return Schedule.of(Step("bind", "grid", "workgroup"), Step("reduce", "k", "tree", lanes), stage)


def _row_lanes(body: Body, machine: Machine) -> int:
    """How many invocations share a row: a power of two, 1 for short rows. One invocation has nowhere to keep what is
    expensive.
    """
    ops, rows, results = body.ops, body.rows, body.results
    lengths = [elements(op.inputs[0]) // rows for op in ops if isinstance(op, Reduce)]
    if any(isinstance(length, Dim) for length in lengths):
        return _dynamic_lanes(body, lengths, machine)
    length, shortest = max(lengths), min(lengths)
    many = not isinstance(rows, Dim) and rows >= MANY_ROWS
    if length <= MAX_SERIAL_ROW or (length <= machine.barrier and many and not shared_values(ops, rows, results)):
        return 1
    held = register_lanes(ops, row_length(ops, rows, results), machine)
    if held:
        return held
    lanes = next(count for most, count in ROW_LANES.items() if length <= most)
    while lanes > max(shortest, REGISTER_ROW_LANES[0]):
        lanes //= 2
    return lanes


def _dynamic_lanes(body: Body, reduced: Sequence[int], machine: Machine) -> int:
    """Invocations that share a row of dynamic length: enough for a typical row, and for the iteration limit of the
    machine.

    Raises CompileError if no number is enough.
    """
    length = max(map(typical, reduced)) * machine.quirks.typical_row // TYPICAL
    wanted = next(lanes for most, lanes in ROW_LANES.items() if length <= most)
    for lanes in ROW_LANES.values():
        taken = row_iterations(body.ops, body.rows, body.results, lanes, machine)
        if lanes >= wanted and taken <= max_counted_iterations(machine):
            return lanes
    message = f"rows of up to {bounds(body.extents['k'])[1]} elements are too long for a workgroup"
    raise CompileError([Diagnostic(message)])
