"""Tridiagonal systems: gtsv of LAPACK as two loops, elimination with exchange of neighbouring rows, and back
substitution.

A row is a vector [batch, 3 + m]: its elements in three neighbouring columns, from the eliminated one on, and its
right-hand sides. Each iteration reads and writes one row; the iteration counts are known. If a pivot is zero, `info` is
its index from 1, and the solution is meaningless, as in LAPACK.
"""

from __future__ import annotations

from collections.abc import Sequence

from orchestrion.compiler.ir.core import Operation, Value
from orchestrion.compiler.ir.rewriter import Rewriter
from orchestrion.compiler.ir.types import I32, TensorType
from orchestrion.compiler.stablehlo.builders.basic import compare, constant, elementwise
from orchestrion.compiler.stablehlo.builders.loops import counted_loop
from orchestrion.compiler.stablehlo.builders.shape_builders import (
    broadcast,
    concatenate,
    dynamic_slice,
    dynamic_update_slice,
    iota,
    reduce_axes,
    reshape,
    slice_range,
    zeros,
)
from orchestrion.compiler.stablehlo.ops.base import is_complex, tensor_of

from .lapack_factors import matrix_shape
from .triangular import batch_of_matrices


def gtsv(op: Operation, rewriter: Rewriter, flags: dict[str, bool]) -> list[Value] | None:
    """x of a x = b, and info. The lower diagonal has an unused first element, the upper one an unused last element."""
    if (len(op.operands), len(op.results)) != (4, 2) or any(map(is_complex, op.operands)):
        return None
    *diagonals, b = op.operands
    type = tensor_of(b)
    if matrix_shape(b) is None:
        return None
    if any(tensor_of(diagonal).shape != type.shape[:-1] for diagonal in diagonals):
        return None
    sides = batch_of_matrices(rewriter, b)
    batch, n, _ = tensor_of(sides).shape
    lower, main, upper = (reshape(rewriter, diagonal, (batch, n, 1)) for diagonal in diagonals)
    none = zeros(rewriter, tensor_of(slice_range(rewriter, upper, (0, 0, 0), (batch, 1, 1))))
    upper = (
        concatenate(rewriter, [slice_range(rewriter, upper, (0, 0, 0), (batch, n - 1, 1)), none], 1) if n > 1 else none
    )
    rows = _eliminated(rewriter, concatenate(rewriter, [lower, main, upper, sides], 2))
    solved = reshape(rewriter, _substituted(rewriter, rows), type.shape)
    info = reshape(rewriter, _first_zero(rewriter, rows), tensor_of(op.results[1]).shape)
    return [solved, info]


def _column(rewriter: Rewriter, row: Value, first: int, last: int) -> Value:
    return slice_range(rewriter, row, (0, first), (tensor_of(row).shape[0], last))


def _eliminated(rewriter: Rewriter, given: Value) -> Value:
    """Eliminates the rows [batch, n, 3 + m] of a tridiagonal matrix; returns those of an upper triangle with three
    diagonals.
    """
    batch, n, width = tensor_of(given).shape

    def shifted(rewriter: Rewriter, row: Value) -> Value:
        """The row seen one column further: drops the eliminated element, appends a zero."""
        zero = zeros(rewriter, tensor_of(row).with_shape((batch, 1)))
        parts = [_column(rewriter, row, 1, 3), zero, _column(rewriter, row, 3, width)]
        return concatenate(rewriter, parts, 1)

    def iteration(rewriter: Rewriter, number: Value, carried: list[Value]) -> Sequence[Value]:
        (made, row), zero = carried, constant(rewriter, 0, tensor_of(number))
        after = elementwise(rewriter, "add", number, constant(rewriter, 1, tensor_of(number)))
        below = reshape(
            rewriter, dynamic_slice(rewriter, given, [zero, after, zero], (batch, 1, width)), (batch, width)
        )
        sizes = [elementwise(rewriter, "abs", _column(rewriter, one, 0, 1)) for one in (row, below)]
        swap = compare(rewriter, "LT", *sizes)
        swap = broadcast(rewriter, reshape(rewriter, swap, (batch,)), (batch, width), (0,))
        pivot = elementwise(rewriter, "select", swap, below, row)
        other = elementwise(rewriter, "select", swap, row, below)
        factor = elementwise(rewriter, "divide", _column(rewriter, other, 0, 1), _column(rewriter, pivot, 0, 1))
        factor = broadcast(rewriter, reshape(rewriter, factor, (batch,)), (batch, width), (0,))
        rest = elementwise(rewriter, "subtract", other, elementwise(rewriter, "multiply", factor, pivot))
        written = dynamic_update_slice(
            rewriter, made, reshape(rewriter, pivot, (batch, 1, width)), [zero, number, zero]
        )
        return [written, shifted(rewriter, rest)]

    first = reshape(rewriter, slice_range(rewriter, given, (0, 0, 0), (batch, 1, width)), (batch, width))
    made, last = counted_loop(rewriter, n - 1, [zeros(rewriter, tensor_of(given)), shifted(rewriter, first)], iteration)
    places = [constant(rewriter, place, TensorType((), I32)) for place in (0, n - 1, 0)]
    return dynamic_update_slice(rewriter, made, reshape(rewriter, last, (batch, 1, width)), places)


def _substituted(rewriter: Rewriter, rows: Value) -> Value:
    """x [batch, n, m], from the last row to the first."""
    batch, n, width = tensor_of(rows).shape
    m = width - 3

    def iteration(rewriter: Rewriter, number: Value, carried: list[Value]) -> Sequence[Value]:
        (found,), zero = carried, constant(rewriter, 0, tensor_of(number))
        at = elementwise(rewriter, "subtract", constant(rewriter, n - 1, tensor_of(number)), number)
        row = reshape(rewriter, dynamic_slice(rewriter, rows, [zero, at, zero], (batch, 1, width)), (batch, width))
        # two zero rows follow the last row, and nothing before `at` has been written
        known = reshape(rewriter, dynamic_slice(rewriter, found, [zero, at, zero], (batch, 3, m)), (batch, 3 * m))
        rest = _column(rewriter, row, 3, width)
        for place in (1, 2):
            weight = broadcast(
                rewriter, reshape(rewriter, _column(rewriter, row, place, place + 1), (batch,)), (batch, m), (0,)
            )
            one = _column(rewriter, known, place * m, (place + 1) * m)
            rest = elementwise(rewriter, "subtract", rest, elementwise(rewriter, "multiply", weight, one))
        pivot = broadcast(rewriter, reshape(rewriter, _column(rewriter, row, 0, 1), (batch,)), (batch, m), (0,))
        made = elementwise(rewriter, "divide", rest, pivot)
        return [dynamic_update_slice(rewriter, found, reshape(rewriter, made, (batch, 1, m)), [zero, at, zero])]

    (found,) = counted_loop(rewriter, n, [zeros(rewriter, tensor_of(rows).with_shape((batch, n + 2, m)))], iteration)
    return slice_range(rewriter, found, (0, 0, 0), (batch, n, m))


def _first_zero(rewriter: Rewriter, rows: Value) -> Value:
    """The index from 1 of the first zero pivot; 0 if there is none."""
    batch, n, _ = tensor_of(rows).shape
    pivots = reshape(rewriter, slice_range(rewriter, rows, (0, 0, 0), (batch, n, 1)), (batch, n))
    counts = TensorType((batch, n), I32)
    zero = compare(rewriter, "EQ", pivots, zeros(rewriter, tensor_of(pivots)))
    # the largest n + 1 - index belongs to the first
    left = elementwise(rewriter, "subtract", constant(rewriter, n, counts), iota(rewriter, (batch, n), 1))
    found = elementwise(rewriter, "select", zero, left, zeros(rewriter, counts))
    most = reduce_axes(rewriter, found, (1,), "maximum")
    number = elementwise(rewriter, "subtract", constant(rewriter, n + 1, tensor_of(most)), most)
    none = compare(rewriter, "EQ", most, zeros(rewriter, tensor_of(most)))
    return elementwise(rewriter, "select", none, zeros(rewriter, tensor_of(most)), number)
