"""`scatter`: combines windows of updates with the operand at the places that index vectors select.

A window that does not lie entirely in the operand is skipped, as in XLA, so that a scatter is the gradient of a gather
that fills. Updates of one element are applied in the order of the scatter axes, so that results are the same in all
runs and on all devices. With `unique_indices` no element may be updated twice.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from orchestrion.compiler.ir.attributes import BoolAttr, DialectAttr
from orchestrion.compiler.ir.core import Trait
from orchestrion.compiler.ir.declare import attr, operand, operands, optional, region, results
from orchestrion.compiler.ir.dims import Shape, Size
from orchestrion.compiler.ir.types import TensorType
from orchestrion.schema.dtypes import SIGNED, UNSIGNED

from .base import ShapeError, StablehloOp, check_lines, dtype_of, tensor_of, type_list
from .base import axes as axes_of
from .contraction import check_region
from .indexing import axis_lists

Ints = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ScatterAxes:
    """The correspondence of axes of a scatter's operand, indices and updates, in StableHLO's terms.

    An index vector lies along axis `index_vector_dim` of the indices (if that is their rank, each index is one number).
    It states the start of a window along the operand axes `scatter_dims_to_operand_dims`. The updates have the other
    axes of the indices, and at `update_window_dims` the operand's axes except for the inserted and batching ones.
    """

    update_window_dims: Ints
    inserted_window_dims: Ints
    input_batching_dims: Ints
    scatter_indices_batching_dims: Ints
    scatter_dims_to_operand_dims: Ints
    index_vector_dim: int

    def kept_dims(self, rank: int) -> Ints:
        """The axes of an operand of this rank that occur in the updates, at `update_window_dims`."""
        gone = self.inserted_window_dims + self.input_batching_dims
        return tuple(axis for axis in range(rank) if axis not in gone)

    def scatter_dims(self, rank: int) -> Ints:
        """The axes of updates of this rank that come from the indices."""
        return tuple(axis for axis in range(rank) if axis not in self.update_window_dims)

    def window(self, rank: int, updates: Shape) -> Shape:
        sizes: list[Size] = [1] * rank
        for axis, source in zip(self.kept_dims(rank), self.update_window_dims, strict=True):
            sizes[axis] = updates[source]
        return tuple(sizes)


class Scatter(StablehloOp):
    """The operands, with windows of updates combined into them. The combiner takes one scalar per operand for the
    present elements, then one per operand for the updates.
    """

    name = "stablehlo.scatter"
    inputs = operands(TensorType)
    scatter_indices = operand(TensorType)
    updates = operands(TensorType)
    scatter_dimension_numbers = attr(DialectAttr)
    indices_are_sorted = optional(BoolAttr)
    unique_indices = optional(BoolAttr)
    update_computation = region()
    out = results(TensorType)
    traits = frozenset({Trait.PURE, Trait.ISOLATED})
    same_size = True

    @property
    def axes(self) -> ScatterAxes:
        """The correspondence of axes. Raises ShapeError."""
        return ScatterAxes(**axis_lists(self.scatter_dimension_numbers, "stablehlo.scatter", ScatterAxes))

    @property
    def is_unique(self) -> bool:
        """Whether no element is updated twice."""
        return self.unique_indices is not None and self.unique_indices.value

    @property
    def assigns(self) -> bool:
        """Whether updates replace elements."""
        block = self.update_computation.block
        return list(block.end.operands) == list(block.arguments[len(self.inputs) :])

    def infer(self) -> Sequence[TensorType]:
        wholes, updates = check_lines(self.inputs, self.results), [tensor_of(x) for x in self.updates]
        if any(type.shape != updates[0].shape for type in updates):
            raise ShapeError(f"updates differ in shape: {type_list(updates)}")
        if [type.element for type in wholes] != [type.element for type in updates]:
            raise ShapeError(f"updates {type_list(updates)} of {type_list(wholes)}")
        if dtype_of(self.scatter_indices).kind not in (SIGNED, UNSIGNED):
            raise ShapeError(f"indices of type {self.scatter_indices.type}")
        _check(self.axes, wholes[0].shape, tensor_of(self.scatter_indices).shape, updates[0].shape)
        scalars = [type.with_shape(()) for type in wholes]
        check_region("the combiner", self.update_computation, scalars * 2, scalars)
        return wholes


def _check(axes: ScatterAxes, whole: Shape, indices: Shape, updates: Shape) -> None:
    """Checks the specification's rules about axes. Raises ShapeError."""
    vector = axes.index_vector_dim
    if not 0 <= vector <= len(indices):
        raise ShapeError(f"index_vector_dim {vector} for indices of rank {len(indices)}")
    length = indices[vector] if vector < len(indices) else 1
    chosen, gone = axes.scatter_dims_to_operand_dims, axes.inserted_window_dims + axes.input_batching_dims
    if len(chosen) != length:
        raise ShapeError(f"scatter_dims_to_operand_dims has {len(chosen)} axes for index vectors of {length}")
    axes_of("inserted_window_dims and input_batching_dims", gone, len(whole))
    axes_of("scatter_dims_to_operand_dims and input_batching_dims", chosen + axes.input_batching_dims, len(whole))
    axes_of("update_window_dims", axes.update_window_dims, len(updates))
    axes_of("scatter_indices_batching_dims", axes.scatter_indices_batching_dims, len(indices))
    for name in ("update_window_dims", "inserted_window_dims", "input_batching_dims"):
        if list(getattr(axes, name)) != sorted(getattr(axes, name)):
            raise ShapeError(f"{name} {list(getattr(axes, name))} are not in order")
    if vector in axes.scatter_indices_batching_dims:
        raise ShapeError(f"index_vector_dim {vector} is among scatter_indices_batching_dims")
    ours = [whole[axis] for axis in axes.input_batching_dims]
    theirs = [indices[axis] for axis in axes.scatter_indices_batching_dims]
    if ours != theirs:
        raise ShapeError(f"batching axes of the operand are of sizes {ours}, of the indices {theirs}")
    kept = axes.kept_dims(len(whole))
    if len(kept) != len(axes.update_window_dims):
        raise ShapeError(f"{len(axes.update_window_dims)} update_window_dims for {len(kept)} axes of a window")
    for axis, size in zip(kept, (updates[of] for of in axes.update_window_dims), strict=True):
        if size > whole[axis]:
            raise ShapeError(f"a window of {size} along axis {axis} of size {whole[axis]}")
    rest = [updates[axis] for axis in axes.scatter_dims(len(updates))]
    wanted = [size for axis, size in enumerate(indices) if axis != vector]
    if rest != wanted:
        raise ShapeError(f"updates are for {rest} windows, indices for {wanted}")
