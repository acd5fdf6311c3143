"""`flow.solve_rows`: multiplies rows by the inverse of a small triangular matrix, optionally of a Cholesky factor.

`cholesky` and `triangular_solve` are loops over blocks of columns. Each iteration has one such op and products.
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

#: most rows and columns of the matrix: a workgroup has that many invocations, one per row
BLOCK: Final = 32


class RowSolve(StablehloOp):
    """Computes, per batch, the rows x with x L^T = a row of `rows`. L is the lower triangle of `matrix`, or, if
    `factor`, the lower Cholesky factor of the symmetric matrix with that lower triangle. The upper triangle is not
    read.

    `matrix` [batch, n, n], `rows` and the result [batch, m, n]; n is at most `BLOCK`.
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
