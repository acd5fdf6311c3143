"""Constant folding, with the NumPy meaning that `schema/scalars.py` gives each op.

An op on constants is folded if the stored result has at most 64 bytes (a splat stores one element), or if it is no
larger than the operands and nothing else uses those.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from orchestrion.compiler.ir.attributes import INLINE_BYTES, DenseElements
from orchestrion.compiler.ir.core import Operation
from orchestrion.compiler.ir.rewriter import Rewriter
from orchestrion.compiler.stablehlo.ops.base import tensor_of
from orchestrion.compiler.stablehlo.ops.elementwise import Elementwise
from orchestrion.compiler.stablehlo.ops.indexing import DynamicUpdateSlice
from orchestrion.compiler.stablehlo.ops.structural import (
    BroadcastInDim,
    Concatenate,
    Constant,
    Iota,
    Pad,
    Reshape,
    Reverse,
    Slice,
    Transpose,
)
from orchestrion.schema.dtypes import BY_NAME

Array = np.ndarray[Any, Any]

#: Computes the result of an op, of the class in the table, from its operands.
Fold = Callable[[Any, list[DenseElements]], DenseElements]


def fold(op: Operation, rewriter: Rewriter) -> bool:
    """Replaces an op on constants by a constant, if that is worthwhile."""
    rule: Fold | None = _elementwise if isinstance(op, Elementwise) else _RULES.get(type(op))
    if rule is None:
        return False
    makers = [value.defining_op for value in op.operands]
    operands = [maker.value for maker in makers if isinstance(maker, Constant)]
    if len(operands) != len(makers) or not _pays(op, operands):
        return False
    value = rule(op, operands)
    return rewriter.replace(op, [rewriter.build(Constant, value=value, out=value.type).result])


def _pays(op: Operation, operands: list[DenseElements]) -> bool:
    type = tensor_of(op.results[0])
    if not type.is_static:
        return False  # a constant must have a static number of elements
    itemsize = BY_NAME[str(type.element)].itemsize
    mixes = isinstance(op, Iota | Pad | Concatenate | DynamicUpdateSlice)
    splat = not mixes and all(len(value.data) == value.itemsize for value in operands)
    stored = itemsize * (1 if splat else type.num_elements)
    if stored <= INLINE_BYTES:
        return True
    large = [value for value in op.operands if _stored(value.defining_op) > INLINE_BYTES]
    return stored <= sum(len(value.data) for value in operands) and all(len(value.uses) == 1 for value in large)


def _stored(op: Operation | None) -> int:
    return len(op.value.data) if isinstance(op, Constant) else 0


def _elementwise(op: Elementwise, operands: list[DenseElements]) -> DenseElements:
    type = tensor_of(op.results[0])
    dtype = BY_NAME[str(type.element)]
    splat = all(len(value.data) == value.itemsize for value in operands) and type.num_elements > 0
    shape = () if splat else type.static_shape
    arrays = [_shaped(value, shape) for value in operands]
    subject = op.scalar.subject([BY_NAME[str(value.type.element)] for value in operands])
    out = np.empty(shape, dtype.numpy)
    with np.errstate(all="ignore"):
        result = np.asarray(op.scalar.meaning(subject.kind)(*arrays, out))
    if splat:
        return DenseElements(type, result.tobytes())
    return DenseElements.of(result, dtype.name)


def _shaped(value: DenseElements, shape: tuple[int, ...]) -> Array:
    array = value.array()
    return np.array(np.broadcast_to(array.reshape(-1)[0], shape) if value.is_splat else array)


def _moved(move: Callable[[Any, Array], Array]) -> Fold:
    """A rule for an op that moves elements; a splat stays a splat."""

    def rule(op: Operation, operands: list[DenseElements]) -> DenseElements:
        type = tensor_of(op.results[0])
        value = operands[0]
        if value.is_splat and type.num_elements:
            return DenseElements(type, value.data)
        return DenseElements.of(move(op, value.array()), str(type.element))

    return rule


def _slice(op: Slice, array: Array) -> Array:
    bounds = zip(op.start_indices.ints, op.limit_indices.ints, op.strides.ints, strict=True)
    return array[tuple(slice(*bound) for bound in bounds)]


def _broadcast(op: BroadcastInDim, array: Array) -> Array:
    type, to = tensor_of(op.out), op.broadcast_dimensions.ints
    shape = [1] * type.rank
    for axis, size in zip(to, array.shape, strict=True):
        shape[axis] = size
    ordered = array.transpose(sorted(range(len(to)), key=to.__getitem__))
    return np.broadcast_to(ordered.reshape(shape), type.static_shape)


def _concatenate(op: Concatenate, operands: list[DenseElements]) -> DenseElements:
    arrays = [value.array() for value in operands]
    return DenseElements.of(np.concatenate(arrays, op.dimension.value), str(tensor_of(op.out).element))


def _pad(op: Pad, operands: list[DenseElements]) -> DenseElements:
    source, value = (operand.array() for operand in operands)
    type = tensor_of(op.out)
    out = np.full(type.shape, value, source.dtype)
    into, of = [], []
    for axis, size in enumerate(source.shape):
        low, step = op.edge_padding_low.ints[axis], op.interior_padding.ints[axis] + 1
        first = max(0, -(low // step)) if low < 0 else 0
        last = min(size, (type.shape[axis] - low + step - 1) // step)
        start = low + first * step
        into.append(slice(start, start + max(last - first, 0) * step, step) if last > first else slice(0, 0))
        of.append(slice(first, max(last, first)))
    out[tuple(into)] = source[tuple(of)]
    return DenseElements.of(out, str(type.element))


def _iota(op: Iota, operands: list[DenseElements]) -> DenseElements:
    type = tensor_of(op.out)
    if not type.num_elements:  # the other axes may be of any size
        return DenseElements(type, b"")
    axis = op.iota_dimension.value
    line = np.arange(type.static_shape[axis]).astype(BY_NAME[str(type.element)].numpy)
    shape = [1] * type.rank
    shape[axis] = -1
    return DenseElements.of(np.broadcast_to(line.reshape(shape), type.static_shape), str(type.element))


def _update(op: DynamicUpdateSlice, operands: list[DenseElements]) -> DenseElements:
    source, update, *starts = (operand.array() for operand in operands)
    places = []
    for start, whole, size in zip(starts, source.shape, update.shape, strict=True):
        first = min(max(int(start), 0), whole - size)
        places.append(slice(first, first + size))
    out = source.copy()
    out[tuple(places)] = update
    return DenseElements.of(out, str(tensor_of(op.out).element))


_RULES: Final[dict[type[Operation], Fold]] = {
    Reshape: lambda op, operands: DenseElements(tensor_of(op.results[0]), operands[0].data),
    Transpose: _moved(lambda op, array: array.transpose(op.permutation.ints)),
    Slice: _moved(_slice),
    Reverse: _moved(lambda op, array: np.flip(array, op.dimensions.ints)),
    BroadcastInDim: _moved(_broadcast),
    Concatenate: _concatenate,
    Pad: _pad,
    Iota: _iota,
    DynamicUpdateSlice: _update,
}
