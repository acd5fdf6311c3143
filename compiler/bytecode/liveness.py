"""From where to where each value of a function is needed: one interval of positions per value.

Positions count the starts of blocks and the operations, in the order of the text. An interval reaches from the
definition to the last use, and over all blocks that lie between them on some way: around a loop it covers what the loop
needs in its next turn.
"""

from __future__ import annotations

from dataclasses import dataclass

from orchestrion.compiler.ir.core import Block, Region, Value
from orchestrion.compiler.ir.dominance import successors


@dataclass(slots=True)
class Interval:
    """First and last position at which a value must be there."""

    first: int
    last: int

    def cover(self, position: int) -> None:
        self.first = min(self.first, position)
        self.last = max(self.last, position)


def intervals(region: Region) -> dict[Value, Interval]:
    """Of every value, in the order of their definitions in the text."""
    found: dict[Value, Interval] = {}
    starts: dict[Block, int] = {}
    ends: dict[Block, int] = {}
    uses: dict[tuple[Value, Block], int] = {}  # the last one in each block
    position = 0
    for block in region.blocks:
        starts[block] = position
        for argument in block.arguments:
            found[argument] = Interval(position, position)
        for op in block:
            position += 1
            for value in op.operands:
                uses[value, block] = position
            for result in op.results:
                found[result] = Interval(position, position)
        ends[block] = position
        position += 1
    predecessors: dict[Block, list[Block]] = {block: [] for block in region.blocks}
    for block in region.blocks:
        for target in successors(block):
            predecessors[target].append(block)
    for (value, block), at in uses.items():
        found[value].cover(at)
        for between in _blocks_before(value, block, predecessors):
            found[value].cover(starts[between])
            for source in predecessors[between]:
                found[value].cover(ends[source])
    return found


def _blocks_before(value: Value, user: Block, predecessors: dict[Block, list[Block]]) -> set[Block]:
    """The blocks that the value must be there to enter, for a use in `user`."""
    home = value.parent_block
    found: set[Block] = set()
    todo = [] if user is home else [user]
    while todo:
        block = todo.pop()
        if block not in found:
            found.add(block)
            todo += [source for source in predecessors[block] if source is not home]
    return found
