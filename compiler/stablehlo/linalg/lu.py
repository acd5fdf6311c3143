"""LU factors with partial pivoting, as LAPACK returns them: panels of columns, and products for the columns to the
right.

Each iteration finds the largest element of a column, exchanges two rows, and subtracts an outer product below. Large
square matrices of f32 and f64 do so only within panels of `BLOCK` columns. Then the rows of all other columns are
exchanged at once, the panel's rows are solved with its triangle (`flow.solve_rows`), and one product is subtracted.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from orchestrion.compiler.ir.dims import Size
from orchestrion.compiler.ir.types import I32, TensorType
from orchestrion.compiler.stablehlo.builders.loops import counted_loop, region_of
from orchestrion.compiler.stablehlo.builders.tensors import Tensor, reduce_by
from orchestrion.compiler.stablehlo.complex.parts import parts_of, sum_of, transposed
from orchestrion.compiler.stablehlo.ops.flow_ops import BLOCK

from .blocked_solves import PRODUCT, solve_rows, supports, whole_blocks, with_ones
from .rotations import rows_at

#: Minimum number of rows for which panels are faster: they cost two more launches per column.
PANELS_FROM: Final = 128


def lu_factors(a: Tensor) -> list[Tensor]:
    """For matrices [batch, m, n]: both factors in one matrix, and the exchanged row for each row, from 1. If the rest
    of a column is zero, so is the pivot, and nothing is divided by it.
    """
    batch, rows, columns = a.shape
    if supports(a) and rows == columns >= PANELS_FROM:
        return _by_panels(a)
    least = min(rows, columns)
    inits = [a, a.int32(0, (batch, least))]
    return counted_loop(least, inits, lambda iteration, carried: _eliminate(iteration, iteration, rows, carried))


def _by_panels(a: Tensor) -> list[Tensor]:
    """Factors matrices padded to whole panels; the padding has ones on the diagonal, and is never exchanged."""
    batch, n, _ = a.shape
    size = whole_blocks(n)

    def panel(iteration: Tensor, carried: list[Tensor]) -> Sequence[Tensor]:
        (lu, pivots), at = carried, iteration * BLOCK

        def step(iteration: Tensor, carried: list[Tensor]) -> Sequence[Tensor]:
            row = at + iteration
            made = _eliminate(row, iteration, n, carried[:2])
            return [*made, _swap_rows(carried[2], row, made[1])]

        inits = [lu.dynamic_slice([0, 0, at], (batch, size, BLOCK)), pivots, pivots.iota(1)]
        columns, pivots, order = counted_loop(BLOCK, inits, step)
        return [_update_other_columns(lu, columns, order, at), pivots]

    inits = [with_ones(a.pad_to(batch, size, size), n), a.int32(0, (batch, size))]
    lu, pivots = counted_loop(size // BLOCK, inits, panel)
    return [lu.leading((batch, n, n)), pivots.leading((batch, n))]


def _swap_rows(order: Tensor, row: Tensor, pivots: Tensor) -> Tensor:
    """A permutation of rows, with a row exchanged for its pivot."""
    batch, size = shape = order.shape
    chosen = pivots.line(1, row) - 1
    there = rows_at(order.reshape(batch, size, 1), chosen).reshape(batch)
    place, here = order.iota(1), order.line(1, row)
    made = place.eq(chosen.broadcast(shape, (0,))).select(here.broadcast(shape, (0,)), order)
    return place.eq(row.broadcast(shape)).select(there.broadcast(shape, (0,)), made)


def _update_other_columns(lu: Tensor, panel: Tensor, order: Tensor, at: Tensor) -> Tensor:
    """All columns after those of the panel at `at` are factored, with rows exchanged by `order`."""
    batch, _, columns = lu.shape
    end = at + BLOCK
    triangle = with_ones(panel.dynamic_slice([0, at, 0], (batch, BLOCK, BLOCK)), 0)
    taken = rows_at(lu, order.dynamic_slice([0, at], (batch, BLOCK)))
    upper, moved = transposed(solve_rows(triangle, transposed(taken))), rows_at(lu, order)
    rest = moved - panel.dot(upper, PRODUCT)
    rest = _from(_from(rest, 2, end, moved), 1, end, moved)
    lines = moved.dynamic_slice([0, at, 0], (batch, BLOCK, columns))
    return rest.updated([0, at, 0], _from(upper, 2, end, lines)).updated([0, 0, at], panel)


def _from(x: Tensor, axis: int, first: Tensor, other: Tensor) -> Tensor:
    """`x` from an index of an axis on, `other` before it."""
    return (x.iota(axis) >= first.broadcast(x.shape)).select(x, other)


def _eliminate(row: Tensor, at: Tensor, count: Size, carried: list[Tensor]) -> list[Tensor]:
    """Eliminates column `at`; its pivot moves to `row`. Only the first `count` rows may be pivots."""
    lu, pivots = carried
    column = lu.line(2, at)
    flat, chosen = column.shape, _largest(column, row, count)
    upper, pivot_row = lu.line(1, row), rows_at(lu, chosen)
    pivot, place = pivot_row.line(1, at), column.iota(1)
    exchanged = place.eq(chosen.broadcast(flat, (0,)))
    below = exchanged.select(upper.line(1, at).broadcast(flat, (0,)), column)
    scale = pivot.eq(pivot.zeros()).select(1.0, pivot)
    below = below / scale.broadcast(flat, (0,))
    is_below = place > row.broadcast(flat)
    made = _updated(lu, (row, at), (exchanged, upper), pivot_row, (is_below, below))
    return [made, pivots.with_line(1, row, chosen + 1)]


def _updated(
    lu: Tensor,
    place: tuple[Tensor, Tensor],
    exchanged: tuple[Tensor, Tensor],
    pivot_row: Tensor,
    below: tuple[Tensor, Tensor],
) -> Tensor:
    """Exchanges rows; below the pivot, scales its column, and subtracts the outer product to the right."""
    is_exchanged, is_below, scaled = (x.broadcast(lu.shape, (0, 1)) for x in (exchanged[0], *below))
    upper, pivots = (x.broadcast(lu.shape, (0, 2)) for x in (exchanged[1], pivot_row))
    row, here = (x.broadcast(lu.shape) for x in place)
    is_pivot, column = lu.iota(1).eq(row), lu.iota(2)
    moved = is_exchanged.select(upper, lu)
    right = (column > here).select(moved - scaled * pivots, moved)
    under = column.eq(here).select(scaled, right)
    return is_pivot.select(pivots, is_below.select(under, moved))


def _largest(column: Tensor, first: Tensor, count: Size) -> Tensor:
    """The row, from `first` on and below `count`, with the first element of greatest magnitude, per batch. The
    magnitude of a complex element is the sum of its parts' magnitudes, as in BLAS.
    """
    shape, place = column.shape, column.iota(1)
    is_open = place >= first.broadcast(shape)
    if count != shape[1]:
        is_open &= place < count
    size = is_open.select(sum_of([abs(part) for part in parts_of(column)]), -1.0)
    scalars = [size.type.with_shape(()), TensorType((), I32)]
    inits = [size.splat(-2.0, scalars[0]), size.int32(0)]
    _, found = reduce_by([size, place], inits, (1,), region_of(column.rewriter, scalars * 2, _greater))
    return found.op("maximum", first.broadcast(shape[:1]))


def _greater(x: Tensor, i: Tensor, y: Tensor, j: Tensor) -> Sequence[Tensor]:
    """Of two elements and their places the greater one; of equal ones the first."""
    takes = (y > x) | (y.eq(x) & (j < i))
    return [takes.select(y, x), takes.select(j, i)]
