"""Names for symbols that passes create: the wished name, or the same with a number if it is taken."""

from __future__ import annotations

import re
from collections.abc import Iterable

from orchestrion.compiler.ir.core import Operation
from orchestrion.compiler.ir.symbols import table_of


def identifier(name: str) -> str:
    """The name as a C identifier, which some targets need for entries."""
    word = re.sub(r"[^A-Za-z0-9_]", "_", name)
    return f"_{word}" if word[:1].isdigit() else word


def prefix_of(code: Operation) -> str:
    """Prefix of the symbols that are created for a function or an initializer."""
    return identifier(code.symbol or "initializer")


class Names:
    """Creates names that are new in a scope."""

    def __init__(self, taken: Iterable[str]) -> None:
        self._taken = set(taken)
        self._numbers: dict[str, int] = {}

    @classmethod
    def of(cls, scope: Operation) -> Names:
        return cls(table_of(scope))

    def fresh(self, wish: str) -> str:
        """`wish`, or the first of `wish_1`, `wish_2`, ... that is free."""
        name, number = wish, self._numbers.get(wish, 0)
        while name in self._taken:
            number += 1
            name = f"{wish}_{number}"
        self._taken.add(name)
        self._numbers[wish] = number
        return name
