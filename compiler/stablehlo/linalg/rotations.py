"""Plane rotations of many pairs of rows at once, for `jacobi_eigen` and `jacobi_svd`.

The pairs of a round follow a round-robin tournament: i and j are paired if i + j = round modulo an odd number; the
remaining row is paired with the last one, or rests. After that many rounds every pair occurred once, which is a sweep.
Each row gathers its partner and computes the rotation for itself, from the same numbers as its partner, so both get
exactly the same angle.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from orchestrion.compiler.stablehlo.builders.loops import Body, counted_loop, while_loop
from orchestrion.compiler.stablehlo.builders.tensors import Tensor, sort_with_places
from orchestrion.compiler.stablehlo.complex.parts import magnitude, parts_of, tensor_of_parts

#: More sweeps than any matrix needs.
MAX_SWEEPS: Final = 40


def rounds_per_sweep(count: int) -> int:
    """The number of rounds in a sweep of `count` rows."""
    return count - 1 + count % 2


def partners(iteration: Tensor, count: int) -> Tensor:
    """The partner [count] of each row in a round; a resting row is its own partner."""
    odd, now = rounds_per_sweep(count), iteration.broadcast((count,))
    row = now.iota(0)
    other = now - row
    other = (other < 0).select(other + odd, other)
    if odd == count:
        return other
    alone = (now & 1).eq(1).select(now + odd, now).op("shift_right_logical", 1)
    other = other.eq(row).select(count - 1, other)
    return row.eq(count - 1).select(alone, other)


def angles(partner: Tensor, own: Tensor, other: Tensor, between: Tensor) -> tuple[Tensor, Tensor]:
    """(k, s): row i becomes (1 - k) row i - s row partner(i).

    1 - k is the cosine and s the sine, times a phase, of the smaller angle that makes the element `between` of [[own,
    between], [its conjugate, other]] vanish. All are [batch, n]; the partner's s is the negative conjugate. A small k
    keeps all its digits, which the cosine would lose; otherwise the norms of rows would shrink with each round.
    """
    is_first = own.iota(1) < partner.broadcast(own.shape, (1,))
    type, phase = between.type, []
    if between.is_complex:
        size = magnitude(between)
        length = size.eq(0.0).select(1.0, size)
        phase, between = [part / length for part in parts_of(between)], size
    apart = (other - own) / (between * 2.0)
    is_up = (apart > 0.0) | (apart.eq(0.0) & is_first)
    size = abs(apart)
    tangent = 1.0 / (size + (size * size + 1.0).op("sqrt"))
    tangent = between.eq(0.0).select(0.0, is_up.select(tangent, -tangent))
    cosine = 1.0 / (tangent * tangent + 1.0).op("sqrt")
    sine = tangent * cosine
    parts = [part * sine for part in phase] or [sine]
    return tensor_of_parts(type, [sine * sine / (cosine + 1.0)]), tensor_of_parts(type, parts)


def zero_if_resting(partner: Tensor, between: Tensor) -> Tensor:
    """Zero for rows that are their own partners."""
    row, partner = between.iota(1), partner.broadcast(between.shape, (1,))
    return row.eq(partner).select(between.zeros(), between)


def diagonal(a: Tensor) -> Tensor:
    """The real parts of the diagonals [batch, n] of matrices."""
    batch, n, _ = a.shape
    return parts_of(a.reshape(batch, n * n).slice((0, 0), (batch, n * n), (1, n + 1)))[0]


def sweeps(carried: Sequence[Tensor], left: Tensor, bound: Tensor, sweep: Body) -> list[Tensor]:
    """Runs `sweep` while some `left` [batch] exceeds the bound; it returns the new `left`, then the carried values."""

    def is_unfinished(number: Tensor, carried: list[Tensor]) -> Sequence[Tensor]:
        return [(number < MAX_SWEEPS) & (carried[0] > bound).reduce((0,), "or")]

    return while_loop([left, *carried], is_unfinished, sweep)


def rotate_all(carried: Sequence[Tensor], rows: int, rotate: Body) -> list[Tensor]:
    """One sweep: a loop over its rounds."""
    return counted_loop(rounds_per_sweep(rows), carried, rotate)


def convergence(left: Tensor, bound: Tensor, size: Tensor) -> tuple[Tensor, Tensor]:
    """Mask of the matrices that converged and are finite, and LAPACK's info: 0 for these, else 1."""
    fine = (left <= bound) & size.is_finite
    return fine, fine.select(fine.int32(0, fine.shape), 1)


def nan_unless(fine: Tensor, x: Tensor) -> Tensor:
    """NaN for the matrices [batch] where the mask is false."""
    whole = fine.broadcast(x.shape, (0,))
    return tensor_of_parts(x.type, [whole.select(part, float("nan")) for part in parts_of(x)])


def sort_lines(values: Tensor, direction: str, lines: Sequence[Tensor]) -> list[Tensor]:
    """Values [batch, n] in ascending (LT) or descending (GT) order, and matrices with their rows in that order."""
    ordered, order = sort_with_places(values, direction)
    return [ordered, *(rows_at(matrices, order) for matrices in lines)]


def rows_at(x: Tensor, at: Tensor) -> Tensor:
    """Rows of each matrix at its own indices, [batch] or [batch, k]."""
    return x.gather(
        at,
        (1, 1, x.shape[2]),
        (*at.shape, x.shape[2]),
        offset_dims=[len(at.shape)],
        collapsed_slice_dims=[1],
        operand_batching_dims=[0],
        start_indices_batching_dims=[0],
        start_index_map=[1],
    )


def gather_lines(x: Tensor, at: Tensor, axis: int) -> Tensor:
    """The slices of an axis at these indices [any]."""
    others = [number for number in range(len(x.shape)) if number != axis]
    sizes = [1 if number == axis else size for number, size in enumerate(x.shape)]
    shape = (*x.shape[:axis], *at.shape, *x.shape[axis + 1 :])
    return x.gather(at, sizes, shape, offset_dims=others, collapsed_slice_dims=[axis], start_index_map=[axis])


def rotate_rows(rows: Tensor, partner: Tensor, k: Tensor, sine: Tensor) -> Tensor:
    other = gather_lines(rows, partner, 1)
    return rows - (k.broadcast(rows.shape, (0, 1)) * rows + sine.broadcast(rows.shape, (0, 1)) * other)
