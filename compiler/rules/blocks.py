"""Rules of functions with several blocks: the block order that passes and targets rely on, and reducible loops.

Control flow comes from structured ops, so its graph is reducible; text from outside must satisfy that as well. The
rules are the same in all phases from flow to ll_seq.
"""

from __future__ import annotations

from collections.abc import Iterator

from orchestrion.compiler.ir.core import Block, Operation, Region
from orchestrion.compiler.ir.dominance import Dominance, immediate_dominators, loop_blocks, successors
from orchestrion.compiler.ir.types import I1, I32, TensorType
from orchestrion.compiler.ir.util import CondBranch, Switch


def blocks(region: Region) -> Iterator[str]:
    """Every block is reachable and follows its dominators; loops have one entrance, and their blocks are contiguous."""
    if not region.blocks:
        yield "has no body"
        return
    number = {block: index for index, block in enumerate(region.blocks)}
    idoms, dominance = immediate_dominators(region), Dominance()
    for block, index in number.items():
        if block not in idoms:
            yield f"block {index} is unreachable"
        elif number[idoms[block]] > index:
            yield f"block {index} precedes block {number[idoms[block]]}, which dominates it"
    ends: dict[Block, list[Block]] = {}
    for block, index in number.items():
        for target in successors(block) if block in idoms else ():
            if number[target] > index:
                continue
            if dominance.dominates(target, block):
                ends.setdefault(target, []).append(block)
            else:
                yield f"block {index} branches back to block {number[target]}, which does not dominate it"
    for header, latches in ends.items():
        inside = {number[block] for block in loop_blocks(header, latches, region)}
        first, last = number[header], max(inside)
        others = [index for index in range(first, last + 1) if index not in inside]
        if others:
            yield f"block {others[0]} lies between the blocks of the loop of blocks {first} to {last}"


def branch_selector(op: Operation) -> Iterator[str]:
    """The selector of a branch in the tensor phases: a predicate or an index on the device, or a number on the host."""
    given = op.operands[0].type
    device = {CondBranch.name: TensorType((), I1), Switch.name: TensorType((), I32)}[op.name]
    if given != device and given != I32:
        yield f"branches on {given}, must be {device} or {I32}"
