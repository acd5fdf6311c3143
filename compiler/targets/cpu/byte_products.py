"""Sums of products of bytes in vectors of 32-bit lanes (`kernel.multiply_add_bytes`), a way per instruction set.

- `vnni`: VPDPBUSD adds four products of unsigned and signed bytes at once, without saturation.
- `dotprod`: SDOT of aarch64 adds four products of signed bytes.
- `pairs`: bytes are widened in place to signed numbers of 16 bits, the even and the odd ones of a lane apart. PMADDWD
  adds two products of such numbers, exactly.
- Elsewhere, bytes are widened to 32 bits.
"""

from collections.abc import Sequence
from functools import partial

from .code import Code
from .levels import Level

#: bits of a vector -> the intrinsic that multiplies pairs of 16-bit numbers
_PAIRS = {128: "sse2.pmadd.wd", 256: "avx2.pmadd.wd", 512: "avx512.pmaddw.d.512"}


def add_byte_products(code: Code, level: Level, lanes: int, operands: Sequence[str]) -> str:
    """The name of the sum. `operands`: names of x, y and z, vectors of `lanes` 32-bit lanes."""
    return code.in_parts("i32", lanes, level.lanes, operands, partial(_part, code, level))


def _part(code: Code, level: Level, lanes: int, operands: Sequence[str]) -> str:
    """The sum of vectors that the level computes at once."""
    x, y, z = operands
    wide, bits = f"<{lanes} x i32>", 32 * lanes
    if level.byte_products == "pairs":
        return _pairs(code, lanes, x, y, z)
    as_bytes = [code.set(f"bitcast {wide} {name} to <{4 * lanes} x i8>") for name in (x, y)]
    products = ", ".join(f"<{4 * lanes} x i8> {name}" for name in as_bytes)
    if level.byte_products == "vnni":
        return code.set(f"call {wide} @llvm.x86.avx512.vpdpbusd.{bits}({wide} {z}, {products})")
    if level.byte_products == "dotprod":
        return code.set(f"call {wide} @llvm.aarch64.neon.sdot.v4i32.v16i8({wide} {z}, {products})")
    numbers = [code.set(f"sext <{4 * lanes} x i8> {name} to <{4 * lanes} x i16>") for name in as_bytes]
    product = code.set(f"mul <{4 * lanes} x i16> {', '.join(numbers)}")
    full = code.set(f"sext <{4 * lanes} x i16> {product} to <{4 * lanes} x i32>")
    for at in range(4):
        z = code.set(f"add {wide} {z}, {code.shuffle(f'<{4 * lanes} x i32>', full, range(at, 4 * lanes, 4))}")
    return z


def _pairs(code: Code, lanes: int, x: str, y: str, z: str) -> str:
    wide, half = f"<{lanes} x i32>", f"<{2 * lanes} x i16>"
    x, y = (code.set(f"bitcast {wide} {name} to {half}") for name in (x, y))
    for even in (True, False):
        given = []
        for name in (x, y):
            high = code.set(f"shl {half} {name}, splat (i16 8)") if even else name
            given.append(f"{half} {code.set(f'ashr {half} {high}, splat (i16 8)')}")
        products = code.set(f"call {wide} @llvm.x86.{_PAIRS[32 * lanes]}({', '.join(given)})")
        z = code.set(f"add {wide} {z}, {products}")
    return z
