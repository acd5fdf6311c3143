"""Multiplication by powers of two, by the instruction of AVX-512, which takes vectors of 128, 256 or 512 bits."""

from orchestrion.schema.dtypes import DType

from .code import Code
from .scalars import type_of


def scaled(code: Code, x: str, exponent: str, dtype: DType, lanes: int) -> str:
    """The name of x * 2^exponent, of floats or vectors of floats, in parts if the vectors are wider."""
    most, type = 512 // dtype.bits, type_of(dtype, lanes)
    if lanes == 1:
        lanes = 128 // dtype.bits
        wide = type_of(dtype, lanes)
        x, exponent = (code.set(f"insertelement {wide} zeroinitializer, {type} {v}, i64 0") for v in (x, exponent))
        return code.set(f"extractelement {wide} {_part(code, x, exponent, dtype, lanes)}, i64 0")
    if lanes <= most:
        return _part(code, x, exponent, dtype, lanes)
    half = lanes // 2
    parts = []
    for first in (0, half):
        base, power = (code.shuffle(type, v, range(first, first + half)) for v in (x, exponent))
        parts.append(scaled(code, base, power, dtype, half))
    return code.shuffle(type_of(dtype, half), parts[0], range(lanes), parts[1])


def _part(code: Code, x: str, exponent: str, dtype: DType, lanes: int) -> str:
    type, bits = type_of(dtype, lanes), lanes * dtype.bits
    name = f"llvm.x86.avx512.mask.scalef.p{'s' if dtype.bits == 32 else 'd'}.{bits}"
    every = "i16 -1" if lanes == 16 else "i8 -1"
    rounding = ", i32 4" if bits == 512 else ""
    return code.set(f"call {type} @{name}({type} {x}, {type} {exponent}, {type} zeroinitializer, {every}{rounding})")
