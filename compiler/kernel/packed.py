"""The `packed` schedule of a dot whose operands both lie in tiles along their free axes: an invocation computes one
tile of the left by one of the right.

As in `tiled.py`, the folds of a block of results run side by side, each in its own order, so results are the same, bit
for bit. But a block is a tile of the layout: its elements are neighbours in memory, and at an edge the padding is read
like anything else. What it gives is not written; what is fused behind the dot is computed at the last
place that there is.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from orchestrion.compiler.flow.axes import followed, joined
from orchestrion.compiler.flow.dialect import UnsetEncoding
from orchestrion.compiler.flow.layout import layout_of
from orchestrion.compiler.ir.core import Operation, Value
from orchestrion.compiler.stablehlo.ops.base import tensor_of
from orchestrion.compiler.stablehlo.ops.contraction import DotGeneral

from .builder import KernelBuilder
from .elemental import Elemental
from .index import Index, delinearize
from .tiled import MOST_OPS, Extents, Tile, Write, folded_tile, write_all

#: a packed tile's code may be this many times as long as that of any other: both operands are there to be computed with
LONGER = 2


def packed_tile_of(hero: Operation | None, ops: int) -> Tile | None:
    """The tile of a dot whose body takes `ops` ops for one result, when both its operands are packed."""
    if not isinstance(hero, DotGeneral):
        return None
    rows, columns = (_packed(hero, index) for index in range(2))
    if rows is None or columns is None:
        return None
    while rows > 1 and rows * columns * ops > LONGER * MOST_OPS and rows % 2 == 0:
        rows //= 2
    while columns > 1 and rows * columns * ops > LONGER * MOST_OPS and columns % 2 == 0:
        columns //= 2
    return Tile(rows, columns)


def _packed(dot: DotGeneral, index: int) -> int | None:
    """How many places of an operand's free axes are a tile of its layout; None where it has none of this kind."""
    chain: list[Operation] = []
    op = dot.operands[index].defining_op
    while op is not None and not isinstance(op, UnsetEncoding) and len(op.operands) == 1:
        chain.append(op)
        op = op.operands[0].defining_op
    if not isinstance(op, UnsetEncoding):
        return None
    axes, layout = followed(chain, op.output), layout_of(tensor_of(op.source))
    if axes is None or layout is None:
        return None
    free = joined(axes, dot.dimensions.free(len(axes), index == 0))
    group = layout.axes.index(free) if free in layout.axes else None
    return layout.tiles[group] if group is not None and layout.inner == (group,) else None


@dataclass(frozen=True, slots=True)
class Side:
    """The places of a tile along one axis of the grid, and those of results, which end where these do."""

    places: Sequence[Value]
    results: Sequence[Value]
    extent: int
    ragged: bool

    @classmethod
    def of(cls, b: KernelBuilder, number: Value, size: int, extent: int) -> "Side":
        start = b.op("multiply", number, b.index(size))
        return cls.ending(b, [b.op("add", start, b.index(at)) for at in range(size)], extent, extent % size != 0)

    @classmethod
    def ending(cls, b: KernelBuilder, places: Sequence[Value], extent: int, ragged: bool) -> "Side":
        """Places in ascending order, the last of which may be beyond the extent if the side is ragged."""
        last = b.index(extent - 1)
        return cls(places, [b.op("minimum", place, last) for place in places] if ragged else places, extent, ragged)

    def holds(self, b: KernelBuilder, at: int) -> Value:
        """Whether there is a result at a place."""
        return b.op("compare_lt", self.places[at], b.index(self.extent)) if self.ragged else b.const(True, "i1")


def emit_packed_tile(
    elemental: Elemental, dot: DotGeneral, tile: Tile, number: Value
) -> tuple[list[Index], Side, Side]:
    """The results of tile `number`, remembered at their places; gives these and the sides of the tile."""
    b, extents = elemental.builder, Extents.of(dot)
    batch, down, across = delinearize(b, number, tile.grid(extents))
    rows, columns = Side.of(b, down, tile.rows, extents.rows), Side.of(b, across, tile.columns, extents.columns)
    folded = places_of(b, extents, batch, rows.places, columns.places)
    values = elemental.run(folded_tile(b, dot, tile, folded, per_turn=1))
    places = places_of(b, extents, batch, rows.results, columns.results)
    remember(b, dot, places, values)
    return places, rows, columns


def remember(b: KernelBuilder, dot: DotGeneral, places: Sequence[Index], values: Sequence[Value]) -> None:
    """The results at their places. Where places are constants, those beyond the end are the last one: its own value
    comes last and stays.
    """
    for place, value in reversed(list(zip(places, values, strict=True))):
        b.memo.set((dot.out, place.key), value)
        b.memo.set((dot.out, place.linear), value)


def places_of(
    b: KernelBuilder, extents: Extents, batch: Value, rows: Sequence[Value], columns: Sequence[Value]
) -> list[Index]:
    """The places of a tile's results, row by row."""
    shape = (*extents.batch, *extents.left, *extents.right)
    of_batch = delinearize(b, batch, extents.batch)
    of_rows = [delinearize(b, place, extents.left) for place in rows]
    of_columns = [delinearize(b, place, extents.right) for place in columns]
    return [Index(b, shape, (*of_batch, *row, *column)) for row in of_rows for column in of_columns]


def write_results(b: KernelBuilder, tile: Tile, rows: Side, columns: Side, write: Write) -> None:
    """What there is of a tile: all of it, or each result that exists."""
    whole = b.op("and", rows.holds(b, tile.rows - 1), columns.holds(b, tile.columns - 1))
    b.branch(whole, partial(write_all, tile, write), partial(_write_existing, b, tile, rows, columns, write))


def _write_existing(b: KernelBuilder, tile: Tile, rows: Side, columns: Side, write: Write) -> list[Value]:
    def line(row: int) -> list[Value]:
        for column in range(tile.columns):
            b.branch(columns.holds(b, column), partial(_one, write, row, column), list)
        return []

    for row in range(tile.rows):
        b.branch(rows.holds(b, row), partial(line, row), list)
    return []


def _one(write: Write, row: int, column: int) -> list[Value]:
    write(row, column)
    return []
