"""Dots of few rows that copy the columns of a slice to a panel, where the instruction set prefers that.

A tile of a dot of few rows reads short pieces of the rows of a matrix, one below the other. If rows are a multiple of a
page apart, all pieces compete for a few places of a small cache, and no prefetcher follows so many streams. The copy
reads a few rows at a time, line by line, each in order. In the panel, the lines of a vector of columns lie one behind
the other. Products are added in the same order either way.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from orchestrion.compiler.flow.structure import fastest_axis
from orchestrion.compiler.ir.core import Value
from orchestrion.compiler.ir.dims import is_dynamic
from orchestrion.compiler.kernel.dialect import PrefersPanels
from orchestrion.compiler.kernel.elements.loops import BLOCK
from orchestrion.compiler.kernel.elements.rules import element_of
from orchestrion.compiler.kernel.products.operands import is_element
from orchestrion.compiler.kernel.schedule import Schedule
from orchestrion.compiler.stablehlo.ops.base import dtype_of
from orchestrion.compiler.stablehlo.ops.contraction import DotGeneral

from .dot import Panel, PanelDot, contracted, slice_of, vector_dimension

#: rows of the matrix that the copy reads at a time
ROWS = 8
#: fewest rows of results: copied elements are read that often
FEWEST_ROWS = 4
#: most bytes of a panel
MOST_BYTES = 256 << 10


@dataclass(frozen=True, slots=True)
class LinePanel(Panel):
    """A panel of vectors of columns. `lanes`: of a vector; those of all places lie one behind the other."""

    lanes: int = 1

    def at(self, number: Value, place: Value) -> Value:
        b = self.builder
        return b.op("add", b.op("multiply", number, b.word(self.depth)), b.place(b.word(place), self.lanes, b.word(0)))


def copies_lines(dot: DotGeneral, schedule: Schedule) -> bool:
    """Whether the columns of a dot without panels may be copied."""
    out, sizes = schedule.find("stage", "out"), contracted(dot)
    staged = [(step.dim, step.how) for step in schedule.named("stage")]
    if out is None or staged != [("out", "panel")] or len(sizes) != 1:
        return False
    if is_dynamic(*sizes) or slice_of(dot, out.count) != (0, BLOCK, 1) or int(sizes[0]) <= BLOCK:
        return False
    across = vector_dimension(schedule)
    operand, contract = dot.sides["mn".index(across)]
    rows = schedule.block("n" if across == "m" else "m")
    bytes = schedule.block(across) * BLOCK * dtype_of(dot.out).itemsize
    same = element_of(operand) == element_of(dot.out)
    is_in_memory = is_element(operand, encoded=False) and fastest_axis(operand) not in contract
    fits = bytes <= MOST_BYTES and schedule.count("tile", across) % next(schedule.named("vectorize")).count == 0
    return is_in_memory and same and fits and rows >= FEWEST_ROWS


class LineDot(PanelDot):
    """A block of results under construction, with and without a panel of columns."""

    def __post_init__(self) -> None:
        super().__post_init__()
        array = self.builder.shared(BLOCK * self.columns, element_of(self.dot.out))
        self.lines = LinePanel(self.builder, array, self.columns, BLOCK, False, False, lanes=self.lanes)

    def _slice(self, outer: Sequence[Value], bounds: tuple[Value, Value, int]) -> None:
        b = self.builder
        branch = b.begin_if(b.fact(PrefersPanels, "i1"))
        self._copy_lines(bounds)
        self.right = self.lines
        super()._slice(outer, bounds)
        self.right = None
        b.begin_else(branch)
        super()._slice(outer, bounds)
        b.end_if(branch)

    def _fetch_panels(self, outer: Sequence[Value], bounds: tuple[Value, Value, int]) -> Value:
        if self.right is None:
            return super()._fetch_panels(outer, bounds)
        return self._base(outer, bounds)

    def _copy_lines(self, bounds: tuple[Value, Value, int]) -> None:
        """Copies the columns of a slice, in passes along a few rows of the matrix. The first row of tiles does."""
        b, (first, end, _), (length,) = self.builder, bounds, self.sizes
        tiles, width = self.columns // self.tile[1], self.tile[1]
        with b.indices(end, first, ROWS) as row:
            busy = b.op("compare_lt", b.local_id(), b.word(tiles)) if tiles < self.schedule.workgroup_size else None
            with b.when(busy):
                start = b.op("multiply", b.local_id(), b.word(width))
                places = [b.op("add", row, b.index(at)) for at in range(ROWS)]
                if length % ROWS:
                    places = [b.op("minimum", place, b.index(length - 1)) for place in places]
                for column in (b.op("add", start, b.word(at)) for at in range(0, width, self.lanes)):
                    for number, place in enumerate(places):
                        at = b.op("add", b.op("subtract", row, first), b.index(number))
                        vector = self._neighbours(column, [place])
                        b.store_shared_lanes(vector, self.lines.array, self.lines.at(column, at))
            b.barrier()  # all columns have the lines of the pass
