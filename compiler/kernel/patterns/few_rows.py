"""Schedules of dots of few rows in native code, which read the operand of the columns once
(docs/decisions/few-rows.md).
"""

from __future__ import annotations

from orchestrion.compiler.flow.structure import fastest_axis
from orchestrion.compiler.ir.dims import ceildiv, is_dynamic, typical
from orchestrion.compiler.kernel.elements.loops import BLOCK
from orchestrion.compiler.kernel.products.operands import is_element, packed_tile, widened_of
from orchestrion.compiler.kernel.schedule import Schedule, Step
from orchestrion.compiler.stablehlo.ops.base import dtype_of
from orchestrion.schema.dtypes import FLOAT

from .task import Task

#: fewest columns of a dot for which blocks have whole pieces of the rows of an operand
FEWEST_COLUMNS = 256
#: most columns of a block: rows of a page; and if as many batches give threads enough blocks (`split-dots` makes them)
MOST_COLUMNS, MOST_COLUMNS_OF_BATCHES, MANY_BATCHES = 1024, 4096, 8
#: invocations of a workgroup along the columns
GROUPS = (8, 16, 32, 64)
#: fewest blocks of a dot: threads share them
FEWEST_BLOCKS = 4
#: lanes of a vector; most vectors of a row of a tile; most vectors of sums of a tile of f32
LANES, MOST_VECTORS, MOST_SUMS = 16, 4, 24
#: most rows of a dot whose sums wait in memory for further products. Rows -> products of a pass; and of 16 bits
STREAMED_ROWS, NARROW_STREAMED_ROWS = {1: 8, 2: 4, 3: 4}, 4
#: most rows of a dot whose vectors lie along the reduction, columns of a tile, and fewest products of a result
MOST_LANE_SUM_ROWS, LANE_SUM_COLUMNS, FEWEST_LANE_SUMS = 4, 4, 128


def few_rows_dot(task: Task) -> Schedule | None:
    """A workgroup computes a block of a dot of few rows, and reads the operand of the columns once, in the order of
    memory.
    """
    dot, machine, extents = task.dot, task.machine, task.body.extents
    if dot is None or not machine.panel_bytes or dtype_of(dot.out).kind != FLOAT:
        return None
    down, across = ("m", "n") if typical(extents["n"]) >= FEWEST_COLUMNS else ("n", "m")
    sizes = extents[down], extents[across], extents["k"]
    if is_dynamic(*sizes):
        return None
    rows, columns, length = map(int, sizes)
    if not length or columns < FEWEST_COLUMNS or not 0 < rows <= 2 * machine.panel_tile[0]:
        return None
    read, contract = dot.sides["mn".index(across)]
    if not (is_element(dot.lhs) and is_element(dot.rhs)) or packed_tile(dot, "mn".index(across)) is not None:
        return None
    if fastest_axis(read) not in contract:
        steps = _in_order(task, (down, across), (rows, columns, length))
    elif rows <= MOST_LANE_SUM_ROWS and length >= FEWEST_LANE_SUMS:
        block = task.block(down + across, (rows, LANE_SUM_COLUMNS), (1, LANES))
        steps = [*block, Step("vectorize", "k", count=LANES), Step("stage", "out", "lanes")]
    else:
        return None
    return task.if_legal(Schedule.of(*steps))


def _in_order(task: Task, dims: tuple[str, str], sizes: tuple[int, int, int]) -> list[Step | None]:
    """The steps of a dot with neighbouring columns. `dims`: those of the rows and columns; `sizes`: of rows, columns
    and the reduction.
    """
    (down, across), (rows, columns, length) = dims, sizes
    groups_down = ceildiv(rows, task.machine.panel_tile[0])
    tile_rows = ceildiv(rows, groups_down)
    assert task.dot is not None
    registers = dtype_of(task.dot.out).itemsize // 4  # of a vector
    most_vectors = min(MOST_SUMS // (tile_rows * registers), MOST_VECTORS)
    narrow = widened_of(task.dot.rhs if across == "n" else task.dot.lhs) is not None
    width, groups = _block(columns, typical(task.body.extents["b"]), most_vectors)
    step = STREAMED_ROWS.get(rows) and (NARROW_STREAMED_ROWS if narrow else STREAMED_ROWS[rows])
    return [
        *task.block(down + across, (tile_rows, width), (groups_down, groups)),
        Step("vectorize", across, count=LANES),
        Step("stage", "out", "stream", step) if step else Step("stage", "out", "panel", min(BLOCK, length)),
    ]


def _block(columns: int, batches: int, most_vectors: int) -> tuple[int, int]:
    """(columns of a tile, tiles of a block) with the least work for two threads, beyond the edges, too; of equal ones
    the widest block.
    """
    most = min(columns, MOST_COLUMNS if batches < MANY_BATCHES else MOST_COLUMNS_OF_BATCHES)
    options = [(LANES * vectors, groups) for vectors in range(1, most_vectors + 1) for groups in GROUPS]

    def cost(option: tuple[int, int]) -> tuple[float, int, int]:
        tile, groups = option
        blocks = batches * ceildiv(columns, tile * groups)
        work = max(blocks + blocks % 2, FEWEST_BLOCKS) * tile * groups / (batches * columns)
        return round(work, 1), -tile * groups, -tile

    return min((one for one in options if one[0] * one[1] <= most), key=cost)
