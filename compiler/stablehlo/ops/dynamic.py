"""StableHLO ops with computed shapes: integers in operands determine them.

Frontends write them; `refine-shapes` has a row for each that replaces it by the op of fixed shape, so none remains
after that pass.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from orchestrion.compiler.ir.attributes import BoolAttr, DenseArray, DialectAttr, IntegerAttr
from orchestrion.compiler.ir.core import Operation
from orchestrion.compiler.ir.declare import attr, operand, optional, region
from orchestrion.compiler.ir.dims import Shape
from orchestrion.compiler.ir.types import TensorType

from .base import OperandOp, PureOp, StablehloOp
from .indexing import Gather
from .structural import BroadcastInDim, Iota, Pad, Reshape, Slice
from .windowed import AnyConvolution

#: The target of a `custom_call` that is an assertion about shapes.
ASSERTION: Final = "shape_assertion"


class DynamicOp(StablehloOp):
    """Base of these ops: their shapes are determined, and checked, when they are replaced."""

    def check(self) -> Iterator[str]:
        return iter(())


class GetDimensionSize(DynamicOp, OperandOp):
    """The size of an axis, as an i32."""

    name = "stablehlo.get_dimension_size"
    dimension = attr(IntegerAttr)


class DynamicBroadcastInDim(DynamicOp, OperandOp):
    """`broadcast_in_dim` to the shape `output_dimensions`."""

    name = "stablehlo.dynamic_broadcast_in_dim"
    output_dimensions = operand(TensorType)
    broadcast_dimensions = attr(DenseArray)
    known_expanding_dimensions = optional(DenseArray)
    known_nonexpanding_dimensions = optional(DenseArray)


class DynamicReshape(DynamicOp, OperandOp):
    """`reshape` to the shape `output_shape`."""

    name = "stablehlo.dynamic_reshape"
    output_shape = operand(TensorType)


class DynamicIota(DynamicOp, PureOp):
    """`iota` of the shape `output_shape`."""

    name = "stablehlo.dynamic_iota"
    output_shape = operand(TensorType)
    iota_dimension = attr(IntegerAttr)


class DynamicPad(DynamicOp, OperandOp):
    """`pad` by computed amounts."""

    name = "stablehlo.dynamic_pad"
    padding_value = operand(TensorType)
    edge_padding_low = operand(TensorType)
    edge_padding_high = operand(TensorType)
    interior_padding = operand(TensorType)


class RealDynamicSlice(DynamicOp, OperandOp):
    """`slice` with computed bounds."""

    name = "stablehlo.real_dynamic_slice"
    start_indices = operand(TensorType)
    limit_indices = operand(TensorType)
    strides = operand(TensorType)


class DynamicGather(DynamicOp, OperandOp):
    """`gather` of slices of computed sizes."""

    name = "stablehlo.dynamic_gather"
    start_indices = operand(TensorType)
    slice_sizes = operand(TensorType)
    dimension_numbers = attr(DialectAttr)
    indices_are_sorted = optional(BoolAttr)


class DynamicConv(DynamicOp, AnyConvolution):
    """`convolution` with computed padding."""

    name = "stablehlo.dynamic_conv"
    padding = operand(TensorType)


class DynamicReduceWindow(DynamicOp, OperandOp):
    """`reduce_window` with computed windows; JAX writes a `custom_call` of that name, whose reducer is a function."""

    name = "stablehlo.dynamic_reduce_window"
    init_value = operand(TensorType)
    window_dimensions = operand(TensorType)
    window_strides = operand(TensorType)
    base_dilations = operand(TensorType)
    window_dilations = operand(TensorType)
    padding = operand(TensorType)
    body = region()


#: Op -> the op of fixed shape that replaces it, and which operands become attributes of that op. If there are none, the
#: last operand states the shape of the result.
STATIC_FORMS: Final[dict[type[Operation], tuple[type[StablehloOp], tuple[str, ...]]]] = {
    DynamicBroadcastInDim: (BroadcastInDim, ()),
    DynamicGather: (Gather, ("slice_sizes",)),
    DynamicIota: (Iota, ()),
    DynamicPad: (Pad, ("edge_padding_low", "edge_padding_high", "interior_padding")),
    DynamicReshape: (Reshape, ()),
    RealDynamicSlice: (Slice, ("start_indices", "limit_indices", "strides")),
}


def static_fields(op: Operation, lists: Mapping[str, Shape]) -> dict[str, Any]:
    """The fields of the op of fixed shape, without its result. `lists`: the numbers of its new attributes."""
    declared = STATIC_FORMS[type(op)][0].declaration
    names = [field.name for field in (*declared.operand, *declared.attribute) if field.name not in lists]
    fields = {name: value for name in names if (value := getattr(op, name)) is not None}
    return fields | dict(lists)
