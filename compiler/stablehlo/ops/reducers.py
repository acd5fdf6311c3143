"""Properties of reducers: the regions by which `reduce` and `reduce_window` combine two elements."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from orchestrion.compiler.ir.core import Block, Value
from orchestrion.schema.dtypes import BOOL, FLOAT, SIGNED, DType

from .base import dtype_of, integer_limits
from .elementwise import Compare
from .structural import Constant

Number = int | float | bool
#: a value of a reducer as a nested tuple (`_tree`)
Tree = Any
#: most ops of a reducer that is looked at as trees, whose size may double with each op
_MOST_OPS: Final = 16


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
    "stablehlo.and": lambda dtype: True if dtype.kind == BOOL else -1 if dtype.kind == SIGNED else _infinity(dtype, 1),
    "stablehlo.or": lambda dtype: 0,
    "stablehlo.xor": lambda dtype: 0,
}
#: Reducers of one op that are commutative.
_COMMUTATIVE: Final = frozenset(_NEUTRAL)


def single_op_name(body: Block) -> str:
    """The name of a reducer's only op, if that combines both arguments; empty for any other reducer."""
    if len(body.arguments) != 2 or body.first is None or body.first.next_op is not body.last:
        return ""
    both = list(body.first.operands) in (list(body.arguments), list(reversed(body.arguments)))
    return body.first.name if both else ""


def is_commutative(body: Block) -> bool:
    """Whether the order of the elements is known not to matter, except for float rounding."""
    return single_op_name(body) in _COMMUTATIVE


def place_direction(body: Block) -> str:
    """GT if a reducer of values and their places finds the first place of the greatest value, LT for the least one, as
    JAX writes `argmax` and `argmin`: floats that are no numbers win. Empty for any other reducer.
    """
    if len(body.arguments) != 4 or body.last is None or len(body.last.operands) != 2 or len(body.ops) > _MOST_OPS:
        return ""
    x, i, y, j = body.arguments
    found = tuple(map(_tree, body.last.operands))
    for direction in ("GT", "LT"):
        takes: Tree = (direction, x, y)
        with_nan = ("stablehlo.or", frozenset({takes, ("NE", x, x)}))
        for wins in (with_nan,) if dtype_of(x).kind == FLOAT else (takes, with_nan):
            ties = "stablehlo.and", frozenset({("EQ", x, y), ("LT", i, j)})
            both = "stablehlo.or", frozenset({wins, ties})
            if found == (("stablehlo.select", wins, x, y), ("stablehlo.select", both, i, j)):
                return direction
    return ""


def _tree(value: Value) -> Tree:
    """How a value of a reducer is computed: an argument, or the name of an op, or a direction, and operands."""
    op = value.defining_op
    if op is None:
        return value
    operands = tuple(map(_tree, op.operands))
    if isinstance(op, Compare):
        name = "" if op.scalar.name.startswith("compare_total") else op.direction
        return (name, *operands)
    return (op.name, frozenset(operands)) if op.name in _COMMUTATIVE else (op.name, *operands)


def is_neutral(body: Block, init: Value) -> bool:
    """Whether the initial value is known to be the identity: a constant, for a reducer of one op."""
    neutral, start = _NEUTRAL.get(single_op_name(body)), init.defining_op
    if neutral is None or not isinstance(start, Constant):
        return False
    return bool(start.value.scalars()[0] == neutral(dtype_of(init)))
