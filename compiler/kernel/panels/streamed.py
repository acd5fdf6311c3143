"""Dots of few rows whose workgroup reads the operand of the columns once, in long pieces of its rows in memory.

A pass adds a few products to all sums of the block, those of neighbouring places of the reduction. Its invocations
follow each other along the columns, so a processor reads a few rows of memory, each in order. The sums of a pass lie in
shared memory, which the fastest cache holds. Every 64 products they are added to the results of the block, so that
products are added in the order of all schedules (`loops.Nest`).
"""

from __future__ import annotations

from functools import partial

from orchestrion.compiler.ir.core import Value
from orchestrion.compiler.kernel.elements.loops import BLOCK
from orchestrion.compiler.kernel.elements.rules import element_of
from orchestrion.compiler.kernel.products.blocks import Finish
from orchestrion.compiler.kernel.products.dots import vector_sums

from .dot import PanelDot


class StreamedDot(PanelDot):
    """A block of results under construction, without panels of operands."""

    in_strips = False
    in_slices = False

    def __post_init__(self) -> None:
        super().__post_init__()
        self.sums = self.builder.shared(self.rows * self.columns, element_of(self.dot.out))

    def emit(self, finish: Finish) -> None:
        b, (length,) = self.builder, self.sizes
        with self._each(b.word(self.rows), self.columns) as (row, column):
            for array in (self.sums, self.block):
                b.store_shared(self.zero, array, self._at(row, column))
        b.barrier()  # the sums are there
        with b.indices(length, step=BLOCK) as block:
            end = b.op("add", block, b.index(BLOCK))
            end = b.op("minimum", end, b.index(length)) if length % BLOCK else end
            step = self.schedule.count("stage", "out")
            with b.indices(end, block, step) as first:
                last = b.op("add", first, b.index(step))
                self._pass(first, b.op("minimum", last, end) if length % step else last)
                b.barrier()  # all columns have the products of the pass
            self._add_block()
            b.barrier()  # the sums are zeros, and the results are there
        self._finish(finish)

    def _pass(self, first: Value, end: Value) -> None:
        """Adds the products of a range of places to the sums of a tile."""
        b = self.builder
        with self._tile_with_rows() as (rows, vectors):
            overlap = self.tile[1] % self.lanes != 0  # then the last two share columns, and products are added once
            groups = [*([vector] for vector in vectors[:-2]), vectors[-2:]] if overlap else [[one] for one in vectors]
            for group in groups:
                places = [self._at(row, at) for row in rows for at in group]
                start = [b.load_shared_lanes(self.sums, at, self.lanes) for at in places]
                factors = self._tile_factors(rows, group, b.index(0))
                loop = b.begin_loop(first, end, b.index(1), start)
                reduction = vector_sums(b, self.sizes, len(rows), start, factors)
                sums = b.end_loop(loop, self.elemental.run(reduction.into(loop.carried, (loop.index,))))
                for value, at in zip(sums, places, strict=True):
                    b.store_shared_lanes(value, self.sums, at)

    def _add_block(self) -> None:
        """Adds the sums of a tile to its results, and clears them."""
        b = self.builder
        with self._tile_with_rows() as (rows, vectors):
            zero, load = b.vector([self.zero] * self.lanes), partial(b.load_shared_lanes, lanes=self.lanes)
            places = [self._at(row, at) for row in rows for at in vectors]
            found = [b.op("add", load(self.block, at), load(self.sums, at)) for at in places]
            for value, at in zip(found, places, strict=True):
                b.store_shared_lanes(value, self.block, at)
                b.store_shared_lanes(zero, self.sums, at)
