"""The order in which a closed context releases its globals: the reverse of the order in which initializers store them.

An object that an initializer makes may depend on objects that were made before. The order of stores is read from the
code: initializers in their order, those of the program before those of the context; the stores of an initializer from
first to last; the stores of a called function where it is first called. If there are several stores to one global, the
last one counts. Globals that no initializer stores to are stored to later, by calls, and are released first.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from orchestrion.schema.isa import Effect

if TYPE_CHECKING:
    from .code import Code


def release_order(initializers: Iterable[Code], codes: Sequence[Code], count: int) -> tuple[int, ...]:
    """The ordinals of all `count` globals, in the order of release. `codes`: the functions of the program."""
    stored: dict[int, None] = {}
    for code in initializers:
        for place in _stores(code, codes):
            stored.pop(place, None)
            stored[place] = None
    never = [place for place in range(count) if place not in stored]
    return (*reversed(never), *reversed(stored))


def _stores(code: Code, codes: Sequence[Code]) -> list[int]:
    """The globals that a function and its callees store to, in order."""
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
