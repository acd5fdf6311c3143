"""Lifetimes of the values of a function, counted in waves of commands.

Time is the order of the text. A *position* is a wave of commands that need no barrier between them. A new wave starts
at a command that reads a result of the current one, or updates in place what the current one touches. Each block has
one more position at its start, for its arguments, and one at its end, for its branch. A lifetime is a set of positions,
stored as the bits of an integer. It covers a whole loop if a later iteration uses the value.
"""

from __future__ import annotations

from collections.abc import Sequence

from orchestrion.compiler.flow import dialect as flow
from orchestrion.compiler.ir import util
from orchestrion.compiler.ir.core import Block, Operation, Value
from orchestrion.compiler.ir.liveness import live_values

from . import hl_seq
from .positions import interval

#: Ops that become commands of a recording.
COMMANDS = (flow.Dispatch, hl_seq.Clone, flow.Splat, util.GlobalStore)


class Lifetimes:
    """For the blocks of a function: `position` of each op, `start` and `end` of blocks, lifetime `of` each resource."""

    def __init__(self, blocks: Sequence[Block]) -> None:
        self.blocks = blocks
        self.position: dict[Operation, int] = {}
        self.start: dict[Block, int] = {}
        self.end: dict[Block, int] = {}
        self.waves = 0
        self._number()
        self.of: dict[Value, int] = {}
        starts, ends = live_values(blocks)
        for block in blocks:
            self._mark(block, starts[block], ends[block])

    def _number(self) -> None:
        now = 0
        for block in self.blocks:
            self.start[block] = now
            now += 1
            touched: set[Value] = set()
            made: set[Value] = set()
            waves = 0
            for op in block:
                if isinstance(op, COMMANDS):
                    if not made.isdisjoint(op.operands) or not touched.isdisjoint(overwritten(op)):
                        now += 1
                        waves += 1
                        made, touched = set(), set()
                    made.update(op.results)
                    touched.update(op.operands, op.results)
                self.position[op] = now
            now += 1
            self.end[block] = now
            behind = True
            for op in reversed(block):
                behind = behind and not isinstance(op, COMMANDS)
                # an export counts at the end of its block: its storage is read after all commands
                if behind or isinstance(op, hl_seq.Export):
                    self.position[op] = now
            now += 1
            self.waves += waves + bool(made)

    def _mark(self, block: Block, enters: set[Value], leaves: set[Value]) -> None:
        first = {value: self.start[block] for value in (*enters, *block.arguments)}
        last = dict(first)
        for op in block:
            now = self.position[op]
            for value in op.operands:
                last[value] = max(last.get(value, now), now)
            for value in op.results:
                first[value] = now
                last.setdefault(value, now)
        for value, begin in first.items():
            stop = self.end[block] if value in leaves else last[value]
            if hl_seq.is_resource(value.type):
                self.of[value] = self.of.get(value, 0) | interval(begin, stop)


def overwritten(op: Operation) -> list[Value]:
    """The operands whose memory an op overwrites."""
    return [argument for argument, _ in op.updates()] if isinstance(op, flow.Dispatch) else []
