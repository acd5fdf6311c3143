"""Converts between the bytes of a binding and a tensor's elements, undoing the layout of its type.

Types are MLIR text, as modules store them for each binding (`schema/sourcemap.py`). `compiler/flow/layout.py` defines
layouts.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from orchestrion.compiler.errors import ParseError
from orchestrion.compiler.flow.layout import EncodingError, layout_of
from orchestrion.compiler.ir.parser import Parser
from orchestrion.compiler.ir.types import TensorType
from orchestrion.schema.dtypes import BY_NAME

Array = npt.NDArray[Any]


def tensor_type(text: str) -> TensorType | None:
    """Parses a type; None unless it is a tensor with a static shape and a matching layout."""
    try:
        type = Parser(text, "<type>").type()
        if not isinstance(type, TensorType) or not type.is_static or str(type.element) not in BY_NAME:
            return None
        layout_of(type)
    except (ParseError, EncodingError):
        return None
    return type


def decode(data: npt.NDArray[np.uint8], type: TensorType) -> Array:
    """The elements in row-major order of the shape. Raises ValueError if there are too few bytes."""
    dtype, layout = BY_NAME[str(type.element)].numpy, layout_of(type)
    shape = type.static_shape if layout is None else layout.physical_shape(type.static_shape)
    count = int(np.prod(shape, dtype=np.int64))
    if data.size < count * dtype.itemsize:
        raise ValueError(f"{data.size} bytes, {type} takes {count * dtype.itemsize}")
    values = data[: count * dtype.itemsize].view(dtype).reshape(shape)
    if layout is None:
        return values
    order, pieces = layout.order, layout.pieces(type.static_shape)
    tiles = values.reshape([pieces[place] for place in order]).transpose(np.argsort(order))
    inside = tuple(slice(size) for size in layout.sizes(type.static_shape))
    whole = tiles.reshape(layout.padded_sizes(type.static_shape))[inside]
    axes = [axis for group in layout.axes for axis in group]
    return whole.reshape([type.static_shape[axis] for axis in axes]).transpose(np.argsort(axes))


def encode(values: Array, type: TensorType) -> npt.NDArray[np.uint8]:
    """The bytes of a binding that holds an array of the type's shape and element type; padding is zero."""
    layout = layout_of(type)
    if layout is not None:
        axes = [axis for group in layout.axes for axis in group]
        sizes, padded = layout.sizes(type.static_shape), layout.padded_sizes(type.static_shape)
        grouped = values.transpose(axes).reshape(sizes)
        whole = np.pad(grouped, [(0, room - size) for room, size in zip(padded, sizes, strict=True)])
        values = whole.reshape(layout.pieces(type.static_shape)).transpose(layout.order)
    return np.ascontiguousarray(values).reshape(-1).view(np.uint8)
