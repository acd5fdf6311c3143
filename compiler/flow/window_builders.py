"""Short forms for passes that write movement: each inserts through the rewriter, where it changes something at all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from orchestrion.compiler.ir.attributes import dense_ints
from orchestrion.compiler.ir.core import Value
from orchestrion.compiler.ir.rewriter import Rewriter
from orchestrion.compiler.stablehlo.ops.base import tensor_of
from orchestrion.compiler.stablehlo.ops.structural import BroadcastInDim, Pad, Reshape, Reverse, Slice, Transpose
from orchestrion.compiler.stablehlo.ops.windowed import Window
from orchestrion.schema.tensor_shapes import window_count

from .dialect import Windows


def pad(rewriter: Rewriter, value: Value, padding: Value, window: Window, axes: Sequence[int]) -> Value:
    """The tensor that a window moves over: its base dilated and padded along `axes`, one per axis of the window."""
    shape = list(tensor_of(value).shape)
    padded = window.padded([shape[axis] for axis in axes])
    low, high, interior = ([0] * len(shape) for _ in range(3))
    for number, axis in enumerate(axes):
        low[axis], high[axis] = window.low[number], window.high[number]
        interior[axis] = window.base_dilations[number] - 1 if shape[axis] not in (0, 1) else 0
        shape[axis] = padded[number]
    if all(amount == 0 for amount in (*low, *high, *interior)):
        return value
    return rewriter.build(
        Pad,
        operand_=value,
        padding_value=padding,
        edge_padding_low=dense_ints(*low),
        edge_padding_high=dense_ints(*high),
        interior_padding=dense_ints(*interior),
        out=tensor_of(value).with_shape(tuple(shape)),
    ).out


def windows(rewriter: Rewriter, value: Value, window: Window, axes: Sequence[int]) -> Value:
    """The windows along `axes`, of what is padded; a window of one element has no axis of its own."""
    rows = list(zip(axes, window.sizes, window.strides, window.dilations, strict=True))
    value = _strided(rewriter, value, {axis: stride for axis, size, stride, _ in rows if size == 1})
    wide = [row for row in rows if row[1] != 1]
    if not wide:
        return value
    along, sizes, strides, dilations = zip(*wide, strict=True)
    shape = list(tensor_of(value).shape)
    for axis, *one in wide:
        shape[axis] = window_count(shape[axis], *one)
    return rewriter.build(
        Windows,
        operand_=value,
        axes=dense_ints(*along),
        sizes=dense_ints(*sizes),
        strides=dense_ints(*strides),
        dilations=dense_ints(*dilations),
        out=tensor_of(value).with_shape((*shape, *sizes)),
    ).out


def _strided(rewriter: Rewriter, value: Value, by_axis: Mapping[int, int]) -> Value:
    """Every so-manieth element along some axes."""
    shape = tensor_of(value).shape
    strides = [by_axis.get(axis, 1) for axis in range(len(shape))]
    if all(stride == 1 for stride in strides):
        return value
    return rewriter.build(
        Slice,
        operand_=value,
        start_indices=dense_ints(*[0] * len(shape)),
        limit_indices=dense_ints(*shape),
        strides=dense_ints(*strides),
        out=tensor_of(value).with_shape(tuple(-(-size // by) for size, by in zip(shape, strides, strict=True))),
    ).out


def reverse(rewriter: Rewriter, value: Value, axes: Sequence[int]) -> Value:
    if not axes:
        return value
    return rewriter.build(Reverse, operand_=value, dimensions=dense_ints(*axes), out=value.type).out


def reshape(rewriter: Rewriter, value: Value, shape: Sequence[int]) -> Value:
    if tensor_of(value).shape == tuple(shape):
        return value
    return rewriter.build(Reshape, operand_=value, out=tensor_of(value).with_shape(tuple(shape))).out


def transpose(rewriter: Rewriter, value: Value, order: Sequence[int]) -> Value:
    if list(order) == sorted(order):
        return value
    shape = tensor_of(value).shape
    out = tensor_of(value).with_shape(tuple(shape[axis] for axis in order))
    return rewriter.build(Transpose, operand_=value, permutation=dense_ints(*order), out=out).out


def repeat(rewriter: Rewriter, value: Value, sizes: Sequence[int]) -> Value:
    """As often as these sizes say, along new axes in front."""
    if not sizes:
        return value
    type = tensor_of(value)
    return rewriter.build(
        BroadcastInDim,
        operand_=value,
        broadcast_dimensions=dense_ints(*range(len(sizes), len(sizes) + type.rank)),
        out=type.with_shape((*sizes, *type.shape)),
    ).out
