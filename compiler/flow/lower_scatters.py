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

from orchestrion.compiler.ir.builtin import Module
from orchestrion.compiler.ir.dims import Shape, Size, is_dynamic
from orchestrion.compiler.ir.rewriter import Pattern, Rewriter, rewrite
from orchestrion.compiler.ir.types import TensorType
from orchestrion.compiler.stablehlo.builders.tensors import Tensor, build, index_type
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

    shape: Shape
    window: Shape
    batching: tuple[int, ...]
    before: tuple[int, ...]
    placed: tuple[int, ...]
    after: tuple[int, ...]
    counts: Shape

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

    def size(self, axes: Sequence[int]) -> Size:
        return prod(self.shape[axis] for axis in axes)

    @property
    def groups(self) -> Size:
        return self.size(self.batching) * self.size(self.before)

    @property
    def rows_of_window(self) -> Size:
        return prod(self.window[axis] for axis in self.placed)


def _own(op: Scatter) -> tuple[int, ...]:
    """The axes of the indices that are neither batching axes nor the axis of index vectors."""
    gone = (*op.axes.scatter_indices_batching_dims, op.axes.index_vector_dim)
    return tuple(axis for axis in range(tensor_of(op.scatter_indices).rank) if axis not in gone)


def _scatter(op: Scatter, rewriter: Rewriter) -> bool:
    if 0 in (tensor_of(op.inputs[0]).num_elements, tensor_of(op.updates[0]).num_elements):
        return rewriter.replace(op, op.inputs)
    plan = _Plan.of(op)
    shape = (plan.groups, plan.size(plan.placed), plan.size(plan.after))
    values = [Tensor(rewriter, value).transpose(*plan.order).reshape(*shape) for value in op.inputs]
    updates = [_rows(op, plan, Tensor(rewriter, value)) for value in op.updates]
    indices = _indices(op, plan, Tensor(rewriter, op.scatter_indices))
    unique = op.is_unique or prod(plan.counts) == 1
    count = indices.shape[1]
    whole = unique or is_dynamic(count)
    for start in (0,) if whole else range(0, count, flow.MAX_COLLIDING_UPDATES):
        stop = count if whole else min(start + flow.MAX_COLLIDING_UPDATES, count)
        values = build(
            rewriter,
            flow.Scatter,
            inputs=values,
            indices=indices.cut(1, start, stop),
            updates=[x.cut(1, start, stop) for x in updates],
            unique=True if unique else None,
            body=op.update_computation.clone(),
            out=[x.type for x in values],
        )
    ordered = [plan.shape[axis] for axis in plan.order]
    back = [plan.order.index(axis) for axis in range(len(plan.shape))]
    return rewriter.replace(op, [x.reshape(*ordered).transpose(*back).value for x in values])


def _rows(op: Scatter, plan: _Plan, updates: Tensor) -> Tensor:
    """The updates as [groups, updates, row]."""
    axes, rank = op.axes, tensor_of(op.scatter_indices).rank
    others = [axis for axis in range(rank) if axis != axes.index_vector_dim]
    of_window = dict(zip(axes.kept_dims(len(plan.shape)), axes.update_window_dims, strict=True))
    of_indices = dict(zip(others, axes.scatter_dims(len(updates.shape)), strict=True))
    batching = [of_indices[axis] for axis in axes.scatter_indices_batching_dims]
    windows = [of_indices[axis] for axis in _own(op)]
    before, placed, after = (
        [of_window[axis] for axis in part if axis in of_window] for part in (plan.before, plan.placed, plan.after)
    )
    count = prod(plan.counts) * plan.rows_of_window
    moved = updates.transpose(*batching, *before, *windows, *placed, *after)
    return moved.reshape(plan.groups, count, plan.size(plan.after))


def _indices(op: Scatter, plan: _Plan, indices: Tensor) -> Tensor:
    """The row number of each update, or a number out of range, as [groups, updates]."""
    axes, batches = op.axes, plan.size(plan.batching)
    vector = [axes.index_vector_dim] if axes.index_vector_dim < len(indices.shape) else []
    components = axes.scatter_dims_to_operand_dims
    vectors = indices.transpose(*axes.scatter_indices_batching_dims, *_own(op), *vector)
    vectors = vectors.reshape(batches, prod(plan.counts), len(components))
    are_rows = plan.placed == components and len(components) == plan.rows_of_window == 1
    if are_rows and indices.dtype.name in ("i32", "i64"):
        rows = vectors.reshape(*vectors.shape[:2])
    else:
        rows = _rows_of_windows(op, plan, vectors)
    repeats = plan.size(plan.before)
    if repeats != 1:
        rows = rows.broadcast((batches, repeats, rows.shape[1]), (0, 2))
    return rows.reshape(plan.groups, rows.shape[-1])


def _rows_of_windows(op: Scatter, plan: _Plan, vectors: Tensor) -> Tensor:
    """The rows of each window, whose start is a vector; -1 if the window does not lie in the operand."""
    element = index_type(plan.size(plan.placed))
    rows = vectors.splat(0, TensorType(vectors.shape[:2], element))
    all_inside: Tensor | None = None
    for number, axis in enumerate(op.axes.scatter_dims_to_operand_dims):
        index = vectors.cut(2, number, number + 1).reshape(*vectors.shape[:2])
        inside = is_inside(index, plan.shape[axis] - plan.window[axis] + 1)
        all_inside = inside if all_inside is None else all_inside & inside
        if axis in plan.placed:  # what overflows here is outside, and not used
            rows = rows + index.convert(str(element)) * _stride(plan, axis)
    if plan.rows_of_window != 1:
        shape = (*rows.shape, plan.rows_of_window)
        rows = rows.broadcast(shape, (0, 1)) + _offsets(plan, rows).broadcast(shape, (2,))
        all_inside = all_inside and all_inside.broadcast(shape, (0, 1))
    if all_inside is not None:
        rows = all_inside.select(rows, -1)
    return rows.reshape(rows.shape[0], prod(rows.shape[1:]))


def _stride(plan: _Plan, axis: int) -> Size:
    """Number of rows between neighbouring elements along a placed axis."""
    return plan.size(plan.placed[plan.placed.index(axis) + 1 :])


def _offsets(plan: _Plan, like: Tensor) -> Tensor:
    """Offset of each row of a window from the first row of the window: a sum over the placed axes."""
    total = like.zeros([plan.window[axis] for axis in plan.placed])
    for number, axis in enumerate(plan.placed):
        total = total + total.iota(number, total.dtype.name) * _stride(plan, axis)
    return total.reshape(plan.rows_of_window)


PATTERNS: Final[dict[str, tuple[Pattern, ...]]] = {Scatter.name: (_scatter,)}
