"""`reduce_precision` on integers: rounds a float to fewer mantissa bits, to nearest even, and to a smaller exponent
range.

Overflow gives an infinity, underflow a zero with the number's sign; NaN stays NaN, even without mantissa bits. XLA on
CPU does the same.
"""

from __future__ import annotations

from typing import Final

from orchestrion.compiler.ir.attributes import IntegerAttr
from orchestrion.compiler.ir.core import Operation
from orchestrion.compiler.stablehlo.builders.tensors import Tensor
from orchestrion.schema.dtypes import FLOAT, FLOAT_FORMATS

#: Float type -> unsigned type of its width, exponent bits, mantissa bits.
_FORMATS: Final = {"f32": ("ui32", 8, 23), "f64": ("ui64", 11, 52)}


def expand_reduce_precision(op: Operation, x: Tensor) -> Tensor | None:
    """Expands `reduce_precision`; skips malformed ops."""
    exponent, mantissa = op.get_as("exponent_bits", IntegerAttr), op.get_as("mantissa_bits", IntegerAttr)
    if exponent is None or mantissa is None or x.dtype.kind != FLOAT or exponent.value < 1 or mantissa.value < 0:
        return None
    return reduce_precision(x, exponent.value, mantissa.value)


def reduce_precision(x: Tensor, exponent: int, mantissa: int) -> Tensor:
    """A float of any type, rounded to at most this many exponent and mantissa bits."""
    narrow = FLOAT_FORMATS.get(x.dtype.name)
    if narrow is not None:
        exponent = 8 if exponent >= narrow.exponent else exponent
        mantissa = 23 if mantissa >= narrow.mantissa else mantissa
        return reduce_precision(x.convert("f32"), exponent, mantissa).convert(x.dtype.name)
    unsigned, exponent_bits, mantissa_bits = _FORMATS[x.dtype.name]
    bits = x.bitcast(unsigned)
    if mantissa < mantissa_bits:
        bits = rounded_to_even(bits, mantissa_bits - mantissa)
    if exponent < exponent_bits:
        bits = _ranged(bits, exponent, exponent_bits, mantissa_bits)
    return x.is_nan.select(x, bits.bitcast(x.dtype.name))


def rounded_to_even(bits: Tensor, dropped: int) -> Tensor:
    """Rounds away the lowest `dropped` bits, ties to even; a carry into the exponent is correct."""
    odd = bits >> dropped & 1
    return bits + ((1 << dropped - 1) - 1) + odd & -(1 << dropped)


def _ranged(bits: Tensor, exponent: int, exponent_bits: int, mantissa_bits: int) -> Tensor:
    """Infinity above the smaller exponent range, zero below."""
    bias, smaller = (1 << exponent_bits - 1) - 1, (1 << exponent - 1) - 1
    mask = ((1 << exponent_bits) - 1) << mantissa_bits
    held = bits & mask
    above, below = held > (bias + smaller) << mantissa_bits, held <= (bias - smaller) << mantissa_bits
    sign = bits & 1 << exponent_bits + mantissa_bits
    return below.select(sign, above.select(sign | mask, bits))
