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
from orchestrion.compiler.ir.core import Operation
from orchestrion.compiler.stablehlo.builders.tensors import Tensor
from orchestrion.compiler.stablehlo.ops.base import ShapeError, is_axes, tensor_of
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
        """The axes of the lhs with groups per index: batch axes, and those of the same kind before the ragged one."""
        (ragged,), batch = self.lhs_ragged_dimensions, self.lhs_batching_dimensions
        summed = self.lhs_contracting_dimensions
        like = summed if ragged in summed else tuple(axis for axis in range(rank) if axis not in (*batch, *summed))
        return (*batch, *like[: like.index(ragged)])


def expand_ragged_dot(op: Operation, lhs: Tensor, rhs: Tensor, sizes: Tensor) -> Tensor | None:
    """Expands a ragged dot; skips malformed ops."""
    given = op.get_as("ragged_dot_dimension_numbers", DialectAttr)
    try:
        axes = RaggedAxes(**axis_lists(given, "chlo.ragged_dot", RaggedAxes)) if given is not None else None
    except ShapeError:
        return None
    if axes is None or not _fits(axes, lhs, rhs, sizes):
        return None
    batch, summed = axes.lhs_batching_dimensions, axes.lhs_contracting_dimensions
    others = (axes.rhs_batching_dimensions, axes.rhs_contracting_dimensions)
    if axes.lhs_ragged_dimensions[0] in batch:
        return _dot(op, lhs, rhs, DotDimensions(batch, others[0], summed, others[1]))
    before = axes.before(len(lhs.shape))
    if sizes.shape[:-1] not in ((), tuple(lhs.shape[axis] for axis in before)):
        return None
    repeated = _grouped(lhs, sizes, axes.lhs_ragged_dimensions[0], before)
    batch, summed = (tuple(axis + 1 for axis in some) for some in (batch, summed))
    if axes.rhs_group_dimensions:
        both = (*axes.rhs_group_dimensions, *others[1])
        return _dot(op, repeated, rhs, DotDimensions(batch, others[0], (0, *summed), both))
    made = _dot(op, repeated, rhs, DotDimensions(batch, others[0], summed, others[1]))
    if made is None:
        return None
    return made.transpose(len(batch), *(axis for axis in range(len(made.shape)) if axis != len(batch)))


def _fits(axes: RaggedAxes, lhs: Tensor, rhs: Tensor, sizes: Tensor) -> bool:
    """Whether the axes exist in their operands, each at most once, and group sizes are integers."""
    ragged, bound = axes.lhs_ragged_dimensions, (*axes.lhs_batching_dimensions, *axes.lhs_contracting_dimensions)
    named = (*axes.rhs_batching_dimensions, *axes.rhs_contracting_dimensions, *axes.rhs_group_dimensions)
    return (
        all(is_axes(found, len(x.shape)) for x, found in ((lhs, bound), (lhs, ragged), (rhs, named)))
        and len(ragged) == 1
        and len(axes.rhs_group_dimensions) == (ragged[0] not in bound)
        and sizes.dtype.kind in (SIGNED, UNSIGNED)
        and len(sizes.shape) > 0
    )


def _dot(op: Operation, lhs: Tensor, rhs: Tensor, dimensions: DotDimensions) -> Tensor | None:
    """A dot with the element type of the op's result; None if the operands do not fit."""
    pairs = [(dimensions.lhs_batch, dimensions.rhs_batch), (dimensions.lhs_contract, dimensions.rhs_contract)]
    for ours, theirs in pairs:
        if [lhs.shape[axis] for axis in ours] != [rhs.shape[axis] for axis in theirs]:
            return None
    out = tensor_of(op.results[0]).with_shape(dimensions.shape(lhs.type, rhs.type))
    return lhs.build(DotGeneral, lhs=lhs, rhs=rhs, dot_dimension_numbers=dimensions.attribute(), out=out)


def _grouped(lhs: Tensor, sizes: Tensor, ragged: int, before: Sequence[int]) -> Tensor:
    """The lhs per group, along a new first axis, with zeros for the elements of other groups."""
    shape = (sizes.shape[-1], *lhs.shape)
    own = [axis + 1 for axis in before] if len(sizes.shape) > 1 else []
    ends = _sums(sizes)
    first, end = (x.broadcast(shape, (*own, 0)) for x in (ends - sizes, ends))
    place = first.iota(ragged + 1, sizes.dtype.name)
    repeated = lhs.broadcast(shape, range(1, len(shape)))
    return ((place >= first) & (place < end)).select(repeated, repeated.zeros())


def _sums(sizes: Tensor) -> Tensor:
    """Inclusive prefix sums along the last axis."""
    rank = len(sizes.shape)
    repeated = sizes.broadcast((*sizes.shape, sizes.shape[-1]), range(rank))
    counted = repeated.iota(rank - 1) <= repeated.iota(rank)
    return counted.select(repeated, repeated.zeros()).reduce((rank - 1,))
