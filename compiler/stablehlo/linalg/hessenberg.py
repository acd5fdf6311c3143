"""Hessenberg form by Householder reflections from both sides, tridiagonal for Hermitian matrices: gehrd, sytrd of
LAPACK.

Each iteration computes the reflection that zeroes a column below its subdiagonal. It applies the reflection to the
columns to the right from the left, then to all rows from the right: two matrix-vector products and an elementwise
update. The reflection vectors are stored below the subdiagonal. A Hermitian matrix is completed from the given
triangle; an upper triangle is handled as the lower one of the reversed matrix. Source: Golub and Van Loan, Matrix
Computations, 7.4.2 and 8.3.1.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from orchestrion.compiler.ir.attributes import DictAttr, IntegerAttr, dense_ints
from orchestrion.compiler.ir.core import Operation, Value
from orchestrion.compiler.ir.rewriter import Rewriter
from orchestrion.compiler.ir.types import I32, TensorType
from orchestrion.compiler.stablehlo.builders.basic import compare, constant, elementwise
from orchestrion.compiler.stablehlo.builders.loops import counted_loop
from orchestrion.compiler.stablehlo.builders.real import Real
from orchestrion.compiler.stablehlo.builders.shape_builders import (
    dot,
    dynamic_slice,
    dynamic_update_slice,
    iota,
    reduce_axes,
    reshape,
    slice_range,
    zeros,
)
from orchestrion.compiler.stablehlo.complex.parts import adjoint, conjugate, parts_of, value_of_parts
from orchestrion.compiler.stablehlo.ops.base import tensor_of
from orchestrion.compiler.stablehlo.ops.contraction import DotDimensions
from orchestrion.compiler.stablehlo.ops.structural import Reverse

from .householder import along_last_axis, masks_at_and_after, reflect_from_left, reflection
from .lapack_factors import Flags, have_shapes, matrix_shape
from .triangular import batch_of_matrices

#: The rows of a matrix times a vector, per batch.
_BY_ROWS: Final = DotDimensions((0,), (0,), (2,), (1,))


def gehrd(op: Operation, rewriter: Rewriter, flags: Flags) -> list[Value] | None:
    """LAPACK's gehrd: the Hessenberg form and the reflections. None if the call is malformed."""
    shape = matrix_shape(op.operands[0]) if len(op.operands) == 1 else None
    if shape is None or shape[1] != shape[2] or not _are_all_rows(op, shape[1]):
        return None
    batch, order, _ = shape
    if not have_shapes(op.results, (*batch, order, order), (*batch, order - 1), batch):
        return None
    made = _reduced(rewriter, batch_of_matrices(rewriter, op.operands[0]))
    return [*_shaped(rewriter, made, op.results), zeros(rewriter, tensor_of(op.results[2]))]


def sytrd(op: Operation, rewriter: Rewriter, flags: Flags) -> list[Value] | None:
    """LAPACK's sytrd and hetrd: the tridiagonal form and the reflections. None if the call is malformed."""
    shape = matrix_shape(op.operands[0]) if len(op.operands) == 1 else None
    if shape is None or shape[1] != shape[2]:
        return None
    batch, order, _ = shape
    below = (*batch, order - 1)
    if not have_shapes(op.results, (*batch, order, order), (*batch, order), below, below, batch):
        return None
    given, lower = batch_of_matrices(rewriter, op.operands[0]), flags["lower"]
    a = given if lower else _backwards(rewriter, given, 1, 2)
    packed, taus = _reduced(rewriter, _filled(rewriter, a))
    made = [packed, _diagonal(rewriter, packed, 0), _diagonal(rewriter, packed, 1), taus]
    if not lower:
        made = [_backwards(rewriter, made[0], 1, 2), *(_backwards(rewriter, value, 1) for value in made[1:])]
    made[0] = elementwise(rewriter, "select", _triangle(rewriter, given, lower), made[0], given)
    return [*_shaped(rewriter, made, op.results), zeros(rewriter, tensor_of(op.results[4]))]


def _are_all_rows(op: Operation, order: int) -> bool:
    config = op.get_as("backend_config", DictAttr)
    given = {key: value.value for key, value in config.items if isinstance(value, IntegerAttr)} if config else {}
    return given == {"low": 1, "high": order}


def _shaped(rewriter: Rewriter, made: Sequence[Value], results: Sequence[Value]) -> list[Value]:
    return [reshape(rewriter, value, tensor_of(result).shape) for value, result in zip(made, results, strict=False)]


def _reduced(rewriter: Rewriter, a: Value) -> tuple[Value, Value]:
    """The Hessenberg form above the reflection vectors, and tau, of matrices [batch, n, n]."""
    batch, order, _ = tensor_of(a).shape
    taus = zeros(rewriter, tensor_of(a).with_shape((batch, order - 1)))
    if order == 1:
        return a, taus
    packed, taus = counted_loop(rewriter, order - 1, [a, taus], _reflect)
    return packed, taus


def _reflect(rewriter: Rewriter, iteration: Value, carried: list[Value]) -> Sequence[Value]:
    a, taus = carried
    shape = tensor_of(a).shape
    batch, order, _ = shape
    zero, one = (constant(rewriter, number, TensorType((), I32)) for number in (0, 1))
    column = reshape(rewriter, dynamic_slice(rewriter, a, [zero, zero, iteration], (batch, order, 1)), (batch, order))
    vector, factor, packed = reflection(rewriter, column, elementwise(rewriter, "add", iteration, one))
    left = reflect_from_left(rewriter, a, vector, Real(rewriter, conjugate(rewriter, factor)))
    product = Real(rewriter, dot(rewriter, left.value, vector.value, _BY_ROWS))
    across = Real(rewriter, conjugate(rewriter, vector.value)).broadcast(shape, (0, 2))
    both = left - along_last_axis(product * along_last_axis(Real(rewriter, factor), shape[:2]), shape) * across
    this, right = masks_at_and_after(rewriter, shape, iteration, 2)
    made = right.select(both, this.select(along_last_axis(packed, shape), Real(rewriter, a)))
    return [made.value, dynamic_update_slice(rewriter, taus, reshape(rewriter, factor, (batch, 1)), [zero, iteration])]


def _filled(rewriter: Rewriter, a: Value) -> Value:
    """The Hermitian matrix with this lower triangle; only the real parts of the diagonal count."""
    shape = tensor_of(a).shape
    on = compare(rewriter, "EQ", iota(rewriter, shape, 1), iota(rewriter, shape, 2))
    real = value_of_parts(rewriter, tensor_of(a), parts_of(rewriter, a)[:1])
    whole = elementwise(rewriter, "select", _triangle(rewriter, a, True), a, adjoint(rewriter, a))
    return elementwise(rewriter, "select", on, real, whole)


def _triangle(rewriter: Rewriter, a: Value, lower: bool) -> Value:
    shape = tensor_of(a).shape
    return compare(rewriter, "GE" if lower else "LE", iota(rewriter, shape, 1), iota(rewriter, shape, 2))


def _diagonal(rewriter: Rewriter, a: Value, below: int) -> Value:
    """The real parts of the diagonal that is `below` places below the main one."""
    batch, order, _ = tensor_of(a).shape
    first = parts_of(rewriter, a)[0].value
    square = slice_range(rewriter, first, (0, below, 0), (batch, order, order - below))
    shape = tensor_of(square).shape
    on = compare(rewriter, "EQ", iota(rewriter, shape, 1), iota(rewriter, shape, 2))
    kept = elementwise(rewriter, "select", on, square, zeros(rewriter, tensor_of(square)))
    return reduce_axes(rewriter, kept, (2,))


def _backwards(rewriter: Rewriter, value: Value, *axes: int) -> Value:
    return rewriter.build(Reverse, operand_=value, dimensions=dense_ints(*axes), out=value.type).result
