"""What an element of an elementwise op costs: a row per op that costs more than arithmetic of one instruction.

`time` is relative to an addition, `code` counts the primitives that a kernel has for it. They were estimated from the
expansions in `compiler/scalars/math` and measured loops on processors (docs/decisions/branches-as-selects.md, rows.md);
choices between ways that compute the same depend on them, results do not.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from orchestrion.compiler.ir.core import Operation

from .elementwise import OPS, Elementwise


class Cost(NamedTuple):
    """Time of an element, relative to an addition, and primitives of its code."""

    time: int
    code: int


#: time from which on an op costs much more than a read
EXPENSIVE_TIME: Final = 16
#: arithmetic of one or two instructions
PLAIN: Final = Cost(1, 2)
_FUNCTION: Final = Cost(16, 40)
#: op -> its cost, of those that are not plain
COSTS: Final[dict[str, Cost]] = {
    "stablehlo.divide": Cost(16, 1),
    "stablehlo.sqrt": Cost(16, 1),
    "stablehlo.rsqrt": Cost(16, 2),
    "stablehlo.maximum": Cost(1, 8),
    "stablehlo.minimum": Cost(1, 8),
    **{
        f"stablehlo.{name}": _FUNCTION
        for name in (
            "atan2", "cbrt", "cosine", "exponential", "exponential_minus_one", "log", "log_plus_one", "logistic",
            "power", "remainder", "sine", "tan", "tanh",
        )
    },
    **{name: Cost(16, 400) for name in OPS if name.startswith("chlo.")},
}  # fmt: skip


def cost_of(op: Operation) -> Cost:
    return COSTS.get(op.name, PLAIN)


def is_expensive(op: Operation) -> bool:
    """Whether an element costs much more than a read."""
    return isinstance(op, Elementwise) and cost_of(op).time >= EXPENSIVE_TIME
