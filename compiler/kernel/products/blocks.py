"""Blocks of results of a dot, of which the invocations of a workgroup compute one together."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass

from orchestrion.compiler.ir.core import Value
from orchestrion.compiler.kernel.elements.elemental import ElementalCode
from orchestrion.compiler.kernel.elements.index import Index
from orchestrion.compiler.kernel.elements.parts import each
from orchestrion.compiler.kernel.schedule import Schedule
from orchestrion.compiler.stablehlo.ops.contraction import DotGeneral

#: computes the results at a place of the dot whose element is known, and writes them
Finish = Callable[[Index], None]


@dataclass
class DotBlock(ElementalCode, ABC):
    """A block of results under construction. `place`: the block along the dimensions of the grid. `writes`: whether
    this workgroup writes its block.
    """

    dot: DotGeneral
    schedule: Schedule
    place: dict[str, Value]
    writes: Value

    @abstractmethod
    def emit(self, finish: Finish) -> None:
        """The code of the block."""

    def _each(self, outer: Value, inner: int) -> AbstractContextManager[tuple[Value, Value]]:
        """As `each`, for the invocations of this workgroup."""
        return each(self.builder, self.schedule.workgroup_size, outer, inner)
