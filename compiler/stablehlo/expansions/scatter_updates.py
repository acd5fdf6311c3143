"""A scatter of one window becomes a `dynamic_update_slice`: JAX writes `x.at[i].set(v)` and its relatives as such
scatters.

The window has size 1 along the axes that the index vector selects, so it lies either inside or outside of the operand.
An update outside writes nothing: the written elements are then the operand's.
"""

from __future__ import annotations

from math import prod

from orchestrion.compiler.ir.attributes import dense_ints
from orchestrion.compiler.ir.core import Operation, Value
from orchestrion.compiler.ir.dims import dim_min
from orchestrion.compiler.ir.rewriter import Rewriter
from orchestrion.compiler.ir.verifier import declaration_problems
from orchestrion.compiler.stablehlo.builders.basic import compare, constant, elementwise
from orchestrion.compiler.stablehlo.builders.shape_builders import reshape, slice_range
from orchestrion.compiler.stablehlo.ops.base import dtype_of, is_known, tensor_of
from orchestrion.compiler.stablehlo.ops.elementwise import Elementwise
from orchestrion.compiler.stablehlo.ops.indexing import DynamicSlice, DynamicUpdateSlice
from orchestrion.compiler.stablehlo.ops.scalar_regions import apply_to_tensors
from orchestrion.compiler.stablehlo.ops.scatter import Scatter
from orchestrion.compiler.stablehlo.ops.structural import Constant
from orchestrion.schema.dtypes import SIGNED


def expand_scatter(op: Operation, rewriter: Rewriter) -> bool:
    """Expands a scatter of one window; skips other scatters."""
    if not isinstance(op, Scatter) or not _is_sound(op) or not _is_one_window(op):
        return False
    (operand,), (update,), whole = op.inputs, op.updates, tensor_of(op.inputs[0])
    chosen = op.axes.scatter_dims_to_operand_dims
    window = op.axes.window(whole.rank, tensor_of(update).shape)
    vector = _vector(rewriter, op.scatter_indices, len(chosen))
    zero = constant(rewriter, 0, tensor_of(op.scatter_indices).with_shape(()))
    starts = [vector[chosen.index(axis)] if axis in chosen else zero for axis in range(whole.rank)]
    type = whole.with_shape(window)
    old = rewriter.build(
        DynamicSlice, operand_=operand, start_indices=starts, slice_sizes=dense_ints(*window), out=type
    ).result
    given = reshape(rewriter, update, type.shape)
    (new,) = apply_to_tensors(rewriter, op.update_computation.block, (old, given), window)
    for axis, index in zip(chosen, vector, strict=True):
        new = elementwise(rewriter, "select", is_inside(rewriter, index, whole.shape[axis]), new, old)
    made = rewriter.build(DynamicUpdateSlice, operand_=operand, update=new, start_indices=starts, out=whole)
    rewriter.replace(op, made.results)
    return True


def _is_sound(op: Scatter) -> bool:
    """Whether the op is well formed; nothing is verified yet."""
    if any(declaration_problems(op)) or not all(is_known(value.type) for value in (*op.operands, *op.results)):
        return False
    inner = [one for block in op.update_computation.blocks for one in block.ops[:-1]]
    return not any(op.check()) and all(isinstance(one, Elementwise | Constant) for one in inner)


def _is_one_window(op: Scatter) -> bool:
    """Whether there is exactly one window, of size 1 along the selected axes and with elements."""
    whole, update = tensor_of(op.inputs[0]), tensor_of(op.updates[0])
    window = op.axes.window(whole.rank, update.shape)
    if len(op.inputs) != 1 or prod(window) != update.num_elements or update.num_elements == 0:
        return False
    return all(window[axis] == 1 for axis in op.axes.scatter_dims_to_operand_dims)


def _vector(rewriter: Rewriter, indices: Value, count: int) -> list[Value]:
    """The numbers of the index vector."""
    flat = reshape(rewriter, indices, (count,))
    return [reshape(rewriter, slice_range(rewriter, flat, (at,), (at + 1,)), ()) for at in range(count)]


def is_inside(rewriter: Rewriter, index: Value, size: int) -> Value:
    """Whether indices lie in an axis of this size; the size may exceed their type."""
    dtype, type = dtype_of(index), tensor_of(index)
    most = (1 << dtype.bits - (dtype.kind == SIGNED)) - 1
    last = constant(rewriter, dim_min(size - 1, most), type)
    above = compare(rewriter, "GE", index, constant(rewriter, 0, type))
    return elementwise(rewriter, "and", above, compare(rewriter, "LE", index, last))
