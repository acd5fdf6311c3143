"""Eigenvalues and eigenvectors of Hermitian matrices by the Jacobi method: syevd of LAPACK.

Each iteration rotates all rows and columns in disjoint pairs, so that the off-diagonal element of each pair vanishes:
one dispatch for the angles, and one for the matrix and the vectors, for any size. Sweeps end when the off-diagonal part
is a rounding error of the whole; convergence is quadratic, six to ten sweeps. The matrix stays exactly symmetric.
Source: Golub and Van Loan, Matrix Computations, 8.5.
"""

from __future__ import annotations

from collections.abc import Sequence

from orchestrion.compiler.ir.core import Value
from orchestrion.compiler.ir.rewriter import Rewriter
from orchestrion.compiler.stablehlo.builders.basic import compare, constant, elementwise
from orchestrion.compiler.stablehlo.builders.loops import counted_loop
from orchestrion.compiler.stablehlo.builders.real import Mask, Real
from orchestrion.compiler.stablehlo.builders.shape_builders import broadcast, iota, reshape, zeros
from orchestrion.compiler.stablehlo.complex.parts import (
    adjoint,
    conjugate,
    greatest,
    parts_of,
    scaled_by,
    squared,
    value_of_parts,
)
from orchestrion.compiler.stablehlo.ops.base import tensor_of

from .householder import identity
from .rotations import (
    angles,
    convergence,
    diagonal,
    gather_lines,
    nan_unless,
    partners,
    rotate_rows,
    rounds_per_sweep,
    sort_lines,
    sweeps,
    zero_if_resting,
)


def eigenvalues(rewriter: Rewriter, a: Value, lower: bool, with_vectors: bool) -> tuple[list[Value], Value, Value]:
    """Eigenvectors as columns [batch, n, n] if wanted, ascending eigenvalues [batch, n], and info [batch], of Hermitian
    matrices of which one triangle is read. NaN and info 1 for a matrix that is not finite.
    """
    shape = tensor_of(a).shape
    rows, columns = (iota(rewriter, shape, axis) for axis in (1, 2))
    given = Mask(rewriter, compare(rewriter, "GE" if lower else "LE", rows, columns))
    whole = given.select(Real(rewriter, a), Real(rewriter, adjoint(rewriter, a)))
    real, *imaginary = parts_of(rewriter, whole.value)
    beside = Mask(rewriter, compare(rewriter, "NE", rows, columns))
    symmetric = value_of_parts(rewriter, tensor_of(a), [real, *(beside.select(part, 0.0) for part in imaginary)])
    size, format = greatest(rewriter, symmetric, (1, 2)), real.format
    scaled = scaled_by(rewriter, symmetric, size.power(2 * format.bias - size.exponent()).broadcast(shape, (0,)))
    bound = squared(rewriter, scaled).reduce((1, 2)) * 4.0**-format.fraction
    vectors = [identity(rewriter, tensor_of(a))] if with_vectors else []
    left, made, *vectors = sweeps(rewriter, [scaled, *vectors], _off_diagonal_squares(rewriter, scaled), bound, _sweep)
    fine, info = convergence(rewriter, left, bound, size)
    values = diagonal(rewriter, made) * size.power(size.exponent()).broadcast(shape[:2], (0,))
    found, *vectors = (nan_unless(rewriter, fine, x) for x in sort_lines(rewriter, values.value, "LT", vectors))
    return [adjoint(rewriter, x) for x in vectors], found, info


def _sweep(rewriter: Rewriter, number: Value, carried: list[Value]) -> Sequence[Value]:
    made = counted_loop(rewriter, rounds_per_sweep(tensor_of(carried[1]).shape[1]), carried[1:], _rotate)
    return [_off_diagonal_squares(rewriter, made[0]).value, *made]


def _rotate(rewriter: Rewriter, iteration: Value, carried: list[Value]) -> Sequence[Value]:
    a, *vectors = carried
    partner = partners(rewriter, iteration, tensor_of(a).shape[1])
    own, between = diagonal(rewriter, a), _pair_elements(rewriter, a, partner)
    k, sine = angles(rewriter, partner, own, gather_lines(rewriter, own.value, partner, 1), between)
    made = _both_sides(rewriter, a, partner, k, sine)
    return [made.value, *(rotate_rows(rewriter, x, partner, k, sine) for x in vectors)]


def _both_sides(rewriter: Rewriter, a: Value, partner: Value, k: Real, sine: Real) -> Real:
    """Rotates rows and columns. Every product and sum is symmetric in row and column, so that the matrix stays
    Hermitian, with a real diagonal.
    """
    shape = tensor_of(a).shape
    here, across, down = Real(rewriter, a), gather_lines(rewriter, a, partner, 2), gather_lines(rewriter, a, partner, 1)
    both = gather_lines(rewriter, down.value, partner, 2)
    (k, s), (m, t) = ([x.broadcast(shape, (0, axis)) for x in (k, sine)] for axis in (1, 2))
    t = Real(rewriter, conjugate(rewriter, t.value))
    rotated = s * down, t * across
    moved = (rotated[0] - m * rotated[0]) + (rotated[1] - k * rotated[1])
    made = here - ((moved + (k + m - k * m) * here) - s * t * both)
    row, column = iota(rewriter, shape, 1), iota(rewriter, shape, 2)
    at = broadcast(rewriter, partner, shape, (1,))
    is_diagonal, is_between = (Mask(rewriter, compare(rewriter, "EQ", column, x)) for x in (row, at))
    return is_diagonal.select(made, is_between.select(Real(rewriter, zeros(rewriter, made.type)), made))


def _pair_elements(rewriter: Rewriter, a: Value, partner: Value) -> Real:
    """The off-diagonal element [batch, n] of each pair; both rows of a pair read it from the upper triangle."""
    batch, n, _ = tensor_of(a).shape
    row = iota(rewriter, (n,), 0)
    first, second = (elementwise(rewriter, name, row, partner) for name in ("minimum", "maximum"))
    first = elementwise(rewriter, "multiply", first, constant(rewriter, n, tensor_of(first)))
    place = elementwise(rewriter, "add", first, second)
    real, *imaginary = parts_of(rewriter, gather_lines(rewriter, reshape(rewriter, a, (batch, n * n)), place, 1).value)
    above = compare(rewriter, "LT", *(broadcast(rewriter, x, (batch, n), (1,)) for x in (row, partner)))
    parts = [real, *(Mask(rewriter, above).select(part, -part) for part in imaginary)]
    found = value_of_parts(rewriter, tensor_of(a).with_shape((batch, n)), parts)
    return zero_if_resting(rewriter, partner, Real(rewriter, found))


def _off_diagonal_squares(rewriter: Rewriter, a: Value) -> Real:
    """The sum of squares [batch] of the off-diagonal elements."""
    shape = tensor_of(a).shape
    beside = Mask(rewriter, compare(rewriter, "NE", iota(rewriter, shape, 1), iota(rewriter, shape, 2)))
    return beside.select(squared(rewriter, a), 0.0).reduce((1, 2))
