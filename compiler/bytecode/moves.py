"""Parallel copies, one after the other: what a branch gives to its target changes places all at once.

A copy is made when nobody reads its target any more; where that never comes, in a cycle, one register is first saved in
a spare one.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import TypeVar

Place = TypeVar("Place", bound=Hashable)


def sequence(moves: Sequence[tuple[Place, Place]], spare: Callable[[Place], Place]) -> list[tuple[Place, Place]]:
    """Copies with the effect of all `moves`, (source, target), at once. Targets are distinct.

    `spare(place)` gives a free place for what is in `place`.
    """
    waiting = {target: source for source, target in moves if source != target}
    readers: dict[Place, int] = {}
    for source in waiting.values():
        readers[source] = readers.get(source, 0) + 1
    found: list[tuple[Place, Place]] = []
    ready = [target for target in waiting if target not in readers]
    while waiting:
        if not ready:
            target = next(iter(waiting))
            saved = spare(target)
            found.append((target, saved))
            waiting = {to: saved if source == target else source for to, source in waiting.items()}
            readers[saved] = readers.pop(target)
            ready.append(target)
        target = ready.pop(0)
        source = waiting.pop(target)
        found.append((source, target))
        readers[source] -= 1
        if not readers[source]:
            del readers[source]
            if source in waiting:
                ready.append(source)
    return found
