"""Singular values and vectors by the one-sided Jacobi method: gesdd of LAPACK.

Rows of a matrix are rotated in pairs until all are orthogonal. Their norms are then the singular values, their
directions the right singular vectors, and the accumulated rotations the left ones. Each iteration takes one dispatch
for the products of rows, one for the angles, one for the matrix, and one for the left vectors. A tall matrix is
replaced by its R, a wide one is transposed. The right vectors are the Q of the rows, which is orthogonal even if a
singular value is zero and a row has no direction. Source: Golub and Van Loan, Matrix Computations, 8.6.3.
"""

from __future__ import annotations

from collections.abc import Sequence

from orchestrion.compiler.ir.core import Value
from orchestrion.compiler.ir.rewriter import Rewriter
from orchestrion.compiler.ir.types import I32, TensorType
from orchestrion.compiler.stablehlo.builders.basic import constant
from orchestrion.compiler.stablehlo.builders.loops import counted_loop
from orchestrion.compiler.stablehlo.builders.real import Real
from orchestrion.compiler.stablehlo.builders.shape_builders import dynamic_update_slice, reduce_axes, zeros
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
from orchestrion.compiler.stablehlo.ops.base import is_complex, part_type, tensor_of

from .householder import apply_q, identity, qr_factors, upper_triangle
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


def singular_values(rewriter: Rewriter, a: Value, with_vectors: bool, full: bool) -> tuple[list[Value], Value, Value]:
    """u and v^H of matrices [batch, m, n] if wanted (square if `full`), descending singular values, and info [batch].
    NaN and info 1 for a matrix that is not finite.
    """
    batch, rows, columns = tensor_of(a).shape
    if rows < columns:
        vectors, values, info = singular_values(rewriter, adjoint(rewriter, a), with_vectors, full)
        return [adjoint(rewriter, x) for x in reversed(vectors)], values, info
    size = greatest(rewriter, a, (1, 2))
    factor = size.power(2 * size.format.bias - size.exponent())
    scaled = scaled_by(rewriter, a, factor.broadcast(tensor_of(a).shape, (0,)))
    packed, taus = qr_factors(rewriter, scaled) if rows > columns else (scaled, None)
    square = upper_triangle(rewriter, packed) if taus is not None else scaled
    left, found, *lines = _orthogonal(rewriter, square, with_vectors)
    fine, info = convergence(rewriter, left, _bound(rewriter, square), size)
    lengths = _norms(rewriter, found)
    values, *lines = sort_lines(rewriter, lengths.value, "GT", [found, *lines] if with_vectors else [])
    shown = Real(rewriter, values) * size.power(size.exponent()).broadcast((batch, columns), (0,))
    if not with_vectors:
        return [], nan_unless(rewriter, fine, shown.value), info
    u, vt = adjoint(rewriter, lines[1]), _directions(rewriter, lines[0])
    if taus is not None:
        u = apply_q(rewriter, packed, taus, _padded_vectors(rewriter, u, rows, full))
    return [nan_unless(rewriter, fine, x) for x in (u, vt)], nan_unless(rewriter, fine, shown.value), info


def _bound(rewriter: Rewriter, square: Value) -> Real:
    """The cosine up to which two rows count as orthogonal: the rounding error of a product of that many elements."""
    _, n, _ = tensor_of(square).shape
    zero = Real(rewriter, zeros(rewriter, _real_type(square, 1)))
    return zero + n * 2.0**-zero.format.fraction


def _real_type(matrices: Value, rank: int) -> TensorType:
    """The type of one real number per matrix, or per row."""
    type = tensor_of(matrices)
    return (part_type(type) if is_complex(matrices) else type).with_shape(type.shape[:rank])


def _orthogonal(rewriter: Rewriter, square: Value, with_vectors: bool) -> list[Value]:
    """The greatest cosine between two rows before the last sweep, the rows after it, and the rotations if wanted."""
    bound = _bound(rewriter, square)
    rotations = [identity(rewriter, tensor_of(square))] if with_vectors else []
    return sweeps(rewriter, [square, *rotations], bound + 1.0, bound, _sweep)


def _sweep(rewriter: Rewriter, number: Value, carried: list[Value]) -> Sequence[Value]:
    none = zeros(rewriter, _real_type(carried[1], 2))
    cosines, *made = counted_loop(rewriter, rounds_per_sweep(tensor_of(none).shape[1]), [none, *carried[1:]], _rotate)
    return [reduce_axes(rewriter, cosines, (1,), "maximum"), *made]


def _rotate(rewriter: Rewriter, iteration: Value, carried: list[Value]) -> Sequence[Value]:
    """Rotates all pairs. Rows so short that their products have few digits are rotated, but do not prolong
    the sweeps.
    """
    cosines, rows, *rotations = carried
    partner = partners(rewriter, iteration, tensor_of(rows).shape[1])
    theirs = Real(rewriter, conjugate(rewriter, gather_lines(rewriter, rows, partner, 1).value))
    own, product = squared(rewriter, rows).reduce((2,)), (Real(rewriter, rows) * theirs).reduce((2,))
    between, other = zero_if_resting(rewriter, partner, product), gather_lines(rewriter, own.value, partner, 1)
    k, sine = angles(rewriter, partner, own, other, between)
    least = 2.0 ** -(own.format.bias * 3 // 4)
    is_nothing = own.compare("LT", least) | other.compare("LT", least)
    cosine = is_nothing.select(0.0, magnitude(rewriter, between.value) / (own.op("sqrt") * other.op("sqrt")))
    greatest = Real(rewriter, cosines).op("maximum", cosine)
    return [greatest.value, *(rotate_rows(rewriter, x, partner, k, sine) for x in (rows, *rotations))]


def _norms(rewriter: Rewriter, rows: Value) -> Real:
    """The norm of each row, without overflow or underflow of squares."""
    most = greatest(rewriter, rows, (2,))
    scale = most.compare("EQ", 0.0).select(1.0, most).broadcast(tensor_of(rows).shape, (0, 1))
    scaled = [part / scale for part in parts_of(rewriter, rows)]
    return most * sum_of([part * part for part in scaled]).reduce((2,)).op("sqrt")


def _directions(rewriter: Rewriter, rows: Value) -> Value:
    """Orthonormal rows, from orthogonal rows with norms in descending order, possibly zero."""
    packed, taus = qr_factors(rewriter, adjoint(rewriter, rows))
    q = apply_q(rewriter, packed, taus, identity(rewriter, tensor_of(packed)))
    signs = diagonal(rewriter, packed)
    signs = signs.compare("LT", 0.0).select(signs.of(-1.0), 1.0)
    return scaled_by(rewriter, adjoint(rewriter, q), signs.broadcast(tensor_of(q).shape, (0, 1)))


def _padded_vectors(rewriter: Rewriter, u: Value, rows: int, full: bool) -> Value:
    """Appends rows of zeros; for `full`, makes the matrix square with ones on the diagonal."""
    batch, n, _ = tensor_of(u).shape
    zero = constant(rewriter, 0, TensorType((), I32))
    whole = identity(rewriter, tensor_of(u).with_shape((batch, rows, rows if full else n)))
    return dynamic_update_slice(rewriter, whole, u, [zero] * 3)
