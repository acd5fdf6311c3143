"""Attention bodies: a dot, ops that reduce and compute on the rows of its result, and a dot that multiplies these rows.

The *scores* are the result of the first dot, a row per batch and row of the second one. The *weights* are the left
operand of the second dot: as many rows, of as many elements. Each row of weights depends on the same row of scores
(`row_bodies.py`), as in a softmax. Everything else in the body is in front of the dots, or behind the second one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import prod

from orchestrion.compiler.ir.core import Operation, Value
from orchestrion.compiler.stablehlo.ops.base import tensor_of
from orchestrion.compiler.stablehlo.ops.contraction import DotGeneral

from .fusion_reads import elements
from .row_bodies import rows_of


@dataclass(frozen=True, slots=True)
class Attention:
    """The dots of an attention body. `between`: the ops on which the weights depend behind the scores, in order."""

    scores: DotGeneral
    between: Sequence[Operation]
    product: DotGeneral

    @classmethod
    def of(cls, ops: Sequence[Operation], results: Sequence[Value]) -> Attention | None:
        """The attention that ops of static shapes compute; None if they compute something else."""
        dots = [op for op in ops if isinstance(op, DotGeneral)]
        if len(dots) != 2 or not all(tensor_of(value).is_static for op in ops for value in op.results):
            return None
        scores, product = dots
        before = _makers(scores.operands, ops)
        needed = _makers([product.lhs], ops, scores)
        between = [op for op in ops if op in needed and op is not scores]
        others = _makers([product.rhs, *results], ops, product)
        if scores not in needed or scores in others or product in before or product not in others:
            return None
        rows, length = _sizes(scores, True)
        if (rows, length) != _sizes(product, False) or rows_of(between, [product.lhs], [scores.out]) != prod(rows):
            return None
        if any(elements(value) != elements(product.out) for value in results):
            return None
        return cls(scores, between, product)


def _makers(values: Iterable[Value], ops: Sequence[Operation], last: Operation | None = None) -> set[Operation]:
    """The ops, out of `ops`, on which values depend, not beyond `last`."""
    known, found, stack = set(ops), set[Operation](), list(values)
    while stack:
        op = stack.pop().defining_op
        if op is not None and op in known and op not in found:
            found.add(op)
            stack += () if op is last else op.operands
    return found


def _sizes(dot: DotGeneral, is_result: bool) -> tuple[tuple[int, int], int]:
    """(batches, rows) and the length of a row: of the result of a dot, or of its left operand if that is stored row by
    row; else a length of 0.
    """
    shape, dims = tensor_of(dot.lhs).static_shape, dot.dimensions
    free = dims.free(len(shape), True)
    rows = prod(shape[axis] for axis in dims.lhs_batch), prod(shape[axis] for axis in free)
    if is_result:
        right = tensor_of(dot.rhs).static_shape
        return rows, prod(right[axis] for axis in dims.free(len(right), False))
    in_order = [*dims.lhs_batch, *free, *dims.lhs_contract] == list(range(len(shape)))
    return rows, prod(shape[axis] for axis in dims.lhs_contract) if in_order else 0
