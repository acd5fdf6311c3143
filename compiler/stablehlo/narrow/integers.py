"""Integers of 2 and 4 bits in i8 and ui8: wrapped to their width, and packed in bytes for constants.

The bits above the width hold copies of the sign for signed types, and zeros for others. Floats of 4 and 6 bits have
zeros there, too, and constants of those of 4 bits are packed.
"""

from __future__ import annotations

import numpy as np

from orchestrion.compiler.ir.attributes import INLINE_BYTES, DenseElements
from orchestrion.compiler.ir.rewriter import Rewriter
from orchestrion.compiler.ir.types import TensorType, scalar
from orchestrion.compiler.stablehlo.builders.tensors import Tensor
from orchestrion.compiler.stablehlo.ops.structural import Constant
from orchestrion.schema.dtypes import SIGNED, DType


def wrap(x: Tensor, dtype: DType) -> Tensor:
    """The low bits of an i8 or ui8 as a number of the type."""
    by = x.of(8 - dtype.bits)
    return (x << by) >> by if dtype.kind == SIGNED else x & (1 << dtype.bits) - 1


def unsigned(x: Tensor, dtype: DType) -> Tensor:
    """The bits of a number, in an i8 or ui8, with zeros above its width."""
    return x & (1 << dtype.bits) - 1 if dtype.kind == SIGNED else x


def saturate(x: Tensor, dtype: DType) -> Tensor:
    """An i8 or ui8 clamped to the range of the type."""
    signed = dtype.kind == SIGNED
    most = (1 << dtype.bits - signed) - 1
    x = x.op("minimum", most)
    return x.op("maximum", -most - 1) if signed else x


def normal_bytes(data: bytes | memoryview, dtype: DType) -> bytes:
    """Bytes whose low bits count, as bytes that hold numbers of the type."""
    mask, sign = (1 << dtype.bits) - 1, 1 << dtype.bits - 1
    above = 256 - (1 << dtype.bits) if dtype.kind == SIGNED else 0
    table = bytes((byte & mask) + (above if byte & sign else 0) for byte in range(256))
    return bytes(data).translate(table)


def is_packed(elements: DenseElements) -> bool:
    """Whether a constant is large enough to pack several elements into a byte."""
    return len(elements.data) > INLINE_BYTES


def unpack(rewriter: Rewriter, elements: DenseElements, dtype: DType) -> Tensor:
    """A packed constant (first element in the low bits), and the ops that unpack its elements."""
    type, parts = elements.type, 8 // dtype.bits
    count = type.num_elements
    size = -(-count // parts)
    codes = np.zeros(size * parts, np.uint8)
    codes[:count] = np.frombuffer(elements.data, np.uint8) & (1 << dtype.bits) - 1
    shifts = np.arange(parts, dtype=np.uint8) * dtype.bits
    data = np.bitwise_or.reduce(codes.reshape(size, parts) << shifts, axis=1).astype(np.uint8)
    stored = DenseElements(TensorType((size,), scalar("ui8")), data.tobytes())
    packed = Tensor(rewriter, rewriter.build(Constant, value=stored, out=stored.type).result)
    wide = packed.broadcast((size, parts), (0,))
    found = wide >> wide.iota(1, "ui8") * dtype.bits
    found = wrap(found.bitcast("i8" if dtype.kind == SIGNED else "ui8"), dtype).reshape(size * parts)
    return (found.leading((count,)) if size * parts != count else found).reshape(*type.shape)
