"""Rules: how one element of the result of an op is computed from elements of its operands, a row per StableHLO op.

A rule is a generator `(builder, op, result ordinal, index) -> scalar`. It yields `(value, index)` for an element of an
operand and is sent the scalar. Elementwise ops need no code, since their names are those of the scalar table. Instead
of an element that may not exist, another one is read and ignored. The rules of `reduce` and `dot_general` are in
`reductions.py`.
"""

from collections.abc import Callable, Generator, Sequence
from typing import Any

from orchestrion.compiler.flow.structure import PLACING, parallel, reads_in_order, reduction, structure_of
from orchestrion.compiler.ir import dims
from orchestrion.compiler.ir.core import Operation, Value
from orchestrion.compiler.ir.dims import Shape, is_dynamic, is_less
from orchestrion.compiler.kernel.code import size_arithmetic
from orchestrion.compiler.kernel.code.builder import KernelBuilder
from orchestrion.compiler.stablehlo.ops import elementwise as elementwise_ops
from orchestrion.compiler.stablehlo.ops import structural as ops
from orchestrion.compiler.stablehlo.ops.base import tensor_of
from orchestrion.compiler.stablehlo.ops.flow_ops import Size

from .index import Index

#: type of a rule in progress: yields requests, is sent scalars, returns a scalar
Requests = Generator[tuple[Value, Index], Value, Value]
Rule = Callable[[KernelBuilder, Any, int, Index], Requests]

#: most bytes of a constant, other than a splat, that is written into the code
INLINE_CONSTANT_BYTES = 64
#: greatest number of open regions around a new branch; devices support 64 nested ones
MAX_BRANCH_DEPTH = 32


def shape_of(value: Value) -> Shape:
    """The shape of a tensor value."""
    return tensor_of(value).shape


def element_of(value: Value) -> str:
    """The name of the element type of a tensor value."""
    return str(tensor_of(value).element)


def may_be_empty(shape: Shape) -> bool:
    """Whether a tensor of that shape may have no elements."""
    return any(is_dynamic(size) and not is_less(0, size) for size in shape)


def scalar_index(b: KernelBuilder) -> Index:
    """The only place in a tensor of rank 0."""
    return Index(b, (), ())


# Elementwise


def elementwise(b: KernelBuilder, op: elementwise_ops.Elementwise, result: int, at: Index) -> Requests:
    """The scalar op on the elements at the same place. An operand of rank 0 has one element for all places."""
    values = []
    for operand in op.operands:
        values.append((yield operand, at if shape_of(operand) else scalar_index(b)))
    return b.op(op.scalar.name, *values, to=element_of(op.results[0]))


# Data that is made


def constant(b: KernelBuilder, op: ops.Constant, result: int, at: Index) -> Requests:
    """A splat, or a selection among few elements by bisection of the position."""
    yield from ()
    size, dtype, data = op.value.itemsize, element_of(op.out), bytes(op.value.data)
    elements = [b.bits(int.from_bytes(data[i : i + size], "little"), dtype) for i in range(0, len(data), size)]
    return elements[0] if len(elements) == 1 else _choose(b, elements, 0, at.linear)


def _choose(b: KernelBuilder, elements: Sequence[Value], first: int, position: Value) -> Value:
    if len(elements) == 1:
        return elements[0]
    middle = len(elements) // 2
    low = _choose(b, elements[:middle], first, position)
    high = _choose(b, elements[middle:], first + middle, position)
    return b.select(b.op("compare_lt", position, b.index(first + middle)), low, high)


def size(b: KernelBuilder, op: Size, result: int, at: Index) -> Requests:
    """A size as a scalar."""
    yield from ()
    return b.op("convert", b.index(op.size), to=element_of(op.out))


def iota(b: KernelBuilder, op: ops.Iota, result: int, at: Index) -> Requests:
    """The coordinate along an axis, as a scalar."""
    yield from ()
    return b.op("convert", at.coordinates[op.iota_dimension.value], to=element_of(op.out))


# Place: an element of the operand at another index


def placed(b: KernelBuilder, op: Operation, result: int, at: Index) -> Requests:
    """The element that the index map of the op names."""
    (operand,), (read,) = op.operands, structure_of(op).reads
    if reads_in_order(op, 0):
        return (yield operand, at.reshaped(shape_of(operand)))
    assert read.coordinates is not None
    return (yield operand, at.at(shape_of(operand), mapped(b, read.coordinates, at.coordinates)))


def mapped(
    b: KernelBuilder, coordinates: Sequence[dims.Size], points: Sequence[Value], reduced: Sequence[Value] = ()
) -> list[Value]:
    """The coordinates of an index map, given those of the parallel dimensions and of the reduction dimensions."""
    values = dict(zip(map(parallel, range(len(points))), points, strict=True))
    values.update(zip(map(reduction, range(len(reduced))), reduced, strict=True))
    return [size_arithmetic.emit(b, coordinate, values) for coordinate in coordinates]


def pad(b: KernelBuilder, op: ops.Pad, result: int, at: Index) -> Requests:
    """The element of the operand, or the padding value."""
    operand, shape = op.operand_, shape_of(op.operand_)
    low, interior = op.edge_padding_low.sizes, op.interior_padding.sizes
    padding = yield op.padding_value, scalar_index(b)
    if 0 in shape:
        return padding
    inside = b.const(True, "i1")
    coordinates = []
    for axis, size in enumerate(shape):
        coordinate, holds = unpadded(b, at.coordinates[axis], at.shape[axis], size, low[axis], interior[axis] + 1)
        coordinates.append(b.select(holds, coordinate, b.index(0)))
        inside = b.op("and", inside, holds)
    if not may_be_empty(shape):
        return b.select(inside, (yield operand, at.at(shape, coordinates)), padding)
    branch = b.begin_if(inside)
    b.begin_else(branch, [(yield operand, at.at(shape, coordinates))])
    return b.end_if(branch, [padding])[0]


def unpadded(
    b: KernelBuilder, padded: Value, count: dims.Size, size: dims.Size, low: dims.Size, step: dims.Size
) -> tuple[Value, Value]:
    """The coordinate of the operand for a padded one, and whether it exists. Differences may wrap, hence the first
    check. A difference that wraps is no coordinate, so vectors of lanes need only the last check.
    """
    holds = b.const(True, "i1")
    coordinate = padded
    if b.machine.lanes and not is_dynamic(low, step, size) and step == 1 and low > 0:
        coordinate = b.op("subtract", padded, b.index(low))
        return coordinate, b.op("compare_lt", coordinate, b.index(size))
    if is_dynamic(low):
        coordinate = b.op("subtract", padded, b.index(low))
        signed = b.index_type.lstrip("u")
        holds = b.op("compare_ge", b.op("bitcast", coordinate, to=signed), b.const(0, signed))
    elif low > 0:
        holds = b.op("compare_ge", padded, b.index(low))
        coordinate = b.op("subtract", padded, b.index(low))
    elif low < 0:
        coordinate = b.op("add", padded, b.index(-low))
    if is_dynamic(step) or step > 1:
        rest = b.op("unchecked_remainder", coordinate, b.index(step))
        holds = b.op("and", holds, b.op("compare_eq", rest, b.index(0)))
        coordinate = b.op("unchecked_divide", coordinate, b.index(step))
    if not is_less((count - 1 - low) // step, size):
        holds = b.op("and", holds, b.op("compare_lt", coordinate, b.index(size)))
    return coordinate, holds


def concatenate(b: KernelBuilder, op: ops.Concatenate, result: int, at: Index) -> Requests:
    """The element of the operand that holds the coordinate."""
    axis = op.dimension.value
    parts = []
    start: dims.Size = 0
    for operand in op.inputs:
        if shape_of(operand)[axis] != 0:
            parts.append((operand, start))
            start += shape_of(operand)[axis]
    return (yield from _part(b, parts, axis, at))


def _part(b: KernelBuilder, parts: Sequence[tuple[Value, dims.Size]], axis: int, at: Index) -> Requests:
    """The element of the operand that holds the coordinate, found by bisection. Each operand comes with its start.

    Inside many open regions both halves are computed, at clamped coordinates, and one is selected.
    """
    if len(parts) == 1:
        operand, start = parts[0]
        coordinates = list(at.coordinates)
        coordinates[axis] = b.op("subtract", coordinates[axis], b.index(start))
        return (yield operand, at.at(shape_of(operand), coordinates))
    middle = len(parts) // 2
    first, position = parts[middle][1], at.coordinates[axis]
    below = b.op("compare_lt", position, b.index(first))
    if (known := b.known(below)) is not None:
        return (yield from _part(b, parts[:middle] if known else parts[middle:], axis, at))
    if b.depth >= MAX_BRANCH_DEPTH and not any(may_be_empty(shape_of(operand)) for operand, _ in parts):
        low = yield from _part(b, parts[:middle], axis, _moved(b, at, axis, "minimum", first - 1))
        high = yield from _part(b, parts[middle:], axis, _moved(b, at, axis, "maximum", first))
        return b.select(below, low, high)
    branch = b.begin_if(below)
    low = yield from _part(b, parts[:middle], axis, at)
    b.begin_else(branch, [low])
    high = yield from _part(b, parts[middle:], axis, at)
    return b.end_if(branch, [high])[0]


def _moved(b: KernelBuilder, at: Index, axis: int, op: str, bound: dims.Size) -> Index:
    coordinates = list(at.coordinates)
    coordinates[axis] = b.op(op, coordinates[axis], b.index(bound))
    return at.at(at.shape, coordinates)


#: op name -> its rule
RULES: dict[str, Rule] = {
    **dict.fromkeys(elementwise_ops.OPS, elementwise),
    ops.Constant.name: constant,
    ops.Iota.name: iota,
    Size.name: size,
    **dict.fromkeys((op.name for op in PLACING), placed),
    ops.Pad.name: pad,
    ops.Concatenate.name: concatenate,
}
