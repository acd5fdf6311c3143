"""The host code that submits the iterations of a loop in batches, and reads the predicate after each batch.

    ^enter:            branch ^fill(1, 0)
    ^fill(count, i):   branch i < count ? ^more : ^run
    ^more:             enqueue one iteration; branch ^fill(count, i + 1)
    ^run:              execute; branch read(latch) ? ^grow : ^out
    ^grow:             branch count < most ? ^fill(2 * count, 0) : ^fill(count, 0)

A batch has 1, 2, 4 iterations and so on, at most `most`, a power of 2. So a short loop submits few iterations that do
nothing, and a long one reads its predicate seldom. An iteration does nothing if the latch, a byte, is 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from orchestrion.compiler.ir import util
from orchestrion.compiler.ir.attributes import IntegerAttr, dense_ints
from orchestrion.compiler.ir.builder import Builder
from orchestrion.compiler.ir.core import Block, Value
from orchestrion.compiler.ir.locations import Location
from orchestrion.compiler.ir.types import I32

from . import ll_seq


class BatchBlocks(NamedTuple):
    """The blocks, in their order. `more` lacks its recording, of one iteration."""

    enter: Block
    fill: Block
    more: Block
    run: Block
    grow: Block

    @classmethod
    def build(cls, latch: Value, most: int, out: Block, loc: Location) -> BatchBlocks:
        """The blocks of a loop that continues in `out`."""
        blocks = cls(Block(), Block([I32, I32]), Block(), Block(), Block())
        count, number = blocks.fill.arguments
        b = _Builder(blocks.enter, loc=loc)
        b.branch(blocks.fill, b.number(1), b.number(0))
        b = _Builder(blocks.fill, loc=loc)
        b.choose(b.less(number, count), blocks.more, blocks.run)
        b = _Builder(blocks.more, loc=loc)
        b.branch(blocks.fill, count, b.add(number, b.number(1)))
        b = _Builder(blocks.run, loc=loc)
        b.choose(b.build(ll_seq.Read, buffer=latch, offset=0, type="i1", output=I32).output, blocks.grow, out)
        b = _Builder(blocks.grow, loc=loc)
        grows, start = b.less(count, b.number(most)), b.number(0)
        b.choose(grows, blocks.fill, blocks.fill, [b.add(count, count), start], [count, start])
        return blocks


class _Builder(Builder):
    """Builds numbers and branches at the end of a block."""

    def number(self, value: int) -> Value:
        return self.build(util.Constant, value=IntegerAttr(value, I32), out=I32).out

    def add(self, lhs: Value, rhs: Value) -> Value:
        return self.build(util.Add, lhs=lhs, rhs=rhs, out=I32).out

    def less(self, lhs: Value, rhs: Value) -> Value:
        return self.build(util.CompareLt, lhs=lhs, rhs=rhs, out=I32).out

    def branch(self, to: Block, *values: Value) -> None:
        self.build(util.Branch, arguments=values, to=to)

    def choose(
        self, condition: Value, then: Block, otherwise: Block, first: Sequence[Value] = (), second: Sequence[Value] = ()
    ) -> None:
        self.build(
            util.CondBranch,
            condition=condition,
            arguments=[*first, *second],
            then=then,
            otherwise=otherwise,
            counts=dense_ints(len(first), len(second)),
        )
