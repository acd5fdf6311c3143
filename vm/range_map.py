"""Whether the memory that a setup uses for some sizes can be moved onto that which it uses for larger ones.

A *range* is what a recorded command binds, copies or fills: an offset and a length in a buffer. The same commands have
other ranges for other sizes. Moving each range to where the larger sizes have theirs keeps what the commands compute
if it is one map of bytes for all of them, and gives each byte a place of its own: ranges that share bytes move by
the same distance, others do not come to overlap. Buffers that others see do not move.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np

from orchestrion.hal.buffer import Buffer

from .traced_setup import Barrier, Command, Misfit, Transfer

#: offsets in buffers are below; larger ones are refused
_MOST_BYTES: Final = 1 << 40


class RangeMap:
    """Where the ranges of all commands lie at the capacity, and whether other ones can be moved there.

    `own`: the buffers that the setup allocates and does not give away: ranges in them may move. In others, and in
    slots, they must lie where the capacity's lie.
    """

    def __init__(self, traced: Sequence[list[Command]], own: Sequence[Buffer]) -> None:
        numbers = {id(buffer): number for number, buffer in enumerate(own)}
        sources: list[int] = []
        self.loose: list[tuple[int, int]] = []  #: positions of ranges that copies and fills write, own buffer
        position = 0
        for commands in traced:
            for command in commands:
                if isinstance(command, Barrier):
                    continue
                found = [numbers.get(id(buffer), -1) for buffer in command.buffers]
                sources += found
                position += len(found)
                if isinstance(command, Transfer) and found[-1] >= 0:
                    self.loose.append((position - 1, found[-1]))
        self._offsets, self._lengths = _ranges(traced)
        self._sources = np.array(sources, np.int64)
        self._moving = np.flatnonzero(self._sources >= 0)
        self._still = self._sources < 0
        #: ranges of transfers whose length may not change: they write to slots, or to buffers of others
        self._exact = np.array(list(_exact(traced, numbers)), np.int64)

    def check(self, traced: Sequence[list[Command]]) -> None:
        """`Misfit` unless the ranges of these commands can be moved to those of the capacity."""
        offsets, lengths = _ranges(traced)
        if len(offsets) != len(self._offsets):
            raise Misfit("commands have other bindings")
        if (lengths > self._lengths).any() or (offsets < 0).any() or (lengths < 0).any():
            raise Misfit("a range is longer than that of the capacity")
        if (offsets != self._offsets)[self._still].any():
            raise Misfit("a range lies elsewhere in an argument, a result or a buffer of the program")
        if (lengths != self._lengths)[self._exact].any():
            raise Misfit("a copy or fill of another length writes to an argument, a result or a buffer of the program")
        self._check_moves(offsets, lengths)
        for position, source in self.loose:
            self._check_tail(position, source, lengths)

    def _check_moves(self, offsets: Any, lengths: Any) -> None:
        moving = self._moving[lengths[self._moving] > 0]
        if not moving.size:
            return
        start, source = offsets[moving], self._sources[moving]
        if int(start.max()) + int(lengths[moving].max()) >= _MOST_BYTES:
            raise Misfit("a buffer is too large")
        order = np.lexsort((start, source))
        start, source = start[order] + (source[order] << 41), source[order]  # each buffer has places of its own
        distance = self._offsets[moving][order] - offsets[moving][order]
        end = np.maximum.accumulate(start + lengths[moving][order])
        step = distance[1:] - distance[:-1]
        same = source[1:] == source[:-1]
        shared = start[1:] < end[:-1]
        if (step[shared] != 0).any() or (step[same & ~shared] < 0).any():
            raise Misfit("ranges share memory in another way than at the capacity")

    def _check_tail(self, position: int, source: int, lengths: Any) -> None:
        """A transfer moves as many bytes as at the capacity: what is behind those of the call must be nobody's."""
        first = self._offsets[position] + lengths[position]
        last = self._offsets[position] + self._lengths[position]
        if first == last:
            return
        others = (self._sources == source) & (lengths > 0)
        starts = self._offsets[others]
        if ((starts < last) & (starts + lengths[others] > first)).any():
            raise Misfit("a copy or fill would write to memory that is in use")


def _ranges(traced: Sequence[list[Command]]) -> tuple[Any, Any]:
    """Offsets and lengths of all ranges, in order."""
    offsets: list[int] = []
    lengths: list[int] = []
    for commands in traced:
        for command in commands:
            if not isinstance(command, Barrier):
                offsets += command.offsets
                lengths += command.lengths
    try:
        return np.array(offsets, np.int64), np.array(lengths, np.int64)
    except OverflowError:
        raise Misfit("a buffer is too large") from None


def _exact(traced: Sequence[list[Command]], own: dict[int, int]) -> Iterator[int]:
    position = 0
    for commands in traced:
        for command in commands:
            if isinstance(command, Barrier):
                continue
            count = len(command.lengths)
            if isinstance(command, Transfer) and id(command.buffers[-1]) not in own:
                yield from range(position, position + count)
            position += count
