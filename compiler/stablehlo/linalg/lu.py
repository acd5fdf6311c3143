"""LU factors with partial pivoting, as LAPACK returns them: panels of columns, and products for the columns to the
right.

Each iteration finds the largest element of a column, exchanges two rows, and subtracts an outer product below. Large
square matrices of f32 and f64 do so only within panels of `BLOCK` columns. Then the rows of all other columns are
exchanged at once, the panel's rows are solved with its triangle (`flow.solve_rows`), and one product is subtracted.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from orchestrion.compiler.ir.attributes import DialectAttr, dense_ints
from orchestrion.compiler.ir.core import Block, Region, Value
from orchestrion.compiler.ir.rewriter import Rewriter
from orchestrion.compiler.ir.types import I32, TensorType
from orchestrion.compiler.stablehlo.builders.basic import compare, constant, elementwise, i32_splat
from orchestrion.compiler.stablehlo.builders.loops import counted_loop
from orchestrion.compiler.stablehlo.builders.real import Mask
from orchestrion.compiler.stablehlo.builders.shape_builders import (
    broadcast,
    dot,
    dynamic_slice,
    dynamic_update_slice,
    iota,
    reshape,
    slice_range,
    transpose,
    zeros,
)
from orchestrion.compiler.stablehlo.complex.parts import parts_of, value_of_parts
from orchestrion.compiler.stablehlo.ops.base import tensor_of
from orchestrion.compiler.stablehlo.ops.contraction import DotDimensions, Reduce, Return
from orchestrion.compiler.stablehlo.ops.flow_ops import BLOCK
from orchestrion.compiler.stablehlo.ops.indexing import Gather

from . import blocked_solves

#: Minimum number of rows for which panels are faster: they cost two more launches per column.
PANELS_FROM: Final = 128

_ROWS_BY_COLUMNS = DotDimensions((0,), (0,), (2,), (1,))


def lu_factors(rewriter: Rewriter, a: Value) -> list[Value]:
    """For matrices [batch, m, n]: both factors in one matrix, and the exchanged row for each row, from 1. If the rest
    of a column is zero, so is the pivot, and nothing is divided by it.
    """
    batch, rows, columns = tensor_of(a).shape
    if blocked_solves.supports(a) and rows == columns >= PANELS_FROM:
        return _by_panels(rewriter, a)
    least = min(rows, columns)
    inits = [a, i32_splat(rewriter, 0, (batch, least))]
    return counted_loop(
        rewriter, least, inits, lambda r, iteration, carried: _eliminate(r, iteration, iteration, rows, carried)
    )


def _by_panels(rewriter: Rewriter, a: Value) -> list[Value]:
    """Factors matrices padded to whole panels; the padding has ones on the diagonal, and its rows are never
    exchanged.
    """
    batch, n, _ = tensor_of(a).shape
    size = -(-n // BLOCK) * BLOCK
    whole = _filled(rewriter, a, size)

    def panel(rewriter: Rewriter, iteration: Value, carried: list[Value]) -> Sequence[Value]:
        (lu, pivots), zero = carried, i32_splat(rewriter, 0, ())
        at = elementwise(rewriter, "multiply", iteration, i32_splat(rewriter, BLOCK, ()))
        columns = dynamic_slice(rewriter, lu, [zero, zero, at], (batch, size, BLOCK))
        inits = [columns, pivots, iota(rewriter, (batch, size), 1)]

        def step(rewriter: Rewriter, iteration: Value, carried: list[Value]) -> Sequence[Value]:
            row = elementwise(rewriter, "add", at, iteration)
            made = _eliminate(rewriter, row, iteration, n, carried[:2])
            return [*made, _swap_rows(rewriter, carried[2], row, made[1])]

        columns, pivots, order = counted_loop(rewriter, BLOCK, inits, step)
        return [_update_other_columns(rewriter, lu, columns, order, at), pivots]

    lu, pivots = counted_loop(rewriter, size // BLOCK, [whole, i32_splat(rewriter, 0, (batch, size))], panel)
    return [slice_range(rewriter, lu, (0, 0, 0), (batch, n, n)), slice_range(rewriter, pivots, (0, 0), (batch, n))]


def _filled(rewriter: Rewriter, a: Value, size: int) -> Value:
    batch, n, _ = tensor_of(a).shape
    whole = blocked_solves.pad_to(rewriter, a, (batch, size, size))
    shape = tensor_of(whole).shape
    row, column = iota(rewriter, shape, 1), iota(rewriter, shape, 2)
    fresh = compare(rewriter, "GE", row, i32_splat(rewriter, n, shape))
    ones = elementwise(rewriter, "and", compare(rewriter, "EQ", row, column), fresh)
    return elementwise(rewriter, "select", ones, _one(rewriter, whole), whole)


def _swap_rows(rewriter: Rewriter, order: Value, row: Value, pivots: Value) -> Value:
    """A permutation of rows, with a row exchanged for its pivot."""
    batch, size = tensor_of(order).shape
    zero, one = i32_splat(rewriter, 0, ()), i32_splat(rewriter, 1, (batch,))
    chosen = reshape(rewriter, dynamic_slice(rewriter, pivots, [zero, row], (batch, 1)), (batch,))
    chosen = elementwise(rewriter, "subtract", chosen, one)
    there = reshape(rewriter, _rows(rewriter, reshape(rewriter, order, (batch, size, 1)), chosen), (batch,))
    here = reshape(rewriter, dynamic_slice(rewriter, order, [zero, row], (batch, 1)), (batch,))
    place, flat = iota(rewriter, (batch, size), 1), (batch, size)
    is_chosen = compare(rewriter, "EQ", place, broadcast(rewriter, chosen, flat, (0,)))
    made = elementwise(rewriter, "select", is_chosen, broadcast(rewriter, here, flat, (0,)), order)
    is_row = compare(rewriter, "EQ", place, broadcast(rewriter, row, flat))
    return elementwise(rewriter, "select", is_row, broadcast(rewriter, there, flat, (0,)), made)


def _update_other_columns(rewriter: Rewriter, lu: Value, panel: Value, order: Value, at: Value) -> Value:
    """All columns after those of the panel at `at` are factored, with rows exchanged by `order`."""
    batch, size, _ = tensor_of(lu).shape
    zero, end = i32_splat(rewriter, 0, ()), elementwise(rewriter, "add", at, i32_splat(rewriter, BLOCK, ()))
    triangle = dynamic_slice(rewriter, panel, [zero, at, zero], (batch, BLOCK, BLOCK))
    square = tensor_of(triangle).shape
    diagonal = compare(rewriter, "EQ", iota(rewriter, square, 1), iota(rewriter, square, 2))
    triangle = elementwise(rewriter, "select", diagonal, _one(rewriter, triangle), triangle)
    taken = reshape(rewriter, dynamic_slice(rewriter, order, [zero, at], (batch, BLOCK)), (batch, BLOCK))
    given = transpose(rewriter, _rows(rewriter, lu, taken), (0, 2, 1))
    upper = transpose(rewriter, blocked_solves.solve_rows(rewriter, triangle, given), (0, 2, 1))
    moved = _rows(rewriter, lu, order)
    rest = elementwise(rewriter, "subtract", moved, dot(rewriter, panel, upper, _ROWS_BY_COLUMNS))
    rest = _where(rewriter, _where(rewriter, rest, 2, end, moved), 1, end, moved)
    made = dynamic_update_slice(
        rewriter, rest, _where(rewriter, upper, 2, end, _lines(rewriter, moved, at)), [zero, at, zero]
    )
    return dynamic_update_slice(rewriter, made, panel, [zero, zero, at])


def _lines(rewriter: Rewriter, value: Value, at: Value) -> Value:
    batch, _, columns = tensor_of(value).shape
    zero = i32_splat(rewriter, 0, ())
    return dynamic_slice(rewriter, value, [zero, at, zero], (batch, BLOCK, columns))


def _where(rewriter: Rewriter, value: Value, axis: int, first: Value, other: Value) -> Value:
    """`value` from an index of an axis on, `other` before it."""
    shape = tensor_of(value).shape
    behind = compare(rewriter, "GE", iota(rewriter, shape, axis), broadcast(rewriter, first, shape))
    return elementwise(rewriter, "select", behind, value, other)


def _eliminate(rewriter: Rewriter, row: Value, at: Value, count: int, carried: list[Value]) -> list[Value]:
    """Eliminates column `at`; its pivot moves to `row`. Only the first `count` rows may be pivots."""
    lu, pivots = carried
    batch, rows, columns = tensor_of(lu).shape
    zero, flat, line = i32_splat(rewriter, 0, ()), (batch, rows), (batch, columns)
    column = reshape(rewriter, dynamic_slice(rewriter, lu, [zero, zero, at], (batch, rows, 1)), flat)
    chosen = _largest(rewriter, column, row, count)
    upper = reshape(rewriter, dynamic_slice(rewriter, lu, [zero, row, zero], (batch, 1, columns)), line)
    pivot_row = _rows(rewriter, lu, chosen)
    pivot = reshape(rewriter, dynamic_slice(rewriter, pivot_row, [zero, at], (batch, 1)), (batch,))
    place, here = iota(rewriter, flat, 1), broadcast(rewriter, row, flat)
    exchanged = compare(rewriter, "EQ", place, broadcast(rewriter, chosen, flat, (0,)))
    head = reshape(rewriter, dynamic_slice(rewriter, upper, [zero, at], (batch, 1)), (batch,))
    below = elementwise(rewriter, "select", exchanged, broadcast(rewriter, head, flat, (0,)), column)
    singular = compare(rewriter, "EQ", pivot, zeros(rewriter, tensor_of(pivot)))
    scale = elementwise(rewriter, "select", singular, _one(rewriter, pivot), pivot)
    below = elementwise(rewriter, "divide", below, broadcast(rewriter, scale, flat, (0,)))
    is_below = compare(rewriter, "GT", place, here)
    made = _updated(rewriter, lu, (row, at), (exchanged, upper), pivot_row, (is_below, below))
    number = elementwise(rewriter, "add", chosen, i32_splat(rewriter, 1, (batch,)))
    return [made, dynamic_update_slice(rewriter, pivots, reshape(rewriter, number, (batch, 1)), [zero, row])]


def _updated(
    rewriter: Rewriter,
    lu: Value,
    place: tuple[Value, Value],
    exchanged: tuple[Value, Value],
    pivot_row: Value,
    below: tuple[Value, Value],
) -> Value:
    """Exchanges rows; below the pivot, scales its column, and subtracts the outer product to the right."""
    shape = tensor_of(lu).shape
    down = [broadcast(rewriter, value, shape, (0, 1)) for value in (exchanged[0], *below)]
    across = [broadcast(rewriter, value, shape, (0, 2)) for value in (exchanged[1], pivot_row)]
    row, here = (broadcast(rewriter, value, shape) for value in place)
    is_pivot = compare(rewriter, "EQ", iota(rewriter, shape, 1), row)
    column = iota(rewriter, shape, 2)
    moved = elementwise(rewriter, "select", down[0], across[0], lu)
    reduced = elementwise(rewriter, "subtract", moved, elementwise(rewriter, "multiply", down[2], across[1]))
    right = elementwise(rewriter, "select", compare(rewriter, "GT", column, here), reduced, moved)
    under = elementwise(rewriter, "select", compare(rewriter, "EQ", column, here), down[2], right)
    return elementwise(rewriter, "select", is_pivot, across[1], elementwise(rewriter, "select", down[1], under, moved))


def _one(rewriter: Rewriter, like: Value) -> Value:
    part = parts_of(rewriter, like)[0]
    return value_of_parts(rewriter, tensor_of(like), [part.of(1.0)])


def _largest(rewriter: Rewriter, column: Value, first: Value, count: int) -> Value:
    """The row, from `first` on and below `count`, with the first element of greatest magnitude, per batch. The
    magnitude of a complex element is the sum of its parts' magnitudes, as in BLAS.
    """
    shape = tensor_of(column).shape
    place = iota(rewriter, shape, 1)
    open_ = compare(rewriter, "GE", place, broadcast(rewriter, first, shape))
    if count != shape[1]:
        inside = compare(rewriter, "LT", place, i32_splat(rewriter, count, shape))
        open_ = elementwise(rewriter, "and", open_, inside)
    sizes = [abs(part) for part in parts_of(rewriter, column)]
    whole = sizes[0] + sizes[1] if len(sizes) > 1 else sizes[0]
    size = Mask(rewriter, open_).select(whole, -1.0).value
    scalars = [whole.type.with_shape(()), TensorType((), I32)]
    body = Block([*scalars, *scalars])
    end = Return.build(values=[], loc=rewriter.loc)
    body.append(end)
    inner = Rewriter({})
    inner.at(end)
    x, i, y, j = body.arguments
    larger = compare(inner, "GT", y, x)
    tie = elementwise(inner, "and", compare(inner, "EQ", y, x), compare(inner, "LT", j, i))
    takes = elementwise(inner, "or", larger, tie)
    end.set_operands([elementwise(inner, "select", takes, y, x), elementwise(inner, "select", takes, j, i)])
    inits = [constant(rewriter, -2.0, scalars[0]), i32_splat(rewriter, 0, ())]
    types = [type.with_shape(shape[:1]) for type in scalars]
    reduced = rewriter.build(
        Reduce, inputs=[size, place], init_values=inits, dimensions=dense_ints(1), body=Region([body]), out=types
    )
    return elementwise(rewriter, "maximum", reduced.results[1], broadcast(rewriter, first, shape[:1]))


def _rows(rewriter: Rewriter, value: Value, places: Value) -> Value:
    """Rows of each matrix, one or several."""
    batch, _, columns = tensor_of(value).shape
    shape = tensor_of(places).shape
    axes = (
        f"offset_dims = [{len(shape)}], collapsed_slice_dims = [1], operand_batching_dims = [0], "
        f"start_indices_batching_dims = [0], start_index_map = [1], index_vector_dim = {len(shape)}"
    )
    return rewriter.build(
        Gather,
        operand_=value,
        start_indices=places,
        dimension_numbers=DialectAttr("stablehlo.gather", axes),
        slice_sizes=dense_ints(1, 1, columns),
        out=tensor_of(value).with_shape((*shape, columns)),
    ).result
