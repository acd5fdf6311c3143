"""Dots whose operands are staged in shared memory, slice by slice of the reduction, for the tiles of a workgroup.

In turns all invocations of a workgroup fetch a slice of either operand, with whatever is fused in front of it, put it
into shared memory between two barriers, and add the products of what is there.

The sums are those of other schedules, bit for bit: blocks of 64 along the axes of the reduction, as `loops.Nest` cuts
them; no slice reaches into the next block.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from orchestrion.compiler.flow.structure import fastest_axis
from orchestrion.compiler.ir.core import Value
from orchestrion.compiler.ir.dims import Dim
from orchestrion.compiler.stablehlo.ops.contraction import DotGeneral

from .axes import Axes
from .body import Extents
from .builder import KernelBuilder
from .dots import scalar_fold
from .grid import local_place
from .index import Index, delinearize
from .loops import BLOCK, Nest, Scalars, per_turn_of
from .machine import Machine
from .reduction_limits import max_loop_turns
from .reductions import Factors
from .rules import element_of, shape_of
from .schedule import Schedule

#: elements in shared memory between the last of a place of the reduction and the first of the next: what neighbours
#: fetch, along either, goes to different banks
GAP = 2


class Slice:
    """An operand's elements for `depth` places of the fold, in shared memory: `size` rows or columns for each place."""

    def __init__(self, b: KernelBuilder, size: int, depth: int, dtype: str, lanes: int) -> None:
        self.builder = b
        self.size = size
        self.lanes = lanes
        self.depth = depth
        self.pitch = size + GAP
        self.array = b.shared(depth * self.pitch, dtype)

    def fetched(self, deep: bool) -> list[tuple[Value, Value, Value]]:
        """What an invocation fetches: a row or column and a place of the slice, and, a word, where that lies in the
        array. Neighbours fetch neighbouring places if `deep`, else neighbouring rows or columns.
        """
        b, along = self.builder, self.depth if deep else self.size
        fast, slow = (
            b.op(f"unchecked_{name}", b.local_id(), b.const(along, "ui32")) for name in ("remainder", "divide")
        )
        step = self.lanes // along
        base = self._at(fast, slow) if deep else self._at(slow, fast)
        fast, slow = (b.op("convert", word, to=b.index_type) for word in (fast, slow))
        found = []
        for number in range(self.size * self.depth // self.lanes):
            moved = b.op("add", slow, b.index(number * step))
            where = b.op("add", base, b.const(number * step * (1 if deep else self.pitch), "ui32"))
            found.append((moved, fast, where) if deep else (fast, moved, where))
        return found

    def tile(self, place: Value, first: Value, apart: int, count: int) -> list[Value]:
        """The elements of so many rows or columns at a place. The mask proves that it is in the array."""
        b = self.builder
        base = self._at(b.op("and", place, b.const(self.depth - 1, "ui32")), first)
        return [b.load_shared(self.array, b.op("add", base, b.const(at * apart, "ui32"))) for at in range(count)]

    def _at(self, place: Value, number: Value) -> Value:
        b = self.builder
        return b.op("add", b.op("multiply", place, b.const(self.pitch, "ui32")), number)


@dataclass(frozen=True)
class Operand:
    """An operand of the dot, and the share of its slice that an invocation fetches: factors, place, where that lies."""

    left: bool
    slice: Slice
    share: Sequence[tuple[Factors, Value, Value]]

    @classmethod
    def of(cls, b: KernelBuilder, dot: DotGeneral, left: bool, slice: Slice, batch: Value, number: Value) -> "Operand":
        """In block `number` along the operand's free axes."""
        dims, extents = dot.dimensions, Extents.of(dot)
        operand, contract = (dot.lhs, dims.lhs_contract) if left else (dot.rhs, dims.rhs_contract)
        extent = extents.rows if left else extents.columns
        first, ragged = b.op("multiply", number, b.index(slice.size)), extent % slice.size != 0
        of_batch, zero = delinearize(b, batch, extents.batch), b.index(0)
        share = []
        for row, place, where in slice.fetched(fastest_axis(operand) in contract):
            position = b.op("add", first, row)
            position = b.op("minimum", position, b.index(extent - 1)) if ragged else position
            of_row = delinearize(b, position, extents.left if left else extents.right)
            rest = (*of_row, *[zero] * len(extents.right)) if left else (*[zero] * len(extents.left), *of_row)
            at = Index(b, shape_of(dot.out), (*of_batch, *rest))
            share.append((Factors(b, dot, at), place, where))
        return cls(left, slice, share)


@dataclass(frozen=True)
class StagedNest(Nest):
    """The folds of a tile, of elements that the workgroup puts into shared memory, slice by slice of their blocks."""

    operands: tuple[Operand, Operand]
    schedule: Schedule

    def _one_block(
        self, level: int, outer: Sequence[Value], bounds: tuple[Value, Value], start: Sequence[Value]
    ) -> Scalars:
        inside = self._inside(level + 1)
        if inside >= BLOCK:
            return (yield from super()._one_block(level, outer, bounds, start))
        b, depth = self.builder, self.operands[0].slice.depth
        first, end = (b.op("multiply", bound, b.index(inside)) for bound in bounds)
        loop = b.begin_loop(first, end, b.index(depth), start)
        last = None if self._fills_slices(level) else b.op("subtract", end, b.index(1))
        fetched = []
        for operand in self.operands:
            fetched.append((yield from self._fetch(operand, level, outer, loop.index, last)))
        b.barrier()  # what was there before is read
        for operand, values in zip(self.operands, fetched, strict=True):
            for (_, _, where), value in zip(operand.share, values, strict=True):
                b.store_shared(value, operand.slice.array, where)
        b.barrier()  # what is there now is written
        count = b.const(depth, "ui32")
        if last is not None:
            left = b.op("minimum", b.op("subtract", end, loop.index), b.index(depth))
            count = b.op("convert", left, to="ui32")
        return b.end_loop(loop, (yield from self._products(count, loop.carried)))

    def _fills_slices(self, level: int) -> bool:
        """Whether all blocks of an axis end where a slice does."""
        depth, size = self.operands[0].slice.depth, self.fold.sizes[level]
        ends = [size, self._per_block(level)] if size > self._per_block(level) else [size]
        return all(end * self._inside(level + 1) % depth == 0 for end in ends)

    def _fetch(self, operand: Operand, level: int, outer: Sequence[Value], start: Value, last: Value | None) -> Scalars:
        """The elements of this invocation's share of a slice. Beyond the last element of the block is that one once
        more, for nobody to read.
        """
        b, values = self.builder, list[Value]()
        for factors, place, _ in operand.share:
            position = b.op("add", start, place)
            if last is not None:
                position = b.op("minimum", position, last)
            folded = (*outer, *delinearize(b, position, self.fold.sizes[level:]))
            values += yield from factors.left(folded) if operand.left else factors.right(folded)
        return values

    def _products(self, count: Value, start: Sequence[Value]) -> Scalars:
        """Adds the products of so many places of the slices, in their order."""
        b, (left, right) = self.builder, self.operands
        local, schedule = local_place(b, self.schedule), self.schedule
        loop = b.begin_loop(b.const(0, "ui32"), count, b.const(1, "ui32"), start)
        xs = left.slice.tile(loop.index, local["m"], schedule.local("m"), schedule.count("tile", "m"))
        ys = right.slice.tile(loop.index, local["n"], schedule.local("n"), schedule.count("tile", "n"))
        products = [b.op("multiply", x, y) for x in xs for y in ys]
        return b.end_loop(loop, (yield from self.fold.combine(loop.carried, products)))


def can_stage(dot: DotGeneral, machine: Machine) -> bool:
    """Whether other schedules take the sums of a dot in blocks along its axes, too, and loops of the machine are long
    enough for a turn per slice and one per place.
    """
    dims = dot.dimensions
    if not dims.lhs_contract:
        return False
    sizes = Axes([(dot.lhs, dims.lhs_contract), (dot.rhs, dims.rhs_contract)]).sizes
    if isinstance(prod(sizes), Dim) or not 1 <= prod(sizes) <= max_loop_turns(machine) // 2:
        return False
    return per_turn_of(sizes, 1, machine) is not None


def staged_results(
    b: KernelBuilder,
    dot: DotGeneral,
    schedule: Schedule,
    tile: tuple[Value, Value, Value],
    places: Sequence[Index],
) -> Scalars:
    """The results at the places of an invocation's tile. `tile`: the workgroup's batch, and its numbers down and
    across the grid.
    """
    batch, down, across = tile
    sizes = [schedule.count("tile", dim) * schedule.local(dim) for dim in ("m", "n")]
    depth, dtype = schedule.count("stage", "lhs"), element_of(dot.out)
    slices = [Slice(b, size, depth, dtype, schedule.workgroup_size) for size in sizes]
    left = Operand.of(b, dot, True, slices[0], batch, down)
    right = Operand.of(b, dot, False, slices[1], batch, across)
    fold = scalar_fold(b, dot, places)
    assert fold.neutral is not None
    return (yield from StagedNest(b, fold, (left, right), schedule).axis(0, (), fold.neutral))
