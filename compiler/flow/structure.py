"""The structure of ops: an iteration domain and index maps, stated once for each op that becomes kernel code.

An op computes a result for each point of its parallel dimensions, which are the axes of the result. An op that combines
elements also has reduction or window dimensions. An index map gives, for a point of the domain, the coordinates of the
operand's element that is read. Coordinates are expressions over the dimensions, of the same kind as sizes (`ir.dims`);
division and remainder round down. A dimension of extent 1 is the constant 0. An operand has no map if its elements are
found by values that are known at run time only.

Models: the indexing maps and iterator types of MLIR's `linalg` dialect, and the views of tinygrad.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from math import prod
from typing import Any, Final

from orchestrion.compiler.ir.core import Operation, Value
from orchestrion.compiler.ir.dims import (
    Dim,
    Shape,
    Size,
    Symbol,
    bounds,
    dim_max,
    floordiv,
    is_dynamic,
    mod,
    substitute,
    symbols_of,
    typical,
)
from orchestrion.compiler.stablehlo.ops import structural as ops
from orchestrion.compiler.stablehlo.ops.base import StablehloOp, tensor_of
from orchestrion.compiler.stablehlo.ops.contraction import DotDimensions, DotGeneral, Reduce
from orchestrion.compiler.stablehlo.ops.elementwise import Elementwise
from orchestrion.compiler.stablehlo.ops.flow_ops import LineFft, RowSolve
from orchestrion.compiler.stablehlo.ops.indexing import DynamicSlice, DynamicUpdateSlice, Gather

from .dialect import SetEncoding, UnsetEncoding, Windows
from .merge import Merge
from .scatter import Scatter

#: coordinates of an element, an expression per axis
Coordinates = Shape
#: for each axis of a tensor the axes of another tensor that it stands for, in row-major order
Axes = list[tuple[int, ...]]

#: entries of the caches of structures and maps; the ops of a program are alike
_REMEMBERED: Final = 4096


@dataclass(frozen=True, slots=True)
class Read:
    """The elements of an operand that a point of the parallel dimensions reads.

    `coordinates`: of the element; None if data decide. `partial`: only points whose coordinates are inside the operand
    read it. `times`: average number of elements per point. `once`: one element, read in front of all loops for all
    points.
    """

    coordinates: Coordinates | None
    partial: bool = False
    times: float = 1
    once: bool = False


@dataclass(frozen=True, slots=True)
class Structure:
    """The iteration domain of an op, as extents of parallel and of reduction dimensions, and one `Read` per operand."""

    parallel: Shape
    reduction: Shape
    reads: tuple[Read, ...]


SCALAR: Final = Read(())
START: Final = Read((), once=True)
OPAQUE: Final = Read(None)


@cache
def parallel(number: int) -> str:
    """Name of a parallel dimension. No symbol of a program has such a name."""
    return f"${number}"


@cache
def reduction(number: int) -> str:
    """Name of a reduction or window dimension."""
    return f"$r{number}"


def dimension(name: str, extent: Size) -> Size:
    """A dimension of that extent as an expression; 0 if the extent is 1."""
    return 0 if extent == 1 else Dim(((1, (Symbol(name, 0, max(bounds(extent)[1] - 1, 0)),)),))


@lru_cache(_REMEMBERED)
def identity(shape: Shape) -> Coordinates:
    """The coordinates of a result element, in terms of the parallel dimensions."""
    return tuple(dimension(parallel(axis), size) for axis, size in enumerate(shape))


@lru_cache(_REMEMBERED)
def linear(coordinates: Coordinates, shape: Shape) -> Size:
    """The row-major position of an element."""
    position: Size = 0
    stride: Size = 1
    for coordinate, size in zip(reversed(coordinates), reversed(shape), strict=True):
        position += coordinate * stride
        stride *= size
    return position


def delinearized(position: Size, shape: Shape) -> Coordinates:
    """The coordinates of a row-major position. The outermost axis needs no remainder.

    A shape with an axis of size 0 has no positions, so the divisors are 1 or more.
    """
    found: list[Size] = []
    outermost = next((axis for axis, size in enumerate(shape) if size != 1), None)
    for axis in reversed(range(len(shape))):
        size = shape[axis] if bounds(shape[axis])[0] > 0 else dim_max(shape[axis], 1)
        found.append(0 if size == 1 else position if axis == outermost else mod(position, size))
        position = position if size == 1 or axis == outermost else floordiv(position, size)
    return tuple(reversed(found))


def composed(outer: Coordinates, inner: Coordinates) -> Coordinates:
    """The coordinates `inner` with `outer` in place of the parallel dimensions."""
    values = {parallel(number): coordinate for number, coordinate in enumerate(outer)}
    return tuple(substitute(coordinate, values) for coordinate in inner)


# maps, of plain data


@lru_cache(_REMEMBERED)
def _reshaped(shape: Shape, out: Shape) -> Read:
    if [size for size in shape if size != 1] == [size for size in out if size != 1]:  # no arithmetic
        rest = iter([point for point, size in zip(identity(out), out, strict=True) if size != 1])
        return Read(tuple(0 if size == 1 else next(rest) for size in shape))
    points = identity(out)
    if not is_dynamic(*out):
        return Read(delinearized(linear(points, out), shape))
    groups = aligned(shape, out)
    return Read(tuple(one for own, new in groups for one in delinearized(linear(points[new], out[new]), shape[own])))


def aligned(shape: Shape, out: Shape) -> list[tuple[slice, slice]]:
    """Groups of neighbouring axes of two shapes with equally many elements in all, as short as can be: a group has as
    many elements in both. A reshape keeps the positions in each group.
    """
    groups, (first, start), (i, j) = list[tuple[slice, slice]](), (0, 0), (0, 0)
    while i < len(shape) or j < len(out):
        left, right = prod(shape[first:i]), prod(out[start:j])
        if j == len(out) or (i < len(shape) and typical(left) <= typical(right)):
            i += 1
        else:
            j += 1
        if prod(shape[first:i]) == prod(out[start:j]):
            groups.append((slice(first, i), slice(start, j)))
            first, start = i, j
    if groups and (first, start) != (i, j):  # axes of one place
        own, new = groups.pop()
        groups.append((slice(own.start, i), slice(new.start, j)))
    return groups or [(slice(0, i), slice(0, j))]


@lru_cache(_REMEMBERED)
def _sliced(out: Shape, starts: Shape, strides: Shape) -> Read:
    points = identity(out)
    return Read(tuple(p * stride + start for p, start, stride in zip(points, starts, strides, strict=True)))


@lru_cache(_REMEMBERED)
def _reversed(out: Shape, dims: tuple[int, ...]) -> Read:
    return Read(tuple(out[axis] - 1 - p if axis in dims else p for axis, p in enumerate(identity(out))))


@lru_cache(_REMEMBERED)
def _padded(shape: Shape, out: Shape, low: Shape, interior: Shape) -> Read:
    found = [floordiv(p - x, step + 1) for p, x, step in zip(identity(out), low, interior, strict=True)]
    return Read(tuple(found), True, _share(shape, out))


@lru_cache(_REMEMBERED)
def _windows(rank: int, out: Shape, axes: tuple[int, ...], strides: Shape, dilations: Shape) -> Read:
    points = identity(out)
    found = list(points[:rank])
    for number, (axis, stride, dilation) in enumerate(zip(axes, strides, dilations, strict=True)):
        # a step that is never taken may be larger than any index
        found[axis] = found[axis] * (stride if out[axis] not in (0, 1) else 0) + points[rank + number] * dilation
    return Read(tuple(found))


@lru_cache(_REMEMBERED)
def _part(shape: Shape, out: Shape, axis: int, start: Size) -> Read:
    points = list(identity(out))
    points[axis] = points[axis] - start
    return Read(tuple(points), True, _share(shape, out))


def _share(shape: Shape, out: Shape) -> float:
    """Average number of elements of an operand per point, if each point reads one of several operands."""
    return typical(prod(shape)) / max(typical(prod(out)), 1)


@lru_cache(_REMEMBERED)
def _reduced(shape: Shape, gone: tuple[int, ...]) -> Structure:
    kept = [axis for axis in range(len(shape)) if axis not in gone]
    found: list[Size] = [0] * len(shape)
    for number, axis in enumerate(kept):
        found[axis] = dimension(parallel(number), shape[axis])
    for number, axis in enumerate(sorted(gone)):
        found[axis] = dimension(reduction(number), shape[axis])
    extents = tuple(shape[axis] for axis in kept), tuple(shape[axis] for axis in sorted(gone))
    return Structure(*extents, (Read(tuple(found), times=max(typical(prod(extents[1])), 1)),))


@lru_cache(_REMEMBERED)
def _contracted(left: Shape, right: Shape, dims: DotDimensions) -> Structure:
    free = dims.free(len(left), True), dims.free(len(right), False)
    batch, contract = (dims.lhs_batch, dims.rhs_batch), (dims.lhs_contract, dims.rhs_contract)
    out = tuple(left[axis] for axis in (*batch[0], *free[0])) + tuple(right[axis] for axis in free[1])
    points = identity(out)
    reads = []
    for side, shape in enumerate((left, right)):
        found: list[Size] = [0] * len(shape)
        first = len(batch[0]) + (len(free[0]) if side else 0)
        for number, axis in enumerate(batch[side]):
            found[axis] = points[number]
        for number, axis in enumerate(free[side]):
            found[axis] = points[first + number]
        for number, axis in enumerate(contract[side]):
            found[axis] = dimension(reduction(number), shape[axis])
        reads.append(Read(tuple(found), times=max(typical(prod(left[axis] for axis in contract[0])), 1)))
    return Structure(out, tuple(left[axis] for axis in contract[0]), tuple(reads))


# structures, a row per op


def _elementwise(op: Elementwise) -> Structure:
    out = _shape(op.results[0])
    return Structure(out, (), tuple(Read(identity(out)) if _shape(value) else SCALAR for value in op.operands))


def _unary(read: Callable[[Any], Read]) -> Callable[[Any], Structure]:
    return lambda op: Structure(_shape(op.results[0]), (), (read(op),))


def _broadcast(op: ops.BroadcastInDim) -> Read:
    points, pairs = identity(_shape(op.out)), zip(_shape(op.operand_), op.broadcast_dimensions.ints, strict=True)
    return Read(tuple(0 if size == 1 else points[dim] for size, dim in pairs))


def _transposed(op: ops.Transpose) -> Read:
    pairs = zip(op.permutation.ints, identity(_shape(op.out)), strict=True)
    return Read(tuple(point for _, point in sorted(pairs, key=lambda pair: pair[0])))


def _concatenate(op: ops.Concatenate) -> Structure:
    out, axis, reads = _shape(op.results[0]), op.dimension.value, []
    start: Size = 0
    for value in op.inputs:
        reads.append(_part(_shape(value), out, axis, start))
        start += _shape(value)[axis]
    return Structure(out, (), tuple(reads))


def _pad(op: ops.Pad) -> Structure:
    shape, out = _shape(op.operand_), _shape(op.out)
    read = _padded(shape, out, op.edge_padding_low.sizes, op.interior_padding.sizes)
    return Structure(out, (), (read, Read((), True, _share((), out))))


def _dynamic(op: DynamicSlice | DynamicUpdateSlice) -> Structure:
    out, window = _shape(op.out), [OPAQUE]
    if isinstance(op, DynamicUpdateSlice):
        window = [Read(identity(out), True), Read(None, True, _share(op.window, out))]
    return Structure(out, (), (*window, *[START] * len(op.start_indices)))


def _reduce(op: Reduce) -> Structure:
    found = _reduced(_shape(op.inputs[0]), op.dimensions.ints)
    return Structure(found.parallel, found.reduction, found.reads * len(op.inputs) + (SCALAR,) * len(op.init_values))


def _merge(op: Merge) -> Structure:
    """Each element of a merge step is found by bisection."""
    shape = _shape(op.inputs[0])
    read = Read(None, times=max(int(shape[op.axis]).bit_length(), 1))
    return Structure(shape, (), (read,) * len(op.operands))


def _whole(op: LineFft | RowSolve) -> Structure:
    """The points together read each operand as a whole."""
    out = _shape(op.out)
    count = max(typical(prod(out)), 1)
    return Structure(out, (), tuple(Read(None, times=typical(prod(_shape(v))) / count) for v in op.operands))


def _scatter(op: Scatter) -> Structure:
    """A point is an element of an update, which it reads. Finding the updates of a row reads many indices."""
    updates, first = _shape(op.updates[0]), len(op.inputs)
    search = Read(None, times=typical(prod(_shape(op.indices))))
    return Structure(updates, (), (search,) * (first + 1) + (Read(identity(updates)),) * len(op.updates))


def _opaque(op: Operation) -> Structure:
    return Structure(_shape(op.results[0]) if op.results else (), (), (OPAQUE,) * len(op.operands))


def _shape(value: Value) -> Shape:
    return tensor_of(value).shape


#: op -> its structure. The operands of any other op are read as data decide; a generator has none
STRUCTURES: Final[dict[type[Operation], Callable[[Any], Structure]]] = {
    ops.BroadcastInDim: _unary(_broadcast),
    ops.Reshape: _unary(lambda op: _reshaped(_shape(op.operand_), _shape(op.out))),
    ops.Transpose: _unary(_transposed),
    ops.Slice: _unary(lambda op: _sliced(_shape(op.out), op.start_indices.sizes, op.strides.sizes)),
    ops.Reverse: _unary(lambda op: _reversed(_shape(op.out), op.dimensions.ints)),
    Windows: _unary(
        lambda op: _windows(
            len(_shape(op.operand_)), _shape(op.out), op.axes.ints, op.strides.sizes, op.dilations.sizes
        )
    ),
    UnsetEncoding: _unary(lambda op: Read(identity(_shape(op.output)))),
    ops.Concatenate: _concatenate,
    ops.Pad: _pad,
    DynamicSlice: _dynamic,
    DynamicUpdateSlice: _dynamic,
    Gather: lambda op: Structure(_shape(op.out), (), (OPAQUE, Read(None, times=max(len(op.axes.start_index_map), 1)))),
    Scatter: _scatter,
    Merge: _merge,
    LineFft: _whole,
    RowSolve: _whole,
    Reduce: _reduce,
    DotGeneral: lambda op: _contracted(_shape(op.lhs), _shape(op.rhs), op.dimensions),
}


def structure_of(op: Operation) -> Structure:
    """The iteration domain of an op and its index maps."""
    if isinstance(op, Elementwise):
        return _elementwise(op)
    return STRUCTURES.get(type(op), _opaque)(op)


# questions about maps


@lru_cache(_REMEMBERED)
def _is_in_order(coordinates: Coordinates, shape: Shape, out: Shape) -> bool:
    return prod(shape) == prod(out) and linear(coordinates, shape) == linear(identity(out), out)


def reads_in_order(op: Operation, index: int) -> bool:
    """Whether result element i reads element i of an operand, in row-major order, of equally many elements."""
    if isinstance(op, ops.Reshape):  # by definition; division of dynamic sizes would hide it
        return True
    structure = structure_of(op)
    read, shape = structure.reads[index], _shape(op.operands[index])
    if read.coordinates is None or read.partial or read.once:
        return False
    if shape == structure.parallel and read.coordinates is identity(shape):
        return True
    return _is_in_order(read.coordinates, shape, structure.parallel)


def keeps_order(op: Operation) -> bool:
    """Whether an op only places the elements of its operand and keeps their row-major order."""
    return isinstance(op, PLACING) and reads_in_order(op, 0)


def stays_in_row(op: Operation, index: int, rows: Size) -> bool:
    """Whether each result element in row r reads elements of an operand in row r only.

    With `rows` rows, row r of a value of rows * k elements has the elements r * k to r * k + k - 1.
    """
    if reads_in_order(op, index):
        return True
    structure = structure_of(op)
    read, shape = structure.reads[index], _shape(op.operands[index])
    first, last = row_axes(shape, rows), row_axes(structure.parallel, rows)
    if read.coordinates is None or read.partial or first is None or last is None:
        return False
    number = linear(read.coordinates[:first], shape[:first])
    return number == linear(identity(structure.parallel)[:last], structure.parallel[:last])


def row_axes(shape: Shape, rows: Size) -> int | None:
    """Number of leading axes whose sizes have the product `rows`; None if there is no such number."""
    size: Size = 1
    for axis, length in enumerate(shape):
        if size == rows:
            return axis
        size *= length
    return len(shape) if size == rows else None


def memory_reads(value: Value) -> list[tuple[Value, Coordinates | None]]:
    """The loaded values, or reshaped ones, that an element of `value` reads through elementwise ops and ops that move
    elements.

    Each comes with the coordinates of its element in terms of the coordinates of `value`, once. None if an element is
    computed by other ops, or if data decide what is read. Constants are not loaded.
    """
    found: list[tuple[Value, Coordinates | None]] = []
    stack: list[tuple[Value, Coordinates]] = [(value, identity(_shape(value)))]
    visited: set[tuple[Value, Coordinates]] = set()
    while stack:
        one, at = stack.pop()
        if (one, at) in visited:
            continue
        visited.add((one, at))
        op = one.defining_op
        if _is_loaded(one) or isinstance(op, ops.Reshape) and _is_loaded(op.operand_):  # with the same places in memory
            found.append((one, at))
        elif not isinstance(op, (Elementwise, *PLACING)):
            found += [] if isinstance(op, ops.Constant) and op.value.is_splat else [(one, None)]
        else:
            reads = structure_of(op).reads
            for operand, read in reversed([pair for pair in zip(op.operands, reads, strict=True) if _shape(pair[0])]):
                assert read.coordinates is not None
                stack.append((operand, composed(at, read.coordinates)))
    return found


def _is_loaded(value: Value) -> bool:
    op = value.defining_op
    return op is None or not isinstance(op, StablehloOp | SetEncoding)


def stride(position: Size, axis: int) -> Size | None:
    """Change of a position per step along an axis; None if it depends on where the step begins."""
    name = parallel(axis)
    total: Size = 0
    for count, factors in position.terms if isinstance(position, Dim) else ():
        steps = [atom for atom in factors if isinstance(atom, Symbol) and atom.name == name]
        others = tuple(atom for atom in factors if atom not in steps)
        rest = Dim(((count, others),)) if others else count
        if len(steps) > 1 or name in [symbol.name for symbol in symbols_of(rest)]:
            return None
        total += rest if steps else 0
    return total


def is_one_axis(value: Value, first: int, second: int) -> bool:
    """Whether a step along the first of two axes is as far as all steps along the second, in every loaded value."""
    extent = _shape(value)[second]
    for read, coordinates in memory_reads(value):
        if coordinates is None:
            return False
        position = linear(coordinates, _shape(read))
        outer, inner = stride(position, first), stride(position, second)
        if outer is None or inner is None or outer != inner * extent:
            return False
    return True


def fastest_axis(value: Value) -> int | None:
    """The axis along which neighbours are adjacent in the first loaded value; None if there is no such axis. The last
    axis if nothing is known.
    """
    reads = [(read, at) for read, at in memory_reads(value) if at is not None]
    wide = [axis for axis, size in enumerate(_shape(value)) if size != 1]
    if not reads:
        return wide[-1] if wide else None
    read, coordinates = reads[0]
    position = linear(coordinates, _shape(read))
    return next((axis for axis in wide if stride(position, axis) == 1), None)


def axes_in_memory(value: Value, source: Value) -> Axes | None:
    """For each axis of a value the group of axes of `source` that it stands for; None if an axis stands for no group.

    `value` must depend on `source` through ops of one operand.
    """
    extents = _shape(value)
    at = identity(extents)
    while value is not source:
        op = value.defining_op
        assert op is not None
        read = structure_of(op).reads[0]
        if read.coordinates is None or read.partial or len(op.operands) != 1:
            return None
        at, value = composed(at, read.coordinates), op.operands[0]
    return _groups(at, _shape(value), extents)


def joined(axes: Axes, group: Sequence[int]) -> tuple[int, ...]:
    """The axes of the source that a group of axes stands for."""
    return tuple(axis for member in group for axis in axes[member])


def _groups(at: Coordinates, shape: Shape, extents: Shape) -> Axes | None:
    """For each axis with these extents, the axes of a source of that shape whose coordinates `at` it determines."""
    found: list[list[int]] = [[] for _ in extents]
    ones = []
    for axis, coordinate in enumerate(at):
        if shape[axis] == 1:
            ones.append(axis)
            continue
        names = {symbol.name for symbol in symbols_of(coordinate)}
        numbers = [number for number in range(len(extents)) if parallel(number) in names]
        if len(numbers) != 1:
            return None
        found[numbers[0]].append(axis)
    for number, group in enumerate(found):
        sizes = tuple(shape[axis] for axis in group)
        expected = delinearized(dimension(parallel(number), extents[number]), sizes)
        if tuple(at[axis] for axis in group) != expected or prod(sizes) != extents[number]:
            return None
    for axis in ones:  # to an axis that stands for none yet, else to the last
        if not found:
            return None
        next((group for group in found if not group), found[-1]).append(axis)
    return [tuple(group) for group in found]


#: ops that only place the elements of their first operand
PLACING: Final = (ops.BroadcastInDim, ops.Reshape, ops.Transpose, ops.Slice, ops.Reverse, Windows)
