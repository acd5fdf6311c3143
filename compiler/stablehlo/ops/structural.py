"""StableHLO ops that create or move elements without computing on them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from orchestrion.compiler.ir.attributes import DenseArray, DenseElements, IntegerAttr
from orchestrion.compiler.ir.core import Trait
from orchestrion.compiler.ir.declare import attr, operand, operands, result
from orchestrion.compiler.ir.dims import ceildiv, is_less
from orchestrion.compiler.ir.types import TensorType
from orchestrion.schema.dtypes import BOOL
from orchestrion.schema.tensor_shapes import spread

from .base import OperandOp, PureOp, ShapeError, StablehloOp, axes, dtype_of, per_axis, tensor_of


class Constant(StablehloOp):
    """A tensor known at compile time."""

    name = "stablehlo.constant"
    value = attr(DenseElements)
    out = result(TensorType)
    traits = frozenset({Trait.PURE, Trait.CONSTANT})

    def infer(self) -> Sequence[TensorType]:
        return [self.value.type]


class Iota(PureOp):
    """0, 1, 2, ... along one axis; constant along the others."""

    name = "stablehlo.iota"
    iota_dimension = attr(IntegerAttr)

    def infer(self) -> Sequence[TensorType]:
        type = tensor_of(self.out)
        if not 0 <= self.iota_dimension.value < type.rank:
            raise ShapeError(f"iota_dimension {self.iota_dimension.value} is not an axis of rank {type.rank}")
        if dtype_of(self.out).kind == BOOL:
            raise ShapeError("has no meaning for i1")
        return [type]


class BroadcastInDim(OperandOp):
    """Operand axis i becomes result axis broadcast_dimensions[i]; axes of size 1 and new axes repeat."""

    name = "stablehlo.broadcast_in_dim"
    broadcast_dimensions = attr(DenseArray)

    def infer(self) -> Sequence[TensorType]:
        source, type = tensor_of(self.operand_), tensor_of(self.out)
        if len(self.broadcast_dimensions) != source.rank:
            raise ShapeError(f"broadcast_dimensions has {len(self.broadcast_dimensions)} axes for rank {source.rank}")
        for axis, to in enumerate(axes("broadcast_dimensions", self.broadcast_dimensions.ints, type.rank)):
            if source.shape[axis] not in (1, type.shape[to]):
                raise ShapeError(f"axis {axis} of size {source.shape[axis]} cannot become size {type.shape[to]}")
        return [type.with_element(source.element)]


class Reshape(OperandOp):
    """The same elements in row-major order in another shape."""

    name = "stablehlo.reshape"

    def infer(self) -> Sequence[TensorType]:
        source, type = tensor_of(self.operand_), tensor_of(self.out)
        if source.num_elements != type.num_elements:
            raise ShapeError(f"{source} and {type} differ in their number of elements")
        return [type.with_element(source.element)]


class Transpose(OperandOp):
    """Result axis i is operand axis permutation[i]."""

    name = "stablehlo.transpose"
    permutation = attr(DenseArray)

    def infer(self) -> Sequence[TensorType]:
        source = tensor_of(self.operand_)
        if len(self.permutation) != source.rank:
            raise ShapeError(f"permutation has {len(self.permutation)} axes for rank {source.rank}")
        order = axes("permutation", self.permutation.ints, source.rank)
        return [source.with_shape(tuple(source.shape[axis] for axis in order))]


class Slice(OperandOp):
    """Elements start, start + stride, ... below limit, per axis."""

    name = "stablehlo.slice"
    start_indices = attr(DenseArray)
    limit_indices = attr(DenseArray)
    strides = attr(DenseArray)

    def infer(self) -> Sequence[TensorType]:
        source = tensor_of(self.operand_)
        starts = per_axis("start_indices", self.start_indices, source.rank)
        limits = per_axis("limit_indices", self.limit_indices, source.rank)
        strides = per_axis("strides", self.strides, source.rank)
        for axis, (start, limit, stride) in enumerate(zip(starts, limits, strides, strict=True)):
            if not (0 <= start <= limit <= source.shape[axis] and stride > 0):
                raise ShapeError(f"{start}:{limit}:{stride} is not a slice of axis {axis} of size {source.shape[axis]}")
        sizes = (ceildiv(b - a, step) for a, b, step in zip(starts, limits, strides, strict=True))
        return [source.with_shape(tuple(sizes))]


class Pad(OperandOp):
    """Adds (negative: removes) elements at both ends of each axis, and `interior` between neighbouring elements."""

    name = "stablehlo.pad"
    padding_value = operand(TensorType)
    edge_padding_low = attr(DenseArray)
    edge_padding_high = attr(DenseArray)
    interior_padding = attr(DenseArray)

    def infer(self) -> Sequence[TensorType]:
        source, value = tensor_of(self.operand_), tensor_of(self.padding_value)
        if value != TensorType((), source.element):
            raise ShapeError(f"padding_value must be tensor<{source.element}>, is {value}")
        lows = per_axis("edge_padding_low", self.edge_padding_low, source.rank)
        highs = per_axis("edge_padding_high", self.edge_padding_high, source.rank)
        inner = per_axis("interior_padding", self.interior_padding, source.rank)
        if any(gap < 0 for gap in inner):
            raise ShapeError(f"interior_padding {list(inner)} is negative")
        shape = []
        for axis, size in enumerate(source.shape):
            padded = lows[axis] + spread(size, inner[axis]) + highs[axis]
            if is_less(padded, 0):
                raise ShapeError(f"axis {axis} would have size {padded}")
            shape.append(padded)
        return [source.with_shape(tuple(shape))]


class Concatenate(PureOp):
    """Joins the operands along an axis."""

    name = "stablehlo.concatenate"
    inputs = operands(TensorType)
    dimension = attr(IntegerAttr)

    def infer(self) -> Sequence[TensorType]:
        types = [tensor_of(value) for value in self.operands]
        if not types:
            raise ShapeError("has no operands")
        axis, first = self.dimension.value, types[0]
        if not 0 <= axis < first.rank:
            raise ShapeError(f"dimension {axis} is not an axis of rank {first.rank}")
        rest = [(t.element, t.shape[:axis], t.shape[axis + 1 :]) for t in types]
        if any(item != rest[0] for item in rest):
            raise ShapeError(f"operands differ outside of dimension {axis}: {', '.join(map(str, types))}")
        size = sum(t.shape[axis] for t in types)
        return [first.with_shape((*first.shape[:axis], size, *first.shape[axis + 1 :]))]


class Reverse(OperandOp):
    """Reverses the order of elements along some axes."""

    name = "stablehlo.reverse"
    dimensions = attr(DenseArray)

    def infer(self) -> Sequence[TensorType]:
        source = tensor_of(self.operand_)
        axes("dimensions", self.dimensions.ints, source.rank)
        return [source]


OPS: Final = {
    cls.name: cls for cls in (Constant, Iota, BroadcastInDim, Reshape, Transpose, Slice, Pad, Concatenate, Reverse)
}
