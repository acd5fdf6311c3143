"""Sequentializes parallel copies: the moves of branch operands to block arguments take effect at once.

A copy is emitted when no pending move reads its target any more. Pending moves then read a copied value from its copy,
so that its own place becomes free. A cycle is broken by saving one place to a spare one.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import TypeVar

Place = TypeVar("Place", bound=Hashable)


def sequential_copies(
    moves: Sequence[tuple[Place, Place]], spare: Callable[[Place], Place]
) -> list[tuple[Place, Place]]:
    """Returns copies whose sequence has the effect of all `moves`, (source, target), at once. Targets are distinct.

    `spare(place)` returns a free place for the content of `place`.
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
