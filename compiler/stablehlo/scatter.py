"""A scatter of one window is an update of a slice: what `x.at[i].set(v)` and its relatives become in JAX.

The window has size 1 along the axes that the index vector chooses, so it lies inside of the operand or outside. Outside
nothing is written: then the update is what stands there already. Other scatters are left for the legality check.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from math import prod
from typing import Final

from orchestrion.compiler.ir.attributes import DenseArray, DialectAttr
from orchestrion.compiler.ir.core import Operation, Value
from orchestrion.compiler.ir.rewriter import Rewriter
from orchestrion.compiler.ir.types import TensorType
from orchestrion.schema.dtypes import BY_NAME, SIGNED, UNSIGNED

from .base import is_supported, tensor_of
from .build import compare, constant, elementwise
from .contraction import Return
from .elementwise import Elementwise
from .indexing import DynamicSlice, DynamicUpdateSlice
from .scalar_regions import widened
from .structural import Constant, Reshape, Slice

_LIST: Final = re.compile(r"(\w+)\s*=\s*\[\s*((?:[0-9]{1,9}(?:\s*,\s*[0-9]{1,9})*)?)\s*\]\s*(?:,|$)")
_NUMBER: Final = re.compile(r"index_vector_dim\s*=\s*([0-9]{1,9})\s*(?:,|$)")
_KEYS: Final = frozenset({"update_window_dims", "inserted_window_dims", "scatter_dims_to_operand_dims"})


@dataclass(frozen=True, slots=True)
class _Window:
    """A scatter of one window: its shape in the operand, and the operand axes that the index vector is for."""

    shape: tuple[int, ...]
    chosen: tuple[int, ...]


def expand_scatter(op: Operation, rewriter: Rewriter) -> bool:
    types = [value.type for value in (*op.operands, *op.results)]
    if len(op.operands) != 3 or len(op.results) != 1 or not all(map(is_supported, types)):
        return False
    window = _window(op)
    if window is None or not _is_combiner(op, tensor_of(op.operands[0])):
        return False
    operand, indices, update = op.operands
    whole = tensor_of(operand)
    if 0 in (*whole.shape, *window.shape):  # nothing there to be written
        rewriter.replace(op, [operand])
        return True
    vector = _vector(rewriter, indices, len(window.chosen))
    zero = constant(rewriter, 0, tensor_of(indices).with_shape(()))
    starts = [vector[window.chosen.index(axis)] if axis in window.chosen else zero for axis in range(whole.rank)]
    type = whole.with_shape(window.shape)
    old = rewriter.build(
        DynamicSlice, operand_=operand, start_indices=starts, slice_sizes=DenseArray(window.shape), out=type
    ).result
    given = rewriter.build(Reshape, operand_=update, out=type).result
    (new,) = widened(rewriter, op.regions[0].block, (old, given), window.shape)
    for axis, index in zip(window.chosen, vector, strict=True):
        new = elementwise(rewriter, "select", _is_inside(rewriter, index, whole.shape[axis], zero), new, old)
    made = rewriter.build(DynamicUpdateSlice, operand_=operand, update=new, start_indices=starts, out=whole)
    rewriter.replace(op, made.results)
    return True


def _window(op: Operation) -> _Window | None:
    """The window, when there is one only, of size 1 along the axes that are chosen."""
    given = op.get_as("scatter_dimension_numbers", DialectAttr)
    whole, indices, update = (tensor_of(value) for value in op.operands)
    lists = _lists(given) if given is not None else None
    if lists is None or whole != op.results[0].type or update.element != whole.element:
        return None
    window_axes, inserted, chosen = lists
    kept = [axis for axis in range(whole.rank) if axis not in inserted]
    if len(window_axes) != len(kept) or any(axis >= update.rank for axis in window_axes):
        return None
    if len(set(chosen)) != len(chosen) or any(axis >= whole.rank for axis in (*chosen, *inserted)):
        return None
    shape = [1] * whole.rank
    for axis, source in zip(kept, window_axes, strict=True):
        shape[axis] = update.shape[source]
    if prod(shape) != prod(update.shape) or any(shape[axis] != 1 for axis in chosen):
        return None
    fits = all(size <= most for axis, (size, most) in enumerate(zip(shape, whole.shape, strict=True)) if most)
    number = BY_NAME[str(indices.element)].kind in (SIGNED, UNSIGNED)
    return _Window(tuple(shape), chosen) if fits and number and prod(indices.shape) == len(chosen) else None


def _lists(attribute: DialectAttr) -> tuple[tuple[int, ...], ...] | None:
    """update_window_dims, inserted_window_dims, scatter_dims_to_operand_dims; None when there is more."""
    body = _NUMBER.sub("", attribute.body)
    found = {key: tuple(int(x) for x in text.split(",") if x.strip()) for key, text in _LIST.findall(body)}
    if not found.keys() <= _KEYS or _LIST.sub("", body).strip(" ,\n"):
        return None
    window, inserted, chosen = (
        found.get(key, ()) for key in ("update_window_dims", "inserted_window_dims", "scatter_dims_to_operand_dims")
    )
    return window, inserted, chosen


def _is_combiner(op: Operation, whole: TensorType) -> bool:
    """Whether the region computes one scalar of two by elementwise ops."""
    if len(op.regions) != 1 or len(op.regions[0].blocks) != 1:
        return False
    block = op.regions[0].block
    scalar = whole.with_shape(())
    known: set[Value] = set(block.arguments)
    *inner, last = block.ops or [op]
    for computed in inner:
        plain = isinstance(computed, Elementwise | Constant) and all(value in known for value in computed.operands)
        if not plain or len(computed.results) != 1 or not is_supported(computed.result.type):
            return False
        known.add(computed.result)
    arguments = [argument.type for argument in block.arguments] == [scalar, scalar]
    returned = isinstance(last, Return) and len(last.operands) == 1 and last.operands[0] in known
    return arguments and returned and last.operands[0].type == scalar


def _vector(rewriter: Rewriter, indices: Value, count: int) -> list[Value]:
    """The numbers of the index vector."""
    type = tensor_of(indices)
    flat = rewriter.build(Reshape, operand_=indices, out=type.with_shape((count,))).result
    found: list[Value] = []
    for at in range(count):
        bounds = (DenseArray((at,)), DenseArray((at + 1,)), DenseArray((1,)))
        names = ("start_indices", "limit_indices", "strides")
        one = rewriter.build(
            Slice, operand_=flat, out=type.with_shape((1,)), **dict(zip(names, bounds, strict=True))
        ).result
        found.append(rewriter.build(Reshape, operand_=one, out=type.with_shape(())).result)
    return found


def _is_inside(rewriter: Rewriter, index: Value, size: int, zero: Value) -> Value:
    """Whether an index is one of an axis; the type of the index may be too small to hold its size."""
    dtype = BY_NAME[str(tensor_of(index).element)]
    most = (1 << dtype.bits - (dtype.kind == SIGNED)) - 1
    last = constant(rewriter, min(size - 1, most), tensor_of(index))
    above = compare(rewriter, "GE", index, zero)
    return elementwise(rewriter, "and", above, compare(rewriter, "LE", index, last))
