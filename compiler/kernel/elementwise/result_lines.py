"""Lines of results: neighbours along the last axes, of which a workgroup computes some.

If the results have several axes and no flat position says which element of an operand is read, an invocation that takes
the n-th element divides n by the length of the last axis. Vectors of such invocations cross the ends of lines, so their
elements are loaded one by one. Here the coordinates in front of the last axes are common to a workgroup, and the
elements of a line are neighbours.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Final

from orchestrion.compiler.flow.mark_in_place import values_in_order
from orchestrion.compiler.flow.structure import identity, linear, memory_reads, stride
from orchestrion.compiler.ir.core import Operation, Value
from orchestrion.compiler.ir.dims import ceildiv, is_dynamic, numbers
from orchestrion.compiler.kernel.code.builder import KernelBuilder
from orchestrion.compiler.kernel.elements.axes import first_joined
from orchestrion.compiler.kernel.elements.encodings import plain_shape
from orchestrion.compiler.kernel.elements.index import Index, delinearize
from orchestrion.compiler.kernel.elements.rules import shape_of
from orchestrion.compiler.kernel.schedule import Schedule

#: strides of operands of which neighbours are loaded together
NEAR: Final = range(-1, 5)


@dataclass(frozen=True, slots=True)
class ResultLines:
    """The lines of results of one shape: the axes from `inner` on. `in_order`: every operand is read in the order of
    the results. `is_near`: neighbours in a line read neighbours of some operand, or one element. `replaces`: the result
    may be written to the memory of an operand.
    """

    shape: tuple[int, ...]
    inner: int
    in_order: bool
    is_near: bool
    replaces: bool

    @classmethod
    def of(cls, ops: Sequence[Operation], results: Sequence[Value], inputs: Sequence[Value]) -> ResultLines | None:
        """None if results have several shapes, a layout, a dynamic size, or fewer than two axes."""
        sizes = plain_shape(results)
        if sizes is None or is_dynamic(*sizes):
            return None
        shape = numbers(sizes)
        wide = [axis for axis, size in enumerate(shape) if size != 1]
        if len(wide) < 2 or not prod(shape):
            return None
        ordered, reads = values_in_order(ops, results), [read for v in results for read in memory_reads(v)]
        inner, flat, size = first_joined(results, wide[1:]), linear(identity(shape), shape), prod(shape)
        places = [None if at is None else linear(at, shape_of(read)) for read, at in reads]
        is_near = any(place is None or stride(place, wide[-1]) in NEAR for place in places)
        replaces = any(ordered.get(value) and prod(shape_of(value)) == size for value in inputs)
        return cls(shape, inner, all(place == flat for place in places), is_near, len(results) == 1 and replaces)

    @property
    def length(self) -> int:
        """Elements of a line."""
        return prod(self.shape[self.inner :])

    def grid(self, schedule: Schedule) -> tuple[int, int]:
        """The places of the grid: lines, and parts of a line."""
        return prod(self.shape[: self.inner]), ceildiv(self.length, schedule.local("e"))

    def place(self, b: KernelBuilder, schedule: Schedule, number: Value) -> tuple[Index, Value]:
        """The element of this invocation in part `number`, and whether there is one."""
        size = schedule.local("e")
        line, part = delinearize(b, number, self.grid(schedule))
        start, exists = b.op("multiply", part, b.index(size)), b.const(True, "i1")
        if schedule.find("guard", "e") is not None:
            start = b.op("minimum", start, b.index(self.length - size))
        elif self.length % size:
            exists = b.op("compare_lt", b.local_id(), b.word(b.op("subtract", b.index(self.length), start)))
        column = b.op("add", start, b.index(b.local_id()))
        outer, inner = self.shape[: self.inner], self.shape[self.inner :]
        place = (*delinearize(b, line, outer), *delinearize(b, column, inner))
        position = b.op("add", b.op("multiply", line, b.index(self.length)), column)
        return Index(b, self.shape, place, position), exists
