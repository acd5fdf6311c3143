"""Chooses the schedule of a body on a machine: a table of patterns, of which the first that fits is taken.

Each row of `PATTERNS` makes a schedule for a body that fits the pattern, or none. The constants in this file were
measured on the machines that `docs/decisions/` names. `vm-tune` finds better schedules for a device.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import gcd, prod
from typing import Final

from orchestrion.compiler.flow.layout import layout_of
from orchestrion.compiler.flow.structure import fastest_axis
from orchestrion.compiler.ir.dims import Size, bounds, ceildiv, is_dynamic, is_less, typical
from orchestrion.compiler.stablehlo.ops.base import tensor_of
from orchestrion.compiler.stablehlo.ops.contraction import DotGeneral, Reduce
from orchestrion.schema.dtypes import BY_NAME, FLOAT

from .body import Body, count_of
from .choose_rows import ELEMENTS_PER_WORKGROUP, schedules_of_rows
from .dialect import VECTOR
from .emit import THREAD, emit
from .legality import MAX_PRODUCTS, problems
from .library import KERNELS
from .loops import BLOCK
from .machine import Machine
from .operands import is_loaded, is_read, packed_tile
from .reduction_limits import FEW_REDUCTIONS, lanes_per_reduction, longest, max_elements
from .result_lines import Lines, image_of
from .result_squares import FACTORS, RESULTS, Squares
from .rules import element_of
from .schedule import Schedule, Step
from .staged import can_stage

#: workgroup size of kernels without barriers whose invocations compute a tile of a dot
TILES_PER_WORKGROUP = 32
#: longest reduction, in elements, that never deserves a workgroup; longer ones do if they are few
LONG_REDUCTION = 256
#: invocations that share a reduction of static length
REDUCTION_LANES = 128
#: most elements of an encoded result that one invocation computes
MAX_RUN = 32
#: up to this length a tile that shares its loads well is faster than a workgroup per result, even for few results
MAX_TILED_LENGTH = 1024
#: fewest columns of a tile: with fewer, neighbours in memory gain nothing
MIN_TILE_COLUMNS = 4
#: fewest results of a tile that shares its loads well, at most one load per two products
MIN_SHARING_TILE = 16
#: rows of the tile for dispatches with fewer rows than the general tile
FEW_ROWS_TILE = 2
#: upper bound of the ops of one result times the results of a tile, which limits the code size
MAX_TILE_OPS = MAX_PRODUCTS
#: the same for packed operands, whose elements need no computation
MAX_PACKED_TILE_OPS = 2 * MAX_TILE_OPS
#: invocations of a workgroup that stages operands, along rows and columns; every Vulkan device supports the product
STAGED_LANES_DOWN, STAGED_LANES_ACROSS = 8, 16
#: bytes of a slice of 64 rows or columns, a quarter of the shared memory that every Vulkan device has
SLICE_BYTES = 4096
#: most places along the contracted axes in a slice
MAX_SLICE_DEPTH = 16
#: (rows, columns) of the smallest tile of a staged dot: every invocation then fetches an element of a slice
MIN_STAGED_TILE = (2, 1)
#: least rows, columns, and reduced elements of a staged dot: with fewer, most of a workgroup's block is empty
MIN_STAGED_EXTENT = 8
#: invocations of a workgroup whose dot has panels, all lanes of a vector; a multiple of every machine's lanes
PANEL_LANES = 16
#: dimension of a dot -> the operand that has it
PANEL_OPERANDS = {"m": "lhs", "n": "rhs"}
#: bytes of a result whose tiles have vectors of all invocations of a workgroup
F32_BYTES = 4
#: most vectors of sums of a tile with panels. Vectors of a row -> what their products cost more than those of two
TILE_VECTORS = 25
COST_OF_VECTORS = {2: 0.0, 1: 0.2, 3: 0.03, 4: 0.12, 5: 0.06}
#: most columns of a tile of few rows with panels
MAX_PANEL_COLUMNS = 128
#: most columns of a block of transformed results, and channels of its slices
WINOGRAD_COLUMNS, WINOGRAD_DEPTH = 32, 16
#: most results of a line that an invocation computes at once, and about as many lines of a workgroup
LINE_RESULTS, LINE_ROWS = 8, 14
#: fewest blocks of a dot whose workgroups read wide rows
FEWEST_BLOCKS = 4
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

    Raises CompileError if no schedule of the machine takes rows as long as those of the body.
    """
    if body.kind in KERNELS:
        return Choice(Schedule.of(Step("library", body.kind, count=KERNELS[body.kind].workgroup_size(body.hero))))
    if body.kind == "rows":
        return Choice(*schedules_of_rows(body, machine))
    task = Task(body, machine, Code(body))
    name, schedule = next((name, found) for name, pattern in PATTERNS if (found := pattern(task)) is not None)
    return _specialized(task, name, schedule)


@dataclass(frozen=True)
class Code:
    """The code of one result of a body, in an invocation that computes nothing else."""

    body: Body

    @cached_property
    def ops(self) -> int:
        """Number of ops, counted in emitted code."""
        return sum(1 for outer in emit(self.body, THREAD).ops[:-1] for _ in outer.walk())


@dataclass(frozen=True)
class Task:
    """A body, a machine, and the facts about both that patterns ask for. `for_small`: the schedule is for dispatches
    with few rows of a dot, or few elements of a reduction.
    """

    body: Body
    machine: Machine
    code: Code
    for_small: bool = False

    @cached_property
    def dot(self) -> DotGeneral | None:
        """The dot whose results may be tiled; None if there is none."""
        hero = self.body.hero
        return hero if isinstance(hero, DotGeneral) and self.body.has_one_size else None

    @cached_property
    def results(self) -> Size:
        """Number of results of the reduction or dot."""
        assert self.body.hero is not None
        return count_of(self.body.hero.results[0])

    @cached_property
    def is_long_and_few(self) -> bool:
        """Whether each reduction deserves a workgroup: the reductions are long and few. A dynamic length counts as
        long, a dynamic number as large.
        """
        if self.for_small or is_dynamic(self.results) or self.machine.units == 1:
            return False
        return bounds(self.body.extents["k"])[1] > LONG_REDUCTION and self.results < FEW_REDUCTIONS

    @cached_property
    def tiles_long_reductions(self) -> bool:
        """Whether long reductions are tiled even if there are few. Not if the length is dynamic, since only a workgroup
        may be able to reduce it.
        """
        return self.machine.units < FEW_REDUCTIONS and not is_dynamic(self.body.extents["k"])

    @cached_property
    def may_tile(self) -> bool:
        """Whether tiles may pay. They do not if each long reduction gets a workgroup anyway."""
        if self.dot is None:
            return False
        length = self.body.extents["k"]
        if longest(length, self.machine) > max_elements(self.machine):
            return False
        return (
            self.tiles_long_reductions or typical(length) <= MAX_TILED_LENGTH or typical(self.results) >= FEW_REDUCTIONS
        )

    @cached_property
    def packed(self) -> tuple[int, int] | None:
        """(rows, columns) of the tile of a dot with both operands packed along their free axes; None if they are
        not.
        """
        if not self.may_tile or self.dot is None:
            return None
        rows, columns = packed_tile(self.dot, 0), packed_tile(self.dot, 1)
        if rows is None or columns is None:
            return None
        while rows > 1 and rows * columns * self.code.ops > MAX_PACKED_TILE_OPS and rows % 2 == 0:
            rows //= 2
        while columns > 1 and rows * columns * self.code.ops > MAX_PACKED_TILE_OPS and columns % 2 == 0:
            columns //= 2
        return rows, columns

    @cached_property
    def tile(self) -> tuple[int, int] | None:
        """(rows, columns) of the largest tile of a dot that fits, found by halving; None if no tile pays."""
        if not self.may_tile:
            return None
        extents, (rows, columns) = self.body.extents, self.machine.tile
        while rows > typical(extents["m"]):
            rows //= 2
        while columns > typical(extents["n"]):
            columns //= 2
        while rows > 1 and rows * columns * self.code.ops > MAX_TILE_OPS:
            rows //= 2
        while columns > MIN_TILE_COLUMNS and rows * columns * self.code.ops > MAX_TILE_OPS:
            columns //= 2
        if not rows or columns < MIN_TILE_COLUMNS or rows * columns * self.code.ops > MAX_TILE_OPS:
            return None
        if self.machine.staging and not is_dynamic(self.results):
            while columns > MIN_TILE_COLUMNS and self.results < rows * columns * self.machine.units:
                columns //= 2
            if self.results < rows * columns * self.machine.units:
                return None
        return min(rows, FEW_ROWS_TILE) if self.for_small else rows, columns

    @cached_property
    def leaves_units_idle(self) -> bool:
        """Whether there are fewer results than invocations that a graphics processor runs at the same time."""
        return self.machine.staging and not is_dynamic(self.results) and self.results < self.machine.units

    @cached_property
    def reduces_neighbours(self) -> bool:
        """Whether the elements of a reduction lie side by side in every operand."""
        hero = self.body.hero
        if isinstance(hero, Reduce):
            reduced = hero.dimensions.ints
            return all(_are_last(reduced, tensor_of(value).rank) for value in hero.inputs)
        assert isinstance(hero, DotGeneral)
        dims = hero.dimensions
        return _are_last(dims.lhs_contract, tensor_of(hero.lhs).rank) and _are_last(
            dims.rhs_contract, tensor_of(hero.rhs).rank
        )

    def lanes(self, columns: int) -> Step | None:
        """The step that vectorizes a tile with that many columns; None if it is not vectorized."""
        lanes = min(self.machine.vector_lanes, columns)
        assert self.dot is not None
        if lanes < 2 or columns % lanes or BY_NAME[element_of(self.dot.out)].kind != FLOAT:
            return None
        return Step("vectorize", "n", count=lanes)

    @property
    def unrolled(self) -> Step | None:
        """The step that unrolls the reduction by the width of a wide load; None without wide loads."""
        return Step("unroll", "k", count=VECTOR) if self.machine.wide_loads else None


def _are_last(axes: Sequence[int], rank: int) -> bool:
    return sorted(axes) == list(range(rank - len(axes), rank))


def _tile(rows: int, columns: int) -> tuple[Step, Step]:
    return Step("tile", "m", count=rows), Step("tile", "n", count=columns)


# patterns


def encoded_run(task: Task) -> Schedule | None:
    """An invocation computes a row of a tile of an encoded result, and finds its position by one division."""
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
    return Schedule.of(*_tile(*task.packed), grid, task.lanes(task.packed[1]), *guards)


def winograd_dot(task: Task) -> Schedule | None:
    """A workgroup computes squares of results of a convolution by 3 x 3, from factors that are transforms of its
    operands, with fewer products.
    """
    dot, extents, machine = task.dot, task.body.extents, task.machine
    squares = Squares.of(dot) if dot is not None and machine.winograd_bytes else None
    if dot is None or squares is None or not _in_order(dot, squares):
        return None
    count, columns = squares.rows // RESULTS, WINOGRAD_COLUMNS
    while columns > extents["n"]:
        columns //= 2
    if squares.channels % WINOGRAD_DEPTH or columns < FACTORS or count < FACTORS:
        return None
    most = machine.panel_tile[0]
    rows = min(range(most, most // 2, -1), key=lambda rows: ceildiv(count, rows) * rows)
    schedule = Schedule.of(
        *_tile(rows, columns),
        Step("bind", "grid", "workgroup"),
        Step("bind", "m", "local", FACTORS),
        task.lanes(columns),
        Step("stage", "out", "winograd", WINOGRAD_DEPTH),
        Step("guard", "m", "clamp") if extents["m"] % (rows * FACTORS) else None,
        _guard("n", extents["n"], columns, 0),
    )
    return None if any(problems(task.body, schedule, machine)) else schedule


def _in_order(dot: DotGeneral, squares: Squares) -> bool:
    """Whether neighbouring channels of the image, and neighbouring columns of the kernel, are neighbours in memory."""
    dims = dot.dimensions
    channel, column = dims.lhs_contract[squares.channel], fastest_axis(dot.rhs)
    return fastest_axis(dot.lhs) == channel and column is not None and column not in dims.rhs_contract


def depthwise_dot(task: Task) -> Schedule | None:
    """A workgroup computes lines of results of a depthwise convolution, for neighbouring channels, from a ring of rows
    of the image.
    """
    dot, machine = task.dot, task.machine
    lines = Lines.of(dot) if dot is not None and machine.panel_bytes else None
    if dot is None or lines is None or fastest_axis(image_of(dot)) != lines.channel:
        return None
    channels, height, width = (lines.shape[axis] for axis in (lines.channel, lines.row, lines.column))
    lanes = gcd(channels, PANEL_LANES)
    if lanes < MIN_TILE_COLUMNS:
        return None
    most = min(LINE_RESULTS, width)
    results = min(range(most, most // 2, -1), key=lambda count: ceildiv(width, count) * count)
    schedule = Schedule.of(
        Step("tile", "b", count=results),
        Step("bind", "grid", "workgroup"),
        Step("bind", "b", "local", lanes),
        Step("stage", "out", "windows", ceildiv(height, max(height // LINE_ROWS, 1))),
    )
    return None if any(problems(task.body, schedule, machine)) else schedule


def panel_dot(task: Task) -> Schedule | None:
    """A workgroup computes a block of results of a dot, with vectors, and with panels of the operands that are read
    several times, or not in the order of memory.
    """
    dot, machine, extents = task.dot, task.machine, task.body.extents
    if dot is None or not machine.panel_bytes or BY_NAME[element_of(dot.out)].kind != FLOAT:
        return None
    down, across = ("m", "n") if typical(extents["n"]) >= MIN_TILE_COLUMNS else ("n", "m")
    if is_dynamic(extents[across], extents["k"]) or extents[across] < MIN_TILE_COLUMNS or not extents["k"]:
        return None
    item, dims = BY_NAME[element_of(dot.out)].itemsize, dot.dimensions
    operand = {"m": (dot.lhs, dims.lhs_contract), "n": (dot.rhs, dims.rhs_contract)}
    rows = typical(extents[down])
    read, contract = operand[across]
    in_order = fastest_axis(read) not in contract and is_read(read)
    tile = _panel_tile(rows, int(extents[across]), machine.panel_tile, item, in_order)
    once = in_order and rows <= tile[0]
    groups = PANEL_LANES if once else 1  # a workgroup reads wide rows of an operand without a panel
    while groups > 1 and typical(extents["b"]) * (extents[across] // (tile[1] * groups)) < FEWEST_BLOCKS:
        groups //= 2
    local, sizes = {down: PANEL_LANES // groups, across: groups}, {across: tile[1] * groups}
    sizes[down] = tile[0] * local[down]
    tall = tile[0] > machine.panel_tile[0]  # so many rows, a power of two apart, would share few lines of a cache
    panels = [name for name, needs in ((down, tall or not is_read(operand[down][0])), (across, not once)) if needs]
    depth = (machine.panel_bytes // item - prod(sizes.values())) // max(sum(sizes[name] for name in panels), 1)
    depth = BLOCK if once else depth if extents["k"] <= depth else depth // BLOCK * BLOCK
    schedule = Schedule.of(
        *(Step("tile", dim, count=count) for dim, count in zip((down, across), tile, strict=True)),
        Step("bind", "grid", "workgroup"),
        *(Step("bind", dim, "local", count) for dim, count in local.items() if count > 1),
        Step("vectorize", across, count=min(machine.vector_lanes, tile[1])),
        Step("stage", "out", "panel", min(depth, int(extents["k"]))),
        *(Step("stage", PANEL_OPERANDS[name], "panel") for name in panels),
        Step("guard", down, "clamp") if extents[down] % sizes[down] != 0 else None,
        _guard(across, extents[across], sizes[across], 0),
    )
    return None if any(problems(task.body, schedule, machine)) else schedule


def _panel_tile(rows: int, columns: int, most: tuple[int, int], item: int, in_order: bool) -> tuple[int, int]:
    """(rows, columns) of the tile of a dot with panels: of few rows all, with more columns instead; else as many rows
    as leave the fewest unused in the last tile. `most`: the tile of the machine; `item`: bytes of a result; `in_order`:
    the columns of the operand are read in the order of memory.
    """
    down, across = most[0], most[1] * 4 // item
    results = down * across
    if rows <= (2 * down if in_order else down):
        down, across = rows, min(results // (1 << (rows - 1).bit_length()), MAX_PANEL_COLUMNS)
    elif item == F32_BYTES and columns >= PANEL_LANES:
        return _regular_tile(rows, columns, down)
    else:
        down = min(range(down, down // 2, -1), key=lambda count: -(-rows // count) * count)
    while across > columns:
        across //= 2
    return down, across


def _regular_tile(rows: int, columns: int, most: int) -> tuple[int, int]:
    """The tile of up to `most` rows and some vectors of columns that computes the fewest results beyond the edges; of
    two vectors unless others gain. The last vector of a tile may be half a vector behind the one before.
    """
    half = PANEL_LANES // 2

    def tile(vectors: int) -> tuple[int, int]:
        limit = min(most, TILE_VECTORS // vectors)
        down = min(range(limit, limit // 2, -1), key=lambda count: ceildiv(rows, count) * count)
        return down, min(vectors * PANEL_LANES, columns // half * half)

    def cost(tile: tuple[int, int]) -> float:
        (down, width), vectors = tile, ceildiv(tile[1], PANEL_LANES)
        return ceildiv(rows, down) * down * ceildiv(columns, width) * vectors * (1 + COST_OF_VECTORS[vectors])

    return min(map(tile, COST_OF_VECTORS), key=cost)


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
    tile = task.machine.staged_tile
    while tile[0] > MIN_STAGED_TILE[0] and tile[0] * STAGED_LANES_DOWN >= 2 * rows:
        tile = tile[0] // 2, tile[1]
    while tile[1] > MIN_STAGED_TILE[1] and tile[1] * STAGED_LANES_ACROSS >= 2 * columns:
        tile = tile[0], tile[1] // 2
    while tile != MIN_STAGED_TILE and (
        _blocks(tile, extents) < MANY_BLOCKS or prod(tile) * task.code.ops > MAX_TILE_OPS
    ):
        tile = _halved(tile)
    if prod(tile) * task.code.ops > MAX_TILE_OPS:
        return None
    depth = min(MAX_SLICE_DEPTH, SLICE_BYTES // (64 * BY_NAME[element_of(task.dot.out)].itemsize))
    sizes = {"m": tile[0] * STAGED_LANES_DOWN, "n": tile[1] * STAGED_LANES_ACROSS}
    return Schedule.of(
        *_tile(*tile),
        Step("bind", "grid", "workgroup"),
        Step("bind", "m", "local", STAGED_LANES_DOWN),
        Step("bind", "n", "local", STAGED_LANES_ACROSS),
        *(Step("stage", operand, "shared", depth) for operand in ("lhs", "rhs")),
        *(Step("guard", dim, "clamp") for dim, size in sizes.items() if extents[dim] % size != 0),
    )


def _blocks(tile: tuple[int, int], extents: Mapping[str, Size]) -> int:
    counts = (
        extents["b"],
        ceildiv(extents["m"], tile[0] * STAGED_LANES_DOWN),
        ceildiv(extents["n"], tile[1] * STAGED_LANES_ACROSS),
    )
    return typical(prod(counts))


def _halved(tile: tuple[int, int]) -> tuple[int, int]:
    """A tile with half as many results, of a block that is as square as possible."""
    wide = tile[1] > MIN_STAGED_TILE[1] and tile[1] * STAGED_LANES_ACROSS >= tile[0] * STAGED_LANES_DOWN
    return (tile[0], tile[1] // 2) if wide or tile[0] == MIN_STAGED_TILE[0] else (tile[0] // 2, tile[1])


def tiled_dot(task: Task) -> Schedule | None:
    """An invocation computes a tile of results of a dot, so that a loaded element is a factor of several products."""
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
        *_tile(*task.tile),
        Step("bind", "grid", "invocation", TILES_PER_WORKGROUP),
        task.lanes(task.tile[1]),
        task.unrolled,
        *(_guard(dim, extents[dim], size, assumed.get(dim, 0)) for dim, size in sizes.items()),
        *(Step("assume", dim, count=least) for dim, least in assumed.items()),
        *more,
    )


def _guard(dim: str, extent: Size, size: int, assumed: int) -> Step | None:
    if max(bounds(extent)[0], assumed) < size:
        return Step("guard", dim, "clamp")
    return Step("guard", dim, "shift") if extent % size != 0 else None


def shared_reduction(task: Task) -> Schedule | None:
    """A workgroup computes one element, if the reductions are few and long, or too long for one invocation."""
    body, machine = task.body, task.machine
    if body.hero is None or not body.has_one_size or task.for_small:
        return None
    if machine.panel_bytes and not task.reduces_neighbours and typical(task.results) >= machine.simd:
        return None  # in native code, invocations are lanes of vectors, which load neighbours in memory
    length = body.extents["k"]
    lanes = lanes_per_reduction(task.results) if is_dynamic(length) else REDUCTION_LANES
    if not task.is_long_and_few and longest(length, machine) <= max_elements(machine):
        if is_dynamic(length) or length < LONG_REDUCTION or not task.leaves_units_idle:
            return None
        if not task.reduces_neighbours:
            return None
        lanes = machine.subgroup
    return Schedule.of(Step("bind", "grid", "workgroup"), Step("reduce", "k", "tree", lanes)) if lanes > 1 else None


def each_element(task: Task) -> Schedule | None:
    """An invocation computes one element of every result, with the whole reduction in its loops."""
    hero, machine = task.body.hero, task.machine
    if hero is None:
        return _run_of_elements(task) or THREAD
    unrolled = task.unrolled if isinstance(hero, DotGeneral) else None
    if isinstance(hero, Reduce) and typical(task.body.extents["k"]) >= LONG_REDUCTION and is_loaded(hero):
        unrolled = Step("unroll", "k", count=machine.reduction_run)
    if not task.leaves_units_idle:
        return Schedule.of(*THREAD.steps, unrolled)
    if isinstance(hero, DotGeneral) and machine.reduction_run * task.code.ops <= MAX_TILE_OPS:
        unrolled = Step("unroll", "k", count=machine.reduction_run)
    return Schedule.of(Step("bind", "grid", "invocation", machine.subgroup), unrolled)


def _run_of_elements(task: Task) -> Schedule | None:
    """An invocation computes neighbours, if enough invocations are left and the results have whole runs of them."""
    body, size = task.body, task.machine.element_tile
    count = count_of(body.results[0])
    if size < 2 or is_dynamic(count) or count < size * task.machine.units or size * task.code.ops > MAX_TILE_OPS:
        return None
    schedule = Schedule.of(Step("tile", "e", count=size), *THREAD.steps)
    return None if any(problems(body, schedule, task.machine)) else schedule


#: name -> function that makes the schedule of a body that fits the pattern, else None. The first that fits is taken
PATTERNS: Final[tuple[tuple[str, Callable[[Task], Schedule | None]], ...]] = (
    ("encoded run", encoded_run),
    ("packed dot", packed_dot),
    ("winograd dot", winograd_dot),
    ("depthwise dot", depthwise_dot),
    ("panel dot", panel_dot),
    ("staged dot", staged_dot),
    ("tiled dot", tiled_dot),
    ("shared reduction", shared_reduction),
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
    if name != "tiled dot" or task.tile is None:
        return Choice(schedule, tuple(special), missed)
    rows, columns = task.tile
    assumed = {} if small is None else {"m": rows}
    few_columns, extents = _condition(task, "n", columns - 1), task.body.extents
    if few_columns is not None:
        if small is None or extents["m"] != extents["n"] or small.count < few_columns.count:
            special.append(_tiled(task, assumed, few_columns))
        assumed = assumed | {"n": columns}
        dynamic = is_dynamic(extents["m"])
        if dynamic and rows <= columns and is_less(extents["n"] - 1, extents["m"]):  # no fewer rows than columns
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
