"""`flow.solve_rows` in StableHLO for the reference device: column after column.

An elimination: after each column, its products are subtracted from all later columns. If the matrix is to be factored,
its rows are eliminated along with the others, because their elements are the divisors and factors.
"""

from __future__ import annotations

from orchestrion.compiler.stablehlo.builders.tensors import Tensor, concatenate
from orchestrion.compiler.stablehlo.ops.flow_ops import RowSolve


def solved(op: RowSolve, matrix: Tensor, rows: Tensor) -> Tensor:
    """The result of the op."""
    batch, count, columns = rows.shape
    rest = concatenate([matrix, rows], 1) if op.factor.value else rows
    first = columns if op.factor.value else 0
    made = []
    for at in range(columns):
        column = _column(rest, 0)
        divisors = column if op.factor.value else _column(matrix, at)
        pivot = divisors.cut(1, at, at + 1)
        pivot = pivot.op("sqrt") if op.factor.value else pivot
        column = column / pivot.reshape(batch).broadcast(column.shape, (0,))
        made.append(column.cut(1, first, column.shape[1]).reshape(batch, count, 1))
        if at + 1 < columns:
            factors = (column if op.factor.value else divisors).cut(1, at + 1, columns)
            later = rest.cut(2, 1, rest.shape[2])
            rest = later - column.broadcast(later.shape, (0, 1)) * factors.broadcast(later.shape, (0, 2))
    return concatenate(made, 2)


def _column(x: Tensor, at: int) -> Tensor:
    return x.cut(2, at, at + 1).reshape(*x.shape[:2])
