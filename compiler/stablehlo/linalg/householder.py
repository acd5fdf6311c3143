"""QR factors by Householder reflections in loops of products: geqrf, orgqr and ormqr of LAPACK.

A reflection is 1 - tau v v^H; v is one at its own index and zero before, and its rest is stored below the diagonal of
the packed factor. Each iteration computes or applies one reflection, for all matrices of a batch and all columns: a
product of v with the matrix, and an elementwise update. Columns are scaled by their greatest element before squaring,
so that nothing overflows. Signs are those of LAPACK. Matrices have one batch axis. Source: Golub and Van Loan, Matrix
Computations, 5.1 and 5.2.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from orchestrion.compiler.ir.dims import Size
from orchestrion.compiler.stablehlo.builders.loops import counted_loop
from orchestrion.compiler.stablehlo.builders.tensors import Tensor
from orchestrion.compiler.stablehlo.complex.parts import conjugate, parts_of, sum_of, tensor_of_parts, triangle
from orchestrion.compiler.stablehlo.ops.contraction import DotDimensions

#: A vector times the columns of a matrix, per batch.
_BY_COLUMNS: Final = DotDimensions((0,), (0,), (1,), (1,))


def qr_factors(a: Tensor) -> tuple[Tensor, Tensor]:
    """geqrf: R above the reflection vectors, and tau, of matrices [batch, m, n]."""
    batch, rows, columns = a.shape
    least = min(rows, columns)
    packed, taus = counted_loop(least, [a, a.zeros((batch, least))], _reflect)
    return packed, taus


def _reflect(iteration: Tensor, carried: list[Tensor]) -> Sequence[Tensor]:
    """Computes the reflection that zeroes a column below the diagonal, and reflects the columns to the right."""
    return reduce_column(carried, iteration, iteration, lambda reflected, vector, factor: reflected)


def reduce_column(carried: list[Tensor], column: Tensor, at: Tensor, rest: Callable[..., Tensor]) -> list[Tensor]:
    """Reflects matrices from the left so that a column vanishes after index `at`, stores the reflection in the column
    and in the second carried value, and replaces the columns to the right by `rest` of the reflected matrices.
    """
    a, taus = carried
    vector, factor, packed = reflection(a.line(2, column), at)
    others = rest(reflect_from_left(a, vector, conjugate(factor)), vector, factor)
    this, right = masks_at_and_after(a, column, 2)
    made = right.select(others, this.select(along_last_axis(packed, a.shape), a))
    return [made, taus.with_line(1, column, factor)]


def reflection(column: Tensor, at: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The v and tau of the reflection that zeroes columns [batch, m] after index `at`, and the packed columns: the
    reflected elements up to `at`, then v.
    """
    type, shape = column.type, column.shape
    here, below = masks_at_and_after(column, at)
    given = parts_of(column)
    largest = (here | below).select(sum_of([abs(part) for part in given]), 0.0).reduce((1,), "maximum")
    scale = largest.eq(0.0).select(1.0, largest)
    scaled = [part / along_last_axis(scale, shape) for part in given]
    alpha = [part.line(1, at) for part in scaled]
    tail = below.select(sum_of([part * part for part in scaled]), 0.0).reduce((1,))
    norm = (sum_of([part * part for part in alpha]) + tail).op("sqrt")
    is_flat = tail.eq(0.0)
    for imaginary in alpha[1:]:
        is_flat &= imaginary.eq(0.0)
    beta = is_flat.select(alpha[0], (alpha[0] >= 0.0).select(-norm, norm))
    divisor = is_flat.select(1.0, beta)
    tau = [is_flat.select(0.0, part / divisor) for part in (beta - alpha[0], *(-part for part in alpha[1:]))]
    pivot = [is_flat.select(1.0, alpha[0] - beta), *alpha[1:]]
    quotient = tensor_of_parts(type, scaled) / tensor_of_parts(type, [along_last_axis(part, shape) for part in pivot])
    vector = below.select(quotient, _unit(here, column))
    diagonal = tensor_of_parts(type, [along_last_axis(beta * scale, shape)])
    packed = here.select(diagonal, below.select(vector, column))
    return vector, tensor_of_parts(type.with_shape(shape[:1]), tau), packed


def _unit(here: Tensor, like: Tensor) -> Tensor:
    """One where the mask is true, else zero, in the type of `like`."""
    part = parts_of(like)[0]
    return tensor_of_parts(like.type, [here.select(part.of(1.0), 0.0)])


def masks_at_and_after(x: Tensor, at: Tensor, axis: int = 1) -> tuple[Tensor, Tensor]:
    """Masks of the indices along an axis of `x` that are equal to, and greater than, a number."""
    number, here = x.iota(axis), at.broadcast(x.shape)
    return number.eq(here), number > here


def along_last_axis(x: Tensor, shape: Sequence[Size]) -> Tensor:
    """Broadcasts along a new last axis."""
    return x.broadcast(shape, range(len(shape) - 1))


def reflect_from_left(a: Tensor, vector: Tensor, tau: Tensor) -> Tensor:
    """a - tau v (v^H a)."""
    product = conjugate(vector).dot(a, _BY_COLUMNS).broadcast(a.shape, (0, 2))
    return a - along_last_axis(vector * along_last_axis(tau, a.shape[:2]), a.shape) * product


def apply_q(packed: Tensor, taus: Tensor, c: Tensor, transposed: bool = False) -> Tensor:
    """Q c, or Q^H c if `transposed`, for Q [m, m] as packed reflections [batch, m, >= k], and c [batch, m, any]."""
    iterations = taus.shape[1]

    def apply(iteration: Tensor, carried: list[Tensor]) -> Sequence[Tensor]:
        at = iteration if transposed else iterations - 1 - iteration
        column = packed.line(2, at)
        here, below = masks_at_and_after(column, at)
        vector, tau = below.select(column, _unit(here, column)), taus.line(1, at)
        return [reflect_from_left(carried[0], vector, conjugate(tau) if transposed else tau)]

    return counted_loop(iterations, [c], apply)[0]


def identity(like: Tensor) -> Tensor:
    """Identity matrices of the type of `like`."""
    return _unit(like.iota(1).eq(like.iota(2)), like.zeros())


def upper_triangle(packed: Tensor) -> Tensor:
    """R: the upper triangle of n x n matrices, or of the first n rows."""
    batch, rows, columns = packed.shape
    kept = packed.leading((batch, min(rows, columns), columns))
    return triangle(kept, False).select(kept, kept.zeros())
