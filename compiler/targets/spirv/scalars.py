"""How scalar ops are written in SPIR-V: a row per primitive and kind of operand.

A name is an instruction `Op...`, or one of GLSL.std.450 without that prefix. Conversions between integers depend on the
widths; `conversion` chooses them.
"""

from orchestrion.compiler.scalars.primitives import CONVERSIONS, KINDS
from orchestrion.schema.dtypes import FLOAT, SIGNED, DType

_ROWS: tuple[tuple[str, str, str], ...] = (
    ("not", "b", "OpLogicalNot"),
    ("not", "su", "OpNot"),
    ("and", "b", "OpLogicalAnd"),
    ("and", "su", "OpBitwiseAnd"),
    ("or", "b", "OpLogicalOr"),
    ("or", "su", "OpBitwiseOr"),
    ("xor", "b", "OpLogicalNotEqual"),
    ("xor", "su", "OpBitwiseXor"),
    ("add", "su", "OpIAdd"),
    ("add", "f", "OpFAdd"),
    ("subtract", "su", "OpISub"),
    ("subtract", "f", "OpFSub"),
    ("multiply", "su", "OpIMul"),
    ("multiply", "f", "OpFMul"),
    ("negate", "su", "OpSNegate"),
    ("negate", "f", "OpFNegate"),
    ("abs", "f", "FAbs"),
    ("divide", "f", "OpFDiv"),
    ("sqrt", "f", "Sqrt"),
    ("floor", "f", "Floor"),
    ("ceil", "f", "Ceil"),
    ("round_nearest_even", "f", "RoundEven"),
    ("trunc", "f", "Trunc"),
    ("compare_eq", "su", "OpIEqual"),
    ("compare_eq", "f", "OpFOrdEqual"),
    ("compare_ne", "su", "OpINotEqual"),
    ("compare_ne", "f", "OpFUnordNotEqual"),
    ("compare_lt", "s", "OpSLessThan"),
    ("compare_lt", "u", "OpULessThan"),
    ("compare_lt", "f", "OpFOrdLessThan"),
    ("compare_le", "s", "OpSLessThanEqual"),
    ("compare_le", "u", "OpULessThanEqual"),
    ("compare_le", "f", "OpFOrdLessThanEqual"),
    ("compare_gt", "s", "OpSGreaterThan"),
    ("compare_gt", "u", "OpUGreaterThan"),
    ("compare_gt", "f", "OpFOrdGreaterThan"),
    ("compare_ge", "s", "OpSGreaterThanEqual"),
    ("compare_ge", "u", "OpUGreaterThanEqual"),
    ("compare_ge", "f", "OpFOrdGreaterThanEqual"),
    ("select", "bsuf", "OpSelect"),
    ("unchecked_divide", "s", "OpSDiv"),
    ("unchecked_divide", "u", "OpUDiv"),
    ("unchecked_remainder", "u", "OpUMod"),
    ("unchecked_shift_left", "su", "OpShiftLeftLogical"),
    ("unchecked_shift_right_logical", "su", "OpShiftRightLogical"),
    ("unchecked_shift_right_arithmetic", "su", "OpShiftRightArithmetic"),
)

#: (primitive, kind of its last operand) -> instruction; `CONVERSIONS` are not among them
INSTRUCTIONS: dict[tuple[str, str], str] = {(name, kind): text for name, kinds, text in _ROWS for kind in kinds}


def instruction(name: str, subject: DType, result: DType) -> str | None:
    """The instruction of a primitive with last operand and result of these types; None if the bits do not change."""
    if name in CONVERSIONS:
        return conversion(name, subject, result)
    return INSTRUCTIONS[name, KINDS[subject.kind]]


def conversion(name: str, source: DType, target: DType) -> str | None:
    """The instruction of a `convert`, `bitcast` or `unchecked_convert`; None between integers of one width."""
    from_float, to_float = source.kind == FLOAT, target.kind == FLOAT
    signed = target.kind == SIGNED if from_float else source.kind == SIGNED
    if name == "bitcast":
        return "OpBitcast" if from_float != to_float else None
    if from_float:
        return "OpFConvert" if to_float else ("OpConvertFToS" if signed else "OpConvertFToU")
    if to_float:
        return "OpConvertSToF" if signed else "OpConvertUToF"
    if source.bits == target.bits:
        return None
    return "OpSConvert" if signed and source.bits < target.bits else "OpUConvert"
