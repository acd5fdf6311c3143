"""Multiplication by powers of two, by the instruction of AVX-512, which takes vectors of 128, 256 or 512 bits."""

from collections.abc import Sequence
from functools import partial

from orchestrion.schema.dtypes import DType

from .code import Code
from .scalars import type_of


def scaled(code: Code, x: str, exponent: str, dtype: DType, lanes: int) -> str:
    """The name of x * 2^exponent, of floats or vectors of floats, in parts if the vectors are wider."""
    type = type_of(dtype)
    if lanes == 1:
        lanes = 128 // dtype.bits
        wide = type_of(dtype, lanes)
        given = [code.set(f"insertelement {wide} zeroinitializer, {type} {v}, i64 0") for v in (x, exponent)]
        return code.set(f"extractelement {wide} {_part(code, dtype, lanes, given)}, i64 0")
    return code.in_parts(type, lanes, 512 // dtype.bits, (x, exponent), partial(_part, code, dtype))


def _part(code: Code, dtype: DType, lanes: int, vectors: Sequence[str]) -> str:
    x, exponent = vectors
    type, bits = type_of(dtype, lanes), lanes * dtype.bits
    name = f"llvm.x86.avx512.mask.scalef.p{'s' if dtype.bits == 32 else 'd'}.{bits}"
    every = "i16 -1" if lanes == 16 else "i8 -1"
    rounding = ", i32 4" if bits == 512 else ""
    return code.set(f"call {type} @{name}({type} {x}, {type} {exponent}, {type} zeroinitializer, {every}{rounding})")
