"""Blocks of results of a dot, of which the invocations of a workgroup compute one together."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass

from orchestrion.compiler.ir.core import Value
from orchestrion.compiler.stablehlo.ops.contraction import DotGeneral

from .builder import KernelBuilder
from .elemental import ElementalCode
from .index import Index
from .schedule import Schedule

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


@contextmanager
def each(b: KernelBuilder, lanes: int, outer: Value, inner: int) -> Iterator[tuple[Value, Value]]:
    """Loops over the elements of an array of `outer` by `inner` elements, of which this invocation of `lanes` takes
    some: the numbers of their row and column, as words. Elements are taken twice if invocations do not divide rows.
    """
    size = b.word(inner)
    if lanes >= inner and lanes % inner:
        with b.words(outer) as row:
            yield row, b.op("minimum", b.local_id(), b.word(inner - 1))
    elif lanes >= inner:
        with b.words(outer, b.op("unchecked_divide", b.local_id(), size), lanes // inner) as row:
            yield row, b.op("unchecked_remainder", b.local_id(), size)
    else:
        with b.words(outer) as row, b.words(size, step=lanes) as first:
            first = b.op("minimum", first, b.word(inner - lanes)) if inner % lanes else first
            yield row, b.op("add", first, b.local_id())
