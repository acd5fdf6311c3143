"""Cholesky factors and triangular solves in a loop over blocks of columns or rows.

Each iteration subtracts the contribution of the known blocks by one product, and `flow.solve_rows` computes the rest of
the block. The number of dispatches per iteration is small and independent of the size. A matrix is padded to whole
blocks with ones on the diagonal; a matrix of one block needs no loop. For f32 and f64 matrices of static shape;
`triangular.py` has the same algorithms row by row for other types.
"""

from __future__ import annotations

from collections.abc import Sequence

from orchestrion.compiler.ir.attributes import BoolAttr, dense_ints
from orchestrion.compiler.ir.core import Value
from orchestrion.compiler.ir.dims import Dim
from orchestrion.compiler.ir.rewriter import Rewriter
from orchestrion.compiler.ir.types import F32, F64
from orchestrion.compiler.stablehlo.builders.basic import compare, constant, elementwise, i32_splat
from orchestrion.compiler.stablehlo.builders.loops import counted_loop
from orchestrion.compiler.stablehlo.builders.shape_builders import (
    broadcast,
    dot,
    dynamic_slice,
    dynamic_update_slice,
    iota,
    slice_range,
    transpose,
    zeros,
)
from orchestrion.compiler.stablehlo.ops.base import tensor_of
from orchestrion.compiler.stablehlo.ops.contraction import DotDimensions
from orchestrion.compiler.stablehlo.ops.flow_ops import BLOCK, RowSolve
from orchestrion.compiler.stablehlo.ops.structural import Pad, Reverse

_ROWS_BY_ROWS = DotDimensions((0,), (0,), (2,), (2,))
_ROWS_BY_COLUMNS = DotDimensions((0,), (0,), (2,), (1,))


def supports(value: Value) -> bool:
    """Whether the matrices have a suitable type and static shape; the batch may be symbolic."""
    type = tensor_of(value)
    return type.element in (F32, F64) and not any(isinstance(size, Dim) for size in type.shape[1:])


def cholesky_factor(rewriter: Rewriter, a: Value) -> Value:
    """The lower Cholesky factor of matrices [batch, n, n]: reads the lower triangle, and writes zeros above."""
    batch, n, _ = tensor_of(a).shape
    if n <= BLOCK:
        return _lower(rewriter, solve_rows(rewriter, a, a, factor=True), 0)
    size = -(-n // BLOCK) * BLOCK
    whole = _filled(rewriter, a, size, unit=False)

    def columns(rewriter: Rewriter, iteration: Value, carried: list[Value]) -> Sequence[Value]:
        (lower,), zero, at = carried, constant(rewriter, 0, tensor_of(iteration)), _start(rewriter, iteration)
        line = dynamic_slice(rewriter, lower, [zero, at, zero], (batch, BLOCK, size))
        given = dynamic_slice(rewriter, whole, [zero, zero, at], (batch, size, BLOCK))
        rest = elementwise(rewriter, "subtract", given, dot(rewriter, lower, line, _ROWS_BY_ROWS))
        block = dynamic_slice(rewriter, rest, [zero, at, zero], (batch, BLOCK, BLOCK))
        made = _lower(rewriter, solve_rows(rewriter, block, rest, factor=True), at)
        return [dynamic_update_slice(rewriter, lower, made, [zero, zero, at])]

    made = counted_loop(rewriter, size // BLOCK, [zeros(rewriter, tensor_of(whole))], columns)[0]
    return slice_range(rewriter, made, (0, 0, 0), (batch, n, n))


def triangular_solution(rewriter: Rewriter, a: Value, b: Value, lower: bool, transposed: bool, unit: bool) -> Value:
    """Solves op(a) x = b for matrices [batch, n, n] and [batch, n, m]; `lower` selects the triangle of a
    that is read.
    """
    batch, n, m = tensor_of(b).shape
    a = transpose(rewriter, a, (0, 2, 1)) if transposed else a
    backwards = lower == transposed
    if backwards:  # from the last row to the first: reversed, it is a forward substitution
        a, b = _reversed(rewriter, a, (1, 2)), _reversed(rewriter, b, (1,))
    size = n if n <= BLOCK else -(-n // BLOCK) * BLOCK
    whole = _filled(rewriter, a, size, unit)
    if size == n <= BLOCK:
        made = transpose(rewriter, solve_rows(rewriter, whole, transpose(rewriter, b, (0, 2, 1))), (0, 2, 1))
    else:
        made = _by_blocks(rewriter, whole, pad_to(rewriter, b, (batch, size, m)))
        made = slice_range(rewriter, made, (0, 0, 0), (batch, n, m))
    return _reversed(rewriter, made, (1,)) if backwards else made


def _by_blocks(rewriter: Rewriter, a: Value, b: Value) -> Value:
    """Solves a x = b for a lower triangle `a` of whole blocks."""
    batch, size, m = tensor_of(b).shape

    def rows(rewriter: Rewriter, iteration: Value, carried: list[Value]) -> Sequence[Value]:
        (found,), zero, at = carried, constant(rewriter, 0, tensor_of(iteration)), _start(rewriter, iteration)
        line = dynamic_slice(rewriter, a, [zero, at, zero], (batch, BLOCK, size))
        given = dynamic_slice(rewriter, b, [zero, at, zero], (batch, BLOCK, m))
        rest = elementwise(rewriter, "subtract", given, dot(rewriter, line, found, _ROWS_BY_COLUMNS))
        block = dynamic_slice(rewriter, a, [zero, at, at], (batch, BLOCK, BLOCK))
        made = solve_rows(rewriter, block, transpose(rewriter, rest, (0, 2, 1)))
        return [dynamic_update_slice(rewriter, found, transpose(rewriter, made, (0, 2, 1)), [zero, at, zero])]

    return counted_loop(rewriter, size // BLOCK, [zeros(rewriter, tensor_of(b))], rows)[0]


def solve_rows(rewriter: Rewriter, matrix: Value, rows: Value, factor: bool = False) -> Value:
    """The x with x L^T = rows, for the lower triangle L of `matrix`; `factor`: L is its lower Cholesky factor."""
    return rewriter.build(RowSolve, matrix=matrix, rows=rows, factor=BoolAttr(factor), out=rows.type).result


def _start(rewriter: Rewriter, iteration: Value) -> Value:
    return elementwise(rewriter, "multiply", iteration, constant(rewriter, BLOCK, tensor_of(iteration)))


def _lower(rewriter: Rewriter, value: Value, first: Value | int) -> Value:
    """Zeros above the diagonal of columns that start at column `first` of a matrix."""
    shape = tensor_of(value).shape
    start = broadcast(rewriter, first, shape) if isinstance(first, Value) else i32_splat(rewriter, first, shape)
    column = elementwise(rewriter, "add", iota(rewriter, shape, 2), start)
    below = compare(rewriter, "GE", iota(rewriter, shape, 1), column)
    return elementwise(rewriter, "select", below, value, zeros(rewriter, tensor_of(value)))


def _filled(rewriter: Rewriter, a: Value, size: int, unit: bool) -> Value:
    """The lower triangle with zeros above, padded with ones on the diagonal; `unit`: all ones on the diagonal."""
    batch, n, _ = tensor_of(a).shape
    whole = pad_to(rewriter, a, (batch, size, size))
    shape = tensor_of(whole).shape
    row, column = iota(rewriter, shape, 1), iota(rewriter, shape, 2)
    on = compare(rewriter, "EQ", row, column)
    ones = on if unit else elementwise(rewriter, "and", on, compare(rewriter, "GE", row, i32_splat(rewriter, n, shape)))
    one, zero = constant(rewriter, 1.0, tensor_of(whole)), zeros(rewriter, tensor_of(whole))
    lower = elementwise(rewriter, "select", compare(rewriter, "GE", row, column), whole, zero)
    return elementwise(rewriter, "select", ones, one, lower) if unit or size != n else lower


def pad_to(rewriter: Rewriter, value: Value, shape: tuple[int, ...]) -> Value:
    """Pads at the end of each axis with zeros."""
    type = tensor_of(value)
    if type.shape == shape:
        return value
    none = dense_ints(*[0] * len(shape))
    return rewriter.build(
        Pad,
        operand_=value,
        padding_value=zeros(rewriter, type.with_shape(())),
        edge_padding_low=none,
        edge_padding_high=dense_ints(*(size - old for size, old in zip(shape, type.shape, strict=True))),
        interior_padding=none,
        out=type.with_shape(shape),
    ).result


def _reversed(rewriter: Rewriter, value: Value, axes: tuple[int, ...]) -> Value:
    return rewriter.build(Reverse, operand_=value, dimensions=dense_ints(*axes), out=value.type).result
