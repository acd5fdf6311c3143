"""Reductions of windows of many elements along an axis, by doubling: prefix sums, and other sums of long windows.

JAX writes a cumulative sum as a `reduce_window` as wide as its axis, which would combine n² / 2 elements. Here a step
combines `RADIX` neighbours, the next step `RADIX` results of that, and so on, for all windows at once. The rest of a
window is combined from the results of earlier steps. Each element is read about RADIX * log(window) times, with any
reducer, and the order of elements is kept.

An element of step k is the reduction of the RADIX^k elements that end at its place, or that begin there if the padding
behind is wider. Elements in front of the first one are neutral.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from orchestrion.compiler.ir.core import Value
from orchestrion.compiler.ir.dims import Shape, Size, is_dynamic
from orchestrion.compiler.ir.rewriter import Rewriter
from orchestrion.compiler.stablehlo.builders.tensors import Tensor
from orchestrion.compiler.stablehlo.ops.base import tensor_of
from orchestrion.compiler.stablehlo.ops.reducers import is_commutative, is_neutral, single_op_name
from orchestrion.compiler.stablehlo.ops.scalar_regions import apply_to_tensors, is_elementwise
from orchestrion.compiler.stablehlo.ops.windowed import ReduceWindow, Window

#: least number of elements along an axis of a wide window
WIDE: Final = 32
#: number of neighbours that a step combines
RADIX: Final = 8


def narrowed(op: ReduceWindow, rewriter: Rewriter) -> tuple[Value, Window] | None:
    """The operand and the window that remain after the wide axes are reduced; None if no axis is wide."""
    window, x, init = op.window, Tensor(rewriter, op.inputs[0]), Tensor(rewriter, op.init_values[0])
    axes = list(_wide(op))
    if not axes:
        return None
    for axis in axes:
        x = _Axis(op, init, axis).reduced(x)
        window = _done(window, axis)
    return x.value, window


def is_done(window: Window) -> bool:
    """Whether a window changes nothing."""
    ones = (window.sizes, window.strides, window.base_dilations)
    return all(set(values) <= {1} for values in ones) and not any((*window.low, *window.high))


def _wide(op: ReduceWindow) -> Iterator[int]:
    """The axes with wide windows. The init value, which pads, must be neutral: that is known for reducers of one op,
    and required of all by the specification. The reducer must allow another order if the order of elements would
    change.
    """
    body, window = op.body.block, op.window
    if len(op.inputs) != 1 or not is_elementwise(body) or is_dynamic(*window.sizes):
        return
    if single_op_name(body) and not is_neutral(body, op.init_values[0]):
        return
    others = sum(size > 1 for size in window.sizes) > 1
    if others and not is_commutative(body):
        return
    for axis, size in enumerate(window.sizes):
        plain = window.dilations[axis] == window.base_dilations[axis] == 1
        within = 0 <= window.low[axis] < size and 0 <= window.high[axis] < size
        if size >= WIDE and plain and within and tensor_of(op.inputs[0]).shape[axis]:
            yield axis


def _done(window: Window, axis: int) -> Window:
    def one(values: Shape, value: int) -> Shape:
        return (*values[:axis], value, *values[axis + 1 :])

    return replace(
        window,
        sizes=one(window.sizes, 1),
        strides=one(window.strides, 1),
        low=one(window.low, 0),
        high=one(window.high, 0),
    )


class _Axis:
    """The windows along one axis of a reduction."""

    def __init__(self, op: ReduceWindow, init: Tensor, axis: int) -> None:
        window = op.window
        self.body = op.body.block
        self.init = init
        self.axis = axis
        self.size = window.sizes[axis]
        self.stride = window.strides[axis]
        self.low, self.high = window.low[axis], window.high[axis]
        #: whether windows are known by their last element, rather than by their first
        self.ends = self.low >= self.high

    def reduced(self, value: Tensor) -> Tensor:
        """The reduced value of each window."""
        count = (value.shape[self.axis] + self.low + self.high - self.size) // self.stride + 1
        value = self._moved(value, 0, self.high) if self.ends else self._moved(value, self.low, 0)
        found: Tensor | None = None
        covered, length = 0, 1
        while True:
            digit = self.size // length % RADIX
            for _ in range(digit):
                part = self._shifted(value, covered)
                found = part if found is None else self._combined(part, found)
                covered += length
            length *= RADIX
            if length > self.size:
                break
            value = self._step(value, length // RADIX)
        assert found is not None
        start = self.size - 1 - self.low if self.ends else 0
        end = start + (count - 1) * self.stride + 1
        return found.cut(self.axis, start, end, self.stride)

    def _step(self, value: Tensor, distance: int) -> Tensor:
        found = value
        for number in range(1, RADIX):
            found = self._combined(self._shifted(value, number * distance), found)
        return found

    def _combined(self, further: Tensor, nearer: Tensor) -> Tensor:
        """Combines the element further from the place of a window with the nearer one, in the order of the elements."""
        pair = [further.value, nearer.value] if self.ends else [nearer.value, further.value]
        (made,) = apply_to_tensors(nearer.rewriter, self.body, pair, nearer.shape)
        return Tensor(nearer.rewriter, made)

    def _shifted(self, value: Tensor, distance: Size) -> Tensor:
        """For each place the element at that distance in front of it, or behind it."""
        distance = min(distance, value.shape[self.axis])
        return self._moved(value, distance, -distance) if self.ends else self._moved(value, -distance, distance)

    def _moved(self, value: Tensor, low: Size, high: Size) -> Tensor:
        return value.pad_axis(self.axis, low, high, self.init)
