"""The `tiled` schedule of a dot: an invocation computes a block of results, so that what it loads serves many products.

A tile is `rows` results along the free axes of the left operand by `columns` along those of the right one, within one
batch. Its folds run side by side in one loop: the emitter remembers what it emitted, so an operand's element is loaded,
and what is fused in front of it computed, once per turn. Neighbouring columns are neighbours in memory more often than
not: a compiler for a CPU makes vectors of them.

At an edge that the tile's size does not divide, the last tile is moved back to stay inside: it computes again what the
tile before it has, and does not write that. Where a call brings the extent, which may be less than a tile, what would
be outside is the last place once more, and is not written either; calls of few rows or columns may have code of their
own (`schedule.few_of`, `schedule.narrow_of`).
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from math import gcd, prod

from orchestrion.compiler.ir.core import Block, Operation, Value
from orchestrion.compiler.ir.dims import Dim, bounds, ceildiv, typical
from orchestrion.compiler.stablehlo.ops.contraction import DotGeneral
from orchestrion.schema.dtypes import BY_NAME, FLOAT

from .builder import KernelBuilder
from .elemental import Elemental
from .fold import Factors, dot_fold, per_turn
from .index import Index, delinearize
from .loops import Fold, Scalars, sequential
from .rules import element_of, shape_of

#: writes the results at a row and a column of a tile
Write = Callable[[int, int], None]

#: a tile of fewer columns than this has no neighbours in memory to gain from
LEAST_COLUMNS = 4
#: a tile of this many results needs half as many loads as it has products, or fewer
SHARING_TILE = 16
#: the rows of a tile for calls that bring fewer than another tile has
FEW_ROWS = 2
#: a tile's code grows with its results: what one result takes, times their number, stays below this many ops
MOST_OPS = 4096


@dataclass(frozen=True, slots=True)
class Extents:
    """The shape of a dot's result in three parts: batch axes, free axes of the left operand, of the right one."""

    batch: tuple[int, ...]
    left: tuple[int, ...]
    right: tuple[int, ...]

    @classmethod
    def of(cls, dot: DotGeneral) -> "Extents":
        shape, dims = shape_of(dot.out), dot.dimensions
        first = len(dims.lhs_batch)
        second = first + len(dims.free(len(shape_of(dot.lhs)), True))
        return cls(shape[:first], shape[first:second], shape[second:])

    @property
    def rows(self) -> int:
        return prod(self.left)

    @property
    def columns(self) -> int:
        return prod(self.right)


@dataclass(frozen=True, slots=True)
class Tile:
    """Results that one invocation computes: `rows` by `columns`."""

    rows: int
    columns: int

    @property
    def shares(self) -> bool:
        """Whether a loaded element serves several products, on both sides."""
        return min(self.rows, self.columns) > 1 and self.rows * self.columns >= SHARING_TILE

    @property
    def of_few(self) -> "Tile":
        """The one for calls that bring fewer rows than this has."""
        return Tile(min(self.rows, FEW_ROWS), self.columns)

    def grid(self, extents: Extents) -> tuple[int, int, int]:
        """How many tiles there are: batches, down, across."""
        return prod(extents.batch), ceildiv(extents.rows, self.rows), ceildiv(extents.columns, self.columns)


def tile_of(hero: Operation | None, ops: int, most: tuple[int, int]) -> Tile | None:
    """The tile of a dot whose body takes `ops` ops for one result: the largest, halved until it fits; None where it is
    not worth it.
    """
    if not isinstance(hero, DotGeneral):
        return None
    extents = Extents.of(hero)
    rows, columns = most
    while rows > typical(extents.rows):
        rows //= 2
    while columns > typical(extents.columns):
        columns //= 2
    while rows > 1 and rows * columns * ops > MOST_OPS:
        rows //= 2
    while columns > LEAST_COLUMNS and rows * columns * ops > MOST_OPS:
        columns //= 2
    worth = rows > 0 and columns >= LEAST_COLUMNS and rows * columns * ops <= MOST_OPS
    return Tile(rows, columns) if worth else None


@dataclass(frozen=True, slots=True)
class Side:
    """The places of a tile along one axis of the grid, and the first that no tile before it has. `extent`: how many
    there are, where a call brings that.
    """

    places: Sequence[Value]
    first: Value
    ragged: bool
    extent: Value | None = None

    @classmethod
    def of(cls, b: KernelBuilder, number: Value, size: int, extent: int, fits: bool = False) -> "Side":
        """`fits`: the extent is no less than the size, whatever its bounds say."""
        first = start = b.op("multiply", number, b.index(size))
        if not fits and bounds(extent)[0] < size:
            last = b.index(extent - 1)
            places = [b.op("minimum", b.op("add", first, b.index(at)), last) for at in range(size)]
            return cls(places, first, True, b.index(extent))
        ragged = extent % size != 0
        if ragged:  # in units, so that it is seen what the start is a multiple of
            unit = 1 if isinstance(extent, Dim) else gcd(size, extent)
            most = b.op("minimum", b.op("multiply", number, b.index(size // unit)), b.index((extent - size) // unit))
            start = b.op("multiply", most, b.index(unit))
        return cls([b.op("add", start, b.index(at)) for at in range(size)], first, ragged)

    def moved(self, b: KernelBuilder) -> Value:
        """Whether the tile was moved back, or has places outside."""
        if self.extent is not None:
            return b.op("compare_gt", b.op("add", self.first, b.index(len(self.places))), self.extent)
        return b.op("compare_ne", self.places[0], self.first) if self.ragged else b.const(False, "i1")

    def fresh(self, b: KernelBuilder, at: int) -> Value:
        """Whether no tile, or place of this one, before has this place."""
        if self.extent is not None:
            return b.op("compare_lt", b.op("add", self.first, b.index(at)), self.extent)
        return b.op("compare_ge", self.places[at], self.first) if self.ragged else b.const(True, "i1")


def tile_places(b: KernelBuilder, extents: Extents, batch: Value, rows: Side, columns: Side) -> list[Index]:
    """The places of a tile's results, row by row. Positions are left to where they are needed, behind the loop: made
    in front of it, PoCL's compiler takes them for what to make vectors of, and leaves the products.
    """
    shape = (*extents.batch, *extents.left, *extents.right)
    of_batch = delinearize(b, batch, extents.batch)
    of_rows = [delinearize(b, place, extents.left) for place in rows.places]
    of_columns = [delinearize(b, place, extents.right) for place in columns.places]
    return [Index(b, shape, (*of_batch, *row, *column)) for row in of_rows for column in of_columns]


def folded_tile(b: KernelBuilder, dot: DotGeneral, tile: Tile, places: Sequence[Index], per_turn: int) -> Scalars:
    """The results of a tile, row by row: their folds run side by side, those of neighbouring columns in the lanes of
    vectors where the machine computes so; `per_turn` products of each in a turn.
    """
    lanes = min(b.machine.width, tile.columns)
    if lanes < 2 or tile.columns % lanes or BY_NAME[element_of(dot.out)].kind != FLOAT:
        return (yield from sequential(b, scalar_fold(b, dot, places), per_turn))
    vectors = yield from sequential(b, _vector_fold(b, dot, tile, places, lanes), per_turn)
    return [value for vector in vectors for value in b.lanes(vector)]


def scalar_fold(b: KernelBuilder, dot: DotGeneral, places: Sequence[Index]) -> Fold:
    """The folds of these results, side by side."""
    folds = [dot_fold(b, dot, place) for place in places]

    def combine(x: Sequence[Value], y: Sequence[Value]) -> Scalars:
        return _together(fold.combine([a], [c]) for fold, a, c in zip(folds, x, y, strict=True))

    neutral = [value for fold in folds for value in fold.neutral or ()]
    return Fold(
        folds[0].sizes,
        lambda: _together(fold.start() for fold in folds),
        lambda folded: _together(fold.element(folded) for fold in folds),
        combine,
        neutral,
    )


def _vector_fold(b: KernelBuilder, dot: DotGeneral, tile: Tile, places: Sequence[Index], lanes: int) -> Fold:
    """A value is `lanes` results of a row."""
    rows = [Factors(b, dot, place) for place in places[:: tile.columns]]
    columns = [Factors(b, dot, place) for place in places[: tile.columns]]
    zeros = [b.vector([b.const(0, element_of(dot.out))] * lanes)] * (len(places) // lanes)

    def start() -> Scalars:
        yield from ()
        return zeros

    def element(folded: Sequence[Value]) -> Scalars:
        xs = yield from _together(row.left(folded) for row in rows)
        ys = yield from _together(column.right(folded) for column in columns)
        vectors = [b.vector(ys[at : at + lanes]) for at in range(0, len(ys), lanes)]
        return [b.multiply_vectors(b.vector([x] * lanes), y) for x in xs for y in vectors]

    def combine(x: Sequence[Value], y: Sequence[Value]) -> Scalars:
        yield from ()
        return [b.add_vectors(a, c) for a, c in zip(x, y, strict=True)]

    return Fold(rows[0].axes.sizes, start, element, combine, zeros)


def _together(parts: Iterable[Scalars]) -> Scalars:
    values: list[Value] = []
    for part in parts:
        values += yield from part
    return values


def emit_tile(
    elemental: Elemental, dot: DotGeneral, tile: Tile, number: Value, fits: tuple[bool, bool]
) -> tuple[list[Index], Side, Side]:
    """The results of tile `number`, remembered at their places; gives these and the sides of the tile. `fits`: whether
    there are as many rows, and as many columns, as it has.
    """
    b, extents = elemental.builder, Extents.of(dot)
    batch, down, across = delinearize(b, number, tile.grid(extents))
    rows = Side.of(b, down, tile.rows, extents.rows, fits[0])
    columns = Side.of(b, across, tile.columns, extents.columns, fits[1])
    places = tile_places(b, extents, batch, rows, columns)
    values = elemental.run(folded_tile(b, dot, tile, places, per_turn(b)))
    for place, value in zip(places, values, strict=True):
        b.memo.set((dot.out, place.key), value)
        b.memo.set((dot.out, place.linear), value)
    return places, rows, columns


def write_all(tile: Tile, write: Write) -> list[Value]:
    for row in range(tile.rows):
        for column in range(tile.columns):
            write(row, column)
    return []


def write_fresh(b: KernelBuilder, rows: Side, columns: Side, write: Write) -> list[Value]:
    """What the tiles before this one, which was moved back, have not written."""
    swapped = columns.ragged
    outer, inner = (columns, rows) if swapped else (rows, columns)

    def line(at: int) -> list[Value]:
        for other in range(len(inner.places)):
            place = (other, at) if swapped else (at, other)
            b.branch(inner.fresh(b, other), partial(_one, write, place), list)
        return []

    for at in range(len(outer.places)):
        b.branch(outer.fresh(b, at), partial(line, at), list)
    return []


def _one(write: Write, place: tuple[int, int]) -> list[Value]:
    write(*place)
    return []


def count_ops(block: Block) -> int:
    """The ops of a body, in its regions too."""
    return sum(1 for outer in block for _ in outer.walk())
