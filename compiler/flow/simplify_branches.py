"""simplify-branches: removes branches with one possible target, and block arguments and ops that nobody needs.

A branch on a constant becomes unconditional, and unreachable blocks are erased. A block with one predecessor that has
no other successor is joined to it. A block argument that always has the same value is replaced by that value. Arguments
and ops that no result depends on are erased, even if a loop passes them to itself.
"""

from __future__ import annotations

from orchestrion.compiler.ir import util
from orchestrion.compiler.ir.builder import Builder
from orchestrion.compiler.ir.builtin import Module
from orchestrion.compiler.ir.core import Block, BlockArgument, Operation, Region, Trait, Value
from orchestrion.compiler.ir.dominance import reachable
from orchestrion.compiler.ir.util import Branch, BranchOp, CondBranch, Edge, Switch
from orchestrion.compiler.stablehlo.ops.structural import Constant

from .blocks import code_of, entrances, erase_arguments

#: a block and the values of its arguments
Way = tuple[Block, tuple[Value, ...]]


def run(module: Module) -> None:
    """Simplifies all functions of a module."""
    for op in code_of(module):
        region = op.regions[0]
        changed = True
        while changed:
            changed = any([_decide(region), _erase_unreachable(region), _join(region), _unify(region), _sweep(region)])


def _decide(region: Region) -> bool:
    """A branch on a constant, or with one target only, becomes unconditional."""
    changed = False
    for block in region.blocks:
        branch = block.last
        if not isinstance(branch, CondBranch | Switch):
            continue
        way = _only_way(branch)
        if way is not None:
            target, values = way
            Builder.before(branch).build(Branch, arguments=values, to=target)
            branch.erase()
            changed = True
    return changed


def _only_way(branch: BranchOp) -> Way | None:
    """The edge that a branch always takes; None if there are several."""
    ways = [_through(edge) for edge in branch.edges]
    if all(way == ways[0] for way in ways):
        return ways[0]
    value = _constant(branch.operands[0])
    if value is None:
        return None
    if isinstance(branch, CondBranch):
        return ways[0] if value else ways[1]
    return ways[value] if 0 <= value < len(ways) else ways[-1]


def _through(edge: Edge) -> Way:
    """The target and values of an edge, behind blocks that only branch on."""
    only = edge.target.first
    if edge.target.arguments or not isinstance(only, Branch):
        return edge.target, edge.values
    return only.to, only.arguments


def _constant(value: Value) -> int | None:
    match value.defining_op:
        case Constant() as op:
            return int(op.value.scalars()[0])
        case util.Constant() as op:
            return op.value.value
        case _:
            return None


def _erase_unreachable(region: Region) -> bool:
    reached = set(reachable(region))
    gone = [block for block in region.blocks if block not in reached]
    for block in gone:
        for op in block:
            op.drop_uses()
    region.blocks = [block for block in region.blocks if block in reached]
    return bool(gone)


def _join(region: Region) -> bool:
    """Joins a block with one predecessor to it, if that has no other successor."""
    ways = entrances(region)
    changed = False
    for block in region.blocks[1:]:
        ((branch, _), *others) = ways[block]
        before = branch.parent
        if others or not isinstance(branch, Branch) or before is None or before is block:
            continue
        for argument, value in zip(block.arguments, branch.arguments, strict=True):
            argument.replace_by(value)
        branch.erase()
        before.take(block.ops)
        region.blocks.remove(block)
        changed = True
    return changed


def _unify(region: Region) -> bool:
    """Replaces an argument that is the same value on every edge, or itself, by that value."""
    changed = False
    for block, ways in entrances(region).items():
        for argument in block.arguments if ways else ():
            given = {branch.edges[number].values[argument.index] for branch, number in ways} - {argument}
            if len(given) == 1 and argument.uses:
                argument.replace_by(given.pop())
                changed = True
    return changed


def _sweep(region: Region) -> bool:
    """Erases ops and arguments that no return, store or condition depends on."""
    ways = entrances(region)
    live_ops: set[Operation] = set()
    live_arguments: set[Value] = set()
    stack: list[Value] = []
    for block in region.blocks:
        for op in block:
            if not op.has(Trait.PURE):
                live_ops.add(op)
                stack += op.operands[: op.choosing] if isinstance(op, BranchOp) else op.operands
    while stack:
        value = stack.pop()
        if isinstance(value, BlockArgument) and value.block in ways and value not in live_arguments:
            live_arguments.add(value)
            stack += [branch.edges[number].values[value.index] for branch, number in ways[value.block]]
        maker = value.defining_op
        if maker is not None and maker not in live_ops:
            live_ops.add(maker)
            stack += [operand for inner in maker.walk() for operand in inner.operands]
    return _erase_dead(region, live_ops, live_arguments)


def _erase_dead(region: Region, live_ops: set[Operation], live_arguments: set[Value]) -> bool:
    dead_ops = [op for block in region.blocks for op in block if op not in live_ops]
    dead = {
        block: [argument.index for argument in block.arguments if argument not in live_arguments]
        for block in region.blocks[1:]
    }
    for op in dead_ops:
        op.drop_uses()
    erase_arguments(region, dead)
    for op in dead_ops:
        op.erase()
    return bool(dead_ops) or any(dead.values())
