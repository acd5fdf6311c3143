"""What the scalar instructions of the SPIR-V subset give, for the interpreter: integers are unsigned bit patterns.

Written from the specification and apart from the checker. A result that the specification leaves open (a division by
zero, a shift by the width or more, a float that no integer holds) is None: the interpreter's adversary then chooses.
MEANINGS is the index: instruction -> (how its types agree, what makes the function of its operands).
"""

import math
import struct
from collections.abc import Callable
from ctypes import c_float
from functools import cache
from typing import Any, NamedTuple

Value = Any
Function = Callable[..., Value]


class Scalar(NamedTuple):
    """A scalar type by its name: `u32`, `i32`, `f32`, `bool`."""

    base: str
    bits: int

    @classmethod
    def named(cls, name: str) -> "Scalar":
        base = {"u": "int", "i": "int", "f": "float", "b": "bool"}.get(name[0], "")
        return cls(base if name[1:].isdecimal() or name == "bool" else "", 1 if name == "bool" else _bits(name))


def _bits(name: str) -> int:
    return int(name[1:]) if name[1:].isdecimal() else 0


Types = tuple[Scalar, ...]
Agree = Callable[[Scalar, Types], bool]
Maker = Callable[[Scalar, Types], Function]


# how types agree


def _same(base: str) -> Agree:
    return lambda result, operands: result.base == base and all(operand == result for operand in operands)


def _shift(result: Scalar, operands: Types) -> bool:
    return result.base == "int" and operands[0] == result and operands[1].base == "int"


def _compare(base: str) -> Agree:
    def agree(result: Scalar, operands: Types) -> bool:
        return result.base == "bool" and operands[0].base == base and operands[0] == operands[1]

    return agree


def _select(result: Scalar, operands: Types) -> bool:
    return operands[0].base == "bool" and operands[1] == operands[2] == result and result.base != ""


def _convert(source: str, target: str, resize: bool) -> Agree:
    def agree(result: Scalar, operands: Types) -> bool:
        right = operands[0].base == source and result.base == target
        return right and (not resize or operands[0].bits != result.bits)

    return agree


def _bitcast(result: Scalar, operands: Types) -> bool:
    numbers = ("int", "float")
    return result.base in numbers and operands[0].base in numbers and result.bits == operands[0].bits


# what they give


def signed(value: int, bits: int) -> int:
    return value - (1 << bits) if value >> bits - 1 else value


def _wrapping(function: Callable[..., int]) -> Maker:
    """Integer arithmetic modulo 2 ** bits."""

    def make(result: Scalar, operands: Types) -> Function:
        mask = (1 << result.bits) - 1
        if len(operands) == 1:
            return lambda a: function(a) & mask
        return lambda a, b: function(a, b) & mask

    return make


def _plain(function: Function) -> Maker:
    return lambda result, operands: function


def _signed_division(result: Scalar, operands: Types) -> Function:
    bits, mask = result.bits, (1 << result.bits) - 1

    def divide(a: int, b: int) -> Value:
        x, y = signed(a, bits), signed(b, bits)
        if not y or (y == -1 and a == 1 << bits - 1):
            return None
        return (abs(x) // abs(y) if (x < 0) == (y < 0) else -(abs(x) // abs(y))) & mask

    return divide


def _shifting(function: Callable[[int, int, int], int]) -> Maker:
    """`function(value, amount, bits)` where the amount is below the width."""

    def make(result: Scalar, operands: Types) -> Function:
        bits, mask = result.bits, (1 << result.bits) - 1
        return lambda a, b: function(a, b, bits) & mask if b < bits else None

    return make


def _signed_pair(function: Callable[[int, int], Any]) -> Maker:
    def make(result: Scalar, operands: Types) -> Function:
        bits = operands[0].bits
        return lambda a, b: function(signed(a, bits), signed(b, bits))

    return make


def _signed_minimum(result: Scalar, operands: Types) -> Function:
    bits, mask = result.bits, (1 << result.bits) - 1
    return lambda a, b: min(signed(a, bits), signed(b, bits)) & mask


def _sign_extension(result: Scalar, operands: Types) -> Function:
    bits, mask = operands[0].bits, (1 << result.bits) - 1
    return lambda a: signed(a, bits) & mask


def rounded(value: float, bits: int) -> float:
    return c_float(value).value if bits == 32 else value


def _float(function: Callable[..., Any]) -> Maker:
    """A float function, rounded to the result's width; None where it gives None."""

    def make(result: Scalar, operands: Types) -> Function:
        if result.bits == 64:
            return function

        def narrow(*values: float) -> Value:
            found = function(*values)
            return None if found is None else c_float(found).value

        return narrow

    return make


def _whole(function: Callable[[float], float]) -> Callable[[float], float]:
    """A rounding function that leaves NaN and infinities as they are."""
    return lambda value: math.copysign(float(function(value)), value) if math.isfinite(value) else value


def _to_integer(is_signed: bool) -> Maker:
    def make(result: Scalar, operands: Types) -> Function:
        bits, mask = result.bits, (1 << result.bits) - 1
        least, most = (-(1 << bits - 1), (1 << bits - 1) - 1) if is_signed else (0, mask)

        def convert(value: float) -> Value:
            if not math.isfinite(value):
                return None
            whole = int(value)
            return whole & mask if least <= whole <= most else None

        return convert

    return make


def _to_float(is_signed: bool) -> Maker:
    def make(result: Scalar, operands: Types) -> Function:
        bits, narrow = operands[0].bits, result.bits == 32

        def convert(value: int) -> float:
            number = signed(value, bits) if is_signed else value
            return nearest_f32(number) if narrow else float(number)

        return convert

    return make


def nearest_f32(number: int) -> float:
    """An integer as f32, rounded once."""
    excess = max(0, abs(number).bit_length() - 40)
    sticky = int(bool(abs(number) & (1 << excess) - 1))
    kept = (abs(number) >> excess | sticky) << excess
    return c_float(float(kept) if number >= 0 else -float(kept)).value


def from_bits(pattern: int, bits: int) -> float:
    found: float = struct.unpack("<f", struct.pack("<I", pattern))[0] if bits == 32 else _double(pattern)
    return found


def _double(pattern: int) -> float:
    found: float = struct.unpack("<d", struct.pack("<Q", pattern))[0]
    return found


def to_bits(value: float, bits: int) -> int:
    return int.from_bytes(struct.pack("<f" if bits == 32 else "<d", value), "little")


def _reinterpreted(result: Scalar, operands: Types) -> Function:
    source, bits = operands[0], result.bits
    if source.base == result.base:
        return lambda value: value
    if result.base == "float":
        return lambda value: from_bits(value, bits)
    return lambda value: to_bits(value, bits) if value == value else None


def _root(value: float) -> Value:
    return None if value < 0 else math.sqrt(value)


MEANINGS: dict[str, tuple[Agree, Maker]] = {
    "OpConvertFToU": (_convert("float", "int", False), _to_integer(False)),
    "OpConvertFToS": (_convert("float", "int", False), _to_integer(True)),
    "OpConvertSToF": (_convert("int", "float", False), _to_float(True)),
    "OpConvertUToF": (_convert("int", "float", False), _to_float(False)),
    "OpUConvert": (_convert("int", "int", True), _wrapping(lambda a: a)),
    "OpSConvert": (_convert("int", "int", True), _sign_extension),
    "OpFConvert": (_convert("float", "float", True), _float(lambda a: a)),
    "OpBitcast": (_bitcast, _reinterpreted),
    "OpSNegate": (_same("int"), _wrapping(lambda a: -a)),
    "OpIAdd": (_same("int"), _wrapping(lambda a, b: a + b)),
    "OpISub": (_same("int"), _wrapping(lambda a, b: a - b)),
    "OpIMul": (_same("int"), _wrapping(lambda a, b: a * b)),
    "OpUDiv": (_same("int"), _plain(lambda a, b: a // b if b else None)),
    "OpSDiv": (_same("int"), _signed_division),
    "OpUMod": (_same("int"), _plain(lambda a, b: a % b if b else None)),
    "OpFNegate": (_same("float"), _float(lambda a: -a)),
    "OpFAdd": (_same("float"), _float(lambda a, b: a + b)),
    "OpFSub": (_same("float"), _float(lambda a, b: a - b)),
    "OpFMul": (_same("float"), _float(lambda a, b: a * b)),
    "OpFDiv": (_same("float"), _float(lambda a, b: a / b if b else None)),
    "OpShiftRightLogical": (_shift, _shifting(lambda a, b, bits: a >> b)),
    "OpShiftRightArithmetic": (_shift, _shifting(lambda a, b, bits: signed(a, bits) >> b)),
    "OpShiftLeftLogical": (_shift, _shifting(lambda a, b, bits: a << b)),
    "OpBitwiseOr": (_same("int"), _plain(lambda a, b: a | b)),
    "OpBitwiseXor": (_same("int"), _plain(lambda a, b: a ^ b)),
    "OpBitwiseAnd": (_same("int"), _plain(lambda a, b: a & b)),
    "OpNot": (_same("int"), _wrapping(lambda a: ~a)),
    "OpLogicalNotEqual": (_same("bool"), _plain(lambda a, b: a != b)),
    "OpLogicalOr": (_same("bool"), _plain(lambda a, b: a or b)),
    "OpLogicalAnd": (_same("bool"), _plain(lambda a, b: a and b)),
    "OpLogicalNot": (_same("bool"), _plain(lambda a: not a)),
    "OpSelect": (_select, _plain(lambda c, a, b: a if c else b)),
    "OpIEqual": (_compare("int"), _plain(lambda a, b: a == b)),
    "OpINotEqual": (_compare("int"), _plain(lambda a, b: a != b)),
    "OpUGreaterThan": (_compare("int"), _plain(lambda a, b: a > b)),
    "OpSGreaterThan": (_compare("int"), _signed_pair(lambda a, b: a > b)),
    "OpUGreaterThanEqual": (_compare("int"), _plain(lambda a, b: a >= b)),
    "OpSGreaterThanEqual": (_compare("int"), _signed_pair(lambda a, b: a >= b)),
    "OpULessThan": (_compare("int"), _plain(lambda a, b: a < b)),
    "OpSLessThan": (_compare("int"), _signed_pair(lambda a, b: a < b)),
    "OpULessThanEqual": (_compare("int"), _plain(lambda a, b: a <= b)),
    "OpSLessThanEqual": (_compare("int"), _signed_pair(lambda a, b: a <= b)),
    "OpFOrdEqual": (_compare("float"), _plain(lambda a, b: a == b)),
    "OpFUnordNotEqual": (_compare("float"), _plain(lambda a, b: a != b)),
    "OpFOrdLessThan": (_compare("float"), _plain(lambda a, b: a < b)),
    "OpFOrdGreaterThan": (_compare("float"), _plain(lambda a, b: a > b)),
    "OpFOrdLessThanEqual": (_compare("float"), _plain(lambda a, b: a <= b)),
    "OpFOrdGreaterThanEqual": (_compare("float"), _plain(lambda a, b: a >= b)),
    "RoundEven": (_same("float"), _float(_whole(round))),
    "Trunc": (_same("float"), _float(_whole(math.trunc))),
    "FAbs": (_same("float"), _float(abs)),
    "Floor": (_same("float"), _float(_whole(math.floor))),
    "Ceil": (_same("float"), _float(_whole(math.ceil))),
    "Sqrt": (_same("float"), _float(_root)),
    "UMin": (_same("int"), _plain(min)),
    # outside of the subset: what a faulty checker may accept
    "SMin": (_same("int"), _signed_minimum),
    "UMax": (_same("int"), _plain(max)),
}

#: extended instructions of MEANINGS that have no row in the schema
BEYOND = {39: "SMin", 41: "UMax"}


@cache
def meaning(name: str, result: str, *operands: str) -> Function | None:
    """What an instruction does with operands of types of these names; None where they do not agree."""
    agree, make = MEANINGS[name]
    types = tuple(map(Scalar.named, operands))
    scalar = Scalar.named(result)
    return make(scalar, types) if agree(scalar, types) else None
