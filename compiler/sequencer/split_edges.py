"""Gives each choice that hands values to a block with other ways in a block of its own for doing so.

A copy that such a branch needs would be made on all its ways, and those to one block would be in each other's way. What
our own phases make has no such branches; text from elsewhere may.
"""

from __future__ import annotations

from orchestrion.compiler.flow.blocks import entrances, set_values
from orchestrion.compiler.flow.util import Branch, BranchOp
from orchestrion.compiler.ir.builder import Builder
from orchestrion.compiler.ir.core import Block, Region


def split_edges(region: Region) -> None:
    """Inserts blocks where they keep to the order that `rules/blocks.py` asks for."""
    ways = entrances(region)
    for block in list(region.blocks):
        branch = block.last
        if isinstance(branch, BranchOp) and branch.choosing:
            for number, edge in enumerate(branch.edges):
                if edge.values and len(ways[edge.target]) > 1:
                    _split(region, branch, number)


def _split(region: Region, branch: BranchOp, number: int) -> None:
    edges = branch.edges
    target, order = edges[number].target, {block: index for index, block in enumerate(region.blocks)}
    assert branch.parent is not None
    place = order[target]
    if place <= order[branch.parent]:
        place = max(order[block] for block in _loop(region, target, branch.parent)) + 1
    between = Block()
    between.region = region
    Builder(between, loc=branch.loc).build(Branch, arguments=edges[number].values, to=target)
    region.blocks.insert(place, between)
    branch.successors[number] = between
    set_values(branch, [() if index == number else edge.values for index, edge in enumerate(edges)])


def _loop(region: Region, header: Block, latch: Block) -> set[Block]:
    """The blocks of a loop that reach this end of it."""
    ways = entrances(region)
    found, stack = {header}, [latch]
    while stack:
        block = stack.pop()
        if block not in found:
            found.add(block)
            stack += [way.parent for way, _ in ways[block] if way.parent is not None]
    return found
