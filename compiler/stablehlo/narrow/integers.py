"""Integers of 2 and 4 bits in i8 and ui8: wrapped to their width, and packed in bytes for constants.

The bits above the width hold copies of the sign for signed types, and zeros for unsigned ones.
"""

from __future__ import annotations

from orchestrion.compiler.ir.attributes import INLINE_BYTES, DenseArray, DenseElements
from orchestrion.compiler.ir.core import Value
from orchestrion.compiler.ir.rewriter import Rewriter
from orchestrion.compiler.ir.types import TensorType, scalar
from orchestrion.compiler.stablehlo.builders.basic import bitcast, constant, elementwise
from orchestrion.compiler.stablehlo.builders.shape_builders import reshape, slice_range
from orchestrion.compiler.stablehlo.ops.base import tensor_of
from orchestrion.compiler.stablehlo.ops.structural import BroadcastInDim, Constant, Iota
from orchestrion.schema.dtypes import SIGNED, DType


def wrap(rewriter: Rewriter, value: Value, dtype: DType) -> Value:
    """The low bits of an i8 or ui8 as a number of the type."""
    type = tensor_of(value)
    if dtype.kind != SIGNED:
        return elementwise(rewriter, "and", value, constant(rewriter, (1 << dtype.bits) - 1, type))
    by = constant(rewriter, 8 - dtype.bits, type)
    return elementwise(rewriter, "shift_right_arithmetic", elementwise(rewriter, "shift_left", value, by), by)


def unsigned(rewriter: Rewriter, value: Value, dtype: DType) -> Value:
    """The bits of a number, in an i8 or ui8, with zeros above its width."""
    mask = constant(rewriter, (1 << dtype.bits) - 1, tensor_of(value))
    return elementwise(rewriter, "and", value, mask) if dtype.kind == SIGNED else value


def saturate(rewriter: Rewriter, value: Value, dtype: DType) -> Value:
    """An i8 or ui8 clamped to the range of the type."""
    type, signed = tensor_of(value), dtype.kind == SIGNED
    most = (1 << dtype.bits - signed) - 1
    value = elementwise(rewriter, "minimum", value, constant(rewriter, most, type))
    return elementwise(rewriter, "maximum", value, constant(rewriter, -most - 1, type)) if signed else value


def normal_bytes(data: bytes | memoryview, dtype: DType) -> bytes:
    """Bytes whose low bits count, as bytes that hold numbers of the type."""
    mask, sign = (1 << dtype.bits) - 1, 1 << dtype.bits - 1
    above = 256 - (1 << dtype.bits) if dtype.kind == SIGNED else 0
    table = bytes((byte & mask) + (above if byte & sign else 0) for byte in range(256))
    return bytes(data).translate(table)


def is_packed(elements: DenseElements) -> bool:
    """Whether a constant is large enough to pack several elements into a byte."""
    return len(elements.data) > INLINE_BYTES


def unpack(rewriter: Rewriter, elements: DenseElements, dtype: DType) -> Value:
    """A packed constant (first element in the low bits), and the ops that unpack its elements."""
    import numpy as np

    type, parts = elements.type, 8 // dtype.bits
    count = type.num_elements
    size = -(-count // parts)
    codes = np.zeros(size * parts, np.uint8)
    codes[:count] = np.frombuffer(elements.data, np.uint8) & (1 << dtype.bits) - 1
    shifts = np.arange(parts, dtype=np.uint8) * dtype.bits
    data = np.bitwise_or.reduce(codes.reshape(size, parts) << shifts, axis=1).astype(np.uint8)
    bytes_type = TensorType((size,), scalar("ui8"))
    packed = rewriter.build(Constant, value=DenseElements(bytes_type, data.tobytes()), out=bytes_type).result
    spread = TensorType((size, parts), scalar("ui8"))
    wide = rewriter.build(BroadcastInDim, operand_=packed, broadcast_dimensions=DenseArray((0,)), out=spread).result
    place = rewriter.build(Iota, iota_dimension=1, out=spread).result
    by = elementwise(rewriter, "multiply", place, constant(rewriter, dtype.bits, spread))
    found = elementwise(rewriter, "shift_right_logical", wide, by)
    if dtype.kind == SIGNED:
        found = bitcast(rewriter, found, "i8")
    flat = tensor_of(found).with_shape((size * parts,))
    found = reshape(rewriter, wrap(rewriter, found, dtype), flat.shape)
    if size * parts != count:
        found = slice_range(rewriter, found, (0,), (count,))
    return reshape(rewriter, found, type.shape)
