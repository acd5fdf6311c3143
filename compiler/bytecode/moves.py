"""Parallel copies, one after the other: what a branch gives to its target changes places all at once.

A copy is made when nobody reads its target any more. What was copied is read from its copy from then on, so its own
place is free. Where all places are still read, in cycles, one is first saved in a spare one.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import TypeVar

Place = TypeVar("Place", bound=Hashable)


def sequential_copies(
    moves: Sequence[tuple[Place, Place]], spare: Callable[[Place], Place]
) -> list[tuple[Place, Place]]:
    """Copies with the effect of all `moves`, (source, target), at once. Targets are distinct.

    `spare(place)` gives a free place for what is in `place`.
    """
    waiting = {target: source for source, target in moves if source != target}
    ready = [target for target in waiting if target not in waiting.values()]
    found: list[tuple[Place, Place]] = []

    def copied(source: Place, copy: Place) -> None:
        found.append((source, copy))
        if source in waiting:
            waiting.update({to: copy for to, of in waiting.items() if of == source})
            ready.append(source)

    while waiting:
        if not ready:
            place = next(iter(waiting))
            copied(place, spare(place))
        target = ready.pop(0)
        copied(waiting.pop(target), target)
    return found
