"""Structural ops that NumPy implements as a view of the operand. Only `reshape` may copy."""

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
from numpy.lib.stride_tricks import as_strided

from orchestrion.schema.tensor_bytecode import Instruction
from orchestrion.schema.tensor_shapes import Ints, TensorType, window_count

Array = npt.NDArray[Any]
View = Callable[[Array], Array]


def broadcast_in_dim(operand: TensorType, shape: Ints, axes: Ints) -> View:
    order = tuple(sorted(range(len(axes)), key=axes.__getitem__))
    aligned = [1] * len(shape)
    for size, axis in zip(operand.shape, axes, strict=True):
        aligned[axis] = size
    expand = tuple(aligned)

    def view(x: Array) -> Array:
        return np.broadcast_to(x.transpose(order).reshape(expand), shape)

    return view


def reshape(_: TensorType, shape: Ints) -> View:
    def view(x: Array) -> Array:
        return x.reshape(shape)

    return view


def transpose(_: TensorType, axes: Ints) -> View:
    def view(x: Array) -> Array:
        return x.transpose(axes)

    return view


def slice_(_: TensorType, starts: Ints, limits: Ints, strides: Ints) -> View:
    index = tuple(map(slice, starts, limits, strides))

    def view(x: Array) -> Array:
        return x[index]

    return view


def reverse(operand: TensorType, axes: Ints) -> View:
    index = tuple(slice(None, None, -1) if axis in axes else slice(None) for axis in range(operand.rank))

    def view(x: Array) -> Array:
        return x[index]

    return view


def windows(operand: TensorType, axes: Ints, sizes: Ints, strides: Ints, dilations: Ints) -> View:
    """All windows lie inside of the operand; the row's rule has checked that. An axis with one step gets stride 0, and
    without any window all strides are 0, because the numbers may be arbitrary then.
    """
    shape = list(operand.shape)
    for axis, *window in zip(axes, sizes, strides, dilations, strict=True):
        shape[axis] = window_count(shape[axis], *window)
    result = (*shape, *sizes)
    any_window = 0 not in result
    steps = {axis: by if any_window and shape[axis] > 1 else 0 for axis, by in zip(axes, strides, strict=True)}
    rows = zip(axes, sizes, dilations, strict=True)
    inner = [(axis, by if any_window and size > 1 else 0) for axis, size, by in rows]

    def view(x: Array) -> Array:
        outer = [stride * steps.get(axis, 1) for axis, stride in enumerate(x.strides)]
        return as_strided(x, result, [*outer, *[x.strides[axis] * step for axis, step in inner]], writeable=False)

    return view


def view_of(instruction: Instruction, operand: TensorType) -> View:
    return VIEWS[instruction.row.name](operand, *instruction.attributes)


VIEWS: dict[str, Callable[..., View]] = {
    "broadcast_in_dim": broadcast_in_dim,
    "reshape": reshape,
    "transpose": transpose,
    "slice": slice_,
    "reverse": reverse,
    "windows": windows,
}
