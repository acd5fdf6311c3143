"""The integer instructions as Python expressions, and their values for constant operands.

The i64 instructions that trap on overflow are plain arithmetic of Python, which is exact. `wrap`: the number of bits
that a result is reduced to. An instruction that is not listed is refused by name.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

#: precedence of Python's operators, the tightest first
ATOM, PRODUCT, SUM, COMPARISON, NEGATION, CHOICE = range(6)


class Integer(NamedTuple):
    """An instruction: its operator, the precedence of that, the value, and the bits that the result wraps at."""

    operator: str
    level: int
    meaning: Callable[..., int]
    wrap: int = 0

    def evaluate(self, numbers: Sequence[int]) -> int | None:
        """The value for constants; None if the instruction would trap."""
        try:
            number = self.meaning(*numbers)
        except ZeroDivisionError:
            return None
        if self.wrap:
            return (number + (1 << self.wrap - 1)) % (1 << self.wrap) - (1 << self.wrap - 1)
        return number if -(1 << 63) <= number < 1 << 63 else None


def quotient(a: int, b: int) -> int:
    """a / b rounded towards 0."""
    found = abs(a) // abs(b)
    return found if (a < 0) == (b < 0) else -found


def remainder(a: int, b: int) -> int:
    """The remainder of `quotient`, which has the sign of a."""
    return a - b * quotient(a, b)


#: comparison -> the one that holds where it does not
OPPOSITES: Final = {"==": "!=", "!=": "==", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}
_COMPARISONS: Final[dict[str, tuple[str, Callable[[int, int], int]]]] = {
    "eq": ("==", lambda a, b: int(a == b)),
    "ne": ("!=", lambda a, b: int(a != b)),
    "lt_s": ("<", lambda a, b: int(a < b)),
    "le_s": ("<=", lambda a, b: int(a <= b)),
    "gt_s": (">", lambda a, b: int(a > b)),
    "ge_s": (">=", lambda a, b: int(a >= b)),
}
_SUMS: Final[dict[str, tuple[str, int, Callable[[int, int], int]]]] = {
    "add": ("+", SUM, lambda a, b: a + b),
    "sub": ("-", SUM, lambda a, b: a - b),
    "mul": ("*", PRODUCT, lambda a, b: a * b),
}

#: divisions that round down, which `sizes.py` finds
FLOOR_DIVIDE, FLOOR_REMAINDER = "floor_divide", "floor_remainder"

#: name of the instruction -> its row
INTEGERS: Final[dict[str, Integer]] = {
    **{f"i64.{name}_checked": Integer(*row) for name, row in _SUMS.items()},
    **{f"i{bits}.{name}": Integer(*row, bits) for bits in (32, 64) for name, row in _SUMS.items()},
    **{
        f"i{bits}.{name}": Integer(text, COMPARISON, meaning)
        for bits in (32, 64)
        for name, (text, meaning) in _COMPARISONS.items()
    },
    **{f"i{bits}.eqz": Integer("not", NEGATION, lambda a: int(a == 0)) for bits in (32, 64)},
    **{f"i{bits}.div_s": Integer("//", PRODUCT, quotient) for bits in (32, 64)},
    **{f"i{bits}.rem_s": Integer("%", PRODUCT, remainder) for bits in (32, 64)},
    **{f"i{bits}.select": Integer("if", CHOICE, lambda c, a, b: a if c else b) for bits in (32, 64)},
    FLOOR_DIVIDE: Integer("//", PRODUCT, lambda a, b: a // b),
    FLOOR_REMAINDER: Integer("%", PRODUCT, lambda a, b: a % b),
    "i32.wrap_i64": Integer("", ATOM, lambda a: a, 32),
    "i64.extend_i32_s": Integer("", ATOM, lambda a: a),
}
