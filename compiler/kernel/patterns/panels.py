"""Schedules of dots and convolutions in native code, whose workgroups copy operands to panels in their memory."""

from __future__ import annotations

from math import gcd, prod

from orchestrion.compiler.flow.structure import fastest_axis
from orchestrion.compiler.ir.dims import bounds, ceildiv, is_dynamic, typical
from orchestrion.compiler.kernel.elements.loops import BLOCK
from orchestrion.compiler.kernel.machine import Machine
from orchestrion.compiler.kernel.panels.bytes import WORD, has_bytes
from orchestrion.compiler.kernel.products.depthwise import Lines, image_of
from orchestrion.compiler.kernel.products.operands import is_element, is_read, packed_tile
from orchestrion.compiler.kernel.products.winograd import FACTORS, RESULTS, Squares
from orchestrion.compiler.kernel.schedule import Schedule, Step
from orchestrion.compiler.stablehlo.ops.base import dtype_of
from orchestrion.compiler.stablehlo.ops.contraction import DotGeneral
from orchestrion.schema.dtypes import FLOAT

from .task import MIN_TILE_COLUMNS, Task

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
#: most columns of a block of a dot of bytes
MAX_BYTE_COLUMNS = 512
#: most columns of a block of transformed results, and channels of its slices
WINOGRAD_COLUMNS, WINOGRAD_DEPTH = 32, 16
#: most results of a line that an invocation computes at once, and about as many lines of a workgroup
LINE_RESULTS, LINE_ROWS = 8, 14
#: bytes of the slices of operands that a workgroup copies at once
SLICE_BYTES = 256 << 10
#: fewest blocks of a dot that copies panels
FEWEST_COPIES = 8
#: bytes of the panels of a dot of bytes
BYTE_PANELS = 80 << 10
#: rows and columns that blocks of a dynamic number of them are made for, at least: those of few rows have idle
#: invocations, and those of many do not copy the other operand for a few rows each
EXPECTED = 512
#: fewest rows of a dot whose columns or products are of a dynamic number
FEWEST_ROWS = 4
#: fewest blocks of a dot whose workgroups read wide rows
FEWEST_BLOCKS = 4


def winograd_dot(task: Task) -> Schedule | None:
    """A workgroup computes tiles of 2 x 2 results of a convolution by 3 x 3 with Winograd's algorithm, which takes
    fewer products.
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
    block = task.block("mn", (rows, columns), (FACTORS, 1))
    return task.if_legal(Schedule.of(*block, task.lanes(columns), Step("stage", "out", "winograd", WINOGRAD_DEPTH)))


def _in_order(dot: DotGeneral, squares: Squares) -> bool:
    """Whether neighbouring channels of the image, and neighbouring columns of the kernel, are neighbours in memory."""
    dims = dot.dimensions
    channel, column = dims.lhs_contract[squares.channel], fastest_axis(dot.rhs)
    return fastest_axis(dot.lhs) == channel and column is not None and column not in dims.rhs_contract


def depthwise_dot(task: Task) -> Schedule | None:
    """A workgroup computes lines of results of a depthwise convolution, for neighbouring channels, from a ring buffer
    of rows of the image.
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
    return task.if_legal(schedule)


def panel_dot(task: Task) -> Schedule | None:
    """A workgroup computes a block of results of a dot, with vectors, and with panels of the operands that are read
    several times, or not in the order of memory.
    """
    dot, machine, extents = task.dot, task.machine, task.body.extents
    if dot is None or not machine.panel_bytes:
        return None
    if dtype_of(dot.out).kind != FLOAT and dtype_of(dot.out).bits < 8 * F32_BYTES:
        return None
    down, across = ("m", "n") if typical(extents["n"]) >= MIN_TILE_COLUMNS else ("n", "m")
    sides, dynamic = (extents[down], extents[across]), is_dynamic(extents[across])
    if typical(extents[across]) < MIN_TILE_COLUMNS or extents["k"] == 0 or task.for_small:
        return None
    if is_dynamic(extents[across], extents["k"]) and typical(extents[down]) < FEWEST_ROWS:
        return None
    item = dtype_of(dot.out).itemsize
    operand = dict(zip("mn", dot.sides, strict=True))
    rows, columns = (max(typical(size), EXPECTED) if is_dynamic(size) else int(size) for size in sides)
    read, contract = operand[across]
    packed = packed_tile(dot, 0 if across == "m" else 1)
    in_order = (packed is not None or fastest_axis(read) not in contract) and is_element(read)
    tile = panel_tile(rows, columns, machine, item, in_order)
    once = in_order and rows <= tile[0] and not dynamic
    loaded = once or (in_order and packed == tile[1])  # memory has the panels
    counts = _tiles_of_copies(task, rows, columns, tile, in_order)
    if loaded:
        groups = PANEL_LANES if once else 1  # a workgroup reads wide rows of an operand without a panel
        while groups > 1 and typical(extents["b"]) * (columns // (tile[1] * groups)) < FEWEST_BLOCKS:
            groups //= 2
        counts = PANEL_LANES // groups, groups
    sizes = {dim: size * count for dim, size, count in zip((down, across), tile, counts, strict=True)}
    tall = tile[0] > machine.panel_tile[0]  # so many rows, a power of two apart, would share few lines of a cache
    panels = [name for name, needs in ((down, tall or not is_read(operand[down][0])), (across, not loaded)) if needs]
    place, length = item * max(sum(sizes[name] for name in panels), 1), bounds(extents["k"])[1]
    depth = min(SLICE_BYTES, machine.panel_bytes - prod(sizes.values()) * item) // place // BLOCK * BLOCK
    depth = BLOCK if once else length if length * place <= SLICE_BYTES else depth
    *block, edge = task.block(down + across, tile, counts)
    assumed = None
    if dynamic and bounds(extents[across])[0] < sizes[across] <= bounds(extents[across])[1]:
        assumed, edge = Step("assume", across, count=sizes[across]), Step("guard", across, "shift")
    schedule = Schedule.of(
        *block,
        Step("vectorize", across, count=min(machine.vector_lanes, tile[1])),
        Step("stage", "out", "panel", min(depth, length)),
        *(Step("stage", PANEL_OPERANDS[name], "panel") for name in panels),
        Step("guard", across, "pad") if loaded and not once and extents[across] % sizes[across] != 0 else edge,
        assumed,
    )
    return task.if_legal(schedule)


def narrow_panels(schedule: Schedule, assumed: Step) -> Schedule:
    """The schedule of dispatches with fewer columns than the block of a schedule for at least `assumed` ones."""
    across = assumed.dim
    kept = (s for s in schedule.steps if s != assumed and (s.name, s.dim) not in (("bind", across), ("guard", across)))
    return Schedule.of(*kept, Step("specialize", across, count=assumed.count - 1), Step("guard", across, "clamp"))


def _tiles_of_copies(task: Task, rows: int, columns: int, tile: tuple[int, int], in_order: bool) -> tuple[int, int]:
    """Tiles of a block, along rows and columns, whose workgroup copies a panel of columns: up to 32 and 2, or 32 in
    all. More rows share a copy, and copies of wider rows of memory are faster. At least 8 blocks are left for threads,
    16 if blocks are large.
    """
    tiles, batches = ceildiv(rows, tile[0]), typical(task.body.extents["b"])
    most = 2 * PANEL_LANES if tile[1] % (2 * PANEL_LANES) == 0 else PANEL_LANES

    def fits(down: int, across: int) -> bool:
        width, least = tile[1] * across, FEWEST_COPIES * (1 if down * across <= most else 2)
        waste = ceildiv(columns, width) * width / (ceildiv(columns, tile[1]) * tile[1])
        enough = batches * ceildiv(tiles, down) * ceildiv(columns, width) >= least
        return width <= MAX_PANEL_COLUMNS and width <= columns and waste < 1.03 and enough

    down, across = min(1 << (tiles - 1).bit_length(), most), 1
    if not fits(down, 1):
        down = min(down, PANEL_LANES)
    while in_order and across < max(most // down, 2) and fits(down, 2 * across):
        across *= 2
    return max(down, PANEL_LANES // across), across


def byte_panel_dot(task: Task) -> Schedule | None:
    """A workgroup computes a block of results of a dot of bytes, with panels of words that hold four elements each."""
    dot, machine, extents = task.dot, task.machine, task.body.extents
    if dot is None or not machine.byte_products or not has_bytes(dot) or is_dynamic(extents["n"], extents["k"]):
        return None
    rows, columns, length = typical(extents["m"]), int(extents["n"]), int(extents["k"])
    if columns < MIN_TILE_COLUMNS or not length:
        return None
    tile = panel_tile(rows, columns, machine, F32_BYTES, False)
    tile = tile[0], tile[1] // PANEL_LANES * PANEL_LANES or tile[1]
    down, across = PANEL_LANES, 1  # few rows leave invocations to further columns
    while down > 1 and tile[0] * down >= 2 * rows and min(columns, MAX_BYTE_COLUMNS) >= 2 * across * tile[1]:
        down, across = down // 2, 2 * across
    height, width = tile[0] * down, tile[1] * across
    words = (BYTE_PANELS // 4 - height * width - width) // (height + width)
    schedule = Schedule.of(
        *task.block("mn", tile, (down, across)),
        Step("vectorize", "n", count=min(machine.vector_lanes, tile[1])),
        Step("stage", "out", "bytes", min(max(words, 1) * WORD, length)),
    )
    return task.if_legal(schedule)


def panel_tile(
    rows: int, columns: int, machine: Machine, item: int = F32_BYTES, in_order: bool = True
) -> tuple[int, int]:
    """(rows, columns) of the tile of a dot with panels: of few rows all, with more columns instead; else as many rows
    as leave the fewest unused in the last tile. `item`: bytes of a result; `in_order`: the columns of the operand are
    read in the order of memory.
    """
    down, across = machine.panel_tile[0], machine.panel_tile[1] * 4 // item
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
