"""Tridiagonal systems: gtsv of LAPACK as two loops, elimination with exchange of neighbouring rows, and back
substitution.

A row is a vector [batch, 3 + m]: its elements in three neighbouring columns, from the eliminated one on, and its
right-hand sides. Each iteration reads and writes one row; the iteration counts are known. If a pivot is zero, `info` is
its index from 1, and the solution is meaningless, as in LAPACK.
"""

from __future__ import annotations

from collections.abc import Sequence

from orchestrion.compiler.ir.core import Operation
from orchestrion.compiler.stablehlo.builders.loops import counted_loop
from orchestrion.compiler.stablehlo.builders.tensors import Tensor, concatenate


def gtsv(op: Operation, flags: dict[str, bool], *given: Tensor) -> list[Tensor] | None:
    """x of a x = b, and info. The lower diagonal has an unused first element, the upper one an unused last element."""
    *diagonals, sides = given
    if len(sides.shape) != 3 or sides.is_complex or any(x.shape != sides.shape[:2] for x in diagonals):
        return None
    batch, n, _ = sides.shape
    lower, main, upper = (x.reshape(batch, n, 1) for x in diagonals)
    none = upper.zeros((batch, 1, 1))
    upper = concatenate([upper.leading((batch, n - 1, 1)), none], 1) if n > 1 else none
    rows = _eliminated(concatenate([lower, main, upper, sides], 2))
    return [_substituted(rows), _first_zero(rows)]


def _eliminated(given: Tensor) -> Tensor:
    """Eliminates the rows [batch, n, 3 + m] of a tridiagonal matrix; returns rows of three upper diagonals."""
    batch, n, width = given.shape

    def shifted(row: Tensor) -> Tensor:
        """The row seen one column further: drops the eliminated element, appends a zero."""
        zero = row.zeros((batch, 1))
        return concatenate([row.cut(1, 1, 3), zero, row.cut(1, 3, width)], 1)

    def iteration(number: Tensor, carried: list[Tensor]) -> Sequence[Tensor]:
        made, row = carried
        below = given.line(1, number + 1)
        swap = abs(row.cut(1, 0, 1)) < abs(below.cut(1, 0, 1))
        swap = swap.reshape(batch).broadcast(row.shape, (0,))
        pivot, other = swap.select(below, row), swap.select(row, below)
        factor = other.cut(1, 0, 1) / pivot.cut(1, 0, 1)
        rest = other - factor.reshape(batch).broadcast(row.shape, (0,)) * pivot
        return [made.with_line(1, number, pivot), shifted(rest)]

    first = given.leading((batch, 1, width)).reshape(batch, width)
    made, last = counted_loop(n - 1, [given.zeros(), shifted(first)], iteration)
    return made.with_line(1, given.int32(n - 1), last)


def _substituted(rows: Tensor) -> Tensor:
    """x [batch, n, m], from the last row to the first."""
    batch, n, width = rows.shape
    m = width - 3

    def iteration(number: Tensor, carried: list[Tensor]) -> Sequence[Tensor]:
        (found,), at = carried, n - 1 - number
        row = rows.line(1, at)
        # two zero rows follow the last row, and nothing before `at` has been written
        known = found.dynamic_slice([0, at, 0], (batch, 3, m)).reshape(batch, 3 * m)
        rest = row.cut(1, 3, width)
        for place in (1, 2):
            weight = row.cut(1, place, place + 1).reshape(batch).broadcast((batch, m), (0,))
            rest = rest - weight * known.cut(1, place * m, (place + 1) * m)
        pivot = row.cut(1, 0, 1).reshape(batch).broadcast((batch, m), (0,))
        return [found.with_line(1, at, rest / pivot)]

    return counted_loop(n, [rows.zeros((batch, n + 2, m))], iteration)[0].leading((batch, n, m))


def _first_zero(rows: Tensor) -> Tensor:
    """The index from 1 of the first zero pivot; 0 if there is none."""
    batch, n, _ = rows.shape
    pivots = rows.leading((batch, n, 1)).reshape(batch, n)
    # the largest n + 1 - index belongs to the first
    most = pivots.eq(pivots.zeros()).select(n - pivots.iota(1), 0).reduce((1,), "maximum")
    return most.eq(0).select(0, n + 1 - most)
