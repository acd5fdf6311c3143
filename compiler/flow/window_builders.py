"""Builders of windows, for passes that lower ops over windows."""

from __future__ import annotations

from collections.abc import Sequence

from orchestrion.compiler.ir.dims import Size
from orchestrion.compiler.stablehlo.builders.tensors import Tensor
from orchestrion.compiler.stablehlo.ops.windowed import Window
from orchestrion.schema.tensor_shapes import window_count

from .dialect import Windows


def windows_of(x: Tensor, padding: Tensor, window: Window, axes: Sequence[int]) -> Tensor:
    """The windows along `axes`, one axis per axis of the window, of a tensor that is dilated and padded first. A window
    of one element gets no axis.
    """
    rank = len(x.shape)
    low: list[Size] = [0] * rank
    high: list[Size] = [0] * rank
    interior: list[Size] = [0] * rank
    strides: list[Size] = [1] * rank
    for number, axis in enumerate(axes):
        low[axis], high[axis] = window.low[number], window.high[number]
        interior[axis] = window.base_dilations[number] - 1 if x.shape[axis] not in (0, 1) else 0
        strides[axis] = window.strides[number] if window.sizes[number] == 1 else 1
    x = x.pad(low, high, padding, interior)
    x = x.slice([0] * rank, x.shape, strides)
    rows = zip(axes, window.sizes, window.strides, window.dilations, strict=True)
    wide = [row for row in rows if row[1] != 1]
    if not wide:
        return x
    along, sizes, steps, dilations = zip(*wide, strict=True)
    counts = list(x.shape)
    for axis, *one in wide:
        counts[axis] = window_count(counts[axis], *one)
    out = x.type.with_shape((*counts, *sizes))
    return x.build(Windows, operand_=x, axes=along, sizes=sizes, strides=steps, dilations=dilations, out=out)
