"""StableHLO ops that create or move elements without computing on them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from orchestrion.compiler.ir.attributes import DenseArray, DenseElements, IntegerAttr
from orchestrion.compiler.ir.core import Trait
from orchestrion.compiler.ir.declare import attr, operand, operands, result
from orchestrion.compiler.ir.dims import is_less
from orchestrion.compiler.ir.types import TensorType
from orchestrion.schema import tensor_shapes

from .base import OperandOp, PureOp, ShapeError, StablehloOp, schema_type, tensor_of


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
        return self.by_rule(tensor_shapes.iota, schema_type(self.out), self.iota_dimension.value)


class BroadcastInDim(OperandOp):
    """Operand axis i becomes result axis broadcast_dimensions[i]; axes of size 1 and new axes repeat."""

    name = "stablehlo.broadcast_in_dim"
    broadcast_dimensions = attr(DenseArray)

    def infer(self) -> Sequence[TensorType]:
        return self.by_rule(tensor_shapes.broadcast_in_dim, tensor_of(self.out).shape, self.broadcast_dimensions.ints)


class Reshape(OperandOp):
    """The same elements in row-major order in another shape."""

    name = "stablehlo.reshape"

    def infer(self) -> Sequence[TensorType]:
        return self.by_rule(tensor_shapes.reshape, tensor_of(self.out).shape)


class Transpose(OperandOp):
    """Result axis i is operand axis permutation[i]."""

    name = "stablehlo.transpose"
    permutation = attr(DenseArray)

    def infer(self) -> Sequence[TensorType]:
        return self.by_rule(tensor_shapes.transpose, self.permutation.ints)


class Slice(OperandOp):
    """Elements start, start + stride, ... below limit, per axis."""

    name = "stablehlo.slice"
    start_indices = attr(DenseArray)
    limit_indices = attr(DenseArray)
    strides = attr(DenseArray)

    def infer(self) -> Sequence[TensorType]:
        bounds = (self.start_indices, self.limit_indices, self.strides)
        return self.by_rule(tensor_shapes.slice_, *(numbers.sizes for numbers in bounds))


class Pad(OperandOp):
    """Adds (negative: removes) elements at both ends of each axis, and `interior` between neighbouring elements."""

    name = "stablehlo.pad"
    padding_value = operand(TensorType)
    edge_padding_low = attr(DenseArray)
    edge_padding_high = attr(DenseArray)
    interior_padding = attr(DenseArray)

    def infer(self) -> Sequence[TensorType]:
        amounts = (self.edge_padding_low, self.edge_padding_high, self.interior_padding)
        (type,) = self.by_rule(tensor_shapes.pad, *(numbers.sizes for numbers in amounts))
        for axis, size in enumerate(type.shape):
            if is_less(size, 0):
                raise ShapeError(f"axis {axis} would have size {size}")
        return [type]


class Concatenate(PureOp):
    """Joins the operands along an axis."""

    name = "stablehlo.concatenate"
    inputs = operands(TensorType)
    dimension = attr(IntegerAttr)

    def infer(self) -> Sequence[TensorType]:
        return self.by_rule(tensor_shapes.concatenate, self.dimension.value)


class Reverse(OperandOp):
    """Reverses the order of elements along some axes."""

    name = "stablehlo.reverse"
    dimensions = attr(DenseArray)

    def infer(self) -> Sequence[TensorType]:
        return self.by_rule(tensor_shapes.reverse, self.dimensions.ints)


OPS: Final = {
    cls.name: cls for cls in (Constant, Iota, BroadcastInDim, Reshape, Transpose, Slice, Pad, Concatenate, Reverse)
}
