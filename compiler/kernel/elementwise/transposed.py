"""Tiles of elementwise results that read an operand across: neighbours of the results are far apart in the operand.

Such a body has the dimension `t`, the axis of the results along which elements of the operand are neighbours. A
workgroup computes `count` places along `t` for as many neighbours of the results as it has invocations; both then lie
side by side in lines of the caches. Workgroups along `t` come first, so that the lines of the operand are still there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from orchestrion.compiler.flow.layout import layout_of
from orchestrion.compiler.flow.structure import linear, memory_reads, stride
from orchestrion.compiler.ir.core import Value
from orchestrion.compiler.ir.dims import ceildiv, is_dynamic, numbers
from orchestrion.compiler.kernel.code.builder import KernelBuilder
from orchestrion.compiler.kernel.elements.axes import first_joined
from orchestrion.compiler.kernel.elements.encodings import plain_shape
from orchestrion.compiler.kernel.elements.index import Index, delinearize
from orchestrion.compiler.kernel.elements.rules import shape_of
from orchestrion.compiler.kernel.schedule import Schedule
from orchestrion.compiler.stablehlo.ops.base import tensor_of


@dataclass(frozen=True, slots=True)
class Across:
    """The axes of results of one shape: `axis` is `t`; those from `inner` on are read as one axis, the columns.
    `replaces`: a result may be written to the memory of an operand that is read in order (`mark-in-place`).
    """

    shape: tuple[int, ...]
    axis: int
    inner: int
    replaces: bool

    @classmethod
    def of(cls, results: Sequence[Value]) -> Across | None:
        """None if no operand is read across, sizes are dynamic, or results have several shapes or a layout."""
        sizes = plain_shape(results)
        if sizes is None or is_dynamic(*sizes):
            return None
        shape = numbers(sizes)
        wide = [axis for axis, size in enumerate(shape) if size != 1]
        if len(wide) < 2:
            return None
        axis = next((found for value in results if (found := _neighbours(value, wide)) is not None), None)
        if axis is None:
            return None
        inner = first_joined(results, wide[wide.index(axis) + 1 :])
        return cls(shape, axis, inner, any(_may_be_replaced(value, wide[-1]) for value in results))

    @property
    def extent(self) -> int:
        """The extent of `t`."""
        return self.shape[self.axis]

    @property
    def columns(self) -> int:
        """The neighbours in a row of the results."""
        return prod(self.shape[self.inner :])

    def grid(self, schedule: Schedule) -> tuple[int, ...]:
        """The places of the grid: other axes, parts of rows, tiles along `t`, neighbours."""
        count, size = schedule.count("tile", "t"), schedule.workgroup_size
        others = prod(self.shape[: self.inner]) // self.extent
        return others, ceildiv(self.columns, size), ceildiv(self.extent, count), size

    def places(self, b: KernelBuilder, schedule: Schedule, number: Value) -> list[Index]:
        """The places in the results that invocation `number` computes. The last tile and the last part of a row are
        moved back to the edge, so some results are computed twice.
        """
        count, size = schedule.count("tile", "t"), schedule.workgroup_size
        other, part, tile, neighbour = delinearize(b, number, self.grid(schedule))
        first = _start(b, tile, count, self.extent)
        column = b.op("add", _start(b, part, size, self.columns), neighbour)
        outer = tuple(1 if axis == self.axis else size for axis, size in enumerate(self.shape[: self.inner]))
        before, after = delinearize(b, other, outer), delinearize(b, column, self.shape[self.inner :])
        found = []
        for at in range(count):
            before[self.axis] = b.op("add", first, b.index(at))
            found.append(Index(b, self.shape, (*before, *after)))
        return found


def _start(b: KernelBuilder, number: Value, size: int, extent: int) -> Value:
    start = b.op("multiply", number, b.index(size))
    return b.op("minimum", start, b.index(extent - size)) if extent % size else start


def _neighbours(value: Value, wide: Sequence[int]) -> int | None:
    """The axis along which elements of an operand are neighbours that is not the last one; None if there is none."""
    for read, at in memory_reads(value):
        if at is None or layout_of(tensor_of(read)) is not None:
            continue
        position = linear(at, shape_of(read))
        if stride(position, wide[-1]) in (None, 0, 1):
            continue
        axis = next((axis for axis in wide[:-1] if stride(position, axis) == 1), None)
        if axis is not None:
            return axis
    return None


def _may_be_replaced(value: Value, last: int) -> bool:
    """Whether an operand may be read in order. Neighbours along the last axis are then neighbours in the operand."""
    return any(at is None or stride(linear(at, shape_of(read)), last) in (1, None) for read, at in memory_reads(value))
