"""Which schedules fit which bodies: every reason why one does not.

A schedule that has no problem here lowers to code that computes the same results as any other, in the same order of
additions unless it shares a reduction.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from typing import Final

from orchestrion.compiler.ir.dims import Dim, bounds, ceildiv, is_less
from orchestrion.compiler.stablehlo.ops.contraction import DotGeneral
from orchestrion.schema.dtypes import BY_NAME, FLOAT

from .body import Body, count_of
from .dialect import LANES
from .encodings import stored_shape
from .fold_limits import longest, max_elements, max_loop_turns
from .grid import is_tiled_dot
from .library import KERNELS
from .machine import Machine
from .operands import packed_tile
from .row_values import MOST_HELD, lengths_of
from .rules import element_of
from .schedule import Schedule, Step
from .staged import GAP

#: invocations of a workgroup that every Vulkan device takes
MAX_WORKGROUP_SIZE: Final = 128
#: bytes of shared memory of a workgroup that every Vulkan device has
MAX_SHARED_BYTES: Final = 16 << 10
#: results that an invocation computes, at most
MAX_TILE: Final = 256
#: elements that a turn of a loop takes, at most
MAX_UNROLL: Final = 64
#: steps about dimensions
_OF_DIMENSIONS: Final = ("specialize", "assume", "tile", "reorder", "vectorize", "unroll", "reduce", "guard")


def problems(body: Body, schedule: Schedule, machine: Machine) -> Iterator[str]:
    """Why a schedule does not fit a body on a machine; nothing if it does."""
    if body.kind in KERNELS or schedule.library is not None:
        yield from _library(body, schedule)
        return
    unknown = list(_unknown(body, schedule))
    yield from unknown
    if not unknown:
        yield from _sizes(body, schedule)
        yield from _workgroup(schedule)
        yield from _reduction(body, schedule, machine)
        if body.kind == "rows":
            yield from _rows(body, schedule)
        elif is_tiled_dot(schedule):
            yield from _dot(body, schedule, machine)
        else:
            yield from _elements(body, schedule)


def _library(body: Body, schedule: Schedule) -> Iterator[str]:
    kernel = KERNELS.get(body.kind)
    if kernel is None:
        yield f"a body of kind {body.kind} has no library kernel"
        return
    wanted = Schedule.of(Step("library", body.kind, count=kernel.workgroup_size(body.hero)))
    if schedule != wanted:
        yield f"a body of kind {body.kind} is scheduled by {wanted} alone"


def _unknown(body: Body, schedule: Schedule) -> Iterator[str]:
    """What the steps are about."""
    operands = ("lhs", "rhs") if body.kind == "contraction" else ("k",) if body.kind == "rows" else ()
    for step in schedule.steps:
        known = [*body.extents]
        if step.name == "bind":
            known = ["grid", *(dim for dim in ("m", "n") if dim in body.extents and body.kind == "contraction")]
        elif step.name == "stage":
            known = [*operands]
        elif step.name not in _OF_DIMENSIONS:
            known = []
        if step.dim not in known:
            yield f"{step}: a body of kind {body.kind} has {', '.join(known) or 'nothing of that name'} there"
    if schedule.find("bind", "grid") is None:
        yield "no bind(grid, ...) says who takes a place of the grid"


def _sizes(body: Body, schedule: Schedule) -> Iterator[str]:
    """Conditions and assumptions about extents."""
    for step in (*schedule.named("specialize"), *schedule.named("assume")):
        extent = body.extents[step.dim]
        least, most = bounds(extent)
        if not isinstance(extent, Dim):
            yield f"{step}: the extent of {step.dim} is {extent}, not dynamic"
        elif not least <= step.count <= most:
            yield f"{step}: the extent of {step.dim} is from {least} to {most}"
    for step in (*schedule.named("tile"), *schedule.named("unroll"), *schedule.named("vectorize")):
        if step.count < 1:
            yield f"{step}: the count is 1 or more"
    if prod(step.count for step in schedule.named("tile")) > MAX_TILE:
        yield f"an invocation computes {MAX_TILE} results at most"


def _workgroup(schedule: Schedule) -> Iterator[str]:
    grid = schedule.find("bind", "grid")
    assert grid is not None
    if grid.how == "local" or (grid.how == "workgroup") != (grid.count == 0):
        yield f"{grid}: the grid is bound to a workgroup, or to an invocation with the size of its workgroup"
    local = [step for step in schedule.named("bind") if step.dim != "grid"]
    for step in local:
        if step.how != "local" or not _is_power_of_two(step.count):
            yield f"{step}: a dimension is bound to local, with a power of two"
    if grid.how == "invocation" and (local or schedule.lanes > 1):
        yield "invocations of a workgroup share work only if the grid is bound to a workgroup"
    if not 1 <= schedule.workgroup_size <= MAX_WORKGROUP_SIZE:
        yield f"a workgroup of {schedule.workgroup_size} invocations; it has from 1 to {MAX_WORKGROUP_SIZE}"


def _reduction(body: Body, schedule: Schedule, machine: Machine) -> Iterator[str]:
    """How the elements along `k` are reduced."""
    length = body.extents.get("k", 0)
    for step in schedule.named("reduce"):
        if step.dim != "k" or step.count < 2 or not _is_power_of_two(step.count):
            yield f"{step}: k is shared by a power of two of invocations"
        elif length == 0:
            yield f"{step}: there is nothing to reduce"
    for step in schedule.named("unroll"):
        if step.dim != "k" or step.count > MAX_UNROLL or not _is_power_of_two(step.count):
            yield f"{step}: k is unrolled by a power of two up to {MAX_UNROLL}"
        elif schedule.lanes > 1 or body.kind == "rows" or schedule.find("stage", "lhs") is not None:
            yield f"{step}: only loops of one invocation over memory are unrolled"
    limit = schedule.range_of("k")[1]
    most = longest(length, machine)
    each = ceildiv(most if limit is None else min(most, limit), schedule.lanes)
    most = max_loop_turns(machine) if body.kind == "rows" else max_elements(machine)
    if each > most:
        yield f"an invocation would reduce {each} elements, loops of the machine take {most} at most"


def _elements(body: Body, schedule: Schedule) -> Iterator[str]:
    """Elements in the order of memory."""
    size = schedule.count("tile", "e")
    for name in ("reorder", "vectorize", "stage", "guard"):
        for step in schedule.named(name):
            yield f"{step}: only tiles of a dot along m and n have that"
    if schedule.find("tile", "k") is not None:
        yield "a reduction is not tiled"
    if (size > 1 or schedule.lanes > 1) and len({count_of(value) for value in body.results}) > 1:
        yield "results of several sizes are computed element by element"
    if schedule.lanes > 1 and not body.has_one_size:
        yield "a reduction is shared only if all results have its size"
    for value in body.results if size > 1 else ():
        last = (1, *stored_shape(value))[-1]
        if isinstance(last, Dim) or last % size:
            yield f"tile(e, {size}): the last dimension in memory has {last} elements, no multiple"


def _dot(body: Body, schedule: Schedule, machine: Machine) -> Iterator[str]:
    """Tiles of a dot."""
    dot = body.hero
    assert isinstance(dot, DotGeneral)
    if schedule.lanes > 1:
        yield "the reduction of a dot in tiles is not shared"
    for step in schedule.named("tile"):
        if step.dim not in ("m", "n"):
            yield f"{step}: a dot is tiled along m and n, or along e alone"
    for step in schedule.named("reorder"):
        if (step.dim, step.how) != ("n", "m"):
            yield f"{step}: rows may count faster than columns, reorder(n, m)"
    for step in schedule.named("vectorize"):
        yield from _vectors(dot, schedule, step, machine)
    for dim, index in (("m", 0), ("n", 1)):
        yield from _edge(body, dot, schedule, dim, index)
    if any(schedule.named("stage")):
        yield from _staged(body, dot, schedule, machine)


def _vectors(dot: DotGeneral, schedule: Schedule, step: Step, machine: Machine) -> Iterator[str]:
    if step.dim != "n" or step.count not in LANES or schedule.count("tile", "n") % step.count:
        yield f"{step}: vectors have {', '.join(map(str, LANES))} lanes along n, which divide its tile"
    if step.count > machine.width:
        yield f"{step}: the machine has vectors of {machine.width} lanes"
    if BY_NAME[element_of(dot.out)].kind != FLOAT:
        yield f"{step}: vectors are of floats"
    if any(schedule.named("stage")):
        yield f"{step}: products of staged operands are computed one by one"


def _edge(body: Body, dot: DotGeneral, schedule: Schedule, dim: str, index: int) -> Iterator[str]:
    """The guard of a dimension that its tiles do not divide. Nothing is dispatched if the extent is 0."""
    size, extent = schedule.count("tile", dim) * schedule.local(dim), body.extents[dim]
    step = schedule.find("guard", dim)
    least = max(bounds(extent)[0], schedule.count("assume", dim, 0))
    if step is None:
        if extent % size != 0:
            yield f"tiles of {size} do not divide {dim}, of extent {extent}: it needs a guard"
        return
    if step.how == "shift" and (least < size or schedule.local(dim) > 1):
        yield f"{step}: a tile is moved back only if the extent, {extent}, is a tile or more"
    if step.how == "pad":
        tile = packed_tile(dot, index)
        if any(schedule.named("stage")) or schedule.local(dim) > 1 or tile is None or tile % size:
            yield f"{step}: the operand does not lie in tiles that {size} divides"


def _staged(body: Body, dot: DotGeneral, schedule: Schedule, machine: Machine) -> Iterator[str]:
    lanes, length = schedule.workgroup_size, body.extents["k"]
    steps = list(schedule.named("stage"))
    depths = {(step.how, step.count) for step in steps}
    if len(steps) != 2 or len(depths) != 1 or depths != {("shared", steps[0].count)}:
        yield "both operands are staged in shared memory, in slices of one depth"
        return
    depth = steps[0].count
    sizes = [schedule.count("tile", dim) * schedule.local(dim) for dim in ("m", "n")]
    if not schedule.by_workgroups:
        yield "operands are staged by the invocations of a workgroup"
    elif not all(_is_power_of_two(size) and size <= lanes for size in (depth, *sizes)):
        yield f"slices of {depth} by {sizes[0]} and {sizes[1]}: powers of two up to the workgroup's {lanes}"
    elif any(size * depth < lanes for size in sizes):
        yield f"slices of {depth} by {sizes[0]} and {sizes[1]} leave some of {lanes} invocations nothing to fetch"
    used = sum(depth * (size + GAP) for size in sizes) * BY_NAME[element_of(dot.out)].itemsize
    if used > MAX_SHARED_BYTES:
        yield f"slices take {used} bytes of shared memory; every device has {MAX_SHARED_BYTES}"
    if not dot.dimensions.lhs_contract:
        yield "a dot that reduces nothing has no slices to stage"
    elif isinstance(length, Dim) or not 1 <= length <= max_loop_turns(machine) // 2:
        yield f"a reduction of {length} elements is not staged on this machine"


def _rows(body: Body, schedule: Schedule) -> Iterator[str]:
    for name in ("tile", "reorder", "vectorize", "guard"):
        for step in schedule.named(name):
            yield f"{step}: rows are not tiled"
    stage = schedule.find("stage", "k")
    if stage is None:
        return
    if stage.how != "register" or stage.count:
        yield f"{stage}: rows stay in registers"
        return
    if any(bounds(length)[0] < 1 for length in lengths_of(body.ops, body.rows, body.results)):
        yield f"{stage}: rows may be empty"
    most, limit = bounds(body.extents["k"])[1], schedule.range_of("k")[1]
    each = ceildiv(most if limit is None else min(most, limit), schedule.lanes)
    if each > MOST_HELD:
        yield f"{stage}: an invocation would hold {each} elements of a row, more than {MOST_HELD}"


def choice_problems(body: Body, schedules: list[Schedule]) -> Iterator[str]:
    """Why the schedules of one entry do not fit together: those with a condition first, the one for all others last."""
    *special, rest = schedules
    for schedule in special:
        if schedule.condition is None:
            yield f"{schedule} has no condition, and stands in front of others"
    if rest.condition is not None:
        yield f"{rest} is for all other dispatches, and has a condition"
    for number, schedule in enumerate(schedules):
        known: dict[str, int] = {}
        for step in (one.condition for one in schedules[:number]):
            if step is not None:
                known[step.dim] = max(known.get(step.dim, 0), step.count + 1)
        for step in schedule.named("assume"):
            if not _is_known(body, schedule, step, known):
                yield f"{step}: dispatches with less take {schedule}, too"


def _is_known(body: Body, schedule: Schedule, step: Step, known: dict[str, int]) -> bool:
    """Whether an extent is as large as is assumed: smaller ones take earlier schedules, or have another dimension that
    is no larger and is assumed to be so large.
    """
    if known.get(step.dim, 0) >= step.count:
        return True
    others = [(dim, least) for dim, least in known.items() if least >= step.count and dim != step.dim]
    return any(is_less(body.extents[dim] - 1, body.extents[step.dim]) for dim, _ in others)


def _is_power_of_two(number: int) -> bool:
    return number > 0 and number & (number - 1) == 0
