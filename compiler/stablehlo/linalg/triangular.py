"""`cholesky` and `triangular_solve` as loops of products, which run on every device.

For f32 and f64 each iteration computes a block (`blocked_solves.py`). For other types and symbolic sizes it computes
one column of a factor, or one row of a solution, by one matrix-vector product, and writes it into the carried matrix.
The iteration counts are known, so each loop is one submission. `lapack.potrf`, `blas.trsm` and `lapack.getrf` use these
loops on targets without libraries, so that `jnp.linalg.cholesky`, `solve`, `inv` and `det` run everywhere; LAPACK is
faster where it is available.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Final

from orchestrion.compiler.ir.attributes import BoolAttr, DialectAttr
from orchestrion.compiler.ir.core import Operation, Value
from orchestrion.compiler.ir.rewriter import Pattern, Rewriter
from orchestrion.compiler.ir.types import F32, F64, TensorType
from orchestrion.compiler.stablehlo.builders.basic import compare, constant, elementwise
from orchestrion.compiler.stablehlo.builders.loops import counted_loop
from orchestrion.compiler.stablehlo.builders.shape_builders import (
    broadcast,
    dot,
    dynamic_slice,
    dynamic_update_slice,
    iota,
    reshape,
    transpose,
    zeros,
)
from orchestrion.compiler.stablehlo.ops.base import dtype_of, is_known, tensor_of
from orchestrion.compiler.stablehlo.ops.contraction import DotDimensions
from orchestrion.compiler.stablehlo.ops.elementwise import OPS
from orchestrion.schema.dtypes import FLOAT

from . import blocked_solves

#: Products of a matrix per batch and a vector: over the matrix's columns, or over its rows.
_BY_COLUMNS: Final = DotDimensions((0,), (0,), (2,), (1,))
_BY_ROWS: Final = DotDimensions((0,), (0,), (1,), (1,))


def batch_of_matrices(rewriter: Rewriter, value: Value) -> Value:
    """Matrices with one batch axis."""
    *batch, rows, columns = tensor_of(value).shape
    return reshape(rewriter, value, (prod(batch), rows, columns))


def _transposed(rewriter: Rewriter, value: Value) -> Value:
    return transpose(rewriter, value, (0, 2, 1))


def _conjugate(rewriter: Rewriter, value: Value) -> Value:
    """The conjugate; a real value unchanged."""
    if not str(tensor_of(value).element).startswith("complex"):
        return value
    real, imaginary = (_parts(rewriter, value, name) for name in ("real", "imag"))
    made = OPS["stablehlo.complex"]([real, elementwise(rewriter, "negate", imaginary)], [value.type])
    return rewriter.insert(made).result


def _parts(rewriter: Rewriter, value: Value, name: str) -> Value:
    element = str(tensor_of(value).element).removeprefix("complex<").removesuffix(">")
    type = tensor_of(value).with_element({"f32": F32, "f64": F64}[element])
    return rewriter.insert(OPS[f"stablehlo.{name}"]([value], [type])).result


def _is_float(value: Value) -> bool:
    if not is_known(value.type):
        return False
    is_complex = str(tensor_of(value).element).startswith("complex<") and "stablehlo.complex" in OPS
    return dtype_of(value).kind == FLOAT or is_complex


def cholesky_factor(rewriter: Rewriter, a: Value) -> Value:
    """The lower Cholesky factor of matrices [batch, n, n]: reads the lower triangle, and writes zeros above."""
    if blocked_solves.supports(a):
        return blocked_solves.cholesky_factor(rewriter, a)
    batch, n, _ = tensor_of(a).shape

    def column(rewriter: Rewriter, iteration: Value, carried: list[Value]) -> Sequence[Value]:
        (lower,), zero = carried, constant(rewriter, 0, tensor_of(iteration))
        row = reshape(rewriter, dynamic_slice(rewriter, lower, [zero, iteration, zero], (batch, 1, n)), (batch, n))
        given = reshape(rewriter, dynamic_slice(rewriter, a, [zero, zero, iteration], (batch, n, 1)), (batch, n))
        known = dot(rewriter, lower, _conjugate(rewriter, row), _BY_COLUMNS)
        rest = elementwise(rewriter, "subtract", given, known)
        pivot = elementwise(rewriter, "sqrt", dynamic_slice(rewriter, rest, [zero, iteration], (batch, 1)))
        pivot = broadcast(rewriter, reshape(rewriter, pivot, (batch,)), (batch, n), (0,))
        place, here = iota(rewriter, (batch, n), 1), broadcast(rewriter, iteration, (batch, n))
        below = elementwise(rewriter, "divide", rest, pivot)
        below = elementwise(
            rewriter, "select", compare(rewriter, "GT", place, here), below, zeros(rewriter, tensor_of(below))
        )
        made = elementwise(rewriter, "select", compare(rewriter, "EQ", place, here), pivot, below)
        return [dynamic_update_slice(rewriter, lower, reshape(rewriter, made, (batch, n, 1)), [zero, zero, iteration])]

    return counted_loop(rewriter, n, [zeros(rewriter, tensor_of(a))], column)[0]


def triangular_solution(
    rewriter: Rewriter, a: Value, b: Value, lower: bool, transposed: bool, conjugate: bool, unit: bool
) -> Value:
    """Solves op(a) x = b for matrices [batch, n, n] and [batch, n, m]; `lower` selects the triangle of a
    that is read.
    """
    if blocked_solves.supports(b):
        return blocked_solves.triangular_solution(rewriter, a, b, lower, transposed, unit)
    batch, n, m = tensor_of(b).shape
    forwards = lower != transposed

    def row(rewriter: Rewriter, iteration: Value, carried: list[Value]) -> Sequence[Value]:
        (found,), zero = carried, constant(rewriter, 0, tensor_of(iteration))
        at = (
            iteration
            if forwards
            else elementwise(rewriter, "subtract", constant(rewriter, n - 1, tensor_of(iteration)), iteration)
        )
        starts, sizes = ([zero, zero, at], (batch, n, 1)) if transposed else ([zero, at, zero], (batch, 1, n))
        line = reshape(rewriter, dynamic_slice(rewriter, a, starts, sizes), (batch, n))
        line = _conjugate(rewriter, line) if conjugate else line
        place, here = iota(rewriter, (batch, n), 1), broadcast(rewriter, at, (batch, n))
        is_known = compare(rewriter, "LT" if forwards else "GT", place, here)
        used = elementwise(rewriter, "select", is_known, line, zeros(rewriter, tensor_of(line)))
        given = reshape(rewriter, dynamic_slice(rewriter, b, [zero, at, zero], (batch, 1, m)), (batch, m))
        made = elementwise(rewriter, "subtract", given, dot(rewriter, used, found, _BY_ROWS))
        if not unit:
            pivot = reshape(rewriter, dynamic_slice(rewriter, line, [zero, at], (batch, 1)), (batch,))
            made = elementwise(rewriter, "divide", made, broadcast(rewriter, pivot, (batch, m), (0,)))
        return [dynamic_update_slice(rewriter, found, reshape(rewriter, made, (batch, 1, m)), [zero, at, zero])]

    return counted_loop(rewriter, n, [zeros(rewriter, tensor_of(b))], row)[0]


def _cholesky(op: Operation, rewriter: Rewriter) -> bool:
    if (len(op.operands), len(op.results)) != (1, 1) or not _is_float(op.operands[0]):
        return False
    a, type = op.operands[0], tensor_of(op.operands[0])
    if op.results[0].type != type or type.rank < 2 or type.shape[-1] != type.shape[-2] or type.num_elements == 0:
        return False
    rewriter.replace(op, [reshape(rewriter, cholesky_of(rewriter, a, _flag(op, "lower")), type.shape)])
    return True


def cholesky_of(rewriter: Rewriter, a: Value, lower: bool) -> Value:
    """The Cholesky factor of matrices [batch, n, n], lower or upper."""
    a = batch_of_matrices(rewriter, a)
    if lower:
        return cholesky_factor(rewriter, a)
    return _conjugate(
        rewriter, _transposed(rewriter, cholesky_factor(rewriter, _conjugate(rewriter, _transposed(rewriter, a))))
    )


def _flag(op: Operation, name: str) -> bool:
    given = op.get_as(name, BoolAttr)
    return given is not None and given.value


def _triangular_solve(op: Operation, rewriter: Rewriter) -> bool:
    transposed = op.get_as("transpose_a", DialectAttr)
    if (len(op.operands), len(op.results)) != (2, 1) or transposed is None or not _is_float(op.operands[0]):
        return False
    a, b = op.operands
    left = _flag(op, "left_side")
    if not shapes_fit(a, b, left) or op.results[0].type != b.type:
        return False
    kind = transposed.body.split()[-1]
    flags = (left, _flag(op, "lower"), kind != "NO_TRANSPOSE", kind == "ADJOINT", _flag(op, "unit_diagonal"))
    rewriter.replace(op, [solve(rewriter, a, b, *flags)])
    return True


def shapes_fit(a: Value, b: Value, left: bool) -> bool:
    """Whether the batches and sizes of the matrices and right-hand sides agree."""
    first, second = a.type, b.type
    if not isinstance(first, TensorType) or not isinstance(second, TensorType) or not is_known(second):
        return False
    if first.element != second.element or first.rank != second.rank or first.rank < 2 or second.num_elements == 0:
        return False
    n = second.shape[-2 if left else -1]
    return first.shape == (*second.shape[:-2], n, n)


def solve(
    rewriter: Rewriter, a: Value, b: Value, left: bool, lower: bool, transposed: bool, conjugate: bool, unit: bool
) -> Value:
    """Solves op(a) x = b, or x op(a) = b as a^T x^T = b^T."""
    wide, given = batch_of_matrices(rewriter, a), batch_of_matrices(rewriter, b)
    given = given if left else _transposed(rewriter, given)
    found = triangular_solution(rewriter, wide, given, lower, transposed == left, conjugate, unit)
    return reshape(rewriter, found if left else _transposed(rewriter, found), tensor_of(b).shape)


PATTERNS: Final[dict[str, tuple[Pattern, ...]]] = {
    "stablehlo.cholesky": (_cholesky,),
    "stablehlo.triangular_solve": (_triangular_solve,),
}
