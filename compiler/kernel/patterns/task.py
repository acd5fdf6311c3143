"""A body and a machine, and the facts about both that patterns of schedules ask for (`choose.py`)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from orchestrion.compiler.ir.dims import Size, bounds, is_dynamic, typical
from orchestrion.compiler.kernel.body import Body, count_of
from orchestrion.compiler.kernel.dialect import VECTOR
from orchestrion.compiler.kernel.emit import THREAD, emit
from orchestrion.compiler.kernel.legality import MAX_PRODUCTS, problems
from orchestrion.compiler.kernel.machine import Machine
from orchestrion.compiler.kernel.products.operands import packed_tile
from orchestrion.compiler.kernel.reduction_limits import FEW_REDUCTIONS, longest, max_elements
from orchestrion.compiler.kernel.schedule import Schedule, Step
from orchestrion.compiler.stablehlo.ops.base import dtype_of, tensor_of
from orchestrion.compiler.stablehlo.ops.contraction import DotGeneral, Reduce
from orchestrion.schema.dtypes import FLOAT

#: longest reduction, in elements, that never deserves a workgroup; longer ones do if they are few
LONG_REDUCTION = 256
#: up to this length a tile that shares its loads well is faster than a workgroup per result, even for few results
MAX_TILED_LENGTH = 1024
#: fewest columns of a tile: with fewer, neighbours in memory gain nothing
MIN_TILE_COLUMNS = 4
#: rows of the tile for dispatches with fewer rows than the general tile
FEW_ROWS_TILE = 2
#: upper bound of the ops of one result times the results of a tile, which limits the code size
MAX_TILE_OPS = MAX_PRODUCTS
#: the same for packed operands, whose elements need no computation
MAX_PACKED_TILE_OPS = 2 * MAX_TILE_OPS


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
        return all(_are_last(contract, tensor_of(value).rank) for value, contract in hero.sides)

    def if_legal(self, schedule: Schedule) -> Schedule | None:
        """The schedule if it fits the body on the machine, else None."""
        return None if any(problems(self.body, schedule, self.machine)) else schedule

    def block(self, dims: str, tile: tuple[int, int], local: tuple[int, int]) -> list[Step | None]:
        """The steps of a block of a workgroup, along two dimensions: the tile of an invocation, the invocations, and
        guards. The last block is clamped along the first dimension, and moved back along the second.
        """
        extents, sizes = self.body.extents, [size * count for size, count in zip(tile, local, strict=True)]
        return [
            *(Step("tile", dim, count=count) for dim, count in zip(dims, tile, strict=True)),
            Step("bind", "grid", "workgroup"),
            *(Step("bind", dim, "local", count) for dim, count in zip(dims, local, strict=True) if count > 1),
            Step("guard", dims[0], "clamp") if extents[dims[0]] % sizes[0] != 0 else None,
            edge_guard(dims[1], extents[dims[1]], sizes[1], 0),
        ]

    def lanes(self, columns: int) -> Step | None:
        """The step that vectorizes a tile with that many columns; None if it is not vectorized."""
        lanes = min(self.machine.vector_lanes, columns)
        assert self.dot is not None
        if lanes < 2 or columns % lanes or dtype_of(self.dot.out).kind != FLOAT:
            return None
        return Step("vectorize", "n", count=lanes)

    @property
    def unrolled(self) -> Step | None:
        """The step that unrolls the reduction by the width of a wide load; None without wide loads."""
        return Step("unroll", "k", count=VECTOR) if self.machine.wide_loads else None


def _are_last(axes: Sequence[int], rank: int) -> bool:
    return sorted(axes) == list(range(rank - len(axes), rank))


def tile_steps(rows: int, columns: int) -> tuple[Step, Step]:
    return Step("tile", "m", count=rows), Step("tile", "n", count=columns)


def edge_guard(dim: str, extent: Size, size: int, assumed: int) -> Step | None:
    """What the results beyond the edge of a dimension need; None if there are none. `assumed`: its least extent."""
    if max(bounds(extent)[0], assumed) < size:
        return Step("guard", dim, "clamp")
    return Step("guard", dim, "shift") if extent % size != 0 else None
