"""The graph of a function's blocks: who goes where, and edits that keep branches and block arguments together."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from orchestrion.compiler.ir.attributes import dense_ints
from orchestrion.compiler.ir.builtin import Module
from orchestrion.compiler.ir.core import Block, Operation, Region, Value
from orchestrion.compiler.stablehlo.ops.func import Func

from .util import BranchOp, Initializer

#: a way into a block: the branch and the number of its edge
Entrance = tuple[BranchOp, int]


def code_of(module: Module) -> Iterator[Operation]:
    """What of a module runs: its functions and initializers, each with one region."""
    for op in module.block:
        if isinstance(op, Func | Initializer):
            yield op


def split_behind(block: Block, op: Operation) -> Block:
    """A block of what stands behind `op`."""
    rest = Block()
    while op.next_op is not None:
        moved = op.next_op
        moved.detach()
        rest.append(moved)
    return rest


def entrances(region: Region) -> dict[Block, list[Entrance]]:
    """All ways into each block."""
    found: dict[Block, list[Entrance]] = {block: [] for block in region.blocks}
    for block in region.blocks:
        if isinstance(block.last, BranchOp):
            for number, target in enumerate(block.last.successors):
                found[target].append((block.last, number))
    return found


def set_values(branch: BranchOp, values: Sequence[Sequence[Value]]) -> None:
    """Gives each edge its values."""
    branch.set_operands([*branch.operands[: branch.choosing], *(value for edge in values for value in edge)])
    if "counts" in branch.properties:
        branch.properties["counts"] = dense_ints(*map(len, values))


def erase_arguments(region: Region, gone: Mapping[Block, Collection[int]]) -> None:
    """Takes arguments, by number, from blocks, and what branches give for them. Nothing else may use them."""
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
