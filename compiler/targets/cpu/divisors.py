"""Divisors of integers without the values at which a processor stops."""

from orchestrion.schema.dtypes import SIGNED, DType

from .code import Code
from .scalars import splat, type_of


def safe_divisor(code: Code, x: str, y: str, dtype: DType, lanes: int) -> str:
    """`y`, or 1 where x / y would stop the processor: code in front of a condition divides, too."""
    type, scalar = type_of(dtype, lanes), type_of(dtype)
    flags = "i1" if lanes == 1 else f"<{lanes} x i1>"
    bad = code.set(f"icmp eq {type} {y}, {splat('0', scalar, lanes)}")
    if dtype.kind == SIGNED:
        minus = code.set(f"icmp eq {type} {y}, {splat('-1', scalar, lanes)}")
        least = code.set(f"icmp eq {type} {x}, {splat(str(-1 << dtype.bits - 1), scalar, lanes)}")
        both = code.set(f"and {flags} {minus}, {least}")
        bad = code.set(f"or {flags} {bad}, {both}")
    return code.set(f"select {flags} {bad}, {type} {splat('1', scalar, lanes)}, {type} {y}")
