"""`cholesky` and `triangular_solve` as loops of products, which run on every device.

For f32 and f64 each iteration computes a block (`blocked_solves.py`). For other types and symbolic sizes it computes
one column of a factor, or one row of a solution, by one matrix-vector product, and writes it into the carried matrix.
The iteration counts are known, so each loop is one submission. `lapack.potrf`, `blas.trsm` and `lapack.getrf` use these
loops on targets without libraries, so that `jnp.linalg.cholesky`, `solve`, `inv` and `det` run everywhere; LAPACK is
faster where it is available.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Final

from orchestrion.compiler.ir.attributes import BoolAttr, DialectAttr
from orchestrion.compiler.ir.core import Operation
from orchestrion.compiler.ir.rewriter import Pattern
from orchestrion.compiler.stablehlo.builders.loops import counted_loop
from orchestrion.compiler.stablehlo.builders.tensors import Tensor, expansion
from orchestrion.compiler.stablehlo.complex.parts import conjugate, transposed
from orchestrion.compiler.stablehlo.ops.contraction import DotDimensions
from orchestrion.schema.dtypes import FLOAT

from . import blocked_solves

#: Products of a matrix per batch and a vector: over the matrix's columns, or over its rows.
_BY_COLUMNS: Final = DotDimensions((0,), (0,), (2,), (1,))
_BY_ROWS: Final = DotDimensions((0,), (0,), (1,), (1,))


def batch_of_matrices(x: Tensor) -> Tensor:
    """Matrices with one batch axis."""
    *batch, rows, columns = x.shape
    return x.reshape(prod(batch), rows, columns)


def cholesky_factor(a: Tensor) -> Tensor:
    """The lower Cholesky factor of matrices [batch, n, n]: reads the lower triangle, and writes zeros above."""
    if blocked_solves.supports(a):
        return blocked_solves.cholesky_factor(a)

    def column(iteration: Tensor, carried: list[Tensor]) -> Sequence[Tensor]:
        (lower,) = carried
        rest = a.line(2, iteration) - lower.dot(conjugate(lower.line(1, iteration)), _BY_COLUMNS)
        pivot = rest.line(1, iteration).op("sqrt").broadcast(rest.shape, (0,))
        place, here = rest.iota(1), iteration.broadcast(rest.shape)
        below = rest / pivot
        made = place.eq(here).select(pivot, (place > here).select(below, below.zeros()))
        return [lower.with_line(2, iteration, made)]

    return counted_loop(a.shape[1], [a.zeros()], column)[0]


def triangular_solution(a: Tensor, b: Tensor, lower: bool, is_transposed: bool, adjoint: bool, unit: bool) -> Tensor:
    """Solves op(a) x = b for matrices [batch, n, n] and [batch, n, m]; `lower` selects the triangle that is read."""
    if blocked_solves.supports(b):
        return blocked_solves.triangular_solution(a, b, lower, is_transposed, unit)
    n, forwards = b.shape[1], lower != is_transposed

    def row(iteration: Tensor, carried: list[Tensor]) -> Sequence[Tensor]:
        (found,) = carried
        at = iteration if forwards else n - 1 - iteration
        line = a.line(2 if is_transposed else 1, at)
        line = conjugate(line) if adjoint else line
        is_known = line.iota(1).compare("LT" if forwards else "GT", at.broadcast(line.shape))
        made = b.line(1, at) - is_known.select(line, line.zeros()).dot(found, _BY_ROWS)
        if not unit:
            made = made / line.line(1, at).broadcast(made.shape, (0,))
        return [found.with_line(1, at, made)]

    return counted_loop(n, [b.zeros()], row)[0]


def _cholesky(op: Operation, a: Tensor) -> Tensor | None:
    shape = a.shape
    if not _is_float(a) or len(shape) < 2 or shape[-1] != shape[-2] or a.type.num_elements == 0:
        return None
    return cholesky_of(batch_of_matrices(a), _flag(op, "lower")).reshape(*shape)


def cholesky_of(a: Tensor, lower: bool) -> Tensor:
    """The Cholesky factor of matrices [batch, n, n], lower or upper."""
    if lower:
        return cholesky_factor(a)
    return conjugate(transposed(cholesky_factor(conjugate(transposed(a)))))


def _is_float(x: Tensor) -> bool:
    return x.dtype.kind == FLOAT or x.is_complex


def _flag(op: Operation, name: str) -> bool:
    given = op.get_as(name, BoolAttr)
    return given is not None and given.value


def _triangular_solve(op: Operation, a: Tensor, b: Tensor) -> Tensor | None:
    transpose = op.get_as("transpose_a", DialectAttr)
    if transpose is None or not _is_float(a):
        return None
    left, kind = _flag(op, "left_side"), transpose.body.split()[-1]
    flags = (_flag(op, "lower"), kind != "NO_TRANSPOSE", kind == "ADJOINT", _flag(op, "unit_diagonal"))
    return solve(a, b, left, *flags)


def solve(
    a: Tensor, b: Tensor, left: bool, lower: bool, is_transposed: bool, adjoint: bool, unit: bool
) -> Tensor | None:
    """Solves op(a) x = b, or x op(a) = b as a^T x^T = b^T. None if batches and sizes do not agree."""
    if a.type.element != b.type.element or len(a.shape) < 2 or len(b.shape) < 2 or b.type.num_elements == 0:
        return None
    n = b.shape[-2 if left else -1]
    if a.shape != (*b.shape[:-2], n, n):
        return None
    wide, given = batch_of_matrices(a), batch_of_matrices(b)
    given = given if left else transposed(given)
    found = triangular_solution(wide, given, lower, is_transposed == left, adjoint, unit)
    return (found if left else transposed(found)).reshape(*b.shape)


PATTERNS: Final[dict[str, tuple[Pattern, ...]]] = {
    "stablehlo.cholesky": (expansion(_cholesky, 1),),
    "stablehlo.triangular_solve": (expansion(_triangular_solve, 2),),
}
