"""Floats of 4 to 16 bits: ops between their bits in ui8 or ui16 and numbers in f32, and wider numbers as f32.

`decode`, `round_to_format` and `encode` are the ops of `compiler/scalars/narrow_floats.py`.

`round_to_odd` and `from_integer` convert wider numbers to f32 such that a second rounding gives the same result as a
single one: an inexact number gets its last bit set (Boldo and Melquiond, "When double rounding is odd", 2005).
"""

from __future__ import annotations

from orchestrion.compiler.ir.types import F32, scalar
from orchestrion.compiler.stablehlo.builders.tensors import Tensor
from orchestrion.compiler.stablehlo.ops.elementwise import OPS
from orchestrion.schema.dtypes import SIGNED, DType

#: Of f32: mantissa bits and exponent bias.
_MANTISSA, _BIAS = 23, 127


def decode(bits: Tensor, dtype: DType) -> Tensor:
    """The f32 for bits in ui8 or ui16, exactly."""
    return bits.build(OPS[f"flow.decode_{dtype}"], operand_=bits, out=bits.type.with_element(F32))


def round_to_format(x: Tensor, dtype: DType) -> Tensor:
    """The f32 nearest to `x` that the type can hold."""
    return x.build(OPS[f"flow.round_to_{dtype}"], operand_=x, out=x.type)


def encode(x: Tensor, dtype: DType) -> Tensor:
    """The bits, in ui8 or ui16, of an f32 from `round_to_format`."""
    out = x.type.with_element(scalar(dtype.storage))
    return x.build(OPS[f"flow.encode_{dtype}"], operand_=x, out=out)


def round_to_odd(x: Tensor) -> Tensor:
    """An f64 as f32, rounded towards zero, with the last bit set if it is inexact."""
    near = x.convert("f32")
    back = near.convert("f64")
    magnitude, given, word = abs(back), abs(x), near.bitcast("ui32")
    above = (magnitude > given).select(word - 1, word)
    return back.ne(x).select(above | 1, word).bitcast("f32")


def from_integer(x: Tensor) -> Tensor:
    """An integer as f32, with the last bit set if it is inexact."""
    if x.dtype.bits <= 16:
        return x.convert("f32")
    is_signed = x.dtype.kind == SIGNED
    magnitude = abs(x).bitcast(f"ui{x.dtype.bits}") if is_signed else x
    excess = x.dtype.bits - _MANTISSA - 1
    dropped = excess - magnitude.op("count_leading_zeros").op("minimum", excess)
    high = magnitude >> dropped
    inexact = (high << dropped).ne(magnitude)
    high = inexact.select(high | 1, high)
    scale = (dropped.convert("ui32") + _BIAS << _MANTISSA).bitcast("f32")
    number = high.convert("f32") * scale
    return (x < 0).select(-number, number) if is_signed else number
