"""Chooses the schedule of a body on a machine: a table of patterns, of which the first that fits is taken.

Each row of `PATTERNS` makes a schedule for a body that fits the pattern, or none. The constants in this file were
measured on the machines that `docs/decisions/` names. `vm-tune` finds better schedules for a device.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Final

from orchestrion.compiler.errors import CompileError, Diagnostic
from orchestrion.compiler.flow.kinds import ATTENTION
from orchestrion.compiler.flow.layout import layout_of
from orchestrion.compiler.flow.structure import fastest_axis
from orchestrion.compiler.ir.core import Value
from orchestrion.compiler.ir.dims import Size, bounds, ceildiv, is_dynamic, is_less, typical
from orchestrion.compiler.kernel.elements.axes import Axes
from orchestrion.compiler.kernel.elements.extrema import is_free
from orchestrion.compiler.kernel.patterns.attention import attention
from orchestrion.compiler.kernel.patterns.elements import (
    alternating_elements,
    lines_of_padding,
    lines_of_results,
    lines_of_windows,
    rows_of_elements,
    run_of_elements,
    transposed_elements,
)
from orchestrion.compiler.kernel.patterns.few_rows import few_rows_dot
from orchestrion.compiler.kernel.patterns.pairs import pair_panel_dot
from orchestrion.compiler.kernel.patterns.panels import (
    byte_panel_dot,
    depthwise_dot,
    narrow_panels,
    panel_dot,
    winograd_dot,
)
from orchestrion.compiler.kernel.patterns.rows import ELEMENTS_PER_WORKGROUP, schedules_of_rows
from orchestrion.compiler.kernel.patterns.task import (
    FEW_ROWS_TILE,
    LONG_REDUCTION,
    MAX_TILE_OPS,
    Code,
    Task,
    edge_guard,
    tile_steps,
)
from orchestrion.compiler.kernel.products.operands import is_loaded
from orchestrion.compiler.kernel.products.staged import can_stage
from orchestrion.compiler.stablehlo.ops.base import dtype_of, tensor_of
from orchestrion.compiler.stablehlo.ops.contraction import DotGeneral, Reduce
from orchestrion.compiler.stablehlo.ops.structural import Reshape

from .body import Body
from .emit import THREAD
from .library import KERNELS
from .machine import Machine
from .reduction_limits import lanes_per_reduction, longest, max_elements
from .schedule import Schedule, Step

#: workgroup size of kernels without barriers whose invocations compute a tile of a dot
TILES_PER_WORKGROUP = 32
#: invocations that share a reduction of static length
REDUCTION_LANES = 128
#: vectors of such invocations, if they are lanes of vectors: steps wait for each other, and rows are read in order
REDUCTION_VECTORS = 2
#: invocations of a workgroup that reads pieces of rows, and the fewest results for them
COLUMN_LANES, MANY_COLUMNS = 128, 2048
#: most elements of an encoded result that one invocation computes
MAX_RUN = 32
#: fewest results of a tile that shares its loads well, at most one load per two products
MIN_SHARING_TILE = 16
#: invocations of a workgroup that stages operands, along rows and columns; every Vulkan device supports the product
STAGED_LANES_DOWN, STAGED_LANES_ACROSS = 8, 16
#: the same for tiles as large as registers allow, of operands whose addresses are simple
SQUARE_LANES = (8, 8)
#: places of a slice whose products an iteration adds
STAGED_RUN = 8
#: invocations that share a reduction whose elements lie a row apart, and neighbouring reductions of a workgroup
LANES_PER_COLUMN, COLUMNS_BESIDE = 16, 8
#: bytes of a slice of 64 rows or columns, a quarter of the shared memory that every Vulkan device has
SLICE_BYTES = 4096
#: most places along the contracted axes in a slice
MAX_SLICE_DEPTH = 16
#: (rows, columns) of the smallest tile of a staged dot: every invocation then fetches an element of a slice
MIN_STAGED_TILE = (2, 1)
#: least rows, columns, and reduced elements of a staged dot: with fewer, most of a workgroup's block is empty
MIN_STAGED_EXTENT = 8
#: blocks are halved until there are this many, because a GPU has up to 150 compute units
MANY_BLOCKS = 256


@dataclass(frozen=True, slots=True)
class Choice:
    """The schedules of an entry: the general one, and specialized ones, each with a `specialize` step, which are tried
    in order.

    `missed`: the reason why some sizes of dispatches have no specialized schedule; empty if none is missed.
    """

    schedule: Schedule
    specialized: tuple[Schedule, ...] = ()
    missed: str = ""


def choose(body: Body, machine: Machine) -> Choice:
    """The schedules of a body on a machine.

    Raises CompileError if no schedule of the machine takes rows as long as those of the body, or its attention.
    """
    if body.kind in KERNELS:
        return Choice(Schedule.of(Step("library", body.kind, count=KERNELS[body.kind].workgroup_size(body.hero))))
    if body.kind == "rows":
        return Choice(*schedules_of_rows(body, machine))
    task = Task(body, machine, Code(body))
    rows = [row for row in PATTERNS if (row[0] == ATTENTION) == (body.kind == ATTENTION)]
    found = next(((name, found) for name, pattern in rows if (found := pattern(task)) is not None), None)
    if found is None:
        raise CompileError([Diagnostic(f"the machine has no schedule for this body of kind {body.kind}")])
    return _specialized(task, *found)


# patterns


def encoded_run(task: Task) -> Schedule | None:
    """An invocation computes a row of a tile of an encoded result, so that it divides once to find its position."""
    body = task.body
    if body.hero is not None or len(body.outputs) != 1:
        return None
    layout = layout_of(tensor_of(body.outputs[0].value))
    length = layout.tiles[layout.inner[-1]] if layout is not None and layout.inner else 0
    if not 0 < length <= MAX_RUN:
        return None
    return Schedule.of(Step("tile", "e", count=length), Step("bind", "grid", "invocation", ELEMENTS_PER_WORKGROUP))


def packed_dot(task: Task) -> Schedule | None:
    """An invocation computes a tile of a dot, of the size of the tiles in the layouts of both operands."""
    if task.packed is None:
        return None
    extents, sizes = task.body.extents, dict(zip(("m", "n"), task.packed, strict=True))
    guards = [Step("guard", dim, "pad") for dim, size in sizes.items() if extents[dim] % size != 0]
    grid = Step("bind", "grid", "invocation", TILES_PER_WORKGROUP)
    return Schedule.of(*tile_steps(*task.packed), grid, task.lanes(task.packed[1]), *guards)


def staged_dot(task: Task) -> Schedule | None:
    """A workgroup computes a block of results of a dot, with slices of the operands in shared memory."""
    if not task.may_tile or task.machine.staged_tile is None or task.dot is None or task.is_long_and_few:
        return None
    extents, length = task.body.extents, task.body.extents["k"]
    if is_dynamic(length) or length < MIN_STAGED_EXTENT or not can_stage(task.dot, task.machine):
        return None
    rows, columns = typical(extents["m"]), typical(extents["n"])
    if min(rows, columns) < MIN_STAGED_EXTENT:
        return None
    tile, lanes = task.machine.tile, SQUARE_LANES
    is_plain = len(Axes(task.dot.sides).sizes) == 1
    if not is_plain or _blocks(tile, lanes, extents) < MANY_BLOCKS or prod(tile) * task.code.ops > MAX_TILE_OPS:
        tile, lanes = _smaller_tile(task, rows, columns), (STAGED_LANES_DOWN, STAGED_LANES_ACROSS)
    if prod(tile) * task.code.ops > MAX_TILE_OPS:
        return None
    depth = min(MAX_SLICE_DEPTH, SLICE_BYTES // (64 * dtype_of(task.dot.out).itemsize))
    sizes = {"m": tile[0] * lanes[0], "n": tile[1] * lanes[1]}
    return Schedule.of(
        *tile_steps(*tile),
        Step("bind", "grid", "workgroup"),
        Step("bind", "m", "local", lanes[0]),
        Step("bind", "n", "local", lanes[1]),
        Step("unroll", "k", count=min(depth, STAGED_RUN)),
        *(Step("stage", operand, "shared", depth) for operand in ("lhs", "rhs")),
        *(Step("guard", dim, "clamp") for dim, size in sizes.items() if extents[dim] % size != 0),
    )


def _smaller_tile(task: Task, rows: int, columns: int) -> tuple[int, int]:
    """The tile of an invocation in workgroups of more invocations, for blocks that are many and filled."""
    tile = task.machine.staged_tile
    assert tile is not None
    while tile[0] > MIN_STAGED_TILE[0] and tile[0] * STAGED_LANES_DOWN >= 2 * rows:
        tile = tile[0] // 2, tile[1]
    while tile[1] > MIN_STAGED_TILE[1] and tile[1] * STAGED_LANES_ACROSS >= 2 * columns:
        tile = tile[0], tile[1] // 2
    while tile != MIN_STAGED_TILE and (
        _blocks(tile, (STAGED_LANES_DOWN, STAGED_LANES_ACROSS), task.body.extents) < MANY_BLOCKS
        or prod(tile) * task.code.ops > MAX_TILE_OPS
    ):
        tile = _halved(tile)
    return tile


def _blocks(tile: tuple[int, int], lanes: tuple[int, int], extents: Mapping[str, Size]) -> int:
    counts = (extents["b"], ceildiv(extents["m"], tile[0] * lanes[0]), ceildiv(extents["n"], tile[1] * lanes[1]))
    return typical(prod(counts))


def _halved(tile: tuple[int, int]) -> tuple[int, int]:
    """A tile with half as many results, of a block that is as square as possible."""
    wide = tile[1] > MIN_STAGED_TILE[1] and tile[1] * STAGED_LANES_ACROSS >= tile[0] * STAGED_LANES_DOWN
    return (tile[0], tile[1] // 2) if wide or tile[0] == MIN_STAGED_TILE[0] else (tile[0] // 2, tile[1])


def tiled_dot(task: Task) -> Schedule | None:
    """An invocation computes a tile of results of a dot, so that each loaded element is used in several products."""
    if task.tile is None:
        return None
    shares = min(task.tile) > 1 and prod(task.tile) >= MIN_SHARING_TILE
    if task.is_long_and_few and not shares and not task.tiles_long_reductions:
        return None
    return _tiled(task, {})


def _tiled(task: Task, assumed: dict[str, int], *more: Step) -> Schedule:
    """The schedule of a tiled dot. `assumed`: dimension -> least extent."""
    assert task.tile is not None
    sizes, extents = dict(zip(("m", "n"), task.tile, strict=True)), task.body.extents
    return Schedule.of(
        *tile_steps(*task.tile),
        Step("bind", "grid", "invocation", TILES_PER_WORKGROUP),
        task.lanes(task.tile[1]),
        task.unrolled,
        *(edge_guard(dim, extents[dim], size, assumed.get(dim, 0)) for dim, size in sizes.items()),
        *(Step("assume", dim, count=least) for dim, least in assumed.items()),
        *more,
    )


def shared_reduction(task: Task) -> Schedule | None:
    """A workgroup computes one element or neighbours, if reductions are few and long, or too long for an invocation."""
    body, machine = task.body, task.machine
    if body.hero is None or not body.has_one_size or task.for_small:
        return None
    if machine.panel_bytes and not task.reduces_neighbours and typical(task.results) >= machine.simd:
        return None  # in native code, invocations are lanes of vectors, which load neighbours in memory
    length, adds_vectors = body.extents["k"], _adds_vectors(task)
    lanes = lanes_per_reduction(task.results) if is_dynamic(length) else REDUCTION_LANES
    in_vectors = adds_vectors and is_dynamic(length) and bounds(length)[1] > LONG_REDUCTION
    if not in_vectors and not task.is_long_and_few and longest(length, machine) <= max_elements(machine):
        if is_dynamic(length) or length < LONG_REDUCTION or not (task.leaves_units_idle or adds_vectors):
            return None
        if not task.reduces_neighbours:
            return _columns_beside(task)
        lanes = machine.subgroup
    if adds_vectors:
        lanes = REDUCTION_VECTORS * machine.simd
    return Schedule.of(Step("bind", "grid", "workgroup"), Step("reduce", "k", "tree", lanes)) if lanes > 1 else None


def _columns_beside(task: Task) -> Schedule | None:
    """A workgroup computes neighbouring elements, whose invocations read neighbours in memory."""
    schedule = Schedule.of(
        Step("bind", "e", "local", COLUMNS_BESIDE),
        Step("bind", "grid", "workgroup"),
        Step("reduce", "k", "tree", LANES_PER_COLUMN),
    )
    return None if typical(task.results) < COLUMNS_BESIDE else task.if_legal(schedule)


def _adds_vectors(task: Task) -> bool:
    """Whether vectors have neighbours of a reduction, in memory and in an order that does not matter."""
    hero = task.body.hero
    if not task.machine.lanes or not isinstance(hero, Reduce) or not is_free(hero):
        return False
    return task.reduces_neighbours and all(_has_neighbours(value, hero.dimensions.ints) for value in hero.inputs)


def _has_neighbours(value: Value, axes: Sequence[int]) -> bool:
    """Whether neighbours along the last axes, which are among `axes`, are neighbours in memory."""
    op = value.defining_op
    if isinstance(op, Reshape) and fastest_axis(op.operand_) == tensor_of(op.operand_).rank - 1:
        return True
    return fastest_axis(value) in axes


def _is_wide(hero: Reduce) -> bool:
    """Whether a piece of a row for a workgroup lies behind the reduced axes."""
    shape = tensor_of(hero.inputs[0]).shape
    return typical(prod(shape[max(hero.dimensions.ints, default=-1) + 1 :])) >= COLUMN_LANES


def each_element(task: Task) -> Schedule | None:
    """An invocation computes one element of every result, with the whole reduction in its loops."""
    hero, machine = task.body.hero, task.machine
    if hero is None:
        return run_of_elements(task) or THREAD
    unrolled = task.unrolled if isinstance(hero, DotGeneral) else None
    if isinstance(hero, Reduce) and typical(task.body.extents["k"]) >= LONG_REDUCTION and is_loaded(hero):
        unrolled = Step("unroll", "k", count=machine.reduction_run)
    if machine.lanes and isinstance(hero, Reduce) and typical(task.results) >= MANY_COLUMNS and _is_wide(hero):
        return Schedule.of(Step("bind", "grid", "invocation", COLUMN_LANES), unrolled)
    if not task.leaves_units_idle:
        return Schedule.of(*THREAD.steps, unrolled)
    if isinstance(hero, DotGeneral) and machine.reduction_run * task.code.ops <= MAX_TILE_OPS:
        unrolled = Step("unroll", "k", count=machine.reduction_run)
    return Schedule.of(Step("bind", "grid", "invocation", machine.subgroup), unrolled)


#: name -> function that makes the schedule of a body that fits the pattern, else None. The first that fits is taken
PATTERNS: Final[tuple[tuple[str, Callable[[Task], Schedule | None]], ...]] = (
    ("encoded run", encoded_run),
    ("packed dot", packed_dot),
    (ATTENTION, attention),
    ("winograd dot", winograd_dot),
    ("depthwise dot", depthwise_dot),
    ("lines of windows", lines_of_windows),
    ("pair panel dot", pair_panel_dot),
    ("few rows dot", few_rows_dot),
    ("byte panel dot", byte_panel_dot),
    ("panel dot", panel_dot),
    ("staged dot", staged_dot),
    ("tiled dot", tiled_dot),
    ("transposed elements", transposed_elements),
    ("lines of padding", lines_of_padding),
    ("rows of elements", rows_of_elements),
    ("shared reduction", shared_reduction),
    ("alternating elements", alternating_elements),
    ("lines of results", lines_of_results),
    ("each element", each_element),
)


# dispatches of some sizes


def _specialized(task: Task, name: str, schedule: Schedule) -> Choice:
    """The general schedule and those for few rows, few columns, or few elements of a reduction."""
    small = _small_condition(task, name)
    missed = ""
    if small is not None and not task.machine.quick_builds:
        missed = f"dispatches with {_size(task, small)} have no kernel of their own on this machine"
        small = None
    special = [] if small is None else [_small_schedule(task, small)]
    if name == "panel dot":
        special = [narrow_panels(schedule, step) for step in schedule.named("assume")]
    if name != "tiled dot" or task.tile is None:
        return Choice(schedule, tuple(special), missed)
    rows, columns = task.tile
    assumed = {} if small is None else {"m": rows}
    few_columns, extents = _condition(task, "n", columns - 1), task.body.extents
    if few_columns is not None:
        if small is None or extents["m"] != extents["n"] or small.count < few_columns.count:
            special.append(_tiled(task, assumed, few_columns))
        assumed = assumed | {"n": columns}
        may_be_few = is_dynamic(extents["m"]) and bounds(extents["m"])[0] < rows
        if may_be_few and rows <= columns and is_less(extents["n"] - 1, extents["m"]):  # no fewer rows than columns
            assumed["m"] = rows
    return Choice(_tiled(task, assumed), tuple(special), missed)


def _size(task: Task, condition: Step) -> str:
    return f"{task.body.extents[condition.dim]} <= {condition.count}"


def _small_condition(task: Task, name: str) -> Step | None:
    """The `specialize` step up to whose size another schedule is faster, as for a static size; None if none is."""
    if name == "tiled dot" and task.tile is not None and task.tile[0] > FEW_ROWS_TILE:
        return _condition(task, "m", task.tile[0] - 1)
    return _condition(task, "k", LONG_REDUCTION) if name == "shared reduction" else None


def _condition(task: Task, dim: str, most: int) -> Step | None:
    """A `specialize` step, if the extent is dynamic and may be `most` or less."""
    extent = task.body.extents[dim]
    return Step("specialize", dim, count=most) if is_dynamic(extent) and bounds(extent)[0] <= most else None


def _small_schedule(task: Task, condition: Step) -> Schedule:
    fewer = replace(task, for_small=True)
    schedule = next(found for _, pattern in PATTERNS if (found := pattern(fewer)) is not None)
    return Schedule.of(condition, *schedule.steps)
