"""canonicalize: folds constants (`fold.py`), removes ops without effect, and merges chains of data movement ops.

A reduction of one element becomes a combination with the initial value. Control flow is simplified as well
(`control_flow/simplify.py`). No pattern changes a bit of a result: `x * 1` is `x` for floats too; `x + 0` is not (x may
be -0), but `x + -0` is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any, Final

import numpy as np

from orchestrion.compiler.ir.attributes import DenseElements
from orchestrion.compiler.ir.builtin import Module
from orchestrion.compiler.ir.core import Operation, Value
from orchestrion.compiler.ir.dims import Size, dim_min, is_dynamic
from orchestrion.compiler.ir.rewriter import Pattern, Rewriter, rewrite
from orchestrion.compiler.stablehlo.builders.tensors import Tensor
from orchestrion.compiler.stablehlo.control_flow.simplify import PATTERNS as CONTROL_FLOW
from orchestrion.compiler.stablehlo.fold import fold
from orchestrion.compiler.stablehlo.ops.base import tensor_of
from orchestrion.compiler.stablehlo.ops.contraction import Reduce
from orchestrion.compiler.stablehlo.ops.elementwise import BitcastConvert, Convert, Select
from orchestrion.compiler.stablehlo.ops.indexing import DynamicSlice, DynamicUpdateSlice, Gather
from orchestrion.compiler.stablehlo.ops.scalar_regions import apply_to_tensors, is_elementwise
from orchestrion.compiler.stablehlo.ops.structural import (
    BroadcastInDim,
    Concatenate,
    Constant,
    Pad,
    Reshape,
    Reverse,
    Slice,
    Transpose,
)
from orchestrion.schema.dtypes import BY_NAME, SIGNED, UNSIGNED

#: Op -> indices of the operand that may be neutral, and the neutral number as an integer and as the repr of a float
#: (-0.0 differs from 0.0). The op then equals its other operand.
_IDENTITY_ELEMENTS: Final[dict[str, tuple[tuple[int, ...], int | None, str | None]]] = {
    "stablehlo.add": ((0, 1), 0, "-0.0"),
    "stablehlo.subtract": ((1,), 0, "0.0"),
    "stablehlo.multiply": ((0, 1), 1, "1.0"),
    "stablehlo.divide": ((1,), 1, "1.0"),
    "stablehlo.maximum": ((0, 1), None, "-inf"),
    "stablehlo.minimum": ((0, 1), None, "inf"),
    "stablehlo.or": ((0, 1), 0, None),
    "stablehlo.xor": ((0, 1), 0, None),
    "stablehlo.and": ((0, 1), -1, None),
    "stablehlo.shift_left": ((1,), 0, None),
    "stablehlo.shift_right_arithmetic": ((1,), 0, None),
    "stablehlo.shift_right_logical": ((1,), 0, None),
}


def run(module: Module) -> None:
    rewrite(module, PATTERNS)


def _constant(value: Value) -> DenseElements | None:
    maker = value.defining_op
    return maker.value if isinstance(maker, Constant) else None


def _drop_identity_element(op: Operation, rewriter: Rewriter) -> bool:
    """Replaces an op with a neutral operand by its other operand."""
    places, integer, real = _IDENTITY_ELEMENTS[op.name]
    for index in places:
        elements = _constant(op.operands[index])
        if elements is not None and elements.is_splat and _is(elements, integer, real):
            return rewriter.replace(op, [op.operands[1 - index]])
    return False


def _is(elements: DenseElements, integer: int | None, real: str | None) -> bool:
    value = elements.scalars()[0]
    if isinstance(value, float):
        return repr(value) == real
    if integer == -1 and not isinstance(value, bool):
        return set(elements.data) == {255}
    return integer is not None and value == (integer != 0 if isinstance(value, bool) else integer)


def _select(op: Select, rewriter: Rewriter) -> bool:
    chosen = op.on_true if op.on_true is op.on_false else None
    predicate = _constant(op.pred)
    if predicate is not None and predicate.is_splat:
        chosen = op.on_true if predicate.scalars()[0] else op.on_false
    return chosen is not None and rewriter.replace(op, [chosen])


def _unchanged(op: Operation, rewriter: Rewriter) -> bool:
    """Replaces an op that returns its first operand unchanged."""
    return _gives_operand(op) and rewriter.replace(op, [op.operands[0]])


def _gives_operand(op: Operation) -> bool:
    type = tensor_of(op.results[0])
    if tensor_of(op.operands[0]) != type:
        return False
    match op:
        case BitcastConvert() | Convert() | Reshape() | Slice():
            return True
        case Reverse():
            return all(type.shape[axis] in (0, 1) for axis in op.dimensions.ints)
        case Concatenate():
            return len(op.operands) == 1
        case Pad():
            return all(amount == 0 for amount in (*op.edge_padding_low.sizes, *op.edge_padding_high.sizes))
    return False


def _merge(outer: type[Any], inner: type[Any], fields: Callable[[Any, Any], dict[str, Any] | None]) -> Pattern:
    """A pattern that merges an op of class `outer` on a result of class `inner` into one `outer` op, with these fields,
    on the operand of the inner op; None leaves both.
    """

    def pattern(op: Operation, rewriter: Rewriter) -> bool:
        maker = op.operands[0].defining_op
        found = fields(op, maker) if isinstance(op, outer) and isinstance(maker, inner) else None
        if found is None or maker is None:
            return False
        made = rewriter.build(outer, operand_=maker.operands[0], **found, out=op.results[0].type)
        return rewriter.replace(op, made.results)

    return pattern


def _reshape_of_repeated(op: Reshape, rewriter: Rewriter) -> bool:
    """A reshape of a broadcast scalar is a broadcast of the scalar."""
    inner = op.operand_.defining_op
    if not isinstance(inner, BroadcastInDim) or tensor_of(inner.operand_).shape:
        return False
    return rewriter.replace(op, [Tensor(rewriter, inner.operand_).broadcast(tensor_of(op.out).shape).value])


def _as_reshape(op: Operation, rewriter: Rewriter) -> bool:
    """Replaces an op that only moves axes of size 1 by a reshape."""
    source, type = tensor_of(op.operands[0]), tensor_of(op.results[0])
    if isinstance(op, Transpose):
        order = op.permutation.ints
    elif isinstance(op, BroadcastInDim) and source.num_elements == type.num_elements:
        order = tuple(axis for axis, _ in sorted(enumerate(op.broadcast_dimensions.ints), key=lambda pair: pair[1]))
    else:
        return False
    long = [axis for axis in order if source.shape[axis] != 1]
    if long != sorted(long) and source.num_elements != 0:
        return False
    return rewriter.replace(op, [rewriter.build(Reshape, operand_=op.operands[0], out=type).result])


def _pad_of_widened(op: Pad, rewriter: Rewriter) -> bool:
    """Integers are padded before they are widened, if the padding is one of the narrower type: fewer bytes move."""
    inner, value = op.operand_.defining_op, _constant(op.padding_value)
    if not isinstance(inner, Convert) or value is None or len(inner.out.uses) != 1:
        return False
    narrow, wide = BY_NAME[str(tensor_of(inner.operand_).element)], BY_NAME[str(tensor_of(inner.out).element)]
    if not {narrow.kind, wide.kind} <= {SIGNED, UNSIGNED} or not narrow.computed or narrow.bits >= wide.bits:
        return False
    number, bounds = int(value.scalars()[0]), np.iinfo(narrow.numpy)
    if not bounds.min <= number <= bounds.max or (narrow.kind == SIGNED and wide.kind == UNSIGNED):
        return False
    x = Tensor(rewriter, inner.operand_)
    edges = (op.edge_padding_low.ints, op.edge_padding_high.ints)
    padded = x.pad(*edges, x.splat(number, x.type.with_shape(())), op.interior_padding.ints)
    return rewriter.replace(op, [padded.convert(wide.name).value])


def _transpose(op: Transpose, inner: Transpose) -> dict[str, Any]:
    return {"permutation": [inner.permutation.ints[axis] for axis in op.permutation.ints]}


def _broadcast(op: BroadcastInDim, inner: BroadcastInDim) -> dict[str, Any]:
    to = op.broadcast_dimensions.ints
    return {"broadcast_dimensions": [to[axis] for axis in inner.broadcast_dimensions.ints]}


def _broadcast_of_reshape(op: BroadcastInDim, inner: Reshape) -> dict[str, Any] | None:
    """Merges a reshape that only inserts axes of size 1 into the broadcast of its result."""
    source, middle = tensor_of(inner.operand_), tensor_of(inner.out)
    axes = [axis for axis, size in enumerate(middle.shape) if size != 1]
    if 1 in source.shape or tuple(middle.shape[axis] for axis in axes) != source.shape:
        return None
    return {"broadcast_dimensions": [op.broadcast_dimensions.ints[axis] for axis in axes]}


def _slice(op: Slice, inner: Slice) -> dict[str, Any] | None:
    """Merges a slice of a slice: start and stride refer to the outer source."""
    type = tensor_of(op.out)
    if type.num_elements == 0:
        return None
    steps, firsts = inner.strides.sizes, inner.start_indices.sizes
    starts = [first + start * step for first, start, step in zip(firsts, op.start_indices.sizes, steps, strict=True)]
    strides = [stride * step for stride, step in zip(op.strides.sizes, steps, strict=True)]
    limits = [start + (size - 1) * step + 1 for start, size, step in zip(starts, type.shape, strides, strict=True)]
    return {"start_indices": starts, "limit_indices": limits, "strides": strides}


def _reverse(op: Reverse, inner: Reverse) -> dict[str, Any]:
    """Drops axes that are reversed twice."""
    return {"dimensions": sorted(set(op.dimensions.ints) ^ set(inner.dimensions.ints))}


def _concatenate(op: Concatenate, rewriter: Rewriter) -> bool:
    """Drops operands without elements if others have some."""
    full = [value for value in op.inputs if tensor_of(value).num_elements != 0]
    if not full or len(full) == len(op.inputs):
        return False
    made = rewriter.build(Concatenate, inputs=full, dimension=op.dimension, out=op.out.type)
    return rewriter.replace(op, [made.out])


def _starts(op: DynamicSlice | DynamicUpdateSlice) -> list[Size] | None:
    """The clamped start indices if all are known: constants, or axes that the window covers in full."""
    found = []
    for start, whole, size in zip(op.start_indices, tensor_of(op.operand_).shape, op.window, strict=True):
        known = _constant(start)
        if known is None and whole != size:
            return None
        found.append(0 if known is None else dim_min(max(int(known.scalars()[0]), 0), whole - size))
    return None if is_dynamic(*found) else found


def _dynamic_slice(op: DynamicSlice, rewriter: Rewriter) -> bool:
    """A dynamic slice at known start indices is a slice."""
    starts = _starts(op)
    return starts is not None and rewriter.replace(op, [_window(rewriter, op.operand_, starts, op.window)])


def _gather(op: Gather, rewriter: Rewriter) -> bool:
    """A gather of one slice at a known place is a slice: `x[:, 0]` of a symbolic size."""
    axes, known = op.axes, _constant(op.start_indices)
    shape, window = tensor_of(op.operand_).shape, op.slice_sizes.sizes
    count = len(axes.start_index_map)
    single = tensor_of(op.start_indices).num_elements == count and tensor_of(op.out).num_elements == prod(window)
    if known is None or not single or axes.operand_batching_dims:
        return False
    places = known.scalars() * (count if known.is_splat else 1)
    at = dict(zip(axes.start_index_map, map(int, places), strict=True))
    starts = [dim_min(max(at.get(axis, 0), 0), size - window[axis]) for axis, size in enumerate(shape)]
    if is_dynamic(*starts):
        return False
    sliced = _window(rewriter, op.operand_, starts, window)
    return rewriter.replace(op, [rewriter.build(Reshape, operand_=sliced, out=op.out.type).out])


def _window(rewriter: Rewriter, value: Value, starts: Sequence[Size], sizes: Sequence[Size]) -> Value:
    """A slice with stride 1."""
    limits = [start + size for start, size in zip(starts, sizes, strict=True)]
    return Tensor(rewriter, value).slice(starts, limits).value


def _dynamic_update_slice(op: DynamicUpdateSlice, rewriter: Rewriter) -> bool:
    """An update of the whole operand is the update; an update without elements is the operand."""
    if op.update.type == op.operand_.type:
        return rewriter.replace(op, [op.update])
    return tensor_of(op.update).num_elements == 0 and rewriter.replace(op, [op.operand_])


def _reduce_of_one(op: Reduce, rewriter: Rewriter) -> bool:
    """A reduction over axes of size 1 combines the initial value with the one element."""
    shape = tensor_of(op.inputs[0]).shape
    if not is_elementwise(op.body.block) or any(shape[axis] != 1 for axis in op.dimensions.ints):
        return False
    shape = tensor_of(op.results[0]).shape
    starts = [Tensor(rewriter, value).broadcast(shape).value for value in op.init_values]
    elements = [Tensor(rewriter, value).reshape(*shape).value for value in op.inputs]
    return rewriter.replace(op, apply_to_tensors(rewriter, op.body.block, [*starts, *elements], shape))


_DATA_MOVEMENT: Final[dict[str, tuple[Pattern, ...]]] = {
    "reshape": (_unchanged, _merge(Reshape, Reshape, lambda op, inner: {}), _reshape_of_repeated),
    "transpose": (_as_reshape, _merge(Transpose, Transpose, _transpose)),
    "broadcast_in_dim": (
        _as_reshape,
        _merge(BroadcastInDim, BroadcastInDim, _broadcast),
        _merge(BroadcastInDim, Reshape, _broadcast_of_reshape),
    ),
    "slice": (_unchanged, _merge(Slice, Slice, _slice)),
    "reverse": (_unchanged, _merge(Reverse, Reverse, _reverse)),
    "concatenate": (_concatenate, _unchanged),
    "pad": (_unchanged, _pad_of_widened),
    "dynamic_slice": (_dynamic_slice,),
    "dynamic_update_slice": (_dynamic_update_slice,),
    "gather": (_gather,),
    "bitcast_convert": (_unchanged, _merge(BitcastConvert, BitcastConvert, lambda op, inner: {})),
    "convert": (_unchanged,),
    "select": (_select,),
    "reduce": (_reduce_of_one,),
}

PATTERNS: Final[dict[str, tuple[Pattern, ...]]] = {
    **{f"stablehlo.{name}": patterns for name, patterns in _DATA_MOVEMENT.items()},
    **{name: (_drop_identity_element,) for name in _IDENTITY_ELEMENTS},
    **CONTROL_FLOW,
    "": (fold,),
}
