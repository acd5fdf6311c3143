"""Plane rotations of many pairs of rows at once, for `jacobi_eigen` and `jacobi_svd`.

The pairs of a round follow a round-robin tournament: i and j are paired if i + j = round modulo an odd number; the
remaining row is paired with the last one, or rests. After that many rounds every pair occurred once, which is a sweep.
Each row gathers its partner and computes the rotation for itself, from the same numbers as its partner, so both get
exactly the same angle.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from orchestrion.compiler.ir.attributes import BoolAttr, DialectAttr, IntegerAttr, dense_ints
from orchestrion.compiler.ir.core import Value
from orchestrion.compiler.ir.rewriter import Rewriter
from orchestrion.compiler.ir.types import I32, TensorType
from orchestrion.compiler.stablehlo.builders.basic import compare, constant, elementwise
from orchestrion.compiler.stablehlo.builders.loops import Body, while_loop
from orchestrion.compiler.stablehlo.builders.real import Mask, Real
from orchestrion.compiler.stablehlo.builders.shape_builders import broadcast, iota, reduce_axes, reshape, zeros
from orchestrion.compiler.stablehlo.complex.parts import magnitude, parts_of, value_of_parts
from orchestrion.compiler.stablehlo.ops.base import is_complex, tensor_of
from orchestrion.compiler.stablehlo.ops.indexing import Gather
from orchestrion.compiler.stablehlo.ops.sort import Sort, comparator_region
from orchestrion.compiler.stablehlo.ops.structural import Slice

#: More sweeps than any matrix needs.
MAX_SWEEPS: Final = 40


def rounds_per_sweep(count: int) -> int:
    """The number of rounds in a sweep of `count` rows."""
    return count - 1 + count % 2


def partners(rewriter: Rewriter, iteration: Value, count: int) -> Value:
    """The partner [count] of each row in a round; a resting row is its own partner."""
    type, odd = TensorType((count,), I32), rounds_per_sweep(count)
    one, zero, modulus, last = (constant(rewriter, number, type) for number in (1, 0, odd, count - 1))
    row, now = iota(rewriter, type.shape, 0), broadcast(rewriter, iteration, type.shape)
    other = elementwise(rewriter, "subtract", now, row)
    other = _wrapped(rewriter, compare(rewriter, "LT", other, zero), other, modulus)
    if odd == count:
        return other
    is_odd = compare(rewriter, "EQ", elementwise(rewriter, "and", now, one), one)
    alone = elementwise(rewriter, "shift_right_logical", _wrapped(rewriter, is_odd, now, modulus), one)
    other = elementwise(rewriter, "select", compare(rewriter, "EQ", other, row), last, other)
    return elementwise(rewriter, "select", compare(rewriter, "EQ", row, last), alone, other)


def _wrapped(rewriter: Rewriter, test: Value, number: Value, modulus: Value) -> Value:
    return elementwise(rewriter, "select", test, elementwise(rewriter, "add", number, modulus), number)


def angles(rewriter: Rewriter, partner: Value, own: Real, other: Real, between: Real) -> tuple[Real, Real]:
    """(k, s): row i becomes (1 - k) row i - s row partner(i).

    1 - k is the cosine and s the sine, times a phase, of the smaller angle that makes the element `between` of [[own,
    between], [its conjugate, other]] vanish. All are [batch, n]; the partner's s is the negative conjugate. A small k
    keeps all its digits, which the cosine would lose; otherwise the norms of rows would shrink with each round.
    """
    shape = own.type.shape
    row, partner = iota(rewriter, shape, 1), broadcast(rewriter, partner, shape, (1,))
    is_first = Mask(rewriter, compare(rewriter, "LT", row, partner))
    type, phase = between.type, []
    if is_complex(between.value):
        size = magnitude(rewriter, between.value)
        length = size.compare("EQ", 0.0).select(1.0, size)
        phase, between = [part / length for part in parts_of(rewriter, between.value)], size
    apart = (other - own) / (between * 2.0)
    is_up = apart.compare("GT", 0.0) | (apart.compare("EQ", 0.0) & is_first)
    size = abs(apart)
    tangent = 1.0 / (size + (size * size + 1.0).op("sqrt"))
    tangent = between.compare("EQ", 0.0).select(0.0, is_up.select(tangent, -tangent))
    cosine = 1.0 / (tangent * tangent + 1.0).op("sqrt")
    sine = tangent * cosine
    parts = [part * sine for part in phase] or [sine]
    k = sine * sine / (cosine + 1.0)
    return Real(rewriter, value_of_parts(rewriter, type, [k])), Real(rewriter, value_of_parts(rewriter, type, parts))


def zero_if_resting(rewriter: Rewriter, partner: Value, between: Real) -> Real:
    """Zero for rows that are their own partners."""
    shape = between.type.shape
    row, partner = iota(rewriter, shape, 1), broadcast(rewriter, partner, shape, (1,))
    none = Real(rewriter, zeros(rewriter, between.type))
    return Mask(rewriter, compare(rewriter, "EQ", row, partner)).select(none, between)


def diagonal(rewriter: Rewriter, a: Value) -> Real:
    """The real parts of the diagonals [batch, n] of matrices."""
    batch, n, _ = tensor_of(a).shape
    made = rewriter.build(
        Slice,
        operand_=reshape(rewriter, a, (batch, n * n)),
        start_indices=dense_ints(0, 0),
        limit_indices=dense_ints(batch, n * n),
        strides=dense_ints(1, n + 1),
        out=tensor_of(a).with_shape((batch, n)),
    )
    return parts_of(rewriter, made.result)[0]


def sweeps(rewriter: Rewriter, made: Sequence[Value], left: Real, bound: Real, sweep: Body) -> list[Value]:
    """Runs `sweep` while some `left` [batch] exceeds the bound; it returns the new `left`, then the other carried
    values.
    """

    def is_unfinished(rewriter: Rewriter, number: Value, carried: list[Value]) -> Sequence[Value]:
        few = compare(rewriter, "LT", number, constant(rewriter, MAX_SWEEPS, tensor_of(number)))
        beyond = compare(rewriter, "GT", carried[0], bound.value)
        return [elementwise(rewriter, "and", few, reduce_axes(rewriter, beyond, (0,), "or"))]

    return while_loop(rewriter, [left.value, *made], is_unfinished, sweep)


def convergence(rewriter: Rewriter, left: Value, bound: Real, size: Real) -> tuple[Mask, Value]:
    """Mask of the matrices that converged and are finite, and LAPACK's info: 0 for these, else 1."""
    fine = Real(rewriter, left).compare("LE", bound) & size.is_finite
    type = TensorType(bound.type.shape, I32)
    zero, one = (constant(rewriter, number, type) for number in (0, 1))
    return fine, elementwise(rewriter, "select", fine.value, zero, one)


def nan_unless(rewriter: Rewriter, fine: Mask, value: Value) -> Value:
    """NaN for the matrices [batch] where the mask is false."""
    shape = tensor_of(value).shape
    whole = Mask(rewriter, broadcast(rewriter, fine.value, shape, (0,)))
    parts = [whole.select(part, float("nan")) for part in parts_of(rewriter, value)]
    return value_of_parts(rewriter, tensor_of(value), parts)


def sort_lines(rewriter: Rewriter, values: Value, direction: str, lines: Sequence[Value]) -> list[Value]:
    """Values [batch, n] in ascending (LT) or descending (GT) order, and matrices with their rows in that order."""
    type = tensor_of(values)
    types = [type, type.with_element(I32)]
    ordered, order = rewriter.build(
        Sort,
        inputs=[values, iota(rewriter, type.shape, 1)],
        dimension=IntegerAttr(1),
        is_stable=BoolAttr(True),
        comparator=comparator_region(types, direction),
        out=types,
    ).results
    return [ordered, *(_rows(rewriter, value, order) for value in lines)]


def _rows(rewriter: Rewriter, value: Value, order: Value) -> Value:
    """Rows of each matrix in its own order [batch, n]."""
    shape = tensor_of(value).shape
    axes = (
        "offset_dims = [2], collapsed_slice_dims = [1], operand_batching_dims = [0], "
        "start_indices_batching_dims = [0], start_index_map = [1], index_vector_dim = 2"
    )
    return _gather(rewriter, value, order, axes, (1, 1, shape[2]), shape)


def gather_lines(rewriter: Rewriter, value: Value, at: Value, axis: int) -> Real:
    """The slices of an axis at these indices [any]."""
    shape = tensor_of(value).shape
    others = [number for number in range(len(shape)) if number != axis]
    axes = f"offset_dims = {others}, collapsed_slice_dims = [{axis}], start_index_map = [{axis}], index_vector_dim = 1"
    sizes = tuple(1 if number == axis else size for number, size in enumerate(shape))
    made = (*shape[:axis], *tensor_of(at).shape, *shape[axis + 1 :])
    return Real(rewriter, _gather(rewriter, value, at, axes, sizes, made))


def _gather(
    rewriter: Rewriter, value: Value, at: Value, axes: str, sizes: Sequence[int], shape: tuple[int, ...]
) -> Value:
    return rewriter.build(
        Gather,
        operand_=value,
        start_indices=at,
        dimension_numbers=DialectAttr("stablehlo.gather", axes),
        slice_sizes=dense_ints(*sizes),
        out=tensor_of(value).with_shape(shape),
    ).result


def rotate_rows(rewriter: Rewriter, rows: Value, partner: Value, k: Real, sine: Real) -> Value:
    """Rotates each row with its partner."""
    shape, given = tensor_of(rows).shape, Real(rewriter, rows)
    other = gather_lines(rewriter, rows, partner, 1)
    return (given - (k.broadcast(shape, (0, 1)) * given + sine.broadcast(shape, (0, 1)) * other)).value
