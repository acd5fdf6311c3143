"""Encodings in tensor bytecode, which has no layouts: an encoded tensor becomes a tensor of its physical shape.

Encoding transposes the axes into groups, pads the groups, divides them into tiles, and transposes the pieces. Decoding
does the reverse.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from orchestrion.compiler.flow.layout import Layout, layout_of
from orchestrion.compiler.ir.attributes import ELEMENT_BYTES, DenseElements, dense_ints
from orchestrion.compiler.ir.core import Value
from orchestrion.compiler.ir.dims import Shape, Size
from orchestrion.compiler.ir.types import TensorType

#: (name of an instruction, operands, shape of its result, fields) -> its result
Emit = Callable[..., Value]


def stored(type: TensorType) -> TensorType:
    """The type of the tensor in memory."""
    layout = layout_of(type)
    return TensorType(type.shape if layout is None else layout.physical_shape(type.shape), type.element)


def pack(emit: Emit, value: Value, type: TensorType) -> Value:
    """The elements of a plain tensor in the order of an encoded type in memory."""
    layout, shape = _of(type)
    order = [axis for group in layout.axes for axis in group]
    sizes, padded = layout.sizes(shape), layout.padded_sizes(shape)
    value = _transposed(emit, value, [shape[axis] for axis in order], order)
    value = emit("reshape", [value], sizes)
    if padded != sizes:
        scalar = TensorType((), type.element)
        zero = emit("constant", [], (), data=DenseElements(scalar, bytes(ELEMENT_BYTES[str(type.element)])))
        high = [there - here for there, here in zip(padded, sizes, strict=True)]
        none = dense_ints(*(0 for _ in high))
        value = emit("pad", [value, zero], padded, low=none, high=dense_ints(*high), interior=none)
    pieces, places = layout.pieces(shape), layout.order
    value = emit("reshape", [value], pieces)
    value = _transposed(emit, value, [pieces[place] for place in places], places)
    return emit("reshape", [value], layout.physical_shape(shape))


def unpack(emit: Emit, value: Value, type: TensorType) -> Value:
    """The elements of an encoded tensor in the order of its shape."""
    layout, shape = _of(type)
    order = [axis for group in layout.axes for axis in group]
    sizes, padded = layout.sizes(shape), layout.padded_sizes(shape)
    pieces, places = layout.pieces(shape), layout.order
    value = emit("reshape", [value], [pieces[place] for place in places])
    value = _transposed(emit, value, pieces, _inverse(places))
    value = emit("reshape", [value], padded)
    if padded != sizes:
        starts, strides = dense_ints(*(0 for _ in sizes)), dense_ints(*(1 for _ in sizes))
        value = emit("slice", [value], sizes, starts=starts, limits=dense_ints(*sizes), strides=strides)
    value = emit("reshape", [value], [shape[axis] for axis in order])
    return _transposed(emit, value, shape, _inverse(order))


def _of(type: TensorType) -> tuple[Layout, Shape]:
    layout = layout_of(type)
    assert layout is not None, "an encoded type"
    return layout, type.shape


def _inverse(order: Sequence[int]) -> list[int]:
    return [order.index(place) for place in range(len(order))]


def _transposed(emit: Emit, value: Value, shape: Sequence[Size], order: Sequence[int]) -> Value:
    if list(order) == sorted(order):
        return value
    return emit("transpose", [value], shape, axes=dense_ints(*order))
