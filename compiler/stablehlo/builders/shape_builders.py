"""Builders of ops that move or combine whole tensors, for passes that write StableHLO.

A builder inserts no op if the op would change nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

from orchestrion.compiler.ir.attributes import DenseElements, DialectAttr, IntegerAttr, dense_ints
from orchestrion.compiler.ir.core import Block, Region, Value
from orchestrion.compiler.ir.dims import ceildiv
from orchestrion.compiler.ir.rewriter import Rewriter
from orchestrion.compiler.ir.types import TensorType, scalar
from orchestrion.compiler.stablehlo.ops.base import tensor_of
from orchestrion.compiler.stablehlo.ops.contraction import DotDimensions, DotGeneral, Reduce, Return
from orchestrion.compiler.stablehlo.ops.elementwise import OPS
from orchestrion.compiler.stablehlo.ops.indexing import DynamicSlice, DynamicUpdateSlice, Gather
from orchestrion.compiler.stablehlo.ops.structural import (
    BroadcastInDim,
    Concatenate,
    Constant,
    Iota,
    Pad,
    Reshape,
    Reverse,
    Slice,
    Transpose,
)
from orchestrion.schema.dtypes import BY_NAME
from orchestrion.schema.tensor_shapes import spread

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


def slice_axis(rewriter: Rewriter, value: Value, axis: int, start: int, limit: int, stride: int = 1) -> Value:
    """A slice along one axis: elements from `start` up to `limit`, exclusive, `stride` apart."""
    shape = tensor_of(value).shape
    starts, limits, strides = [0] * len(shape), list(shape), [1] * len(shape)
    starts[axis], limits[axis], strides[axis] = start, limit, stride
    return slice_range(rewriter, value, starts, limits, strides)


def pad(rewriter: Rewriter, value: Value, fill: Value, low: Ints, high: Ints, interior: Ints = ()) -> Value:
    """`pad` with the scalar `fill`: elements in front of each axis, behind it, and between neighbours, none by
    default. Negative numbers remove elements.
    """
    gaps = tuple(interior) or (0,) * len(low)
    if all(amount == 0 for amount in (*low, *high, *gaps)):
        return value
    rows = zip(low, tensor_of(value).shape, gaps, high, strict=True)
    return rewriter.build(
        Pad,
        operand_=value,
        padding_value=fill,
        edge_padding_low=dense_ints(*low),
        edge_padding_high=dense_ints(*high),
        interior_padding=dense_ints(*gaps),
        out=tensor_of(value).with_shape(tuple(before + spread(size, gap) + after for before, size, gap, after in rows)),
    ).result


def pad_axis(rewriter: Rewriter, value: Value, fill: Value, axis: int, low: int, high: int) -> Value:
    """`pad` along one axis."""
    before, behind = ([0] * tensor_of(value).rank for _ in range(2))
    before[axis], behind[axis] = low, high
    return pad(rewriter, value, fill, before, behind)


def reverse(rewriter: Rewriter, value: Value, axes: Ints) -> Value:
    """`reverse` along axes."""
    if not axes:
        return value
    return rewriter.build(Reverse, operand_=value, dimensions=dense_ints(*axes), out=value.type).result


def take_along(rewriter: Rewriter, value: Value, places: Value, axis: int) -> Value:
    """The elements of each line along an axis, at the places that `places`, of the same shape, holds."""
    rank = tensor_of(value).rank
    kept = [dim for dim in range(rank) if dim != axis]
    batching = f"operand_batching_dims = {kept}, start_indices_batching_dims = {kept}, "
    axes = f"collapsed_slice_dims = [{axis}], {batching if kept else ''}start_index_map = [{axis}], "
    return rewriter.build(
        Gather,
        operand_=value,
        start_indices=places,
        dimension_numbers=DialectAttr("stablehlo.gather", f"{axes}index_vector_dim = {rank}"),
        slice_sizes=dense_ints(*[1] * rank),
        out=tensor_of(value),
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
    init = zeros(rewriter, one) if start is None else start
    return reduce_by(rewriter, [value], [init], axes, Region([body]))[0]


def reduce_by(
    rewriter: Rewriter, values: Sequence[Value], inits: Sequence[Value], axes: Ints, body: Region
) -> Sequence[Value]:
    """`reduce` along axes by the region `body`, which the op takes over."""
    kept = tuple(size for axis, size in enumerate(tensor_of(values[0]).shape) if axis not in axes)
    out = [tensor_of(value).with_shape(kept) for value in values]
    made = rewriter.build(Reduce, inputs=values, init_values=inits, dimensions=dense_ints(*axes), body=body, out=out)
    return made.results


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
