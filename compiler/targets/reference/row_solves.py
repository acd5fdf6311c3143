"""Expands `flow.solve_rows` into StableHLO for the reference device: column after column.

An elimination: after each column, its products are subtracted from all later columns. If the matrix is to be factored,
its rows are eliminated along with the others, because their elements are the divisors and factors.
"""

from __future__ import annotations

from orchestrion.compiler.ir.attributes import IntegerAttr
from orchestrion.compiler.ir.core import Block, Value
from orchestrion.compiler.ir.rewriter import Rewriter
from orchestrion.compiler.stablehlo.builders.basic import elementwise
from orchestrion.compiler.stablehlo.builders.shape_builders import broadcast, reshape, slice_range
from orchestrion.compiler.stablehlo.ops.base import tensor_of
from orchestrion.compiler.stablehlo.ops.flow_ops import RowSolve
from orchestrion.compiler.stablehlo.ops.structural import Concatenate


def expand_row_solves(block: Block) -> None:
    """Replaces every `flow.solve_rows` in a block."""
    for op in [op for op in block if isinstance(op, RowSolve)]:
        rewriter = Rewriter({})
        rewriter.at(op)
        rewriter.replace(op, [_solved(op, rewriter)])


def _solved(op: RowSolve, rewriter: Rewriter) -> Value:
    batch, count, columns = tensor_of(op.rows).shape
    rest = _beside(rewriter, [op.matrix, op.rows], 1) if op.factor.value else op.rows
    first = columns if op.factor.value else 0
    made = []
    for at in range(columns):
        column = _column(rewriter, rest, 0)
        matrix = column if op.factor.value else _column(rewriter, op.matrix, at)
        pivot = slice_range(rewriter, matrix, (0, at), (batch, at + 1))
        pivot = elementwise(rewriter, "sqrt", pivot) if op.factor.value else pivot
        shape = tensor_of(column).shape
        column = elementwise(
            rewriter, "divide", column, broadcast(rewriter, reshape(rewriter, pivot, (batch,)), shape, (0,))
        )
        made.append(reshape(rewriter, slice_range(rewriter, column, (0, first), shape), (batch, count, 1)))
        if at + 1 < columns:
            factors = slice_range(rewriter, column if op.factor.value else matrix, (0, at + 1), (batch, columns))
            rest = _without(rewriter, rest, column, factors)
    return _beside(rewriter, made, 2)


def _without(rewriter: Rewriter, rest: Value, column: Value, factors: Value) -> Value:
    """The columns behind the first, minus the products of `column` with their factors."""
    batch, count, width = tensor_of(rest).shape
    later = slice_range(rewriter, rest, (0, 0, 1), (batch, count, width))
    shape = tensor_of(later).shape
    products = elementwise(
        rewriter, "multiply", broadcast(rewriter, column, shape, (0, 1)), broadcast(rewriter, factors, shape, (0, 2))
    )
    return elementwise(rewriter, "subtract", later, products)


def _column(rewriter: Rewriter, value: Value, at: int) -> Value:
    batch, count, _ = tensor_of(value).shape
    return reshape(rewriter, slice_range(rewriter, value, (0, 0, at), (batch, count, at + 1)), (batch, count))


def _beside(rewriter: Rewriter, values: list[Value], axis: int) -> Value:
    shape = list(tensor_of(values[0]).shape)
    shape[axis] = sum(tensor_of(value).shape[axis] for value in values)
    out = tensor_of(values[0]).with_shape(tuple(shape))
    return rewriter.build(Concatenate, inputs=values, dimension=IntegerAttr(axis), out=out).result
