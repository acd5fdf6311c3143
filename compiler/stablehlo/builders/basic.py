"""Builders of scalar and elementwise ops for passes that write StableHLO: each inserts through the rewriter and returns
the value.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Final

from orchestrion.compiler.ir.attributes import DenseElements, DialectAttr, DimArray, dense_ints
from orchestrion.compiler.ir.core import Value
from orchestrion.compiler.ir.dims import Dim
from orchestrion.compiler.ir.rewriter import Rewriter
from orchestrion.compiler.ir.types import I1, I32, TensorType, Type, scalar
from orchestrion.compiler.stablehlo.ops.base import tensor_of
from orchestrion.compiler.stablehlo.ops.elementwise import OPS, BitcastConvert, Compare, Convert
from orchestrion.compiler.stablehlo.ops.flow_ops import Size
from orchestrion.compiler.stablehlo.ops.structural import BroadcastInDim, Constant
from orchestrion.schema.dtypes import FLOAT_FORMATS

_CODES: Final = {"f32": "<f", "f64": "<d"}


def elementwise(rewriter: Rewriter, name: str, *operands: Value) -> Value:
    """An elementwise op by its name, without dialect for an op of StableHLO; the result has the type of the last
    operand.
    """
    op = OPS[name if "." in name else f"stablehlo.{name}"](operands, [operands[-1].type])
    return rewriter.insert(op).result


def compare(rewriter: Rewriter, direction: str, lhs: Value, rhs: Value) -> Value:
    """A comparison by EQ, NE, LT, LE, GT or GE; the result has i1 elements."""
    attribute = DialectAttr("stablehlo", f"comparison_direction {direction}")
    out = tensor_of(lhs).with_element(I1)
    return rewriter.build(Compare, lhs=lhs, rhs=rhs, comparison_direction=attribute, out=out).result


def index_type(count: int) -> Type:
    """The scalar type of indices below `count`: i32 if it suffices. Symbolic counts always fit i32."""
    return scalar("i32" if isinstance(count, Dim) or count < 1 << 31 else "i64")


def constant(rewriter: Rewriter, value: int | float, type: TensorType) -> Value:
    """A splat of a number that the element type can hold; integers are reduced modulo its width. `value` may be a
    symbolic size.
    """
    if isinstance(value, Dim):
        return _splat(rewriter, rewriter.build(Size, value=DimArray((value,)), out=type.with_shape(())).result, type)
    name = str(type.element)
    if name in FLOAT_FORMATS:
        row = FLOAT_FORMATS[name]
        data = row.rounded(value).to_bytes(row.itemsize, "little")
    elif name in _CODES:
        data = struct.pack(_CODES[name], value)
    else:
        bits = int(name.lstrip("ui"))
        data = (int(value) % (1 << bits)).to_bytes(max(bits // 8, 1), "little")
    if type.is_static:
        return rewriter.build(Constant, value=DenseElements(type, data), out=type).result
    one = type.with_shape(())
    made = rewriter.build(Constant, value=DenseElements(one, data), out=one).result
    return _splat(rewriter, made, type)


def _splat(rewriter: Rewriter, value: Value, type: TensorType) -> Value:
    if not type.shape:
        return value
    return rewriter.build(BroadcastInDim, operand_=value, broadcast_dimensions=dense_ints(), out=type).result


def convert(rewriter: Rewriter, value: Value, element: str) -> Value:
    """A conversion to another element type."""
    out = tensor_of(value).with_element(scalar(element))
    return rewriter.build(Convert, operand_=value, out=out).result


def bitcast(rewriter: Rewriter, value: Value, element: str) -> Value:
    """The same bits in another element type of the same width."""
    out = tensor_of(value).with_element(scalar(element))
    return rewriter.build(BitcastConvert, operand_=value, out=out).result


def i32_splat(rewriter: Rewriter, value: int, shape: Sequence[int]) -> Value:
    """A splat of an i32 in this shape."""
    return constant(rewriter, value, TensorType(tuple(shape), I32))
