"""`chlo.top_k`: a sort of the last axis downwards, with the elements' numbers, of which the first k are kept.

Equal elements come in the order of their numbers, floats in total order: a NaN comes first, or last if it is negative.
"""

from __future__ import annotations

from orchestrion.compiler.ir.attributes import BoolAttr, DenseArray, IntegerAttr
from orchestrion.compiler.ir.core import Operation, Value
from orchestrion.compiler.ir.rewriter import Rewriter
from orchestrion.compiler.ir.types import I32, TensorType

from .base import is_known, tensor_of
from .sort import Sort, ordering
from .structural import Iota, Slice


def expand_top_k(op: Operation, rewriter: Rewriter) -> bool:
    """Leaves alone what does not have the form it should."""
    k = op.get_as("k", IntegerAttr)
    if k is None or len(op.operands) != 1 or len(op.results) != 2 or not is_known(op.operands[0].type):
        return False
    type = tensor_of(op.operands[0])
    if not type.rank or not 0 <= k.value <= type.shape[-1]:
        return False
    kept = type.with_shape((*type.shape[:-1], k.value))
    if [result.type for result in op.results] != [kept, kept.with_element(I32)]:
        return False
    axis = IntegerAttr(type.rank - 1)
    numbers = rewriter.build(Iota, iota_dimension=axis, out=type.with_element(I32))
    types = [type, type.with_element(I32)]
    inputs = [op.operands[0], numbers.result]
    ordered = rewriter.build(
        Sort, inputs=inputs, dimension=axis, is_stable=BoolAttr(True), comparator=ordering(types, "GT"), out=types
    )
    rewriter.replace(op, [_first(rewriter, value, kept.shape) for value in ordered.results])
    return True


def _first(rewriter: Rewriter, value: Value, shape: tuple[int, ...]) -> Value:
    zeros, ones = DenseArray((0,) * len(shape)), DenseArray((1,) * len(shape))
    out = TensorType(shape, tensor_of(value).element)
    made = rewriter.build(
        Slice, operand_=value, start_indices=zeros, limit_indices=DenseArray(shape), strides=ones, out=out
    )
    return made.result
