"""`reduce_precision` on integers: rounds a float to fewer mantissa bits, to nearest even, and to a smaller exponent
range.

Overflow gives an infinity, underflow a zero with the number's sign; NaN stays NaN, even without mantissa bits. XLA on
CPU does the same.
"""

from __future__ import annotations

from typing import Final

from orchestrion.compiler.ir.attributes import IntegerAttr
from orchestrion.compiler.ir.core import Operation, Value
from orchestrion.compiler.ir.rewriter import Rewriter
from orchestrion.compiler.stablehlo.builders.basic import bitcast, compare, constant, convert, elementwise
from orchestrion.compiler.stablehlo.ops.base import dtype_of, is_known, tensor_of
from orchestrion.schema.dtypes import FLOAT, FLOAT_FORMATS

#: Float type -> unsigned type of its width, exponent bits, mantissa bits.
_FORMATS: Final = {"f32": ("ui32", 8, 23), "f64": ("ui64", 11, 52)}


def expand_reduce_precision(op: Operation, rewriter: Rewriter) -> bool:
    """Expands `reduce_precision`; skips malformed ops."""
    exponent, mantissa = op.get_as("exponent_bits", IntegerAttr), op.get_as("mantissa_bits", IntegerAttr)
    if exponent is None or mantissa is None or len(op.operands) != 1 or not is_known(op.operands[0].type):
        return False
    x = op.operands[0]
    if dtype_of(x).kind != FLOAT or exponent.value < 1 or mantissa.value < 0 or op.results[0].type != x.type:
        return False
    rewriter.replace(op, [reduce_precision(rewriter, x, exponent.value, mantissa.value)])
    return True


def reduce_precision(rewriter: Rewriter, x: Value, exponent: int, mantissa: int) -> Value:
    """A float of any type, rounded to at most this many exponent and mantissa bits."""
    name = dtype_of(x).name
    narrow = FLOAT_FORMATS.get(name)
    if narrow is not None:
        wide = convert(rewriter, x, "f32")
        made = reduce_precision(
            rewriter,
            wide,
            8 if exponent >= narrow.exponent else exponent,
            23 if mantissa >= narrow.mantissa else mantissa,
        )
        return convert(rewriter, made, name)
    unsigned, exponent_bits, mantissa_bits = _FORMATS[name]
    bits = bitcast(rewriter, x, unsigned)
    if mantissa < mantissa_bits:
        bits = _rounded(rewriter, bits, mantissa_bits - mantissa)
    if exponent < exponent_bits:
        bits = _ranged(rewriter, bits, exponent, exponent_bits, mantissa_bits)
    result = bitcast(rewriter, bits, name)
    nan = compare(rewriter, "NE", x, x)
    return elementwise(rewriter, "select", nan, x, result)


def _rounded(rewriter: Rewriter, bits: Value, dropped: int) -> Value:
    """Rounds away the lowest `dropped` bits, ties to even; a carry into the exponent is correct."""
    type = tensor_of(bits)
    shifted = elementwise(rewriter, "shift_right_logical", bits, constant(rewriter, dropped, type))
    odd = elementwise(rewriter, "and", shifted, constant(rewriter, 1, type))
    bias = elementwise(rewriter, "add", odd, constant(rewriter, (1 << dropped - 1) - 1, type))
    raised = elementwise(rewriter, "add", bits, bias)
    return elementwise(rewriter, "and", raised, constant(rewriter, -(1 << dropped), type))


def _ranged(rewriter: Rewriter, bits: Value, exponent: int, exponent_bits: int, mantissa_bits: int) -> Value:
    """Infinity above the smaller exponent range, zero below."""
    type = tensor_of(bits)
    bias, smaller = (1 << exponent_bits - 1) - 1, (1 << exponent - 1) - 1
    mask = ((1 << exponent_bits) - 1) << mantissa_bits
    held = elementwise(rewriter, "and", bits, constant(rewriter, mask, type))
    above = compare(rewriter, "GT", held, constant(rewriter, (bias + smaller) << mantissa_bits, type))
    below = compare(rewriter, "LE", held, constant(rewriter, (bias - smaller) << mantissa_bits, type))
    sign = elementwise(rewriter, "and", bits, constant(rewriter, 1 << exponent_bits + mantissa_bits, type))
    infinity = elementwise(rewriter, "or", sign, constant(rewriter, mask, type))
    high = elementwise(rewriter, "select", above, infinity, bits)
    return elementwise(rewriter, "select", below, sign, high)
