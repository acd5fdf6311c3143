"""The graph of the blocks of a function, and edits that keep branches and block arguments consistent."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from orchestrion.compiler.ir.attributes import dense_ints
from orchestrion.compiler.ir.builtin import Module
from orchestrion.compiler.ir.core import Block, Operation, Region, Value
from orchestrion.compiler.ir.util import BranchOp, Initializer
from orchestrion.compiler.stablehlo.ops.func import Func

#: a way into a block: the branch and the number of its edge
Entrance = tuple[BranchOp, int]


def code_of(module: Module) -> Iterator[Operation]:
    """The functions and initializers of a module, each with one region."""
    for op in module.block:
        if isinstance(op, Func | Initializer):
            yield op


def split_behind(block: Block, op: Operation) -> Block:
    """Moves the ops behind `op` into a new block, and returns it."""
    rest = Block()
    while op.next_op is not None:
        rest.take([op.next_op])
    return rest


def entrances(region: Region) -> dict[Block, list[Entrance]]:
    """For each block the branch edges that lead to it."""
    found: dict[Block, list[Entrance]] = {block: [] for block in region.blocks}
    for block in region.blocks:
        if isinstance(block.last, BranchOp):
            for number, target in enumerate(block.last.successors):
                found[target].append((block.last, number))
    return found


def set_values(branch: BranchOp, values: Sequence[Sequence[Value]]) -> None:
    """Sets the values that each edge of a branch passes."""
    branch.set_operands([*branch.operands[: branch.choosing], *(value for edge in values for value in edge)])
    if "counts" in branch.properties:
        branch.properties["counts"] = dense_ints(*map(len, values))


def erase_arguments(region: Region, gone: Mapping[Block, Collection[int]]) -> None:
    """Erases arguments of blocks, by number, and the values that branches pass for them. They have no other uses."""
    for block in region.blocks:
        branch = block.last
        if isinstance(branch, BranchOp) and any(target in gone for target in branch.successors):
            kept = [
                [value for index, value in enumerate(edge.values) if index not in gone.get(edge.target, ())]
                for edge in branch.edges
            ]
            set_values(branch, kept)
    for block, indices in gone.items():
        block.erase_arguments(indices)
