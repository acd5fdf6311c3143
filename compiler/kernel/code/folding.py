"""What the builder knows of ops on constants: the bits of the result, or an operand that is the result."""

from collections.abc import Sequence

import numpy as np

from orchestrion.compiler.ir.attributes import BoolAttr, FloatAttr, IntegerAttr
from orchestrion.compiler.ir.core import Value
from orchestrion.compiler.ir.types import Attribute, scalar
from orchestrion.compiler.kernel.dialect import dtype_of
from orchestrion.compiler.scalars.primitives import Primitive
from orchestrion.schema.dtypes import BOOL, FLOAT, SIGNED, DType
from orchestrion.schema.scalar_meanings import Array

#: op on integers or i1 -> constants that, as left or right operand, make it return the other operand
_IDENTITIES: dict[str, tuple[int | None, int | None]] = {
    "add": (0, 0),
    "subtract": (None, 0),
    "multiply": (1, 1),
    "and": (-1, -1),
    "or": (0, 0),
    "xor": (0, 0),
    "unchecked_divide": (None, 1),
    "unchecked_shift_left": (None, 0),
    "unchecked_shift_right_logical": (None, 0),
    "unchecked_shift_right_arithmetic": (None, 0),
}


def folded(row: Primitive, operands: Sequence[Value], patterns: Sequence[int | None], result: DType) -> int | None:
    """The bits of the result of an op on constants; None if an operand is no constant, or NaN: the device chooses the
    payload of the result.
    """
    if None in patterns:
        return None
    known = [(bits, dtype_of(value)) for value, bits in zip(operands, patterns, strict=True) if bits is not None]
    if any(is_nan(*one) for one in known):
        return None
    found = row.evaluate([array_of(*one) for one in known], result)
    return int(found.view(f"<u{found.itemsize}"))


def unchanged(row: Primitive, operands: Sequence[Value], patterns: Sequence[int | None]) -> Value | None:
    """The operand that an op returns unchanged, given a constant or equal operand; None if there is none."""
    if row.name == "select":
        chosen, x, y = patterns[0], *operands[1:]
        return x if x is y or chosen else None if chosen is None else y
    dtype = dtype_of(operands[0])
    if len(operands) != 2 or dtype.kind == FLOAT:
        return None
    for number, identity in enumerate(_IDENTITIES.get(row.name, ())):
        if identity is not None and patterns[number] == identity % (1 << dtype.bits):
            return operands[1 - number]
    return operands[patterns.index(0)] if row.name in ("multiply", "and") and 0 in patterns else None


def array_of(pattern: int, dtype: DType) -> Array:
    """A constant as an array of rank 0."""
    return np.array(pattern, dtype=f"<u{dtype.itemsize}").view(dtype.numpy)


def is_nan(pattern: int, dtype: DType) -> bool:
    """Whether a constant is NaN."""
    return dtype.kind == FLOAT and bool(np.isnan(array_of(pattern, dtype)))


def attribute_of(pattern: int, dtype: DType) -> Attribute:
    """A constant as the attribute of a `kernel.constant`."""
    if dtype.kind == BOOL:
        return BoolAttr(bool(pattern))
    if dtype.kind == FLOAT:
        return FloatAttr(pattern, scalar(dtype.name))
    negative = dtype.kind == SIGNED and pattern >> (dtype.bits - 1)
    return IntegerAttr(pattern - (1 << dtype.bits) if negative else pattern, scalar(dtype.name))
