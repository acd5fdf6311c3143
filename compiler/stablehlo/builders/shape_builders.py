"""Builders of ops that move or combine whole tensors, for passes that write StableHLO.

A builder inserts no op if the op would change nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

from orchestrion.compiler.ir.attributes import DenseElements, IntegerAttr, dense_ints
from orchestrion.compiler.ir.core import Block, Region, Value
from orchestrion.compiler.ir.rewriter import Rewriter
from orchestrion.compiler.ir.types import TensorType, scalar
from orchestrion.compiler.stablehlo.ops.base import tensor_of
from orchestrion.compiler.stablehlo.ops.contraction import DotDimensions, DotGeneral, Reduce, Return
from orchestrion.compiler.stablehlo.ops.elementwise import OPS
from orchestrion.compiler.stablehlo.ops.indexing import DynamicSlice, DynamicUpdateSlice
from orchestrion.compiler.stablehlo.ops.structural import (
    BroadcastInDim,
    Concatenate,
    Constant,
    Iota,
    Reshape,
    Slice,
    Transpose,
)
from orchestrion.schema.dtypes import BY_NAME

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


def slice_range(rewriter: Rewriter, value: Value, starts: Ints, limits: Ints) -> Value:
    """A slice with stride 1: elements from `starts` up to `limits`, exclusive."""
    shape = tuple(limit - start for start, limit in zip(starts, limits, strict=True))
    return rewriter.build(
        Slice,
        operand_=value,
        start_indices=dense_ints(*starts),
        limit_indices=dense_ints(*limits),
        strides=dense_ints(*[1] * len(shape)),
        out=tensor_of(value).with_shape(shape),
    ).result


def leading_slice(rewriter: Rewriter, value: Value, shape: Ints) -> Value:
    """A slice of the given shape from the start of each axis."""
    return slice_range(rewriter, value, (0,) * len(shape), shape)


def concatenate(rewriter: Rewriter, values: Sequence[Value], axis: int) -> Value:
    """`concatenate` along an axis."""
    shape = list(tensor_of(values[0]).shape)
    shape[axis] = sum(tensor_of(value).shape[axis] for value in values)
    out = tensor_of(values[0]).with_shape(tuple(shape))
    return rewriter.build(Concatenate, inputs=values, dimension=IntegerAttr(axis), out=out).result


def iota(rewriter: Rewriter, shape: Ints, axis: int, element: str = "i32") -> Value:
    """`iota`: 0, 1, 2, ... along an axis."""
    out = TensorType(tuple(shape), scalar(element))
    return rewriter.build(Iota, iota_dimension=IntegerAttr(axis), out=out).result


def zeros(rewriter: Rewriter, type: TensorType) -> Value:
    """Zeros of any element type in `schema/dtypes.py`."""
    stated = type if type.is_static else type.with_shape(())
    elements = DenseElements(stated, bytes(BY_NAME[str(type.element)].itemsize))
    made = rewriter.build(Constant, value=elements, out=stated).result
    return made if type.is_static else broadcast(rewriter, made, type.shape)


def reduce_axes(rewriter: Rewriter, value: Value, axes: Ints, name: str = "add", start: Value | None = None) -> Value:
    """Reduces the elements along axes with an elementwise op; the initial value is zero unless `start` is given."""
    type = tensor_of(value)
    if not axes:
        return value
    one = type.with_shape(())
    body = Block([one, one])
    combined = OPS[f"stablehlo.{name}"](body.arguments, [one])
    body.append(combined)
    body.append(Return.build(values=[combined.result]))
    kept = tuple(size for axis, size in enumerate(type.shape) if axis not in axes)
    return rewriter.build(
        Reduce,
        inputs=[value],
        init_values=[zeros(rewriter, one) if start is None else start],
        dimensions=dense_ints(*axes),
        body=Region([body]),
        out=[type.with_shape(kept)],
    ).results[0]


def dot(rewriter: Rewriter, lhs: Value, rhs: Value, dimensions: DotDimensions) -> Value:
    """`dot_general`; the result has the element type of lhs."""
    out = tensor_of(lhs).with_shape(dimensions.shape(tensor_of(lhs), tensor_of(rhs)))
    return rewriter.build(DotGeneral, lhs=lhs, rhs=rhs, dot_dimension_numbers=dimensions.attribute(), out=out).result


def dynamic_slice(rewriter: Rewriter, value: Value, starts: Sequence[Value], sizes: Ints) -> Value:
    """`dynamic_slice` of `sizes` elements per axis at `starts`."""
    out = tensor_of(value).with_shape(tuple(sizes))
    return rewriter.build(
        DynamicSlice, operand_=value, start_indices=starts, slice_sizes=dense_ints(*sizes), out=out
    ).result


def dynamic_update_slice(rewriter: Rewriter, value: Value, update: Value, starts: Sequence[Value]) -> Value:
    """`dynamic_update_slice` of `update` at `starts`."""
    return rewriter.build(
        DynamicUpdateSlice, operand_=value, update=update, start_indices=starts, out=value.type
    ).result
