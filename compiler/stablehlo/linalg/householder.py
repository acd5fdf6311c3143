"""QR factors by Householder reflections in loops of products: geqrf, orgqr and ormqr of LAPACK.

A reflection is 1 - tau v v^H; v is one at its own index and zero before, and its rest is stored below the diagonal of
the packed factor. Each iteration computes or applies one reflection, for all matrices of a batch and all columns: a
product of v with the matrix, and an elementwise update. Columns are scaled by their greatest element before squaring,
so that nothing overflows. Signs are those of LAPACK. Matrices have one batch axis. Source: Golub and Van Loan, Matrix
Computations, 5.1 and 5.2.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from orchestrion.compiler.ir.core import Value
from orchestrion.compiler.ir.rewriter import Rewriter
from orchestrion.compiler.ir.types import I32, TensorType
from orchestrion.compiler.stablehlo.builders.basic import compare, constant, elementwise
from orchestrion.compiler.stablehlo.builders.loops import counted_loop
from orchestrion.compiler.stablehlo.builders.real import Mask, Real
from orchestrion.compiler.stablehlo.builders.shape_builders import (
    broadcast,
    dot,
    dynamic_slice,
    dynamic_update_slice,
    iota,
    reshape,
    slice_range,
    zeros,
)
from orchestrion.compiler.stablehlo.complex.parts import conjugate, parts_of, sum_of, value_of_parts
from orchestrion.compiler.stablehlo.ops.base import tensor_of
from orchestrion.compiler.stablehlo.ops.contraction import DotDimensions

#: A vector times the columns of a matrix, per batch.
_BY_COLUMNS: Final = DotDimensions((0,), (0,), (1,), (1,))


def qr_factors(rewriter: Rewriter, a: Value) -> tuple[Value, Value]:
    """geqrf: R above the reflection vectors, and tau, of matrices [batch, m, n]."""
    batch, rows, columns = tensor_of(a).shape
    least = min(rows, columns)
    taus = zeros(rewriter, tensor_of(a).with_shape((batch, least)))
    packed, taus = counted_loop(rewriter, least, [a, taus], _reflect)
    return packed, taus


def _reflect(rewriter: Rewriter, iteration: Value, carried: list[Value]) -> Sequence[Value]:
    """Computes the reflection that zeroes a column below the diagonal, and reflects the columns to the right."""
    a, taus = carried
    shape = tensor_of(a).shape
    batch, rows, _ = shape
    zero = constant(rewriter, 0, TensorType((), I32))
    column = reshape(rewriter, dynamic_slice(rewriter, a, [zero, zero, iteration], (batch, rows, 1)), (batch, rows))
    vector, factor, packed = reflection(rewriter, column, iteration)
    reflected = reflect_from_left(rewriter, a, vector, Real(rewriter, conjugate(rewriter, factor)))
    this, right = masks_at_and_after(rewriter, shape, iteration, 2)
    made = right.select(reflected, this.select(along_last_axis(packed, shape), Real(rewriter, a)))
    return [made.value, dynamic_update_slice(rewriter, taus, reshape(rewriter, factor, (batch, 1)), [zero, iteration])]


def reflection(rewriter: Rewriter, column: Value, at: Value) -> tuple[Real, Value, Real]:
    """The v and tau of the reflection that zeroes columns [batch, m] after index `at`, and the packed columns: the
    reflected elements up to `at`, then v.
    """
    batch, rows = tensor_of(column).shape
    here, below = masks_at_and_after(rewriter, (batch, rows), at)
    given = parts_of(rewriter, column)
    largest = (here | below).select(sum_of([abs(part) for part in given]), 0.0).reduce((1,), "maximum")
    scale = largest.compare("EQ", 0.0).select(1.0, largest)
    scaled = [part / along_last_axis(scale, (batch, rows)) for part in given]
    alpha = [_element(rewriter, part, at) for part in scaled]
    tail = below.select(sum_of([part * part for part in scaled]), 0.0).reduce((1,))
    norm = (sum_of([part * part for part in alpha]) + tail).op("sqrt")
    is_flat = tail.compare("EQ", 0.0)
    for imaginary in alpha[1:]:
        is_flat &= imaginary.compare("EQ", 0.0)
    beta = is_flat.select(alpha[0], alpha[0].compare("GE", 0.0).select(-norm, norm))
    divisor = is_flat.select(1.0, beta)
    tau = [is_flat.select(0.0, part / divisor) for part in (beta - alpha[0], *(-part for part in alpha[1:]))]
    pivot = [is_flat.select(1.0, alpha[0] - beta), *alpha[1:]]
    type = tensor_of(column)
    quotient = Real(rewriter, value_of_parts(rewriter, type, scaled)) / Real(
        rewriter, value_of_parts(rewriter, type, [along_last_axis(part, (batch, rows)) for part in pivot])
    )
    vector = below.select(quotient, _unit(rewriter, here, column))
    diagonal = Real(rewriter, value_of_parts(rewriter, type, [along_last_axis(beta * scale, (batch, rows))]))
    packed = here.select(diagonal, below.select(vector, Real(rewriter, column)))
    return vector, value_of_parts(rewriter, type.with_shape((batch,)), tau), packed


def _element(rewriter: Rewriter, column: Real, iteration: Value) -> Real:
    """The element [batch] at an index of each column [batch, m]."""
    batch, _ = column.type.shape
    zero = constant(rewriter, 0, TensorType((), I32))
    return Real(
        rewriter, reshape(rewriter, dynamic_slice(rewriter, column.value, [zero, iteration], (batch, 1)), (batch,))
    )


def _unit(rewriter: Rewriter, here: Mask, like: Value) -> Real:
    """One where the mask is true, else zero, in the type of `like`."""
    part = parts_of(rewriter, like)[0]
    return Real(rewriter, value_of_parts(rewriter, tensor_of(like), [here.select(part.of(1.0), 0.0)]))


def masks_at_and_after(rewriter: Rewriter, shape: Sequence[int], iteration: Value, axis: int = 1) -> tuple[Mask, Mask]:
    """Masks of the indices along an axis that are equal to, and greater than, a number."""
    number, here = iota(rewriter, shape, axis), broadcast(rewriter, iteration, shape)
    at, beyond = (Mask(rewriter, compare(rewriter, direction, number, here)) for direction in ("EQ", "GT"))
    return at, beyond


def along_last_axis(value: Real, shape: Sequence[int]) -> Real:
    """Broadcasts along a new last axis."""
    return value.broadcast(shape, range(len(shape) - 1))


def reflect_from_left(rewriter: Rewriter, a: Value, vector: Real, tau: Real) -> Real:
    """a - tau v (v^H a)."""
    shape = tensor_of(a).shape
    product = Real(rewriter, dot(rewriter, conjugate(rewriter, vector.value), a, _BY_COLUMNS)).broadcast(shape, (0, 2))
    return Real(rewriter, a) - along_last_axis(vector * along_last_axis(tau, shape[:2]), shape) * product


def apply_q(rewriter: Rewriter, packed: Value, taus: Value, c: Value, transposed: bool = False) -> Value:
    """Q c, or Q^H c if `transposed`, for the m x m matrix Q with packed reflections [batch, m, >= k], and c [batch, m,
    any].
    """
    batch, rows, _ = tensor_of(packed).shape
    iterations = tensor_of(taus).shape[1]

    def apply(rewriter: Rewriter, iteration: Value, carried: list[Value]) -> Sequence[Value]:
        zero, last = (constant(rewriter, number, TensorType((), I32)) for number in (0, iterations - 1))
        at = iteration if transposed else elementwise(rewriter, "subtract", last, iteration)
        column = reshape(rewriter, dynamic_slice(rewriter, packed, [zero, zero, at], (batch, rows, 1)), (batch, rows))
        here, below = masks_at_and_after(rewriter, (batch, rows), at)
        vector = below.select(Real(rewriter, column), _unit(rewriter, here, column))
        tau = reshape(rewriter, dynamic_slice(rewriter, taus, [zero, at], (batch, 1)), (batch,))
        tau = conjugate(rewriter, tau) if transposed else tau
        return [reflect_from_left(rewriter, carried[0], vector, Real(rewriter, tau)).value]

    return counted_loop(rewriter, iterations, [c], apply)[0]


def identity(rewriter: Rewriter, type: TensorType) -> Value:
    """Identity matrices."""
    rows, columns = (iota(rewriter, type.shape, axis) for axis in (1, 2))
    return _unit(rewriter, Mask(rewriter, compare(rewriter, "EQ", rows, columns)), zeros(rewriter, type)).value


def upper_triangle(rewriter: Rewriter, packed: Value) -> Value:
    """R: the upper triangle of n x n matrices, or of the first n rows."""
    batch, rows, columns = tensor_of(packed).shape
    kept = slice_range(rewriter, packed, (0, 0, 0), (batch, min(rows, columns), columns))
    shape = tensor_of(kept).shape
    above = compare(rewriter, "LE", iota(rewriter, shape, 1), iota(rewriter, shape, 2))
    return elementwise(rewriter, "select", above, kept, zeros(rewriter, tensor_of(kept)))
