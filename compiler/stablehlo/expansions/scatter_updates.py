"""A scatter of one window becomes a `dynamic_update_slice`: JAX writes `x.at[i].set(v)` and its relatives as such
scatters.

The window has size 1 along the axes that the index vector selects, so it lies either inside or outside of the operand.
An update outside writes nothing: the written elements are then the operand's.
"""

from __future__ import annotations

from math import prod

from orchestrion.compiler.ir.core import Operation
from orchestrion.compiler.ir.dims import Size, dim_min
from orchestrion.compiler.ir.rewriter import Rewriter
from orchestrion.compiler.ir.verifier import declaration_problems
from orchestrion.compiler.stablehlo.builders.tensors import Tensor, replace
from orchestrion.compiler.stablehlo.ops.base import integer_limits, is_known, tensor_of
from orchestrion.compiler.stablehlo.ops.scalar_regions import apply_to_tensors, is_elementwise
from orchestrion.compiler.stablehlo.ops.scatter import Scatter


def expand_scatter(op: Operation, rewriter: Rewriter) -> bool:
    """Expands a scatter of one window; skips other scatters."""
    if not isinstance(op, Scatter) or not _is_sound(op) or not _is_one_window(op):
        return False
    operand, indices, update = (Tensor(rewriter, value) for value in op.operands)
    chosen, rank = op.axes.scatter_dims_to_operand_dims, len(operand.shape)
    window = op.axes.window(rank, update.shape)
    flat = indices.reshape(len(chosen))
    vector = [flat.slice((at,), (at + 1,)).reshape() for at in range(len(chosen))]
    zero = flat.zeros(())
    starts = [vector[chosen.index(axis)] if axis in chosen else zero for axis in range(rank)]
    old, given = operand.dynamic_slice(starts, window), update.reshape(*window)
    (made,) = apply_to_tensors(rewriter, op.update_computation.block, (old.value, given.value), window)
    new = Tensor(rewriter, made)
    for axis, index in zip(chosen, vector, strict=True):
        new = is_inside(index, operand.shape[axis]).select(new, old)
    return replace(op, rewriter, operand.updated(starts, new))


def _is_sound(op: Scatter) -> bool:
    """Whether the op is well formed; nothing is verified yet."""
    if any(declaration_problems(op)) or not all(is_known(value.type) for value in (*op.operands, *op.results)):
        return False
    return not any(op.check()) and is_elementwise(op.update_computation.block)


def _is_one_window(op: Scatter) -> bool:
    """Whether there is exactly one window, of size 1 along the selected axes and with elements."""
    whole, update = tensor_of(op.inputs[0]), tensor_of(op.updates[0])
    window = op.axes.window(whole.rank, update.shape)
    if len(op.inputs) != 1 or prod(window) != update.num_elements or update.num_elements == 0:
        return False
    return all(window[axis] == 1 for axis in op.axes.scatter_dims_to_operand_dims)


def is_inside(index: Tensor, size: Size) -> Tensor:
    """Whether indices lie in an axis of this size; the size may exceed their type."""
    last = index.of(dim_min(size - 1, integer_limits(index.dtype)[1]))
    return (index >= 0) & (index <= last)
