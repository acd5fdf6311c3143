"""Ops with dynamic shapes whose result type is static: replaces them by the ops with attributes.

The operands that would state the shape are constants, or must agree with the result type, and are ignored. Other ops
are left for `refine-shapes`, or for the legality check.
"""

from __future__ import annotations

from typing import Final

from orchestrion.compiler.ir.attributes import DenseArray, DenseElements, DialectAttr, IntegerAttr, dense_ints
from orchestrion.compiler.ir.core import Operation, Value
from orchestrion.compiler.ir.rewriter import Pattern, Rewriter
from orchestrion.compiler.ir.types import I32, TensorType
from orchestrion.compiler.stablehlo.builders.basic import constant
from orchestrion.compiler.stablehlo.builders.shape_builders import broadcast, reshape
from orchestrion.compiler.stablehlo.ops.base import is_known, tensor_of
from orchestrion.compiler.stablehlo.ops.indexing import Gather
from orchestrion.compiler.stablehlo.ops.structural import Constant, Iota, Pad, Slice
from orchestrion.compiler.stablehlo.ops.windowed import Convolution
from orchestrion.schema.rules import MAX_RANK


def _ints(value: Value) -> tuple[int, ...] | None:
    """The integers of a constant of rank 1; None for any other value."""
    maker = value.defining_op
    if not isinstance(maker, Constant) or "value" not in maker.properties or maker.value.type.rank != 1:
        return None
    if maker.value.type.num_elements > MAX_RANK:  # a splat may stand for any number of elements
        return None
    return tuple(int(number) for number in maker.value.array())


def _static(op: Operation, operands: int) -> TensorType | None:
    """The type of the only result, if all types are static and there are this many operands; else None."""
    if len(op.operands) != operands or len(op.results) != 1 or not all(is_known(x.type) for x in op.operands):
        return None
    return tensor_of(op.results[0]) if is_known(op.results[0].type) else None


def _broadcast(op: Operation, rewriter: Rewriter) -> bool:
    type, axes = _static(op, 2), op.get_as("broadcast_dimensions", DenseArray)
    if type is None or axes is None or len(axes) != tensor_of(op.operands[0]).rank:
        return False
    if any(not 0 <= axis < type.rank for axis in axes.ints):
        return False
    rewriter.replace(op, [broadcast(rewriter, op.operands[0], type.shape, axes.ints)])
    return True


def _reshape(op: Operation, rewriter: Rewriter) -> bool:
    type = _static(op, 2)
    if type is None or type.num_elements != tensor_of(op.operands[0]).num_elements:
        return False
    rewriter.replace(op, [reshape(rewriter, op.operands[0], type.shape)])
    return True


def _iota(op: Operation, rewriter: Rewriter) -> bool:
    type, axis = _static(op, 1), op.get_as("iota_dimension", IntegerAttr)
    if type is None or axis is None:
        return False
    rewriter.replace(op, [rewriter.build(Iota, iota_dimension=axis, out=type).result])
    return True


def _pad(op: Operation, rewriter: Rewriter) -> bool:
    type, given = _static(op, 5), [_ints(value) for value in op.operands[2:]]
    if type is None or any(numbers is None or len(numbers) != type.rank for numbers in given):
        return False
    names = ("edge_padding_low", "edge_padding_high", "interior_padding")
    fields = {name: dense_ints(*numbers) for name, numbers in zip(names, given, strict=True) if numbers is not None}
    value, padding = op.operands[:2]
    rewriter.replace(op, [rewriter.build(Pad, operand_=value, padding_value=padding, **fields, out=type).result])
    return True


def _slice(op: Operation, rewriter: Rewriter) -> bool:
    type, given = _static(op, 4), [_ints(value) for value in op.operands[1:]]
    if type is None or any(numbers is None or len(numbers) != type.rank for numbers in given):
        return False
    names = ("start_indices", "limit_indices", "strides")
    fields = {name: dense_ints(*numbers) for name, numbers in zip(names, given, strict=True) if numbers is not None}
    rewriter.replace(op, [rewriter.build(Slice, operand_=op.operands[0], **fields, out=type).result])
    return True


def _gather(op: Operation, rewriter: Rewriter) -> bool:
    type, numbers = _static(op, 3), op.get_as("dimension_numbers", DialectAttr)
    sizes = _ints(op.operands[2]) if type is not None else None
    if type is None or numbers is None or sizes is None:
        return False
    made = rewriter.build(
        Gather,
        operand_=op.operands[0],
        start_indices=op.operands[1],
        dimension_numbers=numbers,
        slice_sizes=dense_ints(*sizes),
        out=type,
    )
    rewriter.replace(op, [made.result])
    return True


def _convolution(op: Operation, rewriter: Rewriter) -> bool:
    type = _static(op, 3)
    maker = op.operands[2].defining_op if type is not None else None
    if type is None or not isinstance(maker, Constant) or not isinstance(maker.properties.get("value"), DenseElements):
        return False
    made = Convolution(op.operands[:2], [type], {**op.properties, "padding": maker.value})
    rewriter.replace(op, [rewriter.insert(made).results[0]])
    return True


def _size(op: Operation, rewriter: Rewriter) -> bool:
    axis, scalar = op.get_as("dimension", IntegerAttr), TensorType((), I32)
    if axis is None or _static(op, 1) != scalar or not 0 <= axis.value < tensor_of(op.operands[0]).rank:
        return False
    rewriter.replace(op, [constant(rewriter, tensor_of(op.operands[0]).shape[axis.value], scalar)])
    return True


PATTERNS: Final[dict[str, tuple[Pattern, ...]]] = {
    "stablehlo.dynamic_broadcast_in_dim": (_broadcast,),
    "stablehlo.dynamic_conv": (_convolution,),
    "stablehlo.dynamic_gather": (_gather,),
    "stablehlo.dynamic_iota": (_iota,),
    "stablehlo.dynamic_pad": (_pad,),
    "stablehlo.dynamic_reshape": (_reshape,),
    "stablehlo.get_dimension_size": (_size,),
    "stablehlo.real_dynamic_slice": (_slice,),
}
