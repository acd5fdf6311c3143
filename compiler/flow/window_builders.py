"""Builders of windows, for passes that lower ops over windows."""

from __future__ import annotations

from collections.abc import Sequence

from orchestrion.compiler.ir.attributes import dense_ints
from orchestrion.compiler.ir.core import Value
from orchestrion.compiler.ir.rewriter import Rewriter
from orchestrion.compiler.stablehlo.builders import shape_builders
from orchestrion.compiler.stablehlo.ops.base import tensor_of
from orchestrion.compiler.stablehlo.ops.windowed import Window
from orchestrion.schema.tensor_shapes import window_count

from .dialect import Windows


def windows_of(rewriter: Rewriter, value: Value, padding: Value, window: Window, axes: Sequence[int]) -> Value:
    """The windows along `axes`, one axis per axis of the window, of a value that is dilated and padded first. A window
    of one element gets no axis.
    """
    shape = tensor_of(value).shape
    low, high, interior, strides = [0] * len(shape), [0] * len(shape), [0] * len(shape), [1] * len(shape)
    for number, axis in enumerate(axes):
        low[axis], high[axis] = window.low[number], window.high[number]
        interior[axis] = window.base_dilations[number] - 1 if shape[axis] not in (0, 1) else 0
        strides[axis] = window.strides[number] if window.sizes[number] == 1 else 1
    value = shape_builders.pad(rewriter, value, padding, low, high, interior)
    value = shape_builders.slice_range(rewriter, value, [0] * len(shape), tensor_of(value).shape, strides)
    rows = zip(axes, window.sizes, window.strides, window.dilations, strict=True)
    wide = [row for row in rows if row[1] != 1]
    if not wide:
        return value
    along, sizes, steps, dilations = zip(*wide, strict=True)
    counts = list(tensor_of(value).shape)
    for axis, *one in wide:
        counts[axis] = window_count(counts[axis], *one)
    return rewriter.build(
        Windows,
        operand_=value,
        axes=dense_ints(*along),
        sizes=dense_ints(*sizes),
        strides=dense_ints(*steps),
        dilations=dense_ints(*dilations),
        out=tensor_of(value).with_shape((*counts, *sizes)),
    ).out
