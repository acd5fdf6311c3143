"""Dots with operands staged in shared memory, slice by slice along the contracted dimensions.

In each iteration the invocations of a workgroup fetch a slice of both operands, with the ops fused in front of them,
store it to shared memory between two barriers, and add the products of its elements.

The sums equal those of other schedules, bit for bit: `loops.Nest` cuts the contracted axes into blocks of 64 elements,
and no slice reaches into the next block.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from math import prod

from orchestrion.compiler.flow.structure import fastest_axis
from orchestrion.compiler.ir.core import Value
from orchestrion.compiler.ir.dims import is_dynamic, numbers
from orchestrion.compiler.kernel.body import Extents
from orchestrion.compiler.kernel.code.builder import KernelBuilder
from orchestrion.compiler.kernel.elements.axes import Axes
from orchestrion.compiler.kernel.elements.index import Index, delinearize
from orchestrion.compiler.kernel.elements.loops import BLOCK, Nest, Scalars, bounded_per_iteration
from orchestrion.compiler.kernel.elements.reductions import Factors
from orchestrion.compiler.kernel.elements.rules import element_of, shape_of
from orchestrion.compiler.kernel.machine import Machine
from orchestrion.compiler.kernel.reduction_limits import max_loop_iterations
from orchestrion.compiler.kernel.schedule import Schedule
from orchestrion.compiler.stablehlo.ops.contraction import DotGeneral

from .dots import scalar_reduction
from .grid import local_place

#: unused elements behind each place of a slice, so that neighbours along either axis lie in different banks
GAP = 2


class Slice:
    """A slice of an operand in shared memory: `depth` places along the contracted axes, `size` rows or columns each."""

    def __init__(self, b: KernelBuilder, size: int, depth: int, dtype: str, lanes: int) -> None:
        self.builder = b
        self.size = size
        self.lanes = lanes
        self.depth = depth
        self.pitch = size + GAP
        self.array = b.shared(depth * self.pitch, dtype)

    def fetched(self, deep: bool) -> list[tuple[Value, Value, Value]]:
        """The elements that this invocation fetches: row or column, place along the contracted axes, and position in
        the array as a word. Neighbouring invocations fetch neighbouring places if `deep`, else neighbouring rows or
        columns.
        """
        b, along = self.builder, self.depth if deep else self.size
        fast, slow = (b.op(f"unchecked_{name}", b.local_id(), b.word(along)) for name in ("remainder", "divide"))
        step = self.lanes // along
        base = b.place(fast, self.pitch, slow) if deep else b.place(slow, self.pitch, fast)
        fast, slow = (b.index(word) for word in (fast, slow))
        found = []
        for number in range(self.size * self.depth // self.lanes):
            moved = b.op("add", slow, b.index(number * step))
            where = b.op("add", base, b.word(number * step * (1 if deep else self.pitch)))
            found.append((moved, fast, where) if deep else (fast, moved, where))
        return found

    def tile(self, place: Value, first: Value, apart: int, count: int) -> list[Value]:
        """`count` elements at a place, from row or column `first` on, `apart` from each other. The mask proves that the
        place is inside the array.
        """
        b = self.builder
        base = b.place(b.op("and", place, b.word(self.depth - 1)), self.pitch, first)
        return [b.load_shared(self.array, b.op("add", base, b.word(at * apart))) for at in range(count)]


@dataclass(frozen=True)
class Operand:
    """An operand of the dot and the elements of its slice that an invocation fetches: factors, place, position in the
    array.
    """

    left: bool
    slice: Slice
    share: Sequence[tuple[Factors, Value, Value]]

    @classmethod
    def of(cls, b: KernelBuilder, dot: DotGeneral, left: bool, slice: Slice, batch: Value, number: Value) -> "Operand":
        """The operand for block `number` along its free axes."""
        extents, (operand, contract) = Extents.of(dot), dot.sides[not left]
        extent = extents.rows if left else extents.columns
        first, ragged = b.op("multiply", number, b.index(slice.size)), extent % slice.size != 0
        of_batch, zero = delinearize(b, batch, extents.batch), b.index(0)
        share, axes = [], Axes(dot.sides)
        for row, place, where in slice.fetched(fastest_axis(operand) in contract):
            position = b.op("add", first, row)
            position = b.op("minimum", position, b.index(extent - 1)) if ragged else position
            of_row = delinearize(b, position, extents.left if left else extents.right)
            rest = (*of_row, *[zero] * len(extents.right)) if left else (*[zero] * len(extents.left), *of_row)
            at = Index(b, shape_of(dot.out), (*of_batch, *rest))
            share.append((Factors(b, dot, at, axes), place, where))
        return cls(left, slice, share)


@dataclass(frozen=True)
class StagedNest(Nest):
    """The reductions of a tile, with operands that the workgroup copies to shared memory slice by slice."""

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
        count = b.word(depth)
        if last is not None:
            left = b.op("minimum", b.op("subtract", end, loop.index), b.index(depth))
            count = b.op("convert", left, to="ui32")
        return b.end_loop(loop, self._products(count, loop.carried))

    def _fills_slices(self, level: int) -> bool:
        """Whether each block of an axis ends at the end of a slice."""
        depth, size = self.operands[0].slice.depth, self.reduction.sizes[level]
        ends = [size, self._per_block(level)] if size > self._per_block(level) else [size]
        return all(end * self._inside(level + 1) % depth == 0 for end in ends)

    def _fetch(self, operand: Operand, level: int, outer: Sequence[Value], start: Value, last: Value | None) -> Scalars:
        """The elements of a slice that this invocation fetches. Behind the last element of a block it fetches that
        element again; nobody reads the copy.
        """
        b, values = self.builder, list[Value]()
        for factors, place, _ in operand.share:
            position = b.op("add", start, place)
            if last is not None:
                position = b.op("minimum", position, last)
            reduced = (*outer, *delinearize(b, position, self.reduction.sizes[level:]))
            values += yield from factors.of(0 if operand.left else 1, reduced)
        return values

    def _products(self, count: Value, start: Sequence[Value]) -> list[Value]:
        """Adds the products of the first `count` places of the slices, in order, as many per iteration as the schedule
        unrolls if the slices are whole.
        """
        b, (left, right) = self.builder, self.operands
        local, schedule = local_place(b, self.schedule), self.schedule
        step = 1 if b.known(count) is None else schedule.count("unroll", "k")
        loop = b.begin_loop(b.word(0), count, b.word(step), start)
        values = loop.carried
        for number in range(step):
            place = b.op("add", loop.index, b.word(number))
            xs = left.slice.tile(place, local["m"], schedule.local("m"), schedule.count("tile", "m"))
            ys = right.slice.tile(place, local["n"], schedule.local("n"), schedule.count("tile", "n"))
            values = [b.add_product(x, y, z) for (x, y), z in zip(product(xs, ys), values, strict=True)]
        return b.end_loop(loop, values)


def can_stage(dot: DotGeneral, machine: Machine) -> bool:
    """Whether a dot may be staged: other schedules cut its reduction into the same blocks, and the machine has enough
    loop iterations for one per slice and one per place.
    """
    if not dot.dimensions.lhs_contract:
        return False
    sizes = Axes(dot.sides).sizes
    if is_dynamic(prod(sizes)) or not 1 <= prod(sizes) <= max_loop_iterations(machine) // 2:
        return False
    return bounded_per_iteration(numbers(sizes), 1, machine) is not None


def staged_results(
    b: KernelBuilder, dot: DotGeneral, schedule: Schedule, tile: tuple[Value, Value, Value], places: Sequence[Index]
) -> Scalars:
    """The results at the places of the tile of an invocation. `tile`: the batch of the workgroup, and its block along
    rows and along columns.
    """
    batch, down, across = tile
    sizes = [schedule.count("tile", dim) * schedule.local(dim) for dim in ("m", "n")]
    depth, dtype = schedule.count("stage", "lhs"), element_of(dot.out)
    slices = [Slice(b, size, depth, dtype, schedule.workgroup_size) for size in sizes]
    left = Operand.of(b, dot, True, slices[0], batch, down)
    right = Operand.of(b, dot, False, slices[1], batch, across)
    reduction = scalar_reduction(b, dot, places)
    assert reduction.neutral is not None
    return (yield from StagedNest(b, reduction, (left, right), schedule).axis(0, (), reduction.neutral))
