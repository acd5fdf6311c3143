"""The NumPy implementation of each op: the definition that every other device is compared with.

A kernel takes the operands, then one array per result, which it fills. Results are contiguous and do not overlap
operands. Elementwise ops use the meanings of `schema.scalars`; ops that NumPy implements as a view are in `views.py`.
"""

from collections.abc import Callable, Iterator, Sequence
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from orchestrion.schema.dtypes import FLOAT, DType
from orchestrion.schema.library_call import Attributes
from orchestrion.schema.scalar_meanings import Widened
from orchestrion.schema.tensor_bytecode import Body, Code, Instruction
from orchestrion.schema.tensor_shapes import GatherAxes, Ints, TensorType, Types

Array = npt.NDArray[Any]
Kernel = Callable[..., Any]
Poll = Callable[[], None]
#: maps the start indices of a window to slices of its operand
WindowSlices = Callable[[Sequence[Array]], tuple[slice, ...]]

#: multiplications between two calls of `poll`, for floats (computed by BLAS) and for other types (by NumPy's loops)
FLOAT_PIECE, INTEGER_PIECE = 1 << 31, 1 << 27
#: elements per piece of a scalar op that takes several NumPy calls, which bounds its temporaries
PIECE = 1 << 16


def kernel_of(code: Code, instruction: Instruction, poll: Poll) -> Kernel:
    """Returns the function that computes an instruction. Kernels that take very long call `poll` between pieces."""
    if instruction.row.scalar is not None:
        kernel, shape = _scalar_kernel(code, instruction), instruction.types[0].shape
        whole = prod(shape) <= PIECE or isinstance(kernel, np.ufunc | Widened)
        return kernel if whole else _in_pieces(kernel, shape, poll)
    operands = [code.values[operand] for operand in instruction.operands]
    return KERNELS[instruction.row.name](poll, operands, instruction.types, *instruction.attributes)


def _scalar_kernel(code: Code, instruction: Instruction) -> Kernel:
    scalar = instruction.row.scalar
    assert scalar is not None
    return scalar.meaning(code.values[instruction.operands[-1]].dtype.kind)


def _in_pieces(kernel: Kernel, shape: Ints, poll: Poll) -> Kernel:
    """An elementwise kernel that computes a few rows at a time."""
    axis = next(axis for axis in range(len(shape)) if prod(shape[axis + 1 :]) <= PIECE)
    step = max(1, PIECE // prod(shape[axis + 1 :]))

    def run(*arrays: Array) -> None:
        for outer in np.ndindex(shape[:axis]):
            for start in range(0, shape[axis], step):
                piece = (*outer, slice(start, start + step))
                kernel(*[x[piece] for x in arrays])
                poll()

    return run


def constant_array(type: TensorType, data: bytes) -> Array:
    """The elements of a constant, as a read-only array."""
    return np.frombuffer(data, type.dtype.numpy).reshape(type.shape)


def iota(_: Poll, operands: Types, results: Types, type: TensorType, axis: int) -> Kernel:
    along = tuple(-1 if position == axis else 1 for position in range(type.rank))

    def run(out: Array) -> None:
        np.copyto(out, np.arange(type.shape[axis]).reshape(along), casting="unsafe")

    return run


def number(_: Poll, operands: Types, results: Types, type: TensorType, numbers: Ints) -> Kernel:
    value = np.array(numbers[0], np.int64).astype(type.dtype.numpy)

    def run(out: Array) -> None:
        out[...] = value

    return run


def pad(_: Poll, operands: Types, results: Types, low: Ints, high: Ints, interior: Ints) -> Kernel:
    kept, placed = [], []
    for axis, size in enumerate(operands[0].shape):
        step, first = interior[axis] + 1, low[axis]
        begin = max(0, -(first // step))
        end = max(begin, min(size, -(-(results[0].shape[axis] - first) // step)))
        kept.append(slice(begin, end))
        start = first + begin * step
        placed.append(slice(start, start + max(0, (end - begin - 1) * step + 1) if end > begin else start, step))
    source, target = tuple(kept), tuple(placed)

    def run(x: Array, value: Array, out: Array) -> None:
        out[...] = value
        out[target] = x[source]

    return run


def concatenate(_: Poll, operands: Types, results: Types, axis: int) -> Kernel:
    def run(*arrays: Array) -> None:
        np.concatenate(arrays[:-1], axis, arrays[-1])

    return run


def window_at(operand: TensorType, sizes: Ints) -> WindowSlices:
    """Returns a function from the start indices to slices of the operand; starts are clamped so that the window lies
    inside.
    """
    last = tuple(whole - size for whole, size in zip(operand.shape, sizes, strict=True))

    def place(starts: Sequence[Array]) -> tuple[slice, ...]:
        clamped = [min(max(int(start), 0), most) for start, most in zip(starts, last, strict=True)]
        return tuple([slice(start, start + size) for start, size in zip(clamped, sizes, strict=True)])

    return place


def dynamic_slice(_: Poll, operands: Types, results: Types, sizes: Ints) -> Kernel:
    place = window_at(operands[0], sizes)

    def run(x: Array, *starts_and_out: Array) -> None:
        *starts, out = starts_and_out
        out[...] = x[place(starts)]

    return run


def dynamic_update_slice(_: Poll, operands: Types, results: Types) -> Kernel:
    place = window_at(operands[0], operands[1].shape)

    def run(x: Array, update: Array, *starts_and_out: Array) -> None:
        *starts, out = starts_and_out
        out[...] = x
        out[place(starts)] = update

    return run


def gather(_: Poll, operands: Types, results: Types, *attributes: Any) -> Kernel:
    """Gathers with NumPy's indexing: an index array per axis of the operand, each with the result's rank; size 1
    broadcasts.
    """
    (operand, indices), rank = operands, len(results[0].shape)
    axes, sizes = GatherAxes(*attributes[:-1]), attributes[-1]
    batch, kept = axes.batch_dims(rank), axes.kept_dims(operand.rank)
    own = tuple(axis for axis in range(indices.rank) if axis != axes.index_vector_dim)
    order = own if len(own) == indices.rank else (*own, axes.index_vector_dim)
    spread = [1] * rank
    for axis, of in zip(batch, own, strict=True):
        spread[axis] = indices.shape[of]
    whole = {axis: (sizes[axis], to) for axis, to in zip(kept, axes.offset_dims, strict=True)}
    for axis, of in zip(axes.operand_batching_dims, axes.start_indices_batching_dims, strict=True):
        whole[axis] = operand.shape[axis], batch[axes.batch_place(of)]

    def run(x: Array, starts: Array, out: Array) -> None:
        if not out.size:  # the operand may be empty, too
            return
        vectors = starts.transpose(order).reshape(*spread, len(axes.start_index_map))
        # created per run: the index arrays may be large, and a run's memory is charged
        place: list[Any] = [_along(*whole[axis], rank) if axis in whole else 0 for axis in range(operand.rank)]
        for position, axis in enumerate(axes.start_index_map):
            place[axis] = place[axis] + _clamped(vectors[..., position], operand.shape[axis] - sizes[axis])
        out[...] = x[tuple(place)]

    return run


def _along(size: int, axis: int, rank: int) -> Array:
    """0, 1, 2, ... along an axis."""
    return np.arange(size).reshape(tuple(-1 if position == axis else 1 for position in range(rank)))


def _clamped(starts: Array, most: int) -> Array:
    """Integers of any type, clamped to 0 to `most`."""
    return np.clip(starts, 0, min(most, np.iinfo(starts.dtype).max)).astype(np.int64)


def dot_general(
    poll: Poll,
    operands: Types,
    results: Types,
    left_batch: Ints,
    right_batch: Ints,
    left_contract: Ints,
    right_contract: Ints,
    dtype: DType,
) -> Kernel:
    left, right = operands
    left_free = _rest(left.rank, left_batch + left_contract)
    right_free = _rest(right.rank, right_batch + right_contract)
    left_order, right_order = left_batch + left_free + left_contract, right_batch + right_contract + right_free
    batch = tuple(left.shape[axis] for axis in left_batch)
    batches = prod(batch)
    depth = prod(left.shape[axis] for axis in left_contract)
    rows = prod(left.shape[axis] for axis in left_free)
    columns = prod(right.shape[axis] for axis in right_free)
    most = FLOAT_PIECE if dtype.kind == FLOAT else INTEGER_PIECE
    wide = dtype.numpy if dtype.bits >= left.dtype.bits else left.dtype.numpy

    def run(x: Array, y: Array, out: Array) -> None:
        if not out.size:  # NumPy would loop over the batches all the same
            return
        a = _matrix(x.transpose(left_order).reshape(batches, rows, depth), wide)
        b = _matrix(y.transpose(right_order).reshape(batches, depth, columns), wide)
        result = out.reshape(batches, rows, columns)
        for some, part in _pieces(batches, rows, depth * columns, most):
            _product(a[some, part], b[some], result[some, part])
            poll()

    return run


def _pieces(batches: int, rows: int, each: int, most: int) -> Iterator[tuple[slice, slice]]:
    """Slices of batches and rows, each of at most `most` multiplications but at least one row. `each`: multiplications
    of a row.
    """
    together = max(1, most // max(1, rows * each))
    step = rows if together > 1 else max(1, min(rows, most // max(1, each)))
    for first in range(0, batches, together):
        for start in range(0, rows, max(1, step)):
            yield slice(first, first + together), slice(start, start + step)


def _product(a: Array, b: Array, out: Array) -> None:
    """Matrix products in the operands' type. A single batch skips the loop over batches."""
    if len(a) == 1:
        a, b, out = a[0], b[0], out[0]
    if a.dtype == out.dtype:
        np.matmul(a, b, out)
    else:
        np.copyto(out, np.matmul(a, b), casting="unsafe")


def _matrix(x: Array, dtype: np.dtype[Any]) -> Array:
    """The array in this type, with a layout that NumPy passes to BLAS: one of the last two strides is one element."""
    x = x.astype(dtype, copy=False)
    direct = x.flags.aligned and dtype.itemsize in x.strides[-2:] and 0 not in x.strides[-2:]
    return x if direct else np.array(x, order="C")


def reduce(poll: Poll, operands: Types, results: Types, axes: Ints, body: Body) -> Kernel:
    shape, count = operands[0].shape, len(results)
    reduced, kept = tuple(sorted(axes)), _rest(len(shape), axes)
    last = bool(reduced) and reduced[-1] == len(shape) - 1
    order = (*kept, *reduced) if last else (*reduced, *kept)
    depth, lanes = prod(shape[axis] for axis in reduced), prod(shape[axis] for axis in kept)
    matrix = (lanes, depth) if last else (depth, lanes)
    axis = 1 if last else 0
    combine = body_function(body, poll)

    def run(*arrays: Array) -> None:
        initial, outs = arrays[count : 2 * count], arrays[2 * count :]
        starts = [np.broadcast_to(value, (lanes,)) for value in initial]
        if depth == 0:
            totals: Sequence[Array] = starts
        else:
            level = [x.transpose(order).reshape(matrix) for x in arrays[:count]]
            totals = combine(*starts, *(x.reshape(lanes) for x in _tree(level, axis, depth, combine, poll)))
        for out, total in zip(outs, totals, strict=True):
            out.reshape(lanes)[:] = total

    return run


def _tree(level: list[Array], axis: int, depth: int, combine: Kernel, poll: Poll) -> list[Array]:
    """Combine neighbours along the axis until one is left."""

    def at(start: int, stop: int) -> tuple[slice, ...]:
        return (slice(None),) * axis + (slice(start, stop, 2),)

    while depth > 1:
        even = depth - depth % 2
        poll()
        level_up = combine(*(x[at(0, even)] for x in level), *(x[at(1, even)] for x in level))
        if depth % 2:
            level_up = [np.concatenate((x, y[at(even, depth)]), axis) for x, y in zip(level_up, level, strict=True)]
        level, depth = level_up, (depth + 1) // 2
    return level


def body_function(body: Body, poll: Poll) -> Kernel:
    """The body applied to many lanes at once: takes an array per parameter, all of one shape, and returns a list of
    results.
    """
    steps = []
    constants: dict[int, Array] = {}
    for one in body.instructions:
        if one.row.scalar is None:
            constants[one.first] = constant_array(*one.attributes)
        else:
            kernel = _scalar_kernel(body, one)
            single = isinstance(kernel, np.ufunc | Widened)
            steps.append((kernel, single, one.operands, one.first, one.types[0].dtype.numpy))

    def run(*parameters: Array) -> list[Array]:
        shape = parameters[0].shape
        values: dict[int, Array] = dict(enumerate(parameters))
        for ordinal, constant in constants.items():
            values[ordinal] = np.broadcast_to(constant, shape)
        large = prod(shape) > PIECE
        for kernel, single, operands, result, dtype in steps:
            values[result] = out = np.empty(shape, dtype)
            compute = kernel if single or not large else _in_pieces(kernel, shape, poll)
            compute(*[values[operand] for operand in operands], out)
            if large:
                poll()
        return [values[result] for result in body.results]

    return run


def library_call(_: Poll, operands: Types, results: Types, types: Types, function: str, config: Attributes) -> Kernel:
    from .library_call import bind  # imports the registry, which most programs never need

    return bind(operands, results, function, config)


def scatter(poll: Poll, operands: Types, results: Types, body: Body) -> Kernel:
    from .scatter import scatter as rule  # imports this file

    return rule(poll, operands, results, body)


def _rest(rank: int, axes: Ints) -> Ints:
    return tuple(axis for axis in range(rank) if axis not in axes)


KERNELS: dict[str, Callable[..., Kernel]] = {
    "iota": iota,
    "number": number,
    "pad": pad,
    "concatenate": concatenate,
    "dot_general": dot_general,
    "dynamic_slice": dynamic_slice,
    "dynamic_update_slice": dynamic_update_slice,
    "gather": gather,
    "reduce": reduce,
    "scatter": scatter,
    "library_call": library_call,
}
