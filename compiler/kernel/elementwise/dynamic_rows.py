"""Rows of elementwise results whose last axis has a dynamic size: a workgroup takes a row.

The code for elements in the order of memory divides by the size to find the place of each. In a row, operands that are
broadcast along it, or to all rows, are read as neighbours or once, without a division.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from orchestrion.compiler.flow.structure import identity, linear, memory_reads
from orchestrion.compiler.ir.core import Value
from orchestrion.compiler.ir.dims import Size, is_dynamic
from orchestrion.compiler.kernel.elements.encodings import plain_shape
from orchestrion.compiler.kernel.elements.rules import shape_of


@dataclass(frozen=True, slots=True)
class DynamicRows:
    """The rows of the results of an elementwise body. `count`: their number."""

    results: Sequence[Value]
    count: Size

    @classmethod
    def of(cls, results: Sequence[Value]) -> DynamicRows | None:
        """None if there is no result, or if results have several shapes, a layout, or a last axis of static size."""
        shape = plain_shape(results) or ()
        if len(shape) < 2 or not is_dynamic(shape[-1]):
            return None
        return cls(results, prod(shape[:-1]))

    @property
    def divides(self) -> bool:
        """Whether an operand is read in another order than that of memory."""
        shape = shape_of(self.results[0])
        in_order = linear(identity(shape), shape)
        reads = [read for value in self.results for read in memory_reads(value)]
        return any(at is None or linear(at, shape_of(read)) not in (0, in_order) for read, at in reads)
