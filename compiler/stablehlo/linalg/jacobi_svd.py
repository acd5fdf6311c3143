"""Singular values and vectors by the one-sided Jacobi method: gesdd of LAPACK.

Rows of a matrix are rotated in pairs until all are orthogonal. Their norms are then the singular values, their
directions the right singular vectors, and the accumulated rotations the left ones. Each iteration takes one dispatch
for the products of rows, one for the angles, one for the matrix, and one for the left vectors. A tall matrix is
replaced by its R, a wide one is transposed. The right vectors are the Q of the rows, which is orthogonal even if a
singular value is zero and a row has no direction. Source: Golub and Van Loan, Matrix Computations, 8.6.3.
"""

from __future__ import annotations

from collections.abc import Sequence

from orchestrion.compiler.ir.dims import Size
from orchestrion.compiler.stablehlo.builders.tensors import Tensor
from orchestrion.compiler.stablehlo.complex.parts import (
    adjoint,
    conjugate,
    greatest,
    magnitude,
    parts_of,
    scaled_by,
    squared,
    sum_of,
)
from orchestrion.compiler.stablehlo.ops.base import part_type

from . import rotations
from .householder import apply_q, identity, qr_factors, upper_triangle


def singular_values(a: Tensor, with_vectors: bool, full: bool) -> tuple[list[Tensor], Tensor, Tensor]:
    """u and v^H of matrices [batch, m, n] if wanted (square if `full`), descending singular values, and info [batch].
    NaN and info 1 for a matrix that is not finite.
    """
    batch, rows, columns = a.shape
    if rows < columns:
        vectors, values, info = singular_values(adjoint(a), with_vectors, full)
        return [adjoint(x) for x in reversed(vectors)], values, info
    size = greatest(a, (1, 2))
    factor = size.power(2 * size.format.bias - size.exponent())
    scaled = scaled_by(a, factor.broadcast(a.shape, (0,)))
    packed, taus = qr_factors(scaled) if rows > columns else (scaled, None)
    square = upper_triangle(packed) if taus is not None else scaled
    left, found, *lines = _orthogonal(square, with_vectors)
    fine, info = rotations.convergence(left, _bound(square), size)
    values, *lines = rotations.sort_lines(_norms(found), "GT", [found, *lines] if with_vectors else [])
    shown = values * size.power(size.exponent()).broadcast((batch, columns), (0,))
    if not with_vectors:
        return [], rotations.nan_unless(fine, shown), info
    u, vt = adjoint(lines[1]), _directions(lines[0])
    if taus is not None:
        u = apply_q(packed, taus, _padded_vectors(u, rows, full))
    return [rotations.nan_unless(fine, x) for x in (u, vt)], rotations.nan_unless(fine, shown), info


def _bound(square: Tensor) -> Tensor:
    """The cosine up to which two rows count as orthogonal: the rounding error of a product of that many elements."""
    zero = _real_zeros(square, 1)
    return zero + int(square.shape[1]) * 2.0**-zero.format.fraction


def _real_zeros(matrices: Tensor, rank: int) -> Tensor:
    """A real zero per matrix, or per row."""
    type = part_type(matrices.type) if matrices.is_complex else matrices.type
    return matrices.splat(0.0, type.with_shape(type.shape[:rank]))


def _orthogonal(square: Tensor, with_vectors: bool) -> list[Tensor]:
    """The greatest cosine between two rows before the last sweep, the rows after it, and the rotations if wanted."""
    bound = _bound(square)
    return rotations.sweeps([square, *([identity(square)] if with_vectors else [])], bound + 1.0, bound, _sweep)


def _sweep(number: Tensor, carried: list[Tensor]) -> Sequence[Tensor]:
    cosines, *made = rotations.rotate_all([_real_zeros(carried[1], 2), *carried[1:]], int(carried[1].shape[1]), _rotate)
    return [cosines.reduce((1,), "maximum"), *made]


def _rotate(iteration: Tensor, carried: list[Tensor]) -> Sequence[Tensor]:
    """Rotates all pairs. Rows so short that their products have few digits do not prolong the sweeps."""
    cosines, rows, *turned = carried
    partner = rotations.partners(iteration, int(rows.shape[1]))
    theirs = conjugate(rotations.gather_lines(rows, partner, 1))
    own, product = squared(rows).reduce((2,)), (rows * theirs).reduce((2,))
    between, other = rotations.zero_if_resting(partner, product), rotations.gather_lines(own, partner, 1)
    k, sine = rotations.angles(partner, own, other, between)
    least = 2.0 ** -(own.format.bias * 3 // 4)
    is_nothing = (own < least) | (other < least)
    cosine = is_nothing.select(0.0, magnitude(between) / (own.op("sqrt") * other.op("sqrt")))
    return [cosines.op("maximum", cosine), *(rotations.rotate_rows(x, partner, k, sine) for x in (rows, *turned))]


def _norms(rows: Tensor) -> Tensor:
    """The norm of each row, without overflow or underflow of squares."""
    most = greatest(rows, (2,))
    scale = most.eq(0.0).select(1.0, most).broadcast(rows.shape, (0, 1))
    scaled = [part / scale for part in parts_of(rows)]
    return most * sum_of([part * part for part in scaled]).reduce((2,)).op("sqrt")


def _directions(rows: Tensor) -> Tensor:
    """Orthonormal rows, from orthogonal rows with norms in descending order, possibly zero."""
    packed, taus = qr_factors(adjoint(rows))
    q, signs = apply_q(packed, taus, identity(packed)), rotations.diagonal(packed)
    signs = (signs < 0.0).select(signs.of(-1.0), 1.0)
    return scaled_by(adjoint(q), signs.broadcast(q.shape, (0, 1)))


def _padded_vectors(u: Tensor, rows: Size, full: bool) -> Tensor:
    """Appends rows of zeros; for `full`, makes the matrix square with ones on the diagonal."""
    batch, n, _ = u.shape
    return identity(u.zeros((batch, rows, rows if full else n))).updated([0, 0, 0], u)
