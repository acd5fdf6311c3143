"""Encoded tensors in kernels: where an element lies in memory, and which element lies at a place.

A coordinate along a group of axes is cut into the number of its tile and its place there. Where it is made as
`number * size + constant`, as the coordinates of a block of results are, both are known without a division.
"""

from collections.abc import Sequence

from orchestrion.compiler.flow.dialect import SetEncoding, UnsetEncoding
from orchestrion.compiler.flow.layout import Layout, layout_of
from orchestrion.compiler.ir.core import Value
from orchestrion.compiler.stablehlo.base import tensor_of

from .builder import KernelBuilder
from .dialect import VECTOR
from .index import Index, Shape, delinearize, linearize
from .rules import Requests, Rule, element_of, shape_of


def stored_shape(value: Value) -> Shape:
    """The dimensions of a tensor value in memory, padding included; as row-major order has them, its shape."""
    layout = layout_of(tensor_of(value))
    return shape_of(value) if layout is None else layout.physical_shape(shape_of(value))


def stored_at(b: KernelBuilder, value: Value, at: Index) -> Value:
    """The position in memory of a tensor value's element."""
    layout = layout_of(tensor_of(value))
    if layout is None:
        return at.linear
    tiles, places = [], []
    for group, tile in zip(layout.axes, layout.tiles, strict=True):
        sizes = tuple(at.shape[axis] for axis in group)
        coordinate = linearize(b, [at.coordinates[axis] for axis in group], sizes)
        number, place = split(b, coordinate, tile)
        tiles.append(number)
        places.append(place)
    coordinates = [*tiles, *(places[group] for group in layout.inner)]
    return linearize(b, coordinates, layout.physical_shape(at.shape))


def load(b: KernelBuilder, binding: Value, value: Value, at: Index, vectors: bool) -> Value:
    """The element of a tensor value in a binding; as one of a vector, where the layout has four neighbours in a row."""
    position, dtype = stored_at(b, value, at), element_of(value)
    layout = layout_of(tensor_of(value))
    in_fours = layout is not None and bool(layout.inner) and layout.tiles[layout.inner[-1]] % VECTOR == 0
    if not vectors or not in_fours or dtype == "i1":
        return b.load(binding, position, dtype)
    number, lane = split(b, position, VECTOR)
    known = b.pattern(lane)
    return b.load(binding, position, dtype) if known is None else b.load_vector(binding, number, dtype)[known]


def split(b: KernelBuilder, coordinate: Value, tile: int) -> tuple[Value, Value]:
    """coordinate / tile and coordinate mod tile."""
    base, offset = coordinate, 0
    op = coordinate.defining_op
    if op is not None and op.name == "kernel.add" and (known := b.pattern(op.operands[1])) is not None:
        base, offset = op.operands[0], known
    number = _quotient(b, base, tile)
    if number is not None:
        return b.op("add", number, b.index(offset // tile)), b.index(offset % tile)
    maker = base.defining_op
    factor = b.pattern(maker.operands[1]) if maker is not None and maker.name == "kernel.multiply" else None
    if maker is None or not factor or tile % factor or offset >= factor:
        return _divided(b, coordinate, tile)
    number, part = _divided(b, maker.operands[0], tile // factor)
    return number, b.op("add", b.op("multiply", part, b.index(factor)), b.index(offset))


def _quotient(b: KernelBuilder, x: Value, divisor: int) -> Value | None:
    """x / divisor where x is seen to be a multiple: a constant, a product with one, or a sum of such."""
    pattern, op = b.pattern(x), x.defining_op
    if pattern is not None:
        return None if pattern % divisor else b.index(pattern // divisor)
    if op is not None and op.name == "kernel.multiply":
        factor = _quotient(b, op.operands[1], divisor) if b.pattern(op.operands[1]) is not None else None
        return None if factor is None else b.op("multiply", op.operands[0], factor)
    if op is not None and op.name == "kernel.add":
        left, right = (_quotient(b, part, divisor) for part in op.operands)
        return None if left is None or right is None else b.op("add", left, right)
    return None


def _divided(b: KernelBuilder, x: Value, divisor: int) -> tuple[Value, Value]:
    by = b.index(divisor)
    return b.op("unchecked_divide", x, by), b.op("unchecked_remainder", x, by)


def set_encoding(b: KernelBuilder, op: SetEncoding, result: int, at: Index) -> Requests:
    """The element at a place in memory, zero in the padding, where another element is read and not used."""
    layout, shape = layout_of(tensor_of(op.output)), shape_of(op.source)
    assert layout is not None
    coordinates = [b.index(0)] * len(shape)
    inside = b.const(True, "i1")
    for group, coordinate in enumerate(_along_groups(b, layout, at.coordinates)):
        size, tile = layout.sizes(shape)[group], layout.tiles[group]
        if size % tile:
            holds = b.op("compare_lt", coordinate, b.index(size))
            coordinate = b.select(holds, coordinate, b.index(0))
            inside = b.op("and", inside, holds)
        axes = layout.axes[group]
        for axis, part in zip(axes, delinearize(b, coordinate, tuple(shape[axis] for axis in axes)), strict=True):
            coordinates[axis] = part
    element = yield op.source, at.at(shape, coordinates)
    return b.select(inside, element, b.bits(0, element_of(op.source)))


def _along_groups(b: KernelBuilder, layout: Layout, coordinates: Sequence[Value]) -> list[Value]:
    """The coordinate along each group, of coordinates in memory."""
    count = len(layout.axes)
    places = dict(zip(layout.inner, coordinates[count:], strict=True))
    zero = b.index(0)
    return [
        b.op("add", b.op("multiply", number, b.index(tile)), places.get(group, zero))
        for group, (number, tile) in enumerate(zip(coordinates[:count], layout.tiles, strict=True))
    ]


def unset_encoding(b: KernelBuilder, op: UnsetEncoding, result: int, at: Index) -> Requests:
    return (yield op.source, at)


#: op name -> its rule
ENCODINGS: dict[str, Rule] = {SetEncoding.name: set_encoding, UnsetEncoding.name: unset_encoding}
