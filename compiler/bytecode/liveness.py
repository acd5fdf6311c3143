"""Live intervals: one interval of positions per value of a function.

Positions count block starts and operations in text order. An interval spans from the definition to the last use, and
covers all blocks on paths between them. In a loop it covers everything that the next iteration needs.
"""

from __future__ import annotations

from dataclasses import dataclass

from orchestrion.compiler.ir.core import Block, Region, Value
from orchestrion.compiler.ir.dominance import successors


@dataclass(slots=True)
class Interval:
    """First and last position at which a value is live."""

    first: int
    last: int

    def cover(self, position: int) -> None:
        """Extends the interval to a position."""
        self.first = min(self.first, position)
        self.last = max(self.last, position)


def intervals(region: Region) -> dict[Value, Interval]:
    """The interval of every value, in the order of definitions."""
    found: dict[Value, Interval] = {}
    starts: dict[Block, int] = {}
    ends: dict[Block, int] = {}
    uses: dict[tuple[Value, Block], int] = {}  # position of the last use in each block
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
    """The blocks into which the value must be live-in for a use in `user`."""
    home = value.parent_block
    found: set[Block] = set()
    todo = [] if user is home else [user]
    while todo:
        block = todo.pop()
        if block not in found:
            found.add(block)
            todo += [source for source in predecessors[block] if source is not home]
    return found
