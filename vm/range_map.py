"""Whether the memory that a setup uses for some sizes can be moved onto that which it uses for larger ones.

A *range* is what a recorded command binds, copies or fills: an offset and a length in a buffer. The same commands have
other ranges for other sizes. Moving each range to where the larger sizes have theirs keeps what the commands compute
if it is one map of bytes for all of them, and gives each byte a place of its own: ranges that share bytes move by
the same distance, others do not come to overlap. Buffers that others see do not move.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from orchestrion.hal.buffer import Buffer

from .traced_setup import Barrier, Command, Misfit

#: offsets in buffers are below; larger ones are refused
_MOST_BYTES: Final = 1 << 40


class RangeMap:
    """Where the ranges of all commands lie for the larger sizes, and whether other ones can be moved there.

    Ranges may move in the buffers that the setup allocates and keeps to itself. In slots, in buffers of others, and in
    those that the setup gives to whoever calls it, they must lie where those of the larger sizes lie.
    """

    def __init__(self, traced: Sequence[list[Command]], buffers: Sequence[Buffer], given: Sequence[object]) -> None:
        """`buffers`: those that the setup allocates; `given`: its results."""
        given_away = {id(value) for value in given}
        numbers = {id(buffer): number for number, buffer in enumerate(buffers) if id(buffer) not in given_away}
        sources = [
            numbers.get(id(buffer), -1)
            for commands in traced
            for command in commands
            if not isinstance(command, Barrier)
            for buffer in command.buffers
        ]
        self._offsets, self._lengths = _ranges(traced)
        self._sources = np.array(sources, np.int64)
        self._moving = np.flatnonzero(self._sources >= 0)
        self._still = self._sources < 0

    def check(self, traced: Sequence[list[Command]]) -> None:
        """`Misfit` unless the ranges of these commands can be moved."""
        offsets, lengths = _ranges(traced)
        if len(offsets) != len(self._offsets):
            raise Misfit("commands have other bindings")
        if (lengths > self._lengths).any() or (offsets < 0).any() or (lengths < 0).any():
            raise Misfit("a range is longer than for larger sizes")
        if (offsets != self._offsets)[self._still].any():
            raise Misfit("a range lies elsewhere in an argument, a result or a buffer that others use")
        self._check_moves(offsets, lengths)

    def _check_moves(self, offsets: Any, lengths: Any) -> None:
        moving = self._moving[lengths[self._moving] > 0]
        if not moving.size:
            return
        start, source, length = offsets[moving], self._sources[moving], lengths[moving]
        if int(start.max()) + int(length.max()) >= _MOST_BYTES:
            raise Misfit("a buffer is too large")
        order = np.lexsort((start, source))
        distance = (self._offsets[moving] - start)[order]
        start, source = start[order] + (source[order] << 41), source[order]  # each buffer has places of its own
        end = np.maximum.accumulate(start + length[order])
        step = distance[1:] - distance[:-1]
        same = source[1:] == source[:-1]
        shared = start[1:] < end[:-1]
        if (step[shared] != 0).any() or (step[same & ~shared] < 0).any():
            raise Misfit("ranges share memory in another way than for larger sizes")


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
