"""Regions that compute scalars by elementwise ops, applied to whole tensors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from orchestrion.compiler.ir.attributes import DenseArray
from orchestrion.compiler.ir.core import Block, Operation, Value
from orchestrion.compiler.ir.dims import Shape
from orchestrion.compiler.ir.rewriter import Rewriter

from .base import rebuilt, tensor_of
from .elementwise import Elementwise
from .structural import BroadcastInDim, Constant


def apply_to_tensors(rewriter: Rewriter, block: Block, given: Sequence[Value], shape: Shape) -> list[Value]:
    """The results of a block, of elementwise ops and constants only, applied elementwise to tensors of this shape."""
    mapping: dict[Value, Value] = dict(zip(block.arguments, given, strict=True))
    *inner, last = block.ops
    for op in inner:
        mapping[op.results[0]] = _widened(rewriter, op, mapping, shape)
    return [mapping[value] for value in last.operands]


def is_elementwise(block: Block) -> bool:
    """Whether `apply_to_tensors` supports the block."""
    return all(isinstance(op, Elementwise | Constant) for op in block.ops[:-1])


def _widened(rewriter: Rewriter, op: Operation, mapping: Mapping[Value, Value], shape: Shape) -> Value:
    """Rebuilds an op on scalars as an op on tensors."""
    type = tensor_of(op.results[0]).with_shape(shape)
    if isinstance(op, Constant):
        scalar = rewriter.insert(op.clone()).result
        return rewriter.build(BroadcastInDim, operand_=scalar, broadcast_dimensions=DenseArray(()), out=type).result
    operands = [mapping[value] for value in op.operands]
    return rewriter.insert(rebuilt(op, operands, [type])).results[0]
