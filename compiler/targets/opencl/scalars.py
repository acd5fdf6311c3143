"""How scalar ops are written in OpenCL C: a row per primitive and kind of operand.

In an expression, `{x}`, `{y}`, `{z}` are the operands, and `{R}` is the type of the result. `{S}` and `{U}` are the
signed and the unsigned type of the width of the operands. `{W}` is an unsigned type at least as wide as the operands
and as `uint`: in C, signed overflow and shifts into the sign are undefined, and narrow types would be promoted to
`int`. Rows of kind `U` are those of `u` for 32 bits and more, without casts.
"""

import re
from collections.abc import Sequence

import numpy as np

from orchestrion.compiler.kernel.primitives import KINDS
from orchestrion.schema.dtypes import BOOL, FLOAT, SIGNED, UNSIGNED, DType

#: element type -> OpenCL C type of a value
TYPES: dict[str, str] = {
    "i1": "bool",
    "i8": "char",
    "i16": "short",
    "i32": "int",
    "i64": "long",
    "ui8": "uchar",
    "ui16": "ushort",
    "ui32": "uint",
    "ui64": "ulong",
    "f32": "float",
    "f64": "double",
}

#: element type -> its type in memory, where it differs
MEMORY_TYPES: dict[str, str] = TYPES | {"i1": "uchar"}

_ROWS: tuple[tuple[str, str, str], ...] = (
    ("not", "b", "!{x}"),
    ("not", "su", "({R})~{x}"),
    ("not", "U", "~{x}"),
    ("and", "bsu", "{x} & {y}"),
    ("or", "bsu", "{x} | {y}"),
    ("xor", "bsu", "{x} ^ {y}"),
    ("add", "su", "({R})(({W}){x} + ({W}){y})"),
    ("add", "fU", "{x} + {y}"),
    ("subtract", "su", "({R})(({W}){x} - ({W}){y})"),
    ("subtract", "fU", "{x} - {y}"),
    ("multiply", "su", "({R})(({W}){x} * ({W}){y})"),
    ("multiply", "fU", "{x} * {y}"),
    ("negate", "su", "({R})-({W}){x}"),
    ("negate", "fU", "-{x}"),
    ("abs", "f", "fabs({x})"),
    ("divide", "f", "{x} / {y}"),
    ("sqrt", "f", "sqrt({x})"),
    ("floor", "f", "floor({x})"),
    ("ceil", "f", "ceil({x})"),
    ("round_nearest_even", "f", "rint({x})"),
    ("trunc", "f", "trunc({x})"),
    ("compare_eq", "suf", "{x} == {y}"),
    ("compare_ne", "suf", "{x} != {y}"),
    ("compare_lt", "suf", "{x} < {y}"),
    ("compare_le", "suf", "{x} <= {y}"),
    ("compare_gt", "suf", "{x} > {y}"),
    ("compare_ge", "suf", "{x} >= {y}"),
    ("select", "bsuf", "{x} ? {y} : {z}"),
    ("convert", "suf", "({R}){x}"),
    ("bitcast", "suf", "as_{R}({x})"),
    ("unchecked_divide", "su", "({R})({x} / {y})"),
    ("unchecked_divide", "U", "{x} / {y}"),
    ("unchecked_remainder", "u", "({R})({x} % {y})"),
    ("unchecked_remainder", "U", "{x} % {y}"),
    ("unchecked_shift_left", "su", "({R})(({W}){x} << {y})"),
    ("unchecked_shift_left", "U", "{x} << {y}"),
    ("unchecked_shift_right_logical", "su", "({R})(({U}){x} >> {y})"),
    ("unchecked_shift_right_logical", "U", "{x} >> {y}"),
    ("unchecked_shift_right_arithmetic", "su", "({R})(({S}){x} >> {y})"),
    ("unchecked_convert", "f", "({R}){x}"),
)

#: (primitive, kind of its last operand) -> expression
EXPRESSIONS: dict[tuple[str, str], str] = {(name, kind): text for name, kinds, text in _ROWS for kind in kinds}


#: primitives that are functions of OpenCL C: their text needs no parentheses
CALLED = frozenset(name for name, _, text in _ROWS if re.fullmatch(r"[a-z_]+({R})?\({x}\)", text))


def expression(name: str, operands: Sequence[str], types: Sequence[DType], result: DType) -> str:
    """A primitive applied to names or literals."""
    subject = types[-1]
    width = subject.bits if subject.kind not in (BOOL, FLOAT) else 32
    names = {
        "R": TYPES[result.name],
        "S": TYPES[f"i{width}"],
        "U": TYPES[f"ui{width}"],
        "W": TYPES[f"ui{max(width, 32)}"],
    }
    text = EXPRESSIONS[name, KINDS[subject.kind]]
    if subject.kind == UNSIGNED and subject.bits >= 32:
        text = EXPRESSIONS.get((name, "U"), text)
    return text.format(**dict(zip("xyz", operands, strict=False)), **names)


def literal(pattern: int, dtype: DType) -> str:
    """A constant by its bits, exactly: floats in digits that read back to the same bits, NaNs by their bits."""
    if dtype.kind == BOOL:
        return "true" if pattern else "false"
    if dtype.kind == FLOAT:
        return _float_literal(pattern, dtype)
    suffix = {32: "", 64: "l"}.get(dtype.bits, "")
    if dtype.kind != SIGNED:
        text = f"{pattern}u{suffix}"
    else:
        value = pattern - (1 << dtype.bits) if pattern >> (dtype.bits - 1) else pattern
        least = value == -(1 << (dtype.bits - 1)) and dtype.bits >= 32
        text = f"({value + 1}{suffix} - 1)" if least else f"{value}{suffix}"
        text = f"({text})" if value < 0 and not least else text
    return text if dtype.bits >= 32 else f"({TYPES[dtype.name]}){text}"


def _float_literal(pattern: int, dtype: DType) -> str:
    """NumPy prints the fewest digits that read back to the same bits."""
    value = np.array(pattern, f"<u{dtype.itemsize}").view(dtype.numpy)[()]
    wide = dtype.bits == 64
    if not np.isfinite(value):
        return f"as_{TYPES[dtype.name]}(0x{pattern:0{2 * dtype.itemsize}X}u{'l' if wide else ''})"
    text = str(abs(value)) + ("" if wide else "f")
    return f"(-{text})" if np.signbit(value) else text
