"""Properties of reducers: the regions by which `reduce` and `reduce_window` combine two elements."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from orchestrion.compiler.ir.core import Block, Value
from orchestrion.schema.dtypes import BOOL, FLOAT, DType

from .base import dtype_of, integer_limits
from .structural import Constant

Number = int | float | bool


def _infinity(dtype: DType, sign: int) -> Number:
    """The greatest value of a type for sign 1, the least for -1."""
    if dtype.kind == FLOAT:
        return sign * float("inf")
    if dtype.kind == BOOL:
        return sign > 0
    return integer_limits(dtype)[sign > 0]


#: Reducer of one op -> its identity element.
_NEUTRAL: Final[dict[str, Callable[[DType], Number]]] = {
    "stablehlo.add": lambda dtype: 0,
    "stablehlo.multiply": lambda dtype: 1,
    "stablehlo.maximum": lambda dtype: _infinity(dtype, -1),
    "stablehlo.minimum": lambda dtype: _infinity(dtype, 1),
}
#: Reducers of one op that are commutative.
_COMMUTATIVE: Final = frozenset({*_NEUTRAL, "stablehlo.and", "stablehlo.or", "stablehlo.xor"})


def single_op_name(body: Block) -> str:
    """The name of a reducer's only op, if that combines both arguments; empty for any other reducer."""
    if len(body.arguments) != 2 or body.first is None or body.first.next_op is not body.last:
        return ""
    both = list(body.first.operands) in (list(body.arguments), list(reversed(body.arguments)))
    return body.first.name if both else ""


def is_commutative(body: Block) -> bool:
    """Whether the order of the elements is known not to matter, except for float rounding."""
    return single_op_name(body) in _COMMUTATIVE


def is_neutral(body: Block, init: Value) -> bool:
    """Whether the initial value is known to be the identity: a constant, for a reducer of one op."""
    neutral, start = _NEUTRAL.get(single_op_name(body)), init.defining_op
    if neutral is None or not isinstance(start, Constant):
        return False
    return bool(start.value.scalars()[0] == neutral(dtype_of(init)))
