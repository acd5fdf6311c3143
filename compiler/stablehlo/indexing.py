"""StableHLO ops that find elements by numbers known only when the program runs.

Start indices are scalars of any one integer type. They are clamped, so that what is read or written lies in the operand
whatever they are: `start` becomes min(max(start, 0), size of the operand - size of the slice), per axis.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from orchestrion.compiler.ir.attributes import DenseArray
from orchestrion.compiler.ir.core import Trait, Value
from orchestrion.compiler.ir.declare import attr, operand, operands, result
from orchestrion.compiler.ir.types import TensorType
from orchestrion.schema.dtypes import SIGNED, UNSIGNED

from .base import ShapeError, StablehloOp, dtype_of, per_axis, tensor_of

_PURE: Final = frozenset({Trait.PURE})


class DynamicSlice(StablehloOp):
    """The elements from a start on, `slice_sizes` of them per axis."""

    name = "stablehlo.dynamic_slice"
    operand_ = operand(TensorType)
    start_indices = operands(TensorType)
    slice_sizes = attr(DenseArray)
    out = result(TensorType)
    traits = _PURE
    #: the operand number of the first start
    first_start = 1

    @property
    def window(self) -> tuple[int, ...]:
        """The shape of what is read."""
        return self.slice_sizes.ints

    def infer(self) -> Sequence[TensorType]:
        source = tensor_of(self.operand_)
        sizes = per_axis("slice_sizes", self.slice_sizes, source.rank)
        for axis, (size, whole) in enumerate(zip(sizes, source.shape, strict=True)):
            if not 0 <= size <= whole:
                raise ShapeError(f"slice size {size} does not fit axis {axis} of size {whole}")
        _check_starts(self.start_indices, source.rank)
        return [source.with_shape(sizes)]


class DynamicUpdateSlice(StablehloOp):
    """The operand with the elements from a start on replaced by those of `update`."""

    name = "stablehlo.dynamic_update_slice"
    operand_ = operand(TensorType)
    update = operand(TensorType)
    start_indices = operands(TensorType)
    out = result(TensorType)
    traits = _PURE
    first_start = 2

    @property
    def window(self) -> tuple[int, ...]:
        """The shape of what is written."""
        return tensor_of(self.update).shape

    def infer(self) -> Sequence[TensorType]:
        source, update = tensor_of(self.operand_), tensor_of(self.update)
        if update.element != source.element or update.rank != source.rank:
            raise ShapeError(f"update {update} does not fit {source}")
        for axis, (size, whole) in enumerate(zip(update.shape, source.shape, strict=True)):
            if size > whole:
                raise ShapeError(f"update of size {size} does not fit axis {axis} of size {whole}")
        _check_starts(self.start_indices, source.rank)
        return [source]


def _check_starts(starts: Sequence[Value], rank: int) -> None:
    """One scalar per axis, all of one integer type."""
    if len(starts) != rank:
        raise ShapeError(f"{len(starts)} start indices for rank {rank}")
    types = [tensor_of(start) for start in starts]
    integers = all(dtype_of(start).kind in (SIGNED, UNSIGNED) for start in starts)
    if not integers or any(type.shape or type != types[0] for type in types):
        raise ShapeError(f"start indices must be scalars of one integer type, are {', '.join(map(str, types))}")


OPS: Final = {cls.name: cls for cls in (DynamicSlice, DynamicUpdateSlice)}
