"""Which schedules fit which bodies, and the reason for each that does not.

A schedule without problems lowers to code with the same results as any other. The order of additions is the same, too,
with the exceptions that docs/kernel.md names.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from math import prod
from typing import Final

from orchestrion.compiler.flow.attention_bodies import Attention
from orchestrion.compiler.flow.kinds import ATTENTION
from orchestrion.compiler.ir.dims import bounds, ceildiv, is_dynamic, is_less
from orchestrion.compiler.kernel.elements.encodings import stored_shape
from orchestrion.compiler.kernel.elements.loops import BLOCK, loop_iterations
from orchestrion.compiler.kernel.elements.rules import element_of
from orchestrion.compiler.kernel.panels.attention import attention_bytes
from orchestrion.compiler.kernel.panels.bytes import byte_panel_bytes, has_bytes
from orchestrion.compiler.kernel.panels.dot import contracted, shared_elements, slice_of, vector_dimension
from orchestrion.compiler.kernel.panels.joined_axes import units_of
from orchestrion.compiler.kernel.panels.lane_sums import reads_along
from orchestrion.compiler.kernel.panels.pairs import has_pairs, pair_panel_bytes
from orchestrion.compiler.kernel.products.depthwise import Lines
from orchestrion.compiler.kernel.products.grid import DOT, is_tiled_dot
from orchestrion.compiler.kernel.products.operands import packed_tile
from orchestrion.compiler.kernel.products.staged import GAP, can_stage
from orchestrion.compiler.kernel.products.winograd import FACTORS, Squares, transformed_elements
from orchestrion.compiler.kernel.rows.values import MAX_REGISTER_ELEMENTS, parts_bytes, row_iterations, shared_row_bytes
from orchestrion.compiler.stablehlo.ops.base import dtype_of
from orchestrion.compiler.stablehlo.ops.contraction import DotGeneral
from orchestrion.schema.dtypes import FLOAT

from .body import Body, Extents, count_of
from .dialect import VECTOR_LANES
from .library import KERNELS
from .machine import MAX_SHARED_BYTES, Machine
from .reduction_limits import longest, max_counted_iterations, max_elements, max_loop_iterations
from .schedule import Schedule, Step

#: invocations of a workgroup that every Vulkan device takes
MAX_WORKGROUP_SIZE: Final = 128
#: most results that an invocation computes; the same in vectors, as sums of a panel
MAX_TILE: Final = 256
MAX_PANEL_TILE: Final = 400
#: most elements that an iteration of a loop takes
MAX_UNROLL: Final = 64
#: most elements that an iteration of a loop takes for all results of an invocation; drivers compile more for minutes
MAX_PRODUCTS: Final = 4096
#: steps that name a dimension
_OF_DIMENSIONS: Final = ("specialize", "assume", "tile", "reorder", "vectorize", "unroll", "reduce", "guard")
#: steps whose count is a size
_DIVIDING: Final = ("tile", "bind", "vectorize", "unroll", "reduce")


def problems(body: Body, schedule: Schedule, machine: Machine) -> Iterator[str]:
    """Yields the reasons why a schedule does not fit a body on a machine."""
    if body.kind in KERNELS or schedule.library is not None:
        yield from _library(body, schedule)
        return
    basic = [*_unknown(body, schedule), *_counts(schedule)]
    yield from basic
    if not basic:
        yield from _sizes(body, schedule)
        yield from _workgroup(schedule)
        yield from _reduction(body, schedule, machine)
        if body.kind == "rows":
            yield from _rows(body, schedule)
        elif body.attention is not None:
            yield from _attention(body, body.attention, schedule, machine)
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
    """Steps that name a dimension or an operand that the body does not have."""
    operands = {"contraction": ("lhs", "out", "rhs"), "rows": ("k",), ATTENTION: ("out",)}.get(body.kind, ())
    for step in schedule.steps:
        known = [*body.extents]
        if step.name == "bind":
            shared = {"contraction": (*DOT, "e"), "reduction": ("e",), ATTENTION: ("k", "m", "n")}.get(
                body.kind, "e" if (body.padding or body.lines or body.dynamic_rows) is not None else ""
            )
            known = ["grid", *(dim for dim in shared if dim in body.extents)]
        elif step.name == "stage":
            known = [*operands]
        elif step.name not in _OF_DIMENSIONS:
            known = []
        if step.dim not in known:
            yield f"{step}: a body of kind {body.kind} has {', '.join(known) or 'nothing of that name'} there"
    if schedule.find("bind", "grid") is None:
        yield "the step bind(grid, ...) is missing"


def _counts(schedule: Schedule) -> Iterator[str]:
    """Counts of 0 in steps that divide by their count. The step `bind(grid, workgroup)` has the count 0."""
    for step in schedule.steps:
        if step.name in _DIVIDING and step.dim != "grid" and step.count < 1:
            yield f"{step}: the count is 1 or more"


def _sizes(body: Body, schedule: Schedule) -> Iterator[str]:
    """Conditions and assumptions about extents, and the number of results of an invocation."""
    if len(list(schedule.named("specialize"))) > 1:
        yield "a schedule has one condition"
    for step in (*schedule.named("specialize"), *schedule.named("assume")):
        extent = body.extents[step.dim]
        least, most = bounds(extent)
        if not is_dynamic(extent):
            yield f"{step}: the extent of {step.dim} is {extent}, not dynamic"
        elif not least <= step.count <= most:
            yield f"{step}: the extent of {step.dim} is from {least} to {most}"
    most = MAX_PANEL_TILE if schedule.sums else MAX_TILE
    if schedule.results > most:
        yield f"an invocation computes {most} results at most"


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
    """Steps about the reduced dimension `k`."""
    length = body.extents.get("k", 0)
    for step in schedule.named("reduce"):
        if step.dim != "k" or step.count < 2 or not _is_power_of_two(step.count):
            yield f"{step}: k is shared by a power of two of invocations"
        elif length == 0:
            yield f"{step}: there is nothing to reduce"
    for step in schedule.named("unroll"):
        if step.dim != "k" or step.count > MAX_UNROLL or not _is_power_of_two(step.count):
            yield f"{step}: k is unrolled by a power of two up to {MAX_UNROLL}"
        elif schedule.lanes > 1 or body.kind == "rows" or any(one.how != "shared" for one in schedule.named("stage")):
            yield f"{step}: only loops of one invocation over memory or over slices in shared memory are unrolled"
        elif (products := step.count * schedule.results) > MAX_PRODUCTS:
            yield f"{step}: an iteration takes {products} elements for all results, {MAX_PRODUCTS} at most"
    if schedule.find("stage", "k") is not None:  # without loops
        return
    each = ceildiv(longest(length, machine), schedule.lanes)
    most = max_loop_iterations(machine) if body.kind == "rows" else max_elements(machine)
    if each > most:
        yield f"an invocation would reduce {each} elements, loops of the machine take {most} at most"
        return
    taken, limit = _loop_iterations(body, schedule, machine), max_counted_iterations(machine)
    if taken > limit:
        yield f"loops of an invocation would take {taken} iterations, those of the machine take {limit} at most"


def _loop_iterations(body: Body, schedule: Schedule, machine: Machine) -> int:
    """Upper bound of the iterations of all loops of an invocation, if several loops run one after the other; else 0."""
    if body.kind == "rows":
        return row_iterations(body.rows, schedule.lanes, machine)
    size = schedule.count("tile", "e")
    return (
        3 * size * loop_iterations(ceildiv(longest(body.extents.get("k", 0), machine), schedule.lanes))
        if size > 1
        else 0
    )


def _elements(body: Body, schedule: Schedule) -> Iterator[str]:
    """Schedules that compute elements in the order of memory."""
    size = schedule.count("tile", "e")
    for name in ("reorder", "vectorize", "stage", "guard"):
        for step in schedule.named(name):
            across = (name, step.dim) == ("guard", "t") and schedule.count("tile", "t", 0)
            if not across and not ((name, step.dim) == ("guard", "e") and schedule.by_lines):
                yield f"{step}: only a dot in tiles along m and n takes this step"
    if schedule.find("tile", "k") is not None:
        yield "a reduction is not tiled"
    if (beside := schedule.local("e")) > 1 and any(schedule.named("tile")):
        yield "invocations of a workgroup that take elements side by side compute one at a time"
    if schedule.by_lines and body.padding is None:
        yield from _result_lines(body, schedule)
    if (size > 1 or schedule.lanes > 1) and len({count_of(value) for value in body.results}) > 1:
        yield "results of several sizes are computed element by element"
    if schedule.lanes > 1 and body.hero is not None and not body.has_one_size:
        yield "a reduction is shared only if all results have its size"
    if schedule.lanes > 1 and body.hero is not None:
        used = size * parts_bytes(body.ops, schedule.lanes) * beside
        if used > MAX_SHARED_BYTES:
            yield f"parts of {size} results take {used} bytes of shared memory; every device has {MAX_SHARED_BYTES}"
    if schedule.count("tile", "t", 0):
        yield from _across(body, schedule)
    for value in body.results if size > 1 else ():
        last = (1, *stored_shape(value))[-1]
        if is_dynamic(last) or last % size:
            yield f"tile(e, {size}): the last dimension in memory has {last} elements, which is no multiple"


def _result_lines(body: Body, schedule: Schedule) -> Iterator[str]:
    """Lines of results."""
    lines, size, guard = body.lines, schedule.local("e"), schedule.find("guard", "e")
    if lines is None and body.dynamic_rows is None:
        yield f"bind(e, local, {size}): the results have no lines of one known shape"
    elif guard is not None and (guard.how != "shift" or lines is None or lines.replaces or lines.length < size):
        yield f"{guard}: a part of a line is moved back, if the line is as long and no result may replace an operand"


def _across(body: Body, schedule: Schedule) -> Iterator[str]:
    """Tiles of results that read an operand across."""
    across, guard = body.across, schedule.find("guard", "t")
    assert across is not None
    count, size = schedule.count("tile", "t"), schedule.workgroup_size
    extents = f"{across.extent} places along t and {across.columns} columns"
    if schedule.find("tile", "e") is not None or schedule.by_workgroups:
        yield f"tile(t, {count}): invocations compute results along t alone"
    if across.extent < count or across.columns < size:
        yield f"tiles of {count} by {size} exceed the {extents}"
    if guard is None and (across.extent % count or across.columns % size):
        yield f"tiles of {count} by {size} do not divide the {extents}: they need a guard"
    if guard is not None and (guard.how != "shift" or across.replaces):
        yield f"{guard}: a tile is moved back, and only if no result may replace an operand"


def _dot(body: Body, schedule: Schedule, machine: Machine) -> Iterator[str]:
    """Schedules that compute tiles of a dot."""
    dot = body.hero
    assert isinstance(dot, DotGeneral)
    if schedule.lanes > 1:
        yield "the reduction of a dot in tiles is not shared"
    if schedule.sums == "windows":
        yield from _lines(dot, schedule, machine)
        return
    for step in (*schedule.named("tile"), *schedule.named("bind")):
        if step.dim not in ("m", "n", "grid"):
            yield f"{step}: a dot is tiled along m and n, or along e alone"
    for step in schedule.named("reorder"):
        if (step.dim, step.how) != ("n", "m"):
            yield f"{step}: rows may count faster than columns, reorder(n, m)"
    for step in schedule.named("vectorize"):
        yield from _vectors(schedule, step, machine)
    for dim, index in (("m", 0), ("n", 1)):
        yield from _edge(body, dot, schedule, dim, index)
    if schedule.sums:
        blocks = {"winograd": _winograd, "bytes": _word_panels, "pairs": _word_panels, "lanes": _lane_sums}
        yield from blocks.get(schedule.sums, _panels)(dot, schedule, machine)
    elif any(schedule.named("stage")):
        yield from _staged(body, dot, schedule, machine)


def _vectors(schedule: Schedule, step: Step, machine: Machine) -> Iterator[str]:
    tile = schedule.count("tile", step.dim)
    dims, fits = ("mn", tile >= step.count) if schedule.sums else ("n", tile % step.count == 0)
    if schedule.sums == "lanes":
        dims, fits = "k", True
    if step.dim not in dims or step.count not in VECTOR_LANES or not fits:
        lanes = ", ".join(map(str, VECTOR_LANES))
        yield f"{step}: vectors have {lanes} lanes along {' or '.join(dims)}, which divide its tile"
    if step.count > machine.vector_lanes:
        yield f"{step}: the machine has vectors of {machine.vector_lanes} lanes"
    if any(schedule.named("stage")) and not schedule.sums:
        yield f"{step}: products of staged operands are computed one by one"


def _edge(body: Body, dot: DotGeneral, schedule: Schedule, dim: str, index: int) -> Iterator[str]:
    """The guard of a dimension whose extent is no multiple of the tile. An extent of 0 is never dispatched."""
    size, extent = schedule.block(dim), body.extents[dim]
    step = schedule.find("guard", dim)
    least = max(bounds(extent)[0], schedule.count("assume", dim, 0))
    if step is None:
        if extent % size != 0:
            yield f"tiles of {size} do not divide {dim}, of extent {extent}: it needs a guard"
        return
    apart = schedule.local(dim) > 1 and not schedule.sums
    if step.how == "shift" and (least < size or apart):
        yield f"{step}: a tile is moved back only if the extent, {extent}, is a tile or more"
    if step.how == "pad":
        tile = packed_tile(dot, index)
        staged = {(step.dim, step.how) for step in schedule.named("stage")} - {("out", "panel"), ("lhs", "panel")}
        if staged or schedule.local(dim) > 1 or tile is None or tile % size:
            yield f"{step}: the operand does not lie in tiles that {size} divides"


def _panels(dot: DotGeneral, schedule: Schedule, machine: Machine) -> Iterator[str]:
    """Blocks of a workgroup, with panels of operands, or with passes along their rows."""
    out = schedule.find("stage", "out")
    steps = [step for step in schedule.named("stage") if step.dim != "out"]
    if out is None or not out.count or any(step.how != "panel" or step.count for step in steps):
        yield "sums and operands are staged in panels, with a depth at stage(out, panel, ...) alone"
        return
    if not machine.panel_bytes:
        yield f"{out}: the machine has no memory for panels"
        return
    across = vector_dimension(schedule)
    lanes, width = schedule.workgroup_size, schedule.block(across)
    guards = schedule.guards
    if not schedule.by_workgroups:
        yield f"{out}: the invocations of a workgroup share a block"
    elif len(list(schedule.named("vectorize"))) != 1:
        yield f"{out}: results are computed in vectors along m or n"
    elif width < lanes and lanes % width:
        yield f"{out}: {lanes} invocations take whole rows of {width} results"
    is_panel = any(step.dim == ("lhs" if across == "m" else "rhs") for step in steps)
    along = ("shift", "pad", "clamp") if is_panel else ("shift", "pad")
    if any(how not in (along if dim == across else ("clamp",)) for dim, how in guards.items()):
        yield f"{out}: the last tile is moved back, padded, or clamped in a panel along the vectors, else clamped"
    if not (sizes := contracted(dot)) or prod(sizes) == 0:
        yield f"{out}: the number of products is not 0"
    elif out.how == "stream" and (steps or len(sizes) > 1 or is_dynamic(*sizes) or BLOCK % out.count):
        yield f"{out}: passes add a power of two of products, {BLOCK} at most, along one axis, of operands in memory"
    elif out.how == "panel" and not slice_of(dot, out.count)[1]:
        yield f"{out}: a block of a sum of {prod(sizes)} products has more elements"
    elif (used := shared_elements(dot, schedule) * dtype_of(dot.out).itemsize) > machine.panel_bytes:
        yield f"panels and sums take {used} bytes; the machine has {machine.panel_bytes}"


def _lane_sums(dot: DotGeneral, schedule: Schedule, machine: Machine) -> Iterator[str]:
    """Blocks of a workgroup whose vectors lie along the reduction."""
    (out, *others), lanes = schedule.named("stage"), schedule.count("vectorize", "k")
    across, sizes = vector_dimension(schedule), contracted(dot)
    down, rows = ("n", Extents.of(dot).columns) if across == "m" else ("m", Extents.of(dot).rows)
    width = schedule.block(across)
    guards = schedule.guards
    if others or out.count or not schedule.by_workgroups or not machine.panel_bytes or lanes < 2:
        yield f"{out}: a workgroup shares a block, with vectors along k, on machines with panels"
    elif schedule.count("tile", down) != rows or schedule.local(down) > 1 or guards.get(across, "shift") != "shift":
        yield f"{out}: an invocation has all {rows} places along {down}, and the last tile is moved back along {across}"
    elif width % lanes:
        yield f"{out}: vectors of {lanes} results divide a block of {width}"
    if len(sizes) != 1 or is_dynamic(sizes[0]) or sizes[0] < lanes or not reads_along(dot):
        yield f"{out}: a known number of products, {lanes} or more, are neighbours in both operands"
    elif (used := shared_elements(dot, schedule) * dtype_of(dot.out).itemsize) > machine.panel_bytes:
        yield f"panels and sums take {used} bytes; the machine has {machine.panel_bytes}"


def _word_panels(dot: DotGeneral, schedule: Schedule, machine: Machine) -> Iterator[str]:
    """Blocks of a workgroup, with panels of words of four bytes, or of two bf16."""
    (out, *others) = schedule.named("stage")
    lanes, width = schedule.workgroup_size, schedule.block("n")
    guards, vectors = schedule.guards, schedule.count("vectorize", "n")
    pairs = out.how == "pairs"
    if not (machine.pair_products if pairs else machine.byte_products):
        yield f"{out}: the machine has no products of {'pairs' if pairs else 'bytes'}"
        return
    if others or not schedule.by_workgroups or not out.count:
        yield f"{out}: the invocations of a workgroup share a block, with a depth at this step alone"
    elif vectors < 4 or schedule.count("tile", "n") % vectors or (lanes % width and width % lanes):
        yield f"{out}: {lanes} invocations take whole rows of {width} results, in vectors of 4 lanes or more along n"
    if guards.get("m", "clamp") != "clamp" or guards.get("n", "shift") != "shift":
        yield f"{out}: the last tile is moved back along n, and clamped along m"
    if not (sizes := contracted(dot)) or is_dynamic(prod(sizes)) or not prod(sizes):
        yield f"{out}: only a known number of products is summed in words"
    elif pairs:
        yield from _pairs(dot, schedule, out, machine)
    elif not has_bytes(dot):
        yield f"{out}: only products of bytes, the right ones signed, are summed in words"
    elif (used := byte_panel_bytes(dot, schedule)) > machine.panel_bytes:
        yield f"panels and sums take {used} bytes; the machine has {machine.panel_bytes}"


def _pairs(dot: DotGeneral, schedule: Schedule, out: Step, machine: Machine) -> Iterator[str]:
    """Pairs of products of bf16."""
    lanes, rows = schedule.workgroup_size, schedule.count("tile", "m")
    if not has_pairs(dot):
        yield f"{out}: only products of bf16 are summed in pairs, of an even number along the innermost axis"
    elif not slice_of(dot, out.count)[1]:
        yield f"{out}: a block of a sum of {prod(contracted(dot))} products has more elements"
    elif min(lanes, rows) < VECTOR_LANES[0]:
        yield f"{out}: vectors of {lanes} places and {rows} rows of a tile are searched for exponents"
    elif (used := pair_panel_bytes(dot, schedule)) > machine.panel_bytes:
        yield f"panels and sums take {used} bytes; the machine has {machine.panel_bytes}"


def _winograd(dot: DotGeneral, schedule: Schedule, machine: Machine) -> Iterator[str]:
    """Blocks of squares of results of a convolution, from transformed operands."""
    (out, *others), squares = schedule.named("stage"), Squares.of(dot)
    columns, guards = schedule.count("tile", "n"), schedule.guards
    if others or not schedule.by_workgroups or {schedule.workgroup_size, schedule.local("m")} != {FACTORS}:
        yield f"{out}: {FACTORS} invocations of a workgroup share rows"
    elif schedule.find("vectorize", "n") is None or columns % FACTORS:
        yield f"{out}: vectors lie along n, and {FACTORS} divides its tile"
    if guards.get("m", "clamp") != "clamp" or guards.get("n", "shift") != "shift":
        yield f"{out}: the last tile is moved back along n, and clamped along m"
    if dtype_of(dot.out).kind != FLOAT or squares is None:
        yield f"{out}: only convolutions of floats by windows of 3 x 3, side by side, have factors"
    elif not out.count or out.count % FACTORS or squares.channels % out.count:
        yield f"{out}: slices of a multiple of {FACTORS} channels divide {squares.channels}"
    elif (used := transformed_elements(schedule) * dtype_of(dot.out).itemsize) > machine.winograd_bytes:
        yield f"factors and sums take {used} bytes; the machine has {machine.winograd_bytes}"


def _lines(dot: DotGeneral, schedule: Schedule, machine: Machine) -> Iterator[str]:
    """Lines of results of a depthwise convolution, from rows of the image."""
    (out, *others), lines = schedule.named("stage"), Lines.of(dot)
    others += [step for step in schedule.steps if step.name not in ("bind", "tile", "stage") or step.dim in "mn"]
    if others or not schedule.by_workgroups:
        yield f"{out}: a workgroup takes channels of a block, bind(b, local, ...), and results of a line, tile(b, ...)"
    elif lines is None:
        yield f"{out}: only depthwise convolutions with windows along two axes have lines"
    elif not 0 < out.count <= lines.shape[lines.row] or schedule.count("tile", "b") > lines.shape[lines.column]:
        yield f"{out}: the results have {lines.shape[lines.row]} rows and {lines.shape[lines.column]} columns"
    elif lines.shape[lines.channel] % schedule.local("b"):
        yield f"{out}: {schedule.local('b')} channels of a workgroup divide {lines.shape[lines.channel]}"
    elif (used := lines.elements(schedule) * dtype_of(dot.out).itemsize) > machine.panel_bytes:
        yield f"rows take {used} bytes; the machine has {machine.panel_bytes}"


def _attention(body: Body, attention: Attention, schedule: Schedule, machine: Machine) -> Iterator[str]:
    """Blocks of rows of an attention, whose scores are in shared memory."""
    out, lanes, tile = schedule.find("stage", "out"), schedule.lanes, partial(schedule.count, "tile")
    if out is None or not schedule.keeps_scores or not out.count or not schedule.by_workgroups or lanes < 2:
        yield "the invocations of a workgroup share rows, by reduce(k, tree, ...) and stage(out, rows, ...)"
        return
    if schedule.find("tile", "b") is not None or any(schedule.named("reorder")):
        yield f"{out}: tiles lie along k, m and n"
    for dim in ("k", "m", "n"):
        yield from _edge_of_rows(body, schedule, dim)
    vectors = schedule.count("vectorize", "n", 0)
    fit = vectors in VECTOR_LANES and vectors <= min(machine.vector_lanes, tile("n"))
    if not fit or len(list(schedule.named("vectorize"))) > 1 or (tile("k") < vectors and tile("k") not in VECTOR_LANES):
        yield f"{out}: vectors of up to {machine.vector_lanes} lanes lie along n, in tiles of one or more"
    for dim in ("k", "n"):
        tiles, width = schedule.local("m") * schedule.local(dim), tile(dim) * schedule.local(dim)
        if tiles > lanes or (width < lanes and lanes % width):
            yield f"{out}: {lanes} invocations take {tiles} tiles, and whole rows of {width} results along {dim}"
    values = (attention.scores.out, attention.product.lhs, attention.product.out)
    if len({element_of(value) for value in values}) > 1 or dtype_of(values[0]).kind != FLOAT:
        yield f"{out}: scores, weights and results are floats of one type"
    elif units_of(attention.product) is not None or not slice_of(attention.product, out.count)[1]:
        yield f"{out}: a block of a sum of {body.extents['k']} products has more elements"
    elif (used := attention_bytes(attention, schedule)) > machine.attention_bytes:
        yield f"scores and panels take {used} bytes; the machine has {machine.attention_bytes}"


def _edge_of_rows(body: Body, schedule: Schedule, dim: str) -> Iterator[str]:
    """The guard of a dimension of an attention."""
    size, extent = schedule.block(dim), body.extents[dim]
    step = schedule.find("guard", dim)
    if step is None and extent % size:
        yield f"tiles of {size} do not divide {dim}, of extent {extent}: it needs a guard"
    elif step is not None and step.how != ("clamp" if dim == "m" else "shift"):
        yield f"{step}: the last tile is clamped along m, and moved back along k and n"
    elif step is not None and step.how == "shift" and extent < size:
        yield f"{step}: a tile is moved back only if the extent, {extent}, is a tile or more"


def _staged(body: Body, dot: DotGeneral, schedule: Schedule, machine: Machine) -> Iterator[str]:
    lanes, length = schedule.workgroup_size, body.extents["k"]
    steps = list(schedule.named("stage"))
    depths = {(step.how, step.count) for step in steps}
    if len(steps) != 2 or len(depths) != 1 or depths != {("shared", steps[0].count)}:
        yield "both operands are staged in shared memory, in slices of one depth"
        return
    depth = steps[0].count
    sizes = [schedule.block(dim) for dim in ("m", "n")]
    if not schedule.by_workgroups:
        yield "operands are staged by the invocations of a workgroup"
    elif not all(_is_power_of_two(size) and size <= lanes for size in (depth, *sizes)):
        yield f"slices of {depth} by {sizes[0]} and {sizes[1]}: powers of two up to the workgroup's {lanes}"
    elif any(size * depth < lanes for size in sizes):
        yield f"slices of {depth} by {sizes[0]} and {sizes[1]} leave some of {lanes} invocations nothing to fetch"
    if depth % schedule.count("unroll", "k"):
        yield f"an iteration takes {schedule.count('unroll', 'k')} places, which does not divide slices of {depth}"
    used = sum(depth * (size + GAP) for size in sizes) * dtype_of(dot.out).itemsize
    if used > MAX_SHARED_BYTES:
        yield f"slices take {used} bytes of shared memory; every device has {MAX_SHARED_BYTES}"
    if not dot.dimensions.lhs_contract:
        yield "a dot that reduces nothing has no slices to stage"
    elif not can_stage(dot, machine):
        yield f"a reduction of {length} elements is not staged on this machine"


def _rows(body: Body, schedule: Schedule) -> Iterator[str]:
    for name in ("tile", "reorder", "vectorize", "guard"):
        for step in schedule.named(name):
            yield f"{step}: rows are not tiled"
    stage = schedule.find("stage", "k")
    used = parts_bytes(body.ops, schedule.lanes)
    if stage is None:
        most = schedule.range_of("k")[1]
        used = shared_row_bytes(body.rows, schedule.lanes, most)
    if used > MAX_SHARED_BYTES:
        yield f"rows take {used} bytes of shared memory; every device has {MAX_SHARED_BYTES}"
    if stage is None:
        return
    if stage.how != "register" or stage.count:
        yield f"{stage}: rows stay in registers"
        return
    if any(bounds(length)[0] < 1 for length in body.rows.lengths):
        yield f"{stage}: rows may be empty"
    most, limit = bounds(body.extents["k"])[1], schedule.range_of("k")[1]
    each = ceildiv(most if limit is None else min(most, limit), schedule.lanes)
    if each > MAX_REGISTER_ELEMENTS:
        yield f"{stage}: an invocation would hold {each} elements of a row, more than {MAX_REGISTER_ELEMENTS}"


def choice_problems(body: Body, schedules: list[Schedule]) -> Iterator[str]:
    """Yields the reasons why the schedules of one entry do not fit together. Those with a condition come first; the
    last one has none.
    """
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
            if not _is_known(body, step, known):
                yield f"{step}: smaller dispatches take {schedule}, too"


def _is_known(body: Body, step: Step, known: dict[str, int]) -> bool:
    """Whether an assumed least extent is guaranteed. Either earlier schedules take all smaller extents, or another
    dimension that is never larger is guaranteed to be as large.
    """
    if known.get(step.dim, 0) >= step.count:
        return True
    others = [(dim, least) for dim, least in known.items() if least >= step.count and dim != step.dim]
    return any(is_less(body.extents[dim] - 1, body.extents[step.dim]) for dim, _ in others)


def _is_power_of_two(number: int) -> bool:
    return number > 0 and number & (number - 1) == 0
