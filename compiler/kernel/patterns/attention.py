"""The schedule of an attention in native code, whose workgroups keep the scores of a block of rows in their memory."""

from __future__ import annotations

from orchestrion.compiler.ir.dims import ceildiv
from orchestrion.compiler.kernel.elements.loops import BLOCK
from orchestrion.compiler.kernel.schedule import Schedule, Step

from .panels import FEWEST_BLOCKS, FEWEST_COPIES, PANEL_LANES
from .rows import vector_row_lanes
from .task import MIN_TILE_COLUMNS, Task

#: most tiles of a block along its rows, twice as many if blocks make pairs, and along its columns
TILES_DOWN, TILES_ACROSS = 8, 2
#: fewest rows, and fewest of a block if there are more, whose panels are worth their copies
MIN_ROWS, MIN_BLOCK_ROWS = 8, 16
#: most elements of a slice of the sums of weighted rows
MAX_SLICE = 2 * BLOCK


def attention(task: Task) -> Schedule | None:
    """A workgroup computes a block of rows of an attention through both dots, with their scores in shared memory."""
    body, machine = task.body, task.machine
    if body.attention is None or not machine.attention_bytes:
        return None
    rows, batches, length, columns = (int(body.extents[dim]) for dim in "mbkn")
    if rows < MIN_ROWS:
        return None
    down, local = machine.panel_tile[0], 1
    while local < TILES_DOWN and down * local < rows:
        local *= 2
    least = min(rows, MIN_BLOCK_ROWS)
    while down * local >= 2 * least and batches * ceildiv(rows, down * local) < FEWEST_BLOCKS:
        local //= 2
    blocks, pairs = (ceildiv(rows, down * local * count) for count in (1, 2))
    if local == TILES_DOWN and blocks == 2 * pairs and batches * pairs >= FEWEST_COPIES:
        local *= 2  # copies keys and values half as often
    tiles = {dim: _tile(size, machine.panel_tile[1]) for dim, size in (("k", length), ("n", columns))}
    if min(tiles.values()) < MIN_TILE_COLUMNS:
        return None
    sizes = {"m": local, **{dim: _tiles(size, tiles[dim]) for dim, size in (("k", length), ("n", columns))}}
    while down * local >= least:
        if schedule := task.if_legal(_schedule(task, {"m": down, **tiles}, sizes | {"m": local})):
            return schedule
        local //= 2
    return None


def _tile(columns: int, most: int) -> int:
    """The columns of a tile: a power of two."""
    return min(most, 1 << columns.bit_length() - 1)


def _tiles(columns: int, tile: int) -> int:
    """The tiles of a block along its columns."""
    return TILES_ACROSS if columns >= TILES_ACROSS * tile else 1


def _schedule(task: Task, tile: dict[str, int], local: dict[str, int]) -> Schedule:
    extents, machine = task.body.extents, task.machine
    size = {dim: tile[dim] * local[dim] for dim in tile}
    lanes = max(vector_row_lanes(int(extents["k"]), machine), PANEL_LANES)
    guards = {"k": "shift", "m": "clamp", "n": "shift"}
    return Schedule.of(
        *(Step("tile", dim, count=count) for dim, count in tile.items()),
        Step("bind", "grid", "workgroup"),
        *(Step("bind", dim, "local", count) for dim, count in local.items() if count > 1),
        Step("reduce", "k", "tree", lanes),
        Step("vectorize", "n", count=min(machine.vector_lanes, tile["n"])),
        Step("stage", "out", "rows", min(MAX_SLICE, int(extents["k"]))),
        *(Step("guard", dim, how) for dim, how in guards.items() if extents[dim] % size[dim]),
    )
