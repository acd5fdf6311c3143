"""`chlo.ragged_dot`: a dot whose lhs has variable-size groups, one after the other, along one dimension.

It becomes one `dot_general`. If groups divide rows, each group has its own rhs: the lhs is repeated per group with
zeros outside of the group, and the dot also sums over groups. If groups divide the contracted dimension, the same gives
one result per group. If groups divide a batch dimension, they change nothing. Elements after the last group count as
zero.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from orchestrion.compiler.ir.attributes import DialectAttr
from orchestrion.compiler.ir.core import Operation, Value
from orchestrion.compiler.ir.rewriter import Rewriter
from orchestrion.compiler.ir.types import TensorType
from orchestrion.compiler.stablehlo.builders.basic import compare, elementwise
from orchestrion.compiler.stablehlo.builders.shape_builders import broadcast, iota, reduce_axes, transpose, zeros
from orchestrion.compiler.stablehlo.ops.base import ShapeError, dtype_of, is_known, tensor_of
from orchestrion.compiler.stablehlo.ops.contraction import DotDimensions, DotGeneral
from orchestrion.compiler.stablehlo.ops.indexing import axis_lists
from orchestrion.schema.dtypes import SIGNED, UNSIGNED

Ints = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class RaggedAxes:
    """The fields of `#chlo.ragged_dot`."""

    lhs_batching_dimensions: Ints
    rhs_batching_dimensions: Ints
    lhs_contracting_dimensions: Ints
    rhs_contracting_dimensions: Ints
    lhs_ragged_dimensions: Ints
    rhs_group_dimensions: Ints

    def before(self, rank: int) -> Ints:
        """The axes of the lhs along which each index has its own groups: batch axes, and axes of the same kind before
        the ragged one.
        """
        (ragged,), batch = self.lhs_ragged_dimensions, self.lhs_batching_dimensions
        summed = self.lhs_contracting_dimensions
        like = summed if ragged in summed else tuple(axis for axis in range(rank) if axis not in (*batch, *summed))
        return (*batch, *like[: like.index(ragged)])


def expand_ragged_dot(op: Operation, rewriter: Rewriter) -> bool:
    """Expands a ragged dot; skips malformed ops."""
    given = op.get_as("ragged_dot_dimension_numbers", DialectAttr)
    values = (*op.operands, *op.results)
    if given is None or len(values) != 4 or not all(is_known(value.type) for value in values):
        return False
    try:
        axes = RaggedAxes(**axis_lists(given, "chlo.ragged_dot", RaggedAxes))
    except ShapeError:
        return False
    made = _made(op, rewriter, axes) if _fits(op, axes) else None
    if made is None or made.type != op.results[0].type:
        return False
    rewriter.replace(op, [made])
    return True


def _fits(op: Operation, axes: RaggedAxes) -> bool:
    """Whether the axes exist in their operands, each at most once, and group sizes are integers."""
    lhs, rhs, sizes = op.operands
    ragged, batch, summed = axes.lhs_ragged_dimensions, axes.lhs_batching_dimensions, axes.lhs_contracting_dimensions
    named = (*axes.rhs_batching_dimensions, *axes.rhs_contracting_dimensions, *axes.rhs_group_dimensions)
    for value, found in ((lhs, (*batch, *summed)), (lhs, ragged), (rhs, named)):
        if len(set(found)) != len(found) or any(not 0 <= axis < tensor_of(value).rank for axis in found):
            return False
    grouped = ragged not in [(axis,) for axis in (*batch, *summed)]
    return (
        len(ragged) == 1
        and len(axes.rhs_group_dimensions) == grouped
        and dtype_of(sizes).kind in (SIGNED, UNSIGNED)
        and tensor_of(sizes).rank > 0
    )


def _made(op: Operation, rewriter: Rewriter, axes: RaggedAxes) -> Value | None:
    lhs, rhs, sizes = op.operands
    batch, summed = axes.lhs_batching_dimensions, axes.lhs_contracting_dimensions
    if axes.lhs_ragged_dimensions[0] in batch:
        dimensions = DotDimensions(batch, axes.rhs_batching_dimensions, summed, axes.rhs_contracting_dimensions)
        return _dot(op, rewriter, lhs, rhs, dimensions)
    before, given = axes.before(tensor_of(lhs).rank), tensor_of(sizes).shape
    if given[:-1] not in ((), tuple(tensor_of(lhs).shape[axis] for axis in before)):
        return None
    repeated = _grouped(rewriter, lhs, sizes, axes.lhs_ragged_dimensions[0], before)
    batch, summed = (tuple(axis + 1 for axis in some) for some in (batch, summed))
    if axes.rhs_group_dimensions:
        both = (*axes.rhs_group_dimensions, *axes.rhs_contracting_dimensions)
        return _dot(op, rewriter, repeated, rhs, DotDimensions(batch, axes.rhs_batching_dimensions, (0, *summed), both))
    dimensions = DotDimensions(batch, axes.rhs_batching_dimensions, summed, axes.rhs_contracting_dimensions)
    made = _dot(op, rewriter, repeated, rhs, dimensions)
    if made is None:
        return None
    rest = [axis for axis in range(tensor_of(made).rank) if axis != len(batch)]
    return transpose(rewriter, made, (len(batch), *rest))


def _dot(op: Operation, rewriter: Rewriter, lhs: Value, rhs: Value, dimensions: DotDimensions) -> Value | None:
    """A dot with the element type of the op's result; None if the operands do not fit."""
    left, right = tensor_of(lhs), tensor_of(rhs)
    pairs = [(dimensions.lhs_batch, dimensions.rhs_batch), (dimensions.lhs_contract, dimensions.rhs_contract)]
    for ours, theirs in pairs:
        if [left.shape[axis] for axis in ours] != [right.shape[axis] for axis in theirs]:
            return None
    shape = [left.shape[axis] for axis in (*dimensions.lhs_batch, *dimensions.free(left.rank, True))]
    shape += [right.shape[axis] for axis in dimensions.free(right.rank, False)]
    out = tensor_of(op.results[0]).with_shape(tuple(shape))
    return rewriter.build(DotGeneral, lhs=lhs, rhs=rhs, dot_dimension_numbers=dimensions.attribute(), out=out).result


def _grouped(rewriter: Rewriter, lhs: Value, sizes: Value, ragged: int, before: Sequence[int]) -> Value:
    """The lhs per group, along a new first axis, with zeros for the elements of other groups."""
    type, count = tensor_of(lhs), tensor_of(sizes).shape[-1]
    shape = (count, *type.shape)
    own = [axis + 1 for axis in before] if tensor_of(sizes).rank > 1 else []
    ends = _sums(rewriter, sizes)
    starts = elementwise(rewriter, "subtract", ends, sizes)
    first, end = (broadcast(rewriter, value, shape, (*own, 0)) for value in (starts, ends))
    place = iota(rewriter, shape, ragged + 1, str(tensor_of(sizes).element))
    inside = elementwise(rewriter, "and", compare(rewriter, "GE", place, first), compare(rewriter, "LT", place, end))
    repeated = broadcast(rewriter, lhs, shape, range(1, len(shape)))
    return elementwise(rewriter, "select", inside, repeated, zeros(rewriter, type.with_shape(shape)))


def _sums(rewriter: Rewriter, sizes: Value) -> Value:
    """Inclusive prefix sums along the last axis."""
    type = tensor_of(sizes)
    rank, shape = type.rank, (*type.shape, type.shape[-1])
    along = TensorType(shape, type.element)
    counted = compare(rewriter, "LE", iota(rewriter, shape, rank - 1), iota(rewriter, shape, rank))
    repeated = broadcast(rewriter, sizes, shape, range(rank))
    return reduce_axes(
        rewriter, elementwise(rewriter, "select", counted, repeated, zeros(rewriter, along)), (rank - 1,)
    )
