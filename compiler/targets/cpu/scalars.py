"""How scalar ops are written in LLVM IR: a row per primitive and kind of operand.

In a text, `{x}`, `{y}`, `{z}` are the operands and `{t}` is their type, a scalar or a vector; `{r}` is the type of the
result, `{m}` the suffix of an intrinsic. LLVM IR has the same instructions for both, and neither contracts nor reorders
float arithmetic without flags, which no row has.
"""

import struct
from collections.abc import Sequence

from orchestrion.compiler.scalars.primitives import CONVERSIONS, KINDS
from orchestrion.schema.dtypes import BOOL, FLOAT, SIGNED, DType

_ROWS: tuple[tuple[str, str, str], ...] = (
    ("not", "b", "xor {t} {x}, {ones}"),
    ("not", "su", "xor {t} {x}, {ones}"),
    ("and", "bsu", "and {t} {x}, {y}"),
    ("or", "bsu", "or {t} {x}, {y}"),
    ("xor", "bsu", "xor {t} {x}, {y}"),
    ("add", "su", "add {t} {x}, {y}"),
    ("add", "f", "fadd {t} {x}, {y}"),
    ("subtract", "su", "sub {t} {x}, {y}"),
    ("subtract", "f", "fsub {t} {x}, {y}"),
    ("multiply", "su", "mul {t} {x}, {y}"),
    ("multiply", "f", "fmul {t} {x}, {y}"),
    ("negate", "su", "sub {t} zeroinitializer, {x}"),
    ("negate", "f", "fneg {t} {x}"),
    ("abs", "f", "call {t} @llvm.fabs.{m}({t} {x})"),
    ("divide", "f", "fdiv {t} {x}, {y}"),
    ("sqrt", "f", "call {t} @llvm.sqrt.{m}({t} {x})"),
    ("floor", "f", "call {t} @llvm.floor.{m}({t} {x})"),
    ("ceil", "f", "call {t} @llvm.ceil.{m}({t} {x})"),
    ("round_nearest_even", "f", "call {t} @llvm.roundeven.{m}({t} {x})"),
    ("trunc", "f", "call {t} @llvm.trunc.{m}({t} {x})"),
    ("compare_eq", "su", "icmp eq {t} {x}, {y}"),
    ("compare_eq", "f", "fcmp oeq {t} {x}, {y}"),
    ("compare_ne", "su", "icmp ne {t} {x}, {y}"),
    ("compare_ne", "f", "fcmp une {t} {x}, {y}"),
    ("compare_lt", "s", "icmp slt {t} {x}, {y}"),
    ("compare_lt", "u", "icmp ult {t} {x}, {y}"),
    ("compare_lt", "f", "fcmp olt {t} {x}, {y}"),
    ("compare_le", "s", "icmp sle {t} {x}, {y}"),
    ("compare_le", "u", "icmp ule {t} {x}, {y}"),
    ("compare_le", "f", "fcmp ole {t} {x}, {y}"),
    ("compare_gt", "s", "icmp sgt {t} {x}, {y}"),
    ("compare_gt", "u", "icmp ugt {t} {x}, {y}"),
    ("compare_gt", "f", "fcmp ogt {t} {x}, {y}"),
    ("compare_ge", "s", "icmp sge {t} {x}, {y}"),
    ("compare_ge", "u", "icmp uge {t} {x}, {y}"),
    ("compare_ge", "f", "fcmp oge {t} {x}, {y}"),
    ("unchecked_divide", "s", "sdiv {t} {x}, {y}"),
    ("unchecked_divide", "u", "udiv {t} {x}, {y}"),
    ("unchecked_remainder", "u", "urem {t} {x}, {y}"),
    ("unchecked_shift_left", "su", "shl {t} {x}, {y}"),
    ("unchecked_shift_right_logical", "su", "lshr {t} {x}, {y}"),
    ("unchecked_shift_right_arithmetic", "su", "ashr {t} {x}, {y}"),
)

#: (primitive, kind of its last operand) -> instruction; `select` and `CONVERSIONS` are not among them
INSTRUCTIONS: dict[tuple[str, str], str] = {(name, kind): text for name, kinds, text in _ROWS for kind in kinds}


def type_of(dtype: DType, lanes: int = 1) -> str:
    """The LLVM type of a value, or of a vector of values."""
    scalar = {BOOL: "i1", FLOAT: "float" if dtype.bits == 32 else "double"}.get(dtype.kind, f"i{dtype.bits}")
    return scalar if lanes == 1 else f"<{lanes} x {scalar}>"


def memory_type(dtype: DType, lanes: int = 1) -> str:
    """The LLVM type of an element in memory: an i1 is a byte."""
    if dtype.kind != BOOL:
        return type_of(dtype, lanes)
    return "i8" if lanes == 1 else f"<{lanes} x i8>"


def suffix(dtype: DType, lanes: int = 1) -> str:
    """The suffix by which intrinsics name a type: `f32`, `v8i64`."""
    scalar = f"{'f' if dtype.kind == FLOAT else 'i'}{1 if dtype.kind == BOOL else dtype.bits}"
    return scalar if lanes == 1 else f"v{lanes}{scalar}"


def splat(literal: str, scalar: str, lanes: int) -> str:
    """A constant in every lane."""
    return literal if lanes == 1 else f"splat ({scalar} {literal})"


def instruction(name: str, operands: Sequence[str], subject: DType, result: DType, lanes: int) -> str | None:
    """The text of a primitive other than `select`, with last operand and result of these types; None if the bits do not
    change.
    """
    if name in CONVERSIONS:
        verb = _conversion(name, subject, result)
        return verb and f"{verb} {type_of(subject, lanes)} {operands[0]} to {type_of(result, lanes)}"
    ones = "true" if subject.kind == BOOL else "-1"
    text = INSTRUCTIONS[name, KINDS[subject.kind]].format(
        t=type_of(subject, lanes),
        m=suffix(subject, lanes),
        ones=splat(ones, type_of(subject), lanes),
        **dict(zip("xyz", operands, strict=False)),
    )
    return text.replace("zeroinitializer", "0") if lanes == 1 else text


def _conversion(name: str, source: DType, target: DType) -> str | None:
    from_float, to_float = source.kind == FLOAT, target.kind == FLOAT
    if name == "bitcast":
        return "bitcast" if from_float != to_float else None
    if from_float and to_float:
        return "fptrunc" if source.bits > target.bits else "fpext"
    if from_float:
        return "fptosi" if target.kind == SIGNED else "fptoui"
    signed = source.kind == SIGNED
    if to_float:
        return "sitofp" if signed else "uitofp"
    if source.bits == target.bits:
        return None
    return "trunc" if source.bits > target.bits else ("sext" if signed else "zext")


def literal(pattern: int, dtype: DType) -> str:
    """A constant by its bits. LLVM writes a float in the 16 digits of an f64, also a NaN with its payload."""
    if dtype.kind == BOOL:
        return "true" if pattern else "false"
    if dtype.kind != FLOAT:
        return str(pattern)
    if dtype.bits == 64:
        return f"0x{pattern:016X}"
    if pattern & 0x7F800000 == 0x7F800000:
        wide = pattern >> 31 << 63 | 0x7FF << 52 | (pattern & 0x7FFFFF) << 29
    else:
        (value,) = struct.unpack("<f", struct.pack("<I", pattern))
        (wide,) = struct.unpack("<Q", struct.pack("<d", value))
    return f"0x{wide:016X}"
