"""Rules of ops that find the elements of their operands at run time, a row per StableHLO op.

Every start that is read from memory is clamped before it is used, so that no index leaves its tensor, whatever the
caller passes.
"""

from collections.abc import Generator, Sequence

import numpy as np

from orchestrion.compiler.ir.core import Value
from orchestrion.compiler.ir.dims import Size, is_dynamic
from orchestrion.compiler.kernel.code.builder import KernelBuilder
from orchestrion.compiler.stablehlo.ops.indexing import DynamicSlice, DynamicUpdateSlice, Gather
from orchestrion.schema.dtypes import BY_NAME, SIGNED

from .index import Index
from .rules import MAX_BRANCH_DEPTH, Requests, Rule, may_be_empty, scalar_index, shape_of

#: a generator that requests the operands of starts and returns the starts
Starts = Generator[tuple[Value, Index], Value, list[Value]]


def clamped(b: KernelBuilder, start: Value, most: Size) -> Value:
    """min(max(start, 0), most) of an integer of any type, in the index type."""
    dtype = BY_NAME[b.dtype(start)]
    if dtype.kind == SIGNED:
        start = b.op("maximum", start, b.const(0, dtype.name))
    if is_dynamic(most):
        return _at_most(b, start, most)
    bound = min(most, int(np.iinfo(dtype.numpy).max))
    return b.index(b.op("minimum", start, b.const(bound, dtype.name)))


def _at_most(b: KernelBuilder, start: Value, most: Size) -> Value:
    """min(start, most) of a non-negative integer, for a dynamic bound."""
    wide = BY_NAME[b.dtype(start)].bits > BY_NAME[b.index_type].bits
    bound = b.index(most)
    if wide:
        start = b.op("minimum", start, b.op("convert", bound, to=b.dtype(start)))
    return b.op("minimum", b.index(start), bound)


def starts_of(b: KernelBuilder, op: DynamicSlice | DynamicUpdateSlice) -> Starts:
    """The clamped start per axis. A start that can only be 0 is not read."""
    starts = []
    for start, whole, size in zip(op.start_indices, shape_of(op.operand_), op.window, strict=True):
        if whole == size:
            starts.append(b.index(0))
        else:
            starts.append(clamped(b, (yield start, scalar_index(b)), whole - size))
    return starts


def dynamic_slice(b: KernelBuilder, op: DynamicSlice, result: int, at: Index) -> Requests:
    """The element of the operand at the start plus the place in the slice."""
    starts = yield from starts_of(b, op)
    operand = op.operand_
    return (yield operand, at.at(shape_of(operand), moved(b, starts, at)))


def moved(b: KernelBuilder, starts: Sequence[Value], at: Index) -> list[Value]:
    """The coordinates, in the containing tensor, of a place in a window."""
    return [b.op("add", start, coordinate) for start, coordinate in zip(starts, at.coordinates, strict=True)]


def dynamic_update_slice(b: KernelBuilder, op: DynamicUpdateSlice, result: int, at: Index) -> Requests:
    """The element of the update inside the window, of the operand outside. Deep inside branches both are computed."""
    starts = yield from starts_of(b, op)
    inside = b.const(True, "i1")
    coordinates = []
    for start, coordinate, size in zip(starts, at.coordinates, op.window, strict=True):
        inner = b.op("subtract", coordinate, start)  # wraps below the start, beyond every size
        inside = b.op("and", inside, b.op("compare_lt", inner, b.index(size)))
        coordinates.append(inner)
    if b.known(inside):
        return (yield op.update, at.at(op.window, coordinates))
    if b.depth >= MAX_BRANCH_DEPTH and not may_be_empty(op.window):
        zero = b.index(0)
        safe = at.at(op.window, [b.select(inside, coordinate, zero) for coordinate in coordinates])
        return b.select(inside, (yield op.update, safe), (yield op.operand_, at))
    branch = b.begin_if(inside)
    b.begin_else(branch, [(yield op.update, at.at(op.window, coordinates))])
    return b.end_if(branch, [(yield op.operand_, at)])[0]


def gather(b: KernelBuilder, op: Gather, result: int, at: Index) -> Requests:
    """The element of the operand at the clamped start plus the place in the slice plus the place in the batch."""
    axes, shape, indices = op.axes, shape_of(op.operand_), shape_of(op.start_indices)
    batch = [at.coordinates[axis] for axis in axes.batch_dims(len(at.shape))]
    coordinates = [b.index(0)] * len(shape)
    for axis, offset in zip(axes.kept_dims(len(shape)), axes.offset_dims, strict=True):
        coordinates[axis] = at.coordinates[offset]
    for axis, of in zip(axes.operand_batching_dims, axes.start_indices_batching_dims, strict=True):
        coordinates[axis] = batch[axes.batch_place(of)]
    for position, axis in enumerate(axes.start_index_map):
        most = shape[axis] - op.slice_sizes.sizes[axis]
        if most != 0:
            place = list(batch)
            if axes.index_vector_dim < len(indices):
                place.insert(axes.index_vector_dim, b.index(position))
            start = clamped(b, (yield op.start_indices, at.at(indices, place)), most)
            coordinates[axis] = b.op("add", coordinates[axis], start)
    return (yield op.operand_, at.at(shape, coordinates))


#: op name -> its rule
INDEXING: dict[str, Rule] = {
    DynamicSlice.name: dynamic_slice,
    DynamicUpdateSlice.name: dynamic_update_slice,
    Gather.name: gather,
}
