"""elide-empty: removes tensors without elements.

A returned one becomes `flow.empty`. An op that reads one (a reduction or a concatenation) reads a broadcast scalar
instead, which needs no memory. Ops with only empty results are erased, and no block except the entry has an empty
argument.
"""

from __future__ import annotations

from orchestrion.compiler.ir.attributes import ELEMENT_BYTES, DenseElements
from orchestrion.compiler.ir.builder import Builder
from orchestrion.compiler.ir.builtin import Module
from orchestrion.compiler.ir.core import Block, Value
from orchestrion.compiler.ir.types import TensorType
from orchestrion.compiler.ir.util import GlobalStore
from orchestrion.compiler.stablehlo.ops.structural import BroadcastInDim, Constant

from .blocks import code_of, erase_arguments
from .dialect import Empty


def run(module: Module) -> None:
    """Removes tensors without elements from all functions."""
    for code in code_of(module):
        region = code.regions[0]
        for block in region.blocks:
            _elide(block)
        blocks = region.blocks[1:]
        erase_arguments(region, {block: [a.index for a in block.arguments if _is_empty(a)] for block in blocks})
        for op in region.walk():
            if isinstance(op, Empty) and not op.output.uses:
                op.erase()


def _elide(block: Block) -> None:
    for argument in block.arguments:
        _replace(argument)
    for op in block.ops:
        if isinstance(op, Empty):
            continue
        for result in op.results:
            _replace(result)
        if op.results and all(not r.uses and _is_empty(r) for r in op.results):
            op.erase()


def _is_empty(value: Value) -> bool:
    return isinstance(value.type, TensorType) and value.type.num_elements == 0


def _replace(value: Value) -> None:
    """Replaces an empty tensor for each reader. The substitute is made in front of the reader."""
    for user, index in list(value.uses) if _is_empty(value) else ():
        builder = Builder.before(user)
        is_kept = user.next_op is None or isinstance(user, GlobalStore)
        with builder.at(value.loc):
            user.set_operand(
                index, builder.build(Empty, output=value.type).output if is_kept else _broadcast(builder, value)
            )


def _broadcast(builder: Builder, value: Value) -> Value:
    assert isinstance(value.type, TensorType)
    scalar = value.type.with_shape(())
    zero = DenseElements(scalar, bytes(ELEMENT_BYTES[str(scalar.element)]))
    constant = builder.build(Constant, value=zero, out=scalar)
    broadcast = builder.build(BroadcastInDim, operand_=constant.out, broadcast_dimensions=[], out=value.type)
    return broadcast.out
