"""StableHLO ops that select elements by indices known only at run time.

Start indices are scalars of one integer type. They are clamped, so that all accessed elements lie in the operand:
`start` becomes min(max(start, 0), size of the operand - size of the slice), per axis.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import astuple, fields
from typing import Any, Final

from orchestrion.compiler.ir.attributes import BoolAttr, DenseArray, DialectAttr
from orchestrion.compiler.ir.core import Value
from orchestrion.compiler.ir.declare import attr, operand, operands, optional
from orchestrion.compiler.ir.dims import Shape, is_less
from orchestrion.compiler.ir.types import TensorType
from orchestrion.schema import tensor_shapes
from orchestrion.schema.dtypes import SIGNED, UNSIGNED
from orchestrion.schema.tensor_shapes import GatherAxes

from .base import OperandOp, ShapeError, dtype_of, per_axis, tensor_of


class DynamicSlice(OperandOp):
    """The elements from the start indices on, `slice_sizes` per axis."""

    name = "stablehlo.dynamic_slice"
    start_indices = operands(TensorType)
    slice_sizes = attr(DenseArray)
    #: the index of the operand with the first start index
    first_start = 1

    @property
    def window(self) -> Shape:
        """The shape of the elements that are read."""
        return self.slice_sizes.sizes

    def infer(self) -> Sequence[TensorType]:
        source = tensor_of(self.operand_)
        sizes = per_axis("slice_sizes", self.slice_sizes, source.rank)
        for axis, (size, whole) in enumerate(zip(sizes, source.shape, strict=True)):
            if not 0 <= size <= whole:
                raise ShapeError(f"slice size {size} does not fit axis {axis} of size {whole}")
        _check_starts(self.start_indices, source.rank)
        return [source.with_shape(sizes)]


class DynamicUpdateSlice(OperandOp):
    """The operand, with the elements from the start indices on replaced by those of `update`."""

    name = "stablehlo.dynamic_update_slice"
    update = operand(TensorType)
    start_indices = operands(TensorType)
    first_start = 2

    @property
    def window(self) -> Shape:
        """The shape of the elements that are written."""
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
    """Checks for one scalar per axis, all of one integer type. Raises ShapeError."""
    if len(starts) != rank:
        raise ShapeError(f"{len(starts)} start indices for rank {rank}")
    types = [tensor_of(start) for start in starts]
    integers = all(dtype_of(start).kind in (SIGNED, UNSIGNED) for start in starts)
    if not integers or any(type.shape or type != types[0] for type in types):
        raise ShapeError(f"start indices must be scalars of one integer type, are {', '.join(map(str, types))}")


_FIELD: Final = re.compile(r"(\w+)\s*=\s*(?:\[([0-9,\s]*)\]|([0-9]{1,9}))\s*(?:,|$)")
_NUMBERS: Final = re.compile(r"\s*(?:[0-9]{1,9}\s*(?:,\s*[0-9]{1,9}\s*)*)?")


def axis_lists(attribute: DialectAttr, name: str, kind: type) -> dict[str, Any]:
    """The fields of a dataclass of axes, from `#stablehlo.gather<offset_dims = [1], ..., index_vector_dim = 1>`.

    A missing field is empty, or 0. Raises ShapeError.
    """
    names = [field.name for field in fields(kind)]
    given: dict[str, Any] = {}
    for key, numbers, number in _FIELD.findall(attribute.body):
        if key not in names or (key == "index_vector_dim") != bool(number) or not _NUMBERS.fullmatch(numbers):
            raise ShapeError(f"dimension_numbers {attribute} is not understood")
        given[key] = int(number) if number else tuple(int(x) for x in numbers.split(",") if x.strip())
    if attribute.name != name or _FIELD.sub("", attribute.body).strip():
        raise ShapeError(f"dimension_numbers {attribute} is not understood")
    return {name: given.get(name, 0 if name == "index_vector_dim" else ()) for name in names}


class Gather(OperandOp):
    """Slices of the operand, one at the start of each index vector."""

    name = "stablehlo.gather"
    start_indices = operand(TensorType)
    dimension_numbers = attr(DialectAttr)
    slice_sizes = attr(DenseArray)
    indices_are_sorted = optional(BoolAttr)

    @property
    def axes(self) -> GatherAxes:
        """The correspondence of axes. Raises ShapeError."""
        return GatherAxes(**axis_lists(self.dimension_numbers, "stablehlo.gather", GatherAxes))

    def infer(self) -> Sequence[TensorType]:
        (out,) = self.by_rule(tensor_shapes.gather, *astuple(self.axes), self.slice_sizes.sizes)
        if all(is_less(0, size) for size in out.shape):
            self._check_sizes()
        return [out]

    def _check_sizes(self) -> None:
        """Checks that slices fit. If there may be none, an assertion checks it at run time. Raises ShapeError."""
        for size, whole in zip(self.slice_sizes.sizes, tensor_of(self.operand_).shape, strict=True):
            if size > whole:
                raise ShapeError(f"slice of {size} of a dimension of {whole}")


OPS: Final = {cls.name: cls for cls in (DynamicSlice, DynamicUpdateSlice, Gather)}
