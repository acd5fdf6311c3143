"""Eigenvalues and eigenvectors of Hermitian matrices by the Jacobi method: syevd of LAPACK.

Each iteration rotates all rows and columns in disjoint pairs, so that the off-diagonal element of each pair vanishes:
one dispatch for the angles, and one for the matrix and the vectors, for any size. Sweeps end when the off-diagonal part
is a rounding error of the whole; convergence is quadratic, six to ten sweeps. The matrix stays exactly symmetric.
Source: Golub and Van Loan, Matrix Computations, 8.5.
"""

from __future__ import annotations

from collections.abc import Sequence

from orchestrion.compiler.stablehlo.builders.tensors import Tensor
from orchestrion.compiler.stablehlo.complex.parts import (
    adjoint,
    conjugate,
    greatest,
    parts_of,
    scaled_by,
    squared,
    tensor_of_parts,
)

from . import rotations
from .householder import identity


def eigenvalues(a: Tensor, lower: bool, with_vectors: bool) -> tuple[list[Tensor], Tensor, Tensor]:
    """Eigenvectors as columns [batch, n, n] if wanted, ascending eigenvalues [batch, n], and info [batch], of Hermitian
    matrices of which one triangle is read. NaN and info 1 for a matrix that is not finite.
    """
    rows, columns = a.iota(1), a.iota(2)
    whole = rows.compare("GE" if lower else "LE", columns).select(a, adjoint(a))
    real, *imaginary = parts_of(whole)
    beside = rows.ne(columns)
    symmetric = tensor_of_parts(a.type, [real, *(beside.select(part, 0.0) for part in imaginary)])
    size, format = greatest(symmetric, (1, 2)), real.format
    scaled = scaled_by(symmetric, size.power(2 * format.bias - size.exponent()).broadcast(a.shape, (0,)))
    bound = squared(scaled).reduce((1, 2)) * 4.0**-format.fraction
    vectors = [identity(a)] if with_vectors else []
    left, made, *vectors = rotations.sweeps([scaled, *vectors], _off_diagonal_squares(scaled), bound, _sweep)
    fine, info = rotations.convergence(left, bound, size)
    values = rotations.diagonal(made) * size.power(size.exponent()).broadcast(a.shape[:2], (0,))
    found, *vectors = (rotations.nan_unless(fine, x) for x in rotations.sort_lines(values, "LT", vectors))
    return [adjoint(x) for x in vectors], found, info


def _sweep(number: Tensor, carried: list[Tensor]) -> Sequence[Tensor]:
    made = rotations.rotate_all(carried[1:], int(carried[1].shape[1]), _rotate)
    return [_off_diagonal_squares(made[0]), *made]


def _rotate(iteration: Tensor, carried: list[Tensor]) -> Sequence[Tensor]:
    a, *vectors = carried
    partner = rotations.partners(iteration, int(a.shape[1]))
    own, between = rotations.diagonal(a), _pair_elements(a, partner)
    k, sine = rotations.angles(partner, own, rotations.gather_lines(own, partner, 1), between)
    return [_both_sides(a, partner, k, sine), *(rotations.rotate_rows(x, partner, k, sine) for x in vectors)]


def _both_sides(a: Tensor, partner: Tensor, k: Tensor, sine: Tensor) -> Tensor:
    """Rotates rows and columns. Every product and sum is symmetric in row and column, so that the matrix stays
    Hermitian, with a real diagonal.
    """
    shape = a.shape
    across, down = rotations.gather_lines(a, partner, 2), rotations.gather_lines(a, partner, 1)
    both = rotations.gather_lines(down, partner, 2)
    (k, s), (m, t) = ([x.broadcast(shape, (0, axis)) for x in (k, sine)] for axis in (1, 2))
    t = conjugate(t)
    rotated = s * down, t * across
    moved = (rotated[0] - m * rotated[0]) + (rotated[1] - k * rotated[1])
    made = a - ((moved + (k + m - k * m) * a) - s * t * both)
    row, column = a.iota(1), a.iota(2)
    is_diagonal, is_between = column.eq(row), column.eq(partner.broadcast(shape, (1,)))
    return is_diagonal.select(made, is_between.select(made.zeros(), made))


def _pair_elements(a: Tensor, partner: Tensor) -> Tensor:
    """The off-diagonal element [batch, n] of each pair; both rows of a pair read it from the upper triangle."""
    batch, n, _ = a.shape
    row = partner.iota(0)
    first, second = (row.op(name, partner) for name in ("minimum", "maximum"))
    real, *imaginary = parts_of(rotations.gather_lines(a.reshape(batch, n * n), first * n + second, 1))
    above = row.broadcast((batch, n), (1,)) < partner.broadcast((batch, n), (1,))
    parts = [real, *(above.select(part, -part) for part in imaginary)]
    return rotations.zero_if_resting(partner, tensor_of_parts(a.type.with_shape((batch, n)), parts))


def _off_diagonal_squares(a: Tensor) -> Tensor:
    """The sum of squares [batch] of the off-diagonal elements."""
    return a.iota(1).ne(a.iota(2)).select(squared(a), 0.0).reduce((1, 2))
