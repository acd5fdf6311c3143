"""Conversions between number types, by WebAssembly's rules: trapping, saturating, rounding once, and bit by bit."""

from collections.abc import Callable

from orchestrion.schema.encoding import bits_of_float, float_of_bits
from orchestrion.vm.errors import Trap

from .float import NAN, round_f32
from .table import Factory, Op, Registers


def _unary(function: Callable[..., int | float]) -> Factory:
    def make(a: int, d: int) -> Op:
        def op(regs: Registers) -> None:
            regs[d] = function(regs[a])

        return op

    return make


def _limits(bits: int, signed: bool) -> tuple[int, int]:
    return (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)


def _trunc(bits: int, signed: bool) -> Factory:
    """Convert a float to an integer. A NaN and a value out of range trap."""
    low, high = _limits(bits, signed)
    half = 1 << bits - 1
    mask = (1 << bits) - 1

    def convert(x: float) -> int:
        if x != x:
            raise Trap("invalid conversion to integer: NaN")
        if x in (_INFINITY, -_INFINITY):
            raise Trap(f"integer overflow: {x} is not in {low} .. {high}")
        y = int(x)
        if not low <= y <= high:
            raise Trap(f"integer overflow: {x} is not in {low} .. {high}")
        return (y & mask ^ half) - half

    return _unary(convert)


def _trunc_sat(bits: int, signed: bool) -> Factory:
    """Convert a float to an integer, clamped to its range; 0 for NaN."""
    low, high = _limits(bits, signed)
    half = 1 << bits - 1
    mask = (1 << bits) - 1

    def convert(x: float) -> int:
        if x != x:
            return 0
        y = low if x <= low else high if x >= high else int(x)
        return (y & mask ^ half) - half

    return _unary(convert)


def _f32_of_int(x: int) -> float:
    """The nearest binary32. The bits that binary64 cannot hold become one sticky bit, so the number is rounded once."""
    if -0x20000000000000 <= x <= 0x20000000000000:
        return round_f32(float(x))
    size = abs(x)
    y = round_f32(float(size >> 11 | (1 if size & 0x7FF else 0))) * 2048.0
    return -y if x < 0 else y


def _wrap(x: int) -> int:
    return (x & 0xFFFFFFFF ^ 0x80000000) - 0x80000000


def _u32(x: int) -> int:
    return x & 0xFFFFFFFF


def _u64(x: int) -> int:
    return x & 0xFFFFFFFFFFFFFFFF


def _same(x: int) -> int:
    return x


def _promote(x: float) -> float:
    return x if x == x else NAN


def _bits(kind: str) -> Factory:
    """The integer with the bits of a float."""
    half = 1 << (31 if kind == "f32" else 63)

    def convert(x: float) -> int:
        return (bits_of_float(x, kind) ^ half) - half

    return _unary(convert)


def _float(kind: str) -> Factory:
    """The float with the bits of an integer."""
    mask = 0xFFFFFFFF if kind == "f32" else 0xFFFFFFFFFFFFFFFF

    def convert(x: int) -> float:
        return float_of_bits(x & mask, kind)

    return _unary(convert)


_INFINITY = float("inf")

OPS: dict[str, Factory] = {
    "i32.wrap_i64": _unary(_wrap),
    "i64.extend_i32_s": _unary(_same),
    "i64.extend_i32_u": _unary(_u32),
    **{
        f"i{bits}.trunc_{source}_{sign}": _trunc(bits, sign == "s")
        for bits in (32, 64)
        for source in ("f32", "f64")
        for sign in "su"
    },
    **{
        f"i{bits}.trunc_sat_{source}_{sign}": _trunc_sat(bits, sign == "s")
        for bits in (32, 64)
        for source in ("f32", "f64")
        for sign in "su"
    },
    "f32.convert_i32_s": _unary(_f32_of_int),
    "f32.convert_i32_u": _unary(lambda x: _f32_of_int(_u32(x))),
    "f32.convert_i64_s": _unary(_f32_of_int),
    "f32.convert_i64_u": _unary(lambda x: _f32_of_int(_u64(x))),
    "f64.convert_i32_s": _unary(float),
    "f64.convert_i32_u": _unary(lambda x: float(_u32(x))),
    "f64.convert_i64_s": _unary(float),
    "f64.convert_i64_u": _unary(lambda x: float(_u64(x))),
    "f32.demote_f64": _unary(round_f32),
    "f64.promote_f32": _unary(_promote),
    "i32.reinterpret_f32": _bits("f32"),
    "i64.reinterpret_f64": _bits("f64"),
    "f32.reinterpret_i32": _float("f32"),
    "f64.reinterpret_i64": _float("f64"),
}
