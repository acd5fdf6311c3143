"""`flow.solve_rows`: rows times the inverse of a small triangle, whose Cholesky factor may be taken first.

What `cholesky` and `triangular_solve` are made of, beside products: by each iteration of a loop a block of columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from orchestrion.compiler.ir.attributes import BoolAttr
from orchestrion.compiler.ir.core import Trait
from orchestrion.compiler.ir.declare import attr, operand, result
from orchestrion.compiler.ir.types import TensorType
from orchestrion.compiler.stablehlo.ops.base import ShapeError, StablehloOp, dtype_of, tensor_of
from orchestrion.schema.dtypes import FLOAT

#: rows and columns of the triangle, at most: a workgroup has that many invocations, a row each
BLOCK: Final = 32


class RowSolve(StablehloOp):
    """The rows x for which x L^T is a row of `rows`, per batch. L is the lower triangle of the matrix, or (`factor`)
    the lower Cholesky factor of the symmetric matrix whose lower triangle that is; the upper one is not looked at.

    `matrix` [batch, n, n], `rows` and the result [batch, m, n]; n is `BLOCK` at most.
    """

    name = "flow.solve_rows"
    matrix = operand(TensorType)
    rows = operand(TensorType)
    factor = attr(BoolAttr)
    out = result(TensorType)
    traits = frozenset({Trait.PURE})

    def infer(self) -> Sequence[TensorType]:
        matrix, rows = tensor_of(self.matrix), tensor_of(self.rows)
        if dtype_of(self.rows).kind != FLOAT or rows.rank != 3:
            raise ShapeError(f"takes rows of floats per batch, not {rows}")
        batch, _, columns = rows.shape
        if columns not in range(1, BLOCK + 1):
            raise ShapeError(f"rows of {columns} elements, not of 1 to {BLOCK}")
        if matrix != rows.with_shape((batch, columns, columns)):
            raise ShapeError(f"matrix must be {rows.with_shape((batch, columns, columns))}, is {matrix}")
        return [rows]
