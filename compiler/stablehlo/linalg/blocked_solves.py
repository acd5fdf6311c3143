"""Cholesky factors and triangular solves in a loop over blocks of columns or rows.

Each iteration subtracts the contribution of the known blocks by one product, and `flow.solve_rows` computes the rest of
the block. The number of dispatches per iteration is small and independent of the size. A matrix is padded to whole
blocks with ones on the diagonal; a matrix of one block needs no loop. For f32 and f64 matrices of static shape;
`triangular.py` has the same algorithms row by row for other types.
"""

from __future__ import annotations

from collections.abc import Sequence

from orchestrion.compiler.ir.dims import Size, is_dynamic
from orchestrion.compiler.ir.types import F32, F64
from orchestrion.compiler.stablehlo.builders.loops import counted_loop
from orchestrion.compiler.stablehlo.builders.tensors import Tensor
from orchestrion.compiler.stablehlo.complex.parts import transposed
from orchestrion.compiler.stablehlo.ops.contraction import DotDimensions
from orchestrion.compiler.stablehlo.ops.flow_ops import BLOCK, RowSolve

_ROWS_BY_ROWS = DotDimensions((0,), (0,), (2,), (2,))
#: The product of matrices, per batch.
PRODUCT = DotDimensions((0,), (0,), (2,), (1,))


def supports(x: Tensor) -> bool:
    """Whether the matrices have a suitable type and static shape; the batch may be symbolic."""
    return x.type.element in (F32, F64) and not is_dynamic(*x.shape[1:])


def cholesky_factor(a: Tensor) -> Tensor:
    """The lower Cholesky factor of matrices [batch, n, n]: reads the lower triangle, and writes zeros above."""
    batch, n, _ = a.shape
    if n <= BLOCK:
        return _lower(solve_rows(a, a, factor=True))
    size = whole_blocks(n)
    whole = _filled(a, size, unit=False)

    def columns(iteration: Tensor, carried: list[Tensor]) -> Sequence[Tensor]:
        (lower,), at = carried, iteration * BLOCK
        line = lower.dynamic_slice([0, at, 0], (batch, BLOCK, size))
        rest = whole.dynamic_slice([0, 0, at], (batch, size, BLOCK)) - lower.dot(line, _ROWS_BY_ROWS)
        block = rest.dynamic_slice([0, at, 0], (batch, BLOCK, BLOCK))
        return [lower.updated([0, 0, at], _lower(solve_rows(block, rest, factor=True), at))]

    return counted_loop(size // BLOCK, [whole.zeros()], columns)[0].leading((batch, n, n))


def triangular_solution(a: Tensor, b: Tensor, lower: bool, is_transposed: bool, unit: bool) -> Tensor:
    """Solves op(a) x = b for matrices [batch, n, n] and [batch, n, m]; `lower` selects the triangle that is read."""
    batch, n, m = b.shape
    a = transposed(a) if is_transposed else a
    backwards = lower == is_transposed
    if backwards:  # from the last row to the first: reversed, it is a forward substitution
        a, b = a.reverse(1, 2), b.reverse(1)
    size = n if n <= BLOCK else whole_blocks(n)
    whole = _filled(a, size, unit)
    if size == n <= BLOCK:
        made = transposed(solve_rows(whole, transposed(b)))
    else:
        made = _by_blocks(whole, b.pad_to(batch, size, m)).leading((batch, n, m))
    return made.reverse(1) if backwards else made


def _by_blocks(a: Tensor, b: Tensor) -> Tensor:
    """Solves a x = b for a lower triangle `a` of whole blocks."""
    batch, size, m = b.shape

    def rows(iteration: Tensor, carried: list[Tensor]) -> Sequence[Tensor]:
        (found,), at = carried, iteration * BLOCK
        line = a.dynamic_slice([0, at, 0], (batch, BLOCK, size))
        rest = b.dynamic_slice([0, at, 0], (batch, BLOCK, m)) - line.dot(found, PRODUCT)
        block = a.dynamic_slice([0, at, at], (batch, BLOCK, BLOCK))
        return [found.updated([0, at, 0], transposed(solve_rows(block, transposed(rest))))]

    return counted_loop(size // BLOCK, [b.zeros()], rows)[0]


def solve_rows(matrix: Tensor, rows: Tensor, factor: bool = False) -> Tensor:
    """The x with x L^T = rows, for the lower triangle L of `matrix`; `factor`: L is its lower Cholesky factor."""
    return rows.build(RowSolve, matrix=matrix, rows=rows, factor=factor, out=rows.type)


def whole_blocks(size: Size) -> Size:
    """The least multiple of the block size that is not less."""
    return -(-size // BLOCK) * BLOCK


def _lower(x: Tensor, first: Tensor | None = None) -> Tensor:
    """Zeros above the diagonal of columns that start at column `first` of a matrix."""
    column = x.iota(2)
    column = column if first is None else column + first.broadcast(x.shape)
    return (x.iota(1) >= column).select(x, x.zeros())


def with_ones(x: Tensor, first: Size) -> Tensor:
    """Matrices with ones on the diagonal from index `first` on."""
    row = x.iota(1)
    on = row.eq(x.iota(2))
    return (on & (row >= first) if first else on).select(1.0, x)


def _filled(a: Tensor, size: Size, unit: bool) -> Tensor:
    """The lower triangle with zeros above, padded with ones on the diagonal; `unit`: all ones on the diagonal."""
    batch, n, _ = a.shape
    whole = a.pad_to(batch, size, size)
    lower = _lower(whole)
    return with_ones(lower, 0 if unit else n) if unit or size != n else lower
