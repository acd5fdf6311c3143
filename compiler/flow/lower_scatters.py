"""lower-scatters: `stablehlo.scatter` becomes `flow.scatter`, which has groups, rows and one row number per update.

    groups   batching axes, and leading axes of a window that cover the whole operand
    rows     the axes along which windows are placed, as one axis; a window of several rows becomes several updates
    row      trailing axes of a window that cover the whole operand

The start of a window becomes a row number, or a number out of range if the window does not lie in the operand. Axes in
another order are transposed. No transposition is needed if the placed axes are adjacent, as in programs of JAX. A
scatter of more than `MAX_COLLIDING_UPDATES` updates is split, so that an invocation looks at no more in one dispatch.
If the number of updates is dynamic, `limit-reductions` asserts the limit for machines that need it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Final

from orchestrion.compiler.ir.attributes import BoolAttr
from orchestrion.compiler.ir.builtin import Module
from orchestrion.compiler.ir.core import Operation, Value
from orchestrion.compiler.ir.dims import Dim
from orchestrion.compiler.ir.rewriter import Pattern, Rewriter, rewrite
from orchestrion.compiler.ir.types import TensorType
from orchestrion.compiler.stablehlo.builders.basic import constant, convert, elementwise, index_type
from orchestrion.compiler.stablehlo.builders.shape_builders import broadcast, iota, reshape, slice_axis, transpose
from orchestrion.compiler.stablehlo.builders.tensors import Tensor
from orchestrion.compiler.stablehlo.expansions.scatter_updates import is_inside
from orchestrion.compiler.stablehlo.ops.base import tensor_of
from orchestrion.compiler.stablehlo.ops.scatter import Scatter

from . import scatter as flow


def run(module: Module) -> None:
    """Lowers all scatters."""
    rewrite(module, PATTERNS)


@dataclass(frozen=True, slots=True)
class _Plan:
    """The axes of the operand by their role, and the order in which they then stand.

    `counts`: number of windows along each scatter axis that is not batching.
    """

    shape: tuple[int, ...]
    window: tuple[int, ...]
    batching: tuple[int, ...]
    before: tuple[int, ...]
    placed: tuple[int, ...]
    after: tuple[int, ...]
    counts: tuple[int, ...]

    @classmethod
    def of(cls, op: Scatter) -> _Plan:
        axes, shape, updates = op.axes, tensor_of(op.inputs[0]).shape, tensor_of(op.updates[0]).shape
        window = axes.window(len(shape), updates)
        batching = axes.input_batching_dims
        rest = [axis for axis in range(len(shape)) if axis not in batching]
        placed = [axis for axis in rest if window[axis] != shape[axis]]
        first = placed[0] if placed else 0
        before = tuple(axis for axis in rest if axis not in placed and axis < first)
        after = tuple(axis for axis in rest if axis not in placed and axis >= first)
        own = _own(op)
        indices = tensor_of(op.scatter_indices).shape
        return cls(shape, window, batching, before, tuple(placed), after, tuple(indices[axis] for axis in own))

    @property
    def order(self) -> tuple[int, ...]:
        return (*self.batching, *self.before, *self.placed, *self.after)

    def size(self, axes: Sequence[int]) -> int:
        return prod(self.shape[axis] for axis in axes)

    @property
    def groups(self) -> int:
        return self.size(self.batching) * self.size(self.before)

    @property
    def rows_of_window(self) -> int:
        return prod(self.window[axis] for axis in self.placed)


def _own(op: Scatter) -> tuple[int, ...]:
    """The axes of the indices that are neither batching axes nor the axis of index vectors."""
    gone = (*op.axes.scatter_indices_batching_dims, op.axes.index_vector_dim)
    return tuple(axis for axis in range(tensor_of(op.scatter_indices).rank) if axis not in gone)


def _scatter(op: Operation, rewriter: Rewriter) -> bool:
    assert isinstance(op, Scatter)
    if 0 in (tensor_of(op.inputs[0]).num_elements, tensor_of(op.updates[0]).num_elements):
        rewriter.replace(op, op.inputs)
        return True
    plan = _Plan.of(op)
    shape = (plan.groups, plan.size(plan.placed), plan.size(plan.after))
    values = [reshape(rewriter, transpose(rewriter, value, plan.order), shape) for value in op.inputs]
    updates = [_rows(rewriter, op, plan, value) for value in op.updates]
    indices = _indices(rewriter, op, plan)
    unique = op.is_unique or prod(plan.counts) == 1
    count = tensor_of(indices).shape[1]
    whole = unique or isinstance(count, Dim)
    for start in (0,) if whole else range(0, count, flow.MAX_COLLIDING_UPDATES):
        stop = count if whole else min(start + flow.MAX_COLLIDING_UPDATES, count)
        values = list(
            rewriter.build(
                flow.Scatter,
                inputs=values,
                indices=slice_axis(rewriter, indices, 1, start, stop),
                updates=[slice_axis(rewriter, value, 1, start, stop) for value in updates],
                unique=BoolAttr(True) if unique else None,
                body=op.update_computation.clone(),
                out=[value.type for value in values],
            ).results
        )
    ordered = [plan.shape[axis] for axis in plan.order]
    back = [plan.order.index(axis) for axis in range(len(plan.shape))]
    rewriter.replace(op, [transpose(rewriter, reshape(rewriter, value, ordered), back) for value in values])
    return True


def _rows(rewriter: Rewriter, op: Scatter, plan: _Plan, value: Value) -> Value:
    """The updates as [groups, updates, row]."""
    axes, rank = op.axes, tensor_of(value).rank
    of_window = dict(zip(axes.kept_dims(len(plan.shape)), axes.update_window_dims, strict=True))
    of_indices = dict(zip(_without(op, axes.index_vector_dim), axes.scatter_dims(rank), strict=True))
    batching = [of_indices[axis] for axis in axes.scatter_indices_batching_dims]
    windows = [of_indices[axis] for axis in _own(op)]
    before, placed, after = (
        [of_window[axis] for axis in part if axis in of_window] for part in (plan.before, plan.placed, plan.after)
    )
    moved = transpose(rewriter, value, [*batching, *before, *windows, *placed, *after])
    count = prod(plan.counts) * plan.rows_of_window
    return reshape(rewriter, moved, (plan.groups, count, plan.size(plan.after)))


def _without(op: Scatter, vector: int) -> list[int]:
    return [axis for axis in range(tensor_of(op.scatter_indices).rank) if axis != vector]


def _indices(rewriter: Rewriter, op: Scatter, plan: _Plan) -> Value:
    """The row number of each update, or a number out of range, as [groups, updates]."""
    shape = (plan.size(plan.batching), prod(plan.counts))
    vectors = _vectors(rewriter, op, shape)
    is_row = plan.placed == op.axes.scatter_dims_to_operand_dims and len(plan.placed) == plan.rows_of_window == 1
    if is_row and str(tensor_of(vectors).element) in ("i32", "i64"):
        rows = reshape(rewriter, vectors, shape)
    else:
        rows = _rows_of_windows(rewriter, plan, *_starts(rewriter, op, plan, vectors))
    (batches, count), repeats = tensor_of(rows).shape, plan.size(plan.before)
    if repeats != 1:
        rows = broadcast(rewriter, rows, (batches, repeats, count), (0, 2))
    return reshape(rewriter, rows, (plan.groups, count))


def _vectors(rewriter: Rewriter, op: Scatter, shape: tuple[int, int]) -> Value:
    """The index vectors as [batches, windows, components]."""
    axes, indices = op.axes, op.scatter_indices
    vector = [axes.index_vector_dim] if axes.index_vector_dim < tensor_of(indices).rank else []
    order = [*axes.scatter_indices_batching_dims, *_own(op), *vector]
    return reshape(rewriter, transpose(rewriter, indices, order), (*shape, len(axes.scatter_dims_to_operand_dims)))


def _starts(rewriter: Rewriter, op: Scatter, plan: _Plan, vectors: Value) -> tuple[Value, Value | None]:
    """The row in which each window starts, and whether the window lies in the operand; None if all do."""
    element = index_type(plan.size(plan.placed))
    first = constant(rewriter, 0, TensorType(tensor_of(vectors).shape[:2], element))
    all_inside: Value | None = None
    for number, axis in enumerate(op.axes.scatter_dims_to_operand_dims):
        index = _component(rewriter, vectors, number)
        inside = is_inside(Tensor(rewriter, index), plan.shape[axis] - plan.window[axis] + 1).value
        all_inside = inside if all_inside is None else elementwise(rewriter, "and", all_inside, inside)
        if axis in plan.placed:  # what overflows here is outside, and not used
            rows = convert(rewriter, index, str(element))
            stride = constant(rewriter, _stride(plan, axis), tensor_of(rows))
            first = elementwise(rewriter, "add", first, elementwise(rewriter, "multiply", rows, stride))
    return first, all_inside


def _rows_of_windows(rewriter: Rewriter, plan: _Plan, first: Value, inside: Value | None) -> Value:
    """The row numbers of each window from its first row on; -1 if the window is outside."""
    type, count = tensor_of(first), plan.rows_of_window
    if count != 1:
        type = type.with_shape((*type.shape, count))
        wide = broadcast(rewriter, first, type.shape, (0, 1))
        first = elementwise(rewriter, "add", wide, _offsets(rewriter, plan, type))
        inside = inside and broadcast(rewriter, inside, type.shape, (0, 1))
    if inside is not None:
        first = elementwise(rewriter, "select", inside, first, constant(rewriter, -1, type))
    return reshape(rewriter, first, (type.shape[0], prod(type.shape[1:])))


def _stride(plan: _Plan, axis: int) -> int:
    """Number of rows between neighbouring elements along a placed axis."""
    return plan.size(plan.placed[plan.placed.index(axis) + 1 :])


def _component(rewriter: Rewriter, numbers: Value, number: int) -> Value:
    """One component of all index vectors."""
    return reshape(rewriter, slice_axis(rewriter, numbers, 2, number, number + 1), tensor_of(numbers).shape[:2])


def _offsets(rewriter: Rewriter, plan: _Plan, wide: TensorType) -> Value:
    """Offset of each row of a window from the first row of the window: a sum over the placed axes."""
    type = wide.with_shape(tuple(plan.window[axis] for axis in plan.placed))
    total = constant(rewriter, 0, type)
    for number, axis in enumerate(plan.placed):
        places = iota(rewriter, type.shape, number, str(type.element))
        rows = elementwise(rewriter, "multiply", places, constant(rewriter, _stride(plan, axis), type))
        total = elementwise(rewriter, "add", total, rows)
    return broadcast(rewriter, reshape(rewriter, total, (plan.rows_of_window,)), wide.shape, (2,))


PATTERNS: Final[dict[str, tuple[Pattern, ...]]] = {Scatter.name: (_scatter,)}
