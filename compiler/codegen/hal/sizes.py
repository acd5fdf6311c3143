"""Rewrites the divisions of a function into Python's, which round down.

The bytecode divides towards 0. That is the same for numbers that are 0 or more, and the compiler writes other divisions
with corrections: `(x - x rem d) / d`, and `(x rem d + d) rem d`.
"""

from __future__ import annotations

from dataclasses import replace

from .integers import FLOOR_DIVIDE, FLOOR_REMAINDER
from .ssa import Constant, Function, Op, Parameter, Result, Value

_DIVISIONS = {"div_s": FLOOR_DIVIDE, "rem_s": FLOOR_REMAINDER}


def use_floor_divisions(function: Function, natural_parameters: bool) -> None:
    """Rewrite the divisions of a function. `natural_parameters`: whether its parameters are 0 or more."""
    for op in function.ops():
        kind = _DIVISIONS.get(op.row.name.partition(".")[2])
        divisor = op.operands[1] if kind is not None else None
        if kind is None or not isinstance(divisor, Constant) or (divisor.number or 0) <= 0:
            continue
        dividend = op.operands[0]
        whole = _rounded(dividend, divisor) if kind == FLOOR_DIVIDE else _corrected(dividend, divisor)
        if whole is None and not is_natural(dividend, natural_parameters):
            continue
        op.row = replace(op.row, name=kind)
        op.operands = [dividend if whole is None else whole, divisor]


def is_natural(value: Value, natural_parameters: bool) -> bool:
    """Whether a number is known to be 0 or more."""
    if isinstance(value, Constant):
        return value.number is not None and value.number >= 0
    if isinstance(value, Parameter):
        return natural_parameters
    if not isinstance(value, Result):
        return False
    operands = [*value.op.values()]
    match value.op.name.rpartition(".")[2]:
        case "dim" | "floor_remainder":
            return True
        case "add_checked" | "mul_checked":
            return all(is_natural(operand, natural_parameters) for operand in operands)
        case "floor_divide":
            return is_natural(operands[0], natural_parameters)
        case "select":
            return all(is_natural(operand, natural_parameters) for operand in operands[1:])
    return False


def _made_by(value: Value, name: str, *others: str) -> Op | None:
    """The op of a value if it is one of these instructions."""
    found = value.op if isinstance(value, Result) else None
    return found if found is not None and found.row.name in (name, *others) else None


def _rounded(value: Value, divisor: Constant) -> Value | None:
    difference = _made_by(value, "i64.sub_checked")
    rest = None if difference is None else _made_by(difference.operands[1], FLOOR_REMAINDER)
    if difference is None or rest is None or rest.operands != [difference.operands[0], divisor]:
        return None
    whole: Value = difference.operands[0]
    return whole


def _corrected(value: Value, divisor: Constant) -> Value | None:
    """x if a value is x rem divisor + divisor, whose remainder is x % divisor."""
    total = _made_by(value, "i64.add_checked")
    rest = None if total is None else _made_by(total.operands[0], "i64.rem_s")
    if total is None or rest is None or total.operands[1] is not divisor or rest.operands[1] is not divisor:
        return None
    whole: Value = rest.operands[0]
    return whole
