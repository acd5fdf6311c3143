"""Splits critical edges: a conditional branch with arguments to a block with several predecessors gets a block between.

A copy that such a branch needs would run on all its edges, and copies for several edges to one block would conflict.
The compiler's own phases create no critical edges with arguments; text from elsewhere may have some.
"""

from __future__ import annotations

from orchestrion.compiler.flow.blocks import entrances, set_values
from orchestrion.compiler.ir.builder import Builder
from orchestrion.compiler.ir.core import Block, Region
from orchestrion.compiler.ir.dominance import loop_blocks
from orchestrion.compiler.ir.util import Branch, BranchOp


def split_edges(region: Region) -> None:
    """Inserts blocks at positions that satisfy the block order of `rules/blocks.py`."""
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
        place = max(order[block] for block in loop_blocks(target, [branch.parent], region)) + 1
    between = Block()
    between.region = region
    Builder(between, loc=branch.loc).build(Branch, arguments=edges[number].values, to=target)
    region.blocks.insert(place, between)
    branch.successors[number] = between
    set_values(branch, [() if index == number else edge.values for index, edge in enumerate(edges)])
