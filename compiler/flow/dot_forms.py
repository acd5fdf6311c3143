"""Dots that are products and sums of elements: schedules of elementwise ops and of reductions run them faster.

    no contracted axis, or of one element    products: an outer product
    no other axes than batch axes            a reduction of products: rows times rows

A dot of two vectors becomes a reduction if it is long enough to be split. Narrow types may have wider sums in a dot.
"""

from __future__ import annotations

from math import prod
from typing import Final

from orchestrion.compiler.ir.core import Value
from orchestrion.compiler.ir.dims import numbers
from orchestrion.compiler.ir.rewriter import Rewriter
from orchestrion.compiler.stablehlo.builders.tensors import Tensor
from orchestrion.compiler.stablehlo.ops.base import tensor_of
from orchestrion.compiler.stablehlo.ops.contraction import DotGeneral
from orchestrion.schema.dtypes import BOOL, BY_NAME

#: bytes of the narrowest result of a dot that becomes products
NARROWEST: Final = 4


def as_products(op: DotGeneral, rewriter: Rewriter, long: int) -> Value | None:
    """The result of a dot by products of elements; None if it stays a dot. `long`: elements of a long reduction."""
    x, y, dims, out = Tensor(rewriter, op.lhs), Tensor(rewriter, op.rhs), op.dimensions, tensor_of(op.out)
    element = BY_NAME[str(out.element)]
    if not (x.type.is_static and y.type.is_static) or not out.num_elements or not prod(numbers(x.shape)):
        return None
    if element.kind == BOOL or element.itemsize < NARROWEST:
        return None
    x, y = x.convert(element.name), y.convert(element.name)
    length = prod(numbers(x.shape[axis] for axis in dims.lhs_contract))
    batches = prod(numbers(x.shape[axis] for axis in dims.lhs_batch))
    if length == 1 and batches < out.num_elements:
        return _outer(x, y, op).value
    if batches != out.num_elements or batches == 1 and length < long:
        return None
    return _inner(x, y, op).value


def _outer(x: Tensor, y: Tensor, op: DotGeneral) -> Tensor:
    """The products of elements of which one has the batch and free axes of each operand."""
    dims, out = op.dimensions, tensor_of(op.out)
    left = (*dims.lhs_batch, *dims.free(len(x.shape), True))
    right = (*dims.rhs_batch, *dims.free(len(y.shape), False))
    batch = len(dims.lhs_batch)
    x = x.transpose(*left, *dims.lhs_contract).reshape(*out.shape[: len(left)])
    y = y.transpose(*right, *dims.rhs_contract).reshape(*out.shape[:batch], *out.shape[len(left) :])
    return x.broadcast(out.shape, range(len(left))) * y.broadcast(
        out.shape, (*range(batch), *range(len(left), len(out.shape)))
    )


def _inner(x: Tensor, y: Tensor, op: DotGeneral) -> Tensor:
    """Sums of products, along the axes of the left operand, whose order stays."""
    dims = op.dimensions
    pairs = dict(zip((*dims.lhs_batch, *dims.lhs_contract), (*dims.rhs_batch, *dims.rhs_contract), strict=True))
    axes = sorted(pairs)
    x = x.reshape(*(x.shape[axis] for axis in axes))
    y = y.transpose(*(pairs[axis] for axis in axes), *dims.free(len(y.shape), False)).reshape(*x.shape)
    sums = (x * y).reduce([at for at, axis in enumerate(axes) if axis in dims.lhs_contract])
    kept = [axis for axis in axes if axis in dims.lhs_batch]
    return sums.transpose(*map(kept.index, dims.lhs_batch)).reshape(*tensor_of(op.out).shape)
