"""Encoded tensors in kernels: the position of an element in memory, and the element at a position.

A coordinate along a group of axes is divided into the number of its tile and its place in the tile. If it has the form
`number * size + constant`, as the coordinates of a block of results do, no division is needed.
"""

from collections.abc import Sequence
from math import prod

from orchestrion.compiler.flow.dialect import SetEncoding, UnsetEncoding
from orchestrion.compiler.flow.layout import Layout, layout_of
from orchestrion.compiler.ir.core import Value
from orchestrion.compiler.ir.dims import Shape
from orchestrion.compiler.kernel.code.affine import aligned, group_of, split
from orchestrion.compiler.kernel.code.builder import KernelBuilder
from orchestrion.compiler.kernel.dialect import VECTOR
from orchestrion.compiler.stablehlo.ops.base import tensor_of

from .index import Index, delinearize, linearize
from .rules import Requests, Rule, element_of, shape_of


def stored_shape(value: Value) -> Shape:
    """The dimensions of a tensor value in memory, padding included; its shape if it is in row-major order."""
    layout = layout_of(tensor_of(value))
    return shape_of(value) if layout is None else layout.physical_shape(shape_of(value))


def plain_shape(values: Sequence[Value]) -> Shape | None:
    """The shape that all values have, in row-major order; None if there is none, or several, or a layout."""
    shapes = {shape_of(value) for value in values}
    has_layout = any(layout_of(tensor_of(value)) is not None for value in values)
    return None if has_layout or len(shapes) != 1 else shapes.pop()


def stored_at(b: KernelBuilder, value: Value, at: Index) -> Value:
    """The position in memory of an element of a tensor value."""
    layout = layout_of(tensor_of(value))
    if layout is None:
        return at.linear
    tiles, places = [], []
    for group, tile in zip(layout.axes, layout.tiles, strict=True):
        sizes = tuple(at.shape[axis] for axis in group)
        coordinate = linearize(b, [at.coordinates[axis] for axis in group], sizes)
        number, place = (coordinate, b.index(0)) if tile == 1 else split(b, coordinate, tile)
        tiles.append(number)
        places.append(place)
    coordinates = [*tiles, *(places[group] for group in layout.inner)]
    return linearize(b, coordinates, layout.physical_shape(at.shape))


def load(b: KernelBuilder, binding: Value, value: Value, at: Index) -> Value:
    """Loads an element of a tensor value from a binding, by a wide load if its place among four neighbours is known."""
    position, dtype = stored_at(b, value, at), element_of(value)
    if not b.machine.wide_loads or dtype == "i1" or prod(stored_shape(value)) % VECTOR != 0:
        return b.load(binding, position, dtype)
    place = aligned(b, position, VECTOR)
    return b.load(binding, position, dtype) if place is None else b.load_vector(binding, place[0], dtype)[place[1]]


def store(b: KernelBuilder, values: Sequence[Value], binding: Value, positions: Sequence[Value]) -> None:
    """Writes elements at positions in memory, four at once if they are known to be one group of four neighbours."""
    for first in range(0, len(values), VECTOR):
        group, where = values[first : first + VECTOR], positions[first : first + VECTOR]
        number = _vector_of(b, group, where)
        if number is not None:
            b.store_vector(group, binding, number)
            continue
        for value, position in zip(group, where, strict=True):
            b.store(value, binding, position)


def _vector_of(b: KernelBuilder, values: Sequence[Value], positions: Sequence[Value]) -> Value | None:
    """The number of the group of four neighbours that these elements are; None if that is not known."""
    if not b.machine.wide_loads or len(values) != VECTOR or b.dtype(values[0]) == "i1":
        return None
    return group_of(b, positions, VECTOR)


def set_encoding(b: KernelBuilder, op: SetEncoding, result: int, at: Index) -> Requests:
    """The element at a place in memory; zero in the padding, where another element is read and ignored."""
    layout, shape = layout_of(tensor_of(op.output)), shape_of(op.source)
    assert layout is not None
    coordinates = [b.index(0)] * len(shape)
    inside = b.const(True, "i1")
    for group, coordinate in enumerate(_along_groups(b, layout, at.coordinates)):
        size, tile = layout.sizes(shape)[group], layout.tiles[group]
        if tile > 1 and size % tile:
            holds = b.op("compare_lt", coordinate, b.index(size))
            coordinate = b.select(holds, coordinate, b.index(0))
            inside = b.op("and", inside, holds)
        axes = layout.axes[group]
        for axis, part in zip(axes, delinearize(b, coordinate, tuple(shape[axis] for axis in axes)), strict=True):
            coordinates[axis] = part
    element = yield op.source, at.at(shape, coordinates)
    return b.select(inside, element, b.bits(0, element_of(op.source)))


def _along_groups(b: KernelBuilder, layout: Layout, coordinates: Sequence[Value]) -> list[Value]:
    """The coordinate along each group, given coordinates in memory."""
    count = len(layout.axes)
    places = dict(zip(layout.inner, coordinates[count:], strict=True))
    zero = b.index(0)
    return [
        b.place(number, tile, places.get(group, zero))
        for group, (number, tile) in enumerate(zip(coordinates[:count], layout.tiles, strict=True))
    ]


def unset_encoding(b: KernelBuilder, op: UnsetEncoding, result: int, at: Index) -> Requests:
    """The element at its position in the encoded tensor."""
    return (yield op.source, at)


#: op name -> its rule
ENCODINGS: dict[str, Rule] = {SetEncoding.name: set_encoding, UnsetEncoding.name: unset_encoding}
