"""Which values are live at the starts and ends of blocks. Uses inside the regions of ops do not count."""

from __future__ import annotations

from collections.abc import Sequence

from .core import Block, Value
from .dominance import successors


def live_values(blocks: Sequence[Block]) -> tuple[dict[Block, set[Value]], dict[Block, set[Value]]]:
    """The values that are live at the start of each block, and at its end: later code of other blocks uses them. The
    arguments of a block are not live at its start.
    """
    defined = {block: {*block.arguments, *(value for op in block for value in op.results)} for block in blocks}
    starts = {block: {value for op in block for value in op.operands} - defined[block] for block in blocks}
    ends: dict[Block, set[Value]] = {block: set() for block in blocks}
    changed = True
    while changed:
        changed = False
        for block in reversed(blocks):
            ends[block] = set().union(*(starts[successor] for successor in successors(block)))
            through = ends[block] - defined[block]
            if not through <= starts[block]:
                starts[block] |= through
                changed = True
    return starts, ends
