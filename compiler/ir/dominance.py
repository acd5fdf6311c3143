"""Dominance: which definitions reach which uses, by order in a block and by dominators between blocks of a region.

Dominators after Cooper, Harvey and Kennedy, "A Simple, Fast Dominance Algorithm" (2001). The answers hold for one state
of the IR: make a new object after edits. In an unreachable block every use is valid.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from itertools import count
from typing import TypeVar

from .core import Block, Operation, OpResult, Region, Trait, Value

Node = TypeVar("Node", bound=Hashable)


class Dominance:
    """Answers dominance queries and caches the results."""

    def __init__(self) -> None:
        self._order: dict[Operation, int] = {}
        self._idoms: dict[Region, dict[Block, Block]] = {}

    def problem(self, value: Value, user: Operation) -> str | None:
        """Why `user` may not use `value`; None if it may."""
        definition = value.owner if isinstance(value, OpResult) else None
        home = definition.parent if definition is not None else value.parent_block
        if home is None or home.region is None:
            return "is not in the IR any more"
        op: Operation | None = user
        while op is not None and op.parent is not home and (op.parent is None or op.parent.region is not home.region):
            op = op.parent_op
            if op is not None and Trait.ISOLATED in op.traits:
                return f"is defined outside of {op.name}, which is isolated"
        if op is None or op.parent is None:
            return "is defined in a region that does not enclose its use"
        if op.parent is home:
            return None if definition is None or self._before(definition, op) else "is used before its definition"
        return None if self.dominates(home, op.parent) else "is defined in a block that does not dominate its use"

    def _before(self, first: Operation, second: Operation) -> bool:
        order = self._order
        if first not in order:
            assert first.parent is not None, "an operation of a block"
            order.update(zip(first.parent, count()))
        return order[first] < order[second]

    def dominates(self, upper: Block, lower: Block) -> bool:
        """Whether every path to `lower` passes `upper`; both are blocks of one region."""
        region = lower.region
        assert region is not None, "a block of a region"
        idoms = self._idoms.get(region)
        if idoms is None:
            idoms = self._idoms[region] = immediate_dominators(region)
        if lower not in idoms:
            return True
        block = lower
        while block is not upper and idoms[block] is not block:
            block = idoms[block]
        return block is upper


def successors(block: Block) -> list[Block]:
    """The successors of a block's last operation; empty for an empty block."""
    return block.last.successors if block.last is not None else []


def predecessors(blocks: Iterable[Block]) -> dict[Block, list[Block]]:
    """Block -> the blocks that branch to it, once per edge."""
    found: dict[Block, list[Block]] = {block: [] for block in blocks}
    for block in found:
        for target in successors(block):
            found[target].append(block)
    return found


def loop_blocks(header: Block, latches: Iterable[Block], region: Region) -> set[Block]:
    """The blocks of a loop: the header, and those that reach a latch without passing it."""
    before = predecessors(region.blocks)
    return closure(latches, lambda block: () if block is header else before[block]) | {header}


def closure(start: Iterable[Node], following: Callable[[Node], Iterable[Node]]) -> set[Node]:
    """The nodes of a graph that can be reached from `start`, with these."""
    found: set[Node] = set()
    stack = list(start)
    while stack:
        node = stack.pop()
        if node not in found:
            found.add(node)
            stack += following(node)
    return found


def reachable(region: Region) -> list[Block]:
    """The reachable blocks, each after those that dominate it."""
    return _postorder(region.blocks[0])[::-1]


def immediate_dominators(region: Region) -> dict[Block, Block]:
    """Reachable block -> its immediate dominator; the entry maps to itself."""
    entry = region.blocks[0]
    order = _postorder(entry)
    number = {block: index for index, block in enumerate(order)}
    before = predecessors(order)
    idoms = {entry: entry}

    def meet(a: Block, b: Block) -> Block:
        while a is not b:
            if number[a] < number[b]:
                a = idoms[a]
            else:
                b = idoms[b]
        return a

    changed = True
    while changed:
        changed = False
        for block in reversed(order[:-1]):
            known = [p for p in before[block] if p in idoms]
            best = known[0]
            for other in known[1:]:
                best = meet(best, other)
            if idoms.get(block) is not best:
                idoms[block] = best
                changed = True
    return idoms


def _postorder(entry: Block) -> list[Block]:
    order: list[Block] = []
    seen = {entry}
    stack = [(entry, iter(successors(entry)))]
    while stack:
        block, rest = stack[-1]
        following = next((target for target in rest if target not in seen), None)
        if following is None:
            order.append(block)
            stack.pop()
        else:
            seen.add(following)
            stack.append((following, iter(successors(following))))
    return order
