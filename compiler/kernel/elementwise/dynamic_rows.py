"""Rows of elementwise results whose last axis has a dynamic size: a workgroup takes a row.

The code for elements in the order of memory divides by the size to find the place of each. In a row, operands that are
broadcast along it, or to all rows, are read as neighbours or once, without a division.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from orchestrion.compiler.flow.layout import layout_of
from orchestrion.compiler.flow.structure import identity, linear, memory_reads
from orchestrion.compiler.ir.core import Value
from orchestrion.compiler.ir.dims import Size, is_dynamic
from orchestrion.compiler.kernel.elements.rules import shape_of
from orchestrion.compiler.stablehlo.ops.base import tensor_of


@dataclass(frozen=True, slots=True)
class DynamicRows:
    """The rows of the results of an elementwise body. `count`: their number."""

    results: Sequence[Value]
    count: Size

    @classmethod
    def of(cls, results: Sequence[Value]) -> DynamicRows | None:
        """None if there is no result, or if results have several shapes, a layout, or a last axis of static size."""
        shapes = {shape_of(value) for value in results}
        shape = shapes.pop() if len(shapes) == 1 else ()
        if len(shape) < 2 or not is_dynamic(shape[-1]):
            return None
        if any(layout_of(tensor_of(value)) is not None for value in results):
            return None
        return cls(results, prod(shape[:-1]))

    @property
    def divides(self) -> bool:
        """Whether an operand is read in another order than that of memory."""
        shape = shape_of(self.results[0])
        in_order = linear(identity(shape), shape)
        reads = [read for value in self.results for read in memory_reads(value)]
        return any(at is None or linear(at, shape_of(read)) not in (0, in_order) for read, at in reads)
