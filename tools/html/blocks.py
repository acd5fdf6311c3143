"""The blocks of a function's device work: those of its code, and those of the loops and branches in its recordings.

Blocks are in the order of the code, and a recording's blocks stand where the function runs it. So a loop is a range of
blocks whose last one goes back to the first, which reads the predicate. A recording of untrusted code may nest wrongly:
an `end` or `next_arm` without its beginning does nothing, and what is open when the recording ends, ends there.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple


class _Open(NamedTuple):
    """A loop or branch whose end follows."""

    start: int  #: the block that reads the predicate or selector
    ends: list[int] | None  #: the last blocks of a branch's earlier arms; None for a loop


class Blocks:
    """The blocks of one function. `successors`: the blocks that may follow each block, as keys. `current`: the block
    of the next node. `room`: the number of nodes and of recorded blocks that may still be added.
    """

    def __init__(self, room: int) -> None:
        self.room = room
        self.successors: list[dict[int, None]] = []
        self.current = -1
        self._open: list[_Open] = []
        self._is_unused = False  #: whether the current block is a recorded one without nodes

    def begin(self) -> int:
        """A block of the function's code begins; `link` adds its predecessors."""
        self.successors.append({})
        self.current, self._is_unused = len(self.successors) - 1, False
        return self.current

    def link(self, before: int, after: int) -> None:
        self.successors[before][after] = None

    def take(self) -> bool:
        """Whether there is room for a node in the current block, which it then takes."""
        if self.room <= 0:
            return False
        self.room -= 1
        self._is_unused = False
        return True

    def begin_loop(self) -> None:
        """A loop begins; the next node reads its predicate, then `enter` begins the body."""
        if not self._is_unused:
            self._follow((self.current,))
        self._open.append(_Open(self.current, None))

    def begin_branch(self) -> None:
        """A branch begins, whose selector the last node read; `enter` begins its first arm."""
        self._open.append(_Open(self.current, []))

    def enter(self) -> None:
        """The body or the first arm of the innermost loop or branch begins."""
        self._follow((self._open[-1].start,))

    def next_arm(self) -> None:
        """The next arm of the innermost branch begins."""
        if not self._open or (ends := self._open[-1].ends) is None:
            return
        ends.append(self.current)
        self._follow((self._open[-1].start,))

    def end(self) -> None:
        """The innermost loop or branch ends."""
        if not self._open:
            return
        start, ends = self._open.pop()
        if ends is not None:
            self._follow((*ends, self.current))
        elif self.room > 0:
            self.link(self.current, start)
            self._follow((start,))

    def finish(self) -> None:
        """The recording ends."""
        while self._open:
            self.end()

    def _follow(self, before: Iterable[int]) -> None:
        """A recorded block begins, behind these. Without room, the current block goes on."""
        if self.room <= 0:
            return
        self.room -= 1
        after = self.begin()
        self._is_unused = True
        for one in before:
            self.link(one, after)
