"""Builders of ops that move or combine whole tensors, for passes that write StableHLO.

A builder inserts no op if the op would change nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

from orchestrion.compiler.ir.attributes import dense_ints
from orchestrion.compiler.ir.core import Value
from orchestrion.compiler.ir.dims import ceildiv
from orchestrion.compiler.ir.rewriter import Rewriter
from orchestrion.compiler.stablehlo.ops.base import tensor_of
from orchestrion.compiler.stablehlo.ops.contraction import DotDimensions, DotGeneral
from orchestrion.compiler.stablehlo.ops.structural import (
    BroadcastInDim,
    Reshape,
    Slice,
    Transpose,
)

Ints = Sequence[int]


def reshape(rewriter: Rewriter, value: Value, shape: Ints) -> Value:
    """`reshape` to `shape`."""
    if tensor_of(value).shape == tuple(shape):
        return value
    return rewriter.build(Reshape, operand_=value, out=tensor_of(value).with_shape(tuple(shape))).result


def transpose(rewriter: Rewriter, value: Value, order: Ints) -> Value:
    """`transpose`: result axis i is operand axis order[i]."""
    if list(order) == sorted(order):
        return value
    out = tensor_of(value).with_shape(tuple(tensor_of(value).shape[axis] for axis in order))
    return rewriter.build(Transpose, operand_=value, permutation=dense_ints(*order), out=out).result


def broadcast(rewriter: Rewriter, value: Value, shape: Ints, axes: Ints = ()) -> Value:
    """`broadcast_in_dim`: operand axis i becomes result axis axes[i]."""
    out = tensor_of(value).with_shape(tuple(shape))
    if out == tensor_of(value) and list(axes) == list(range(len(shape))):
        return value
    return rewriter.build(BroadcastInDim, operand_=value, broadcast_dimensions=dense_ints(*axes), out=out).result


def slice_range(rewriter: Rewriter, value: Value, starts: Ints, limits: Ints, strides: Ints = ()) -> Value:
    """A slice: elements from `starts` up to `limits`, exclusive, `strides` apart; 1 apart by default."""
    steps = tuple(strides) or (1,) * len(starts)
    shape = tuple(ceildiv(end - start, step) for start, end, step in zip(starts, limits, steps, strict=True))
    if shape == tensor_of(value).shape:
        return value
    return rewriter.build(
        Slice,
        operand_=value,
        start_indices=dense_ints(*starts),
        limit_indices=dense_ints(*limits),
        strides=dense_ints(*steps),
        out=tensor_of(value).with_shape(shape),
    ).result


def dot(rewriter: Rewriter, lhs: Value, rhs: Value, dimensions: DotDimensions) -> Value:
    """`dot_general`; the result has the element type of lhs."""
    out = tensor_of(lhs).with_shape(dimensions.shape(tensor_of(lhs), tensor_of(rhs)))
    return rewriter.build(DotGeneral, lhs=lhs, rhs=rhs, dot_dimension_numbers=dimensions.attribute(), out=out).result
