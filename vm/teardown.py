"""In which order a context lets go of its globals: the opposite of that in which initializers stored to them.

What an initializer made later may rest on what was made before. The order is that of the code: initializers one after
the other, program before context, their stores from first to last, a called function's where it is first called; of
several stores to one global the last counts. What no initializer stores to was stored to later still, and goes first.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from orchestrion.schema.isa import Effect

if TYPE_CHECKING:
    from .code import Code


def release_order(initializers: Iterable[Code], codes: Sequence[Code], count: int) -> tuple[int, ...]:
    """The places of all `count` globals. `codes` are the program's functions."""
    stored: dict[int, None] = {}
    for code in initializers:
        for place in _stores(code, codes):
            stored.pop(place, None)
            stored[place] = None
    never = [place for place in range(count) if place not in stored]
    return (*reversed(never), *reversed(stored))


def _stores(code: Code, codes: Sequence[Code]) -> list[int]:
    """The globals that a function and those it calls store to, in order."""
    found: list[int] = []
    seen = {code.ordinal}
    todo = [iter(code.decoded)]
    while todo:
        instruction = next(todo[-1], None)
        if instruction is None:
            todo.pop()
            continue
        effect = instruction.row.effect
        operands: tuple[Any, ...] = instruction.operands
        if effect is Effect.STORE:
            found.append(operands[1])
        elif effect in (Effect.CALL, Effect.CACHED) and operands[0] not in seen:
            seen.add(operands[0])
            todo.append(iter(codes[operands[0]].decoded))
    return found
