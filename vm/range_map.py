"""Decides whether the memory that a setup uses for some sizes can be moved onto its memory for larger sizes.

A *range* is an offset and a length in a buffer that a recorded command binds, copies or fills. The same commands have
other ranges for other sizes. If each range is moved to the range of the larger sizes, the commands compute the same
values, provided that all ranges move by one map of bytes that gives each byte a place of its own: ranges that share
bytes move by the same distance, and other ranges do not overlap afterwards. Buffers that other code sees do not move.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from orchestrion.hal.buffer import Buffer

from .traced_setup import Barrier, Command, Misfit

#: ranges that end behind this offset are a misfit
_MAX_BYTES: Final = 1 << 40


class RangeMap:
    """The ranges of all commands for the larger sizes.

    Ranges may move in buffers that the setup allocates and does not return. In slots, in other buffers, and in buffers
    that the setup returns, they must have the offsets of the larger sizes.
    """

    def __init__(self, traced: Sequence[list[Command]], buffers: Sequence[Buffer], given: Sequence[object]) -> None:
        """`buffers`: those that the setup allocates. `given`: its results."""
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
        """`Misfit` unless the ranges of these commands can be moved onto those of the larger sizes."""
        offsets, lengths = _ranges(traced)
        if len(offsets) != len(self._offsets):
            raise Misfit("commands have other bindings")
        if (lengths > self._lengths).any() or (offsets < 0).any() or (lengths < 0).any():
            raise Misfit("a range is longer than for larger sizes")
        if (offsets != self._offsets)[self._still].any():
            raise Misfit("a range has another offset in an argument, a result or a buffer that other code uses")
        self._check_moves(offsets, lengths)

    def _check_moves(self, offsets: Any, lengths: Any) -> None:
        moving = self._moving[lengths[self._moving] > 0]
        if not moving.size:
            return
        start, source, length = offsets[moving], self._sources[moving], lengths[moving]
        if int(start.max()) + int(length.max()) >= _MAX_BYTES:
            raise Misfit("a buffer is too large")
        order = np.lexsort((start, source))
        distance = (self._offsets[moving] - start)[order]
        start, source = start[order] + (source[order] << 41), source[order]  # each buffer has places of its own
        end = np.maximum.accumulate(start + length[order])
        step = distance[1:] - distance[:-1]
        same = source[1:] == source[:-1]
        shared = start[1:] < end[:-1]
        if (step[shared] != 0).any() or (step[same & ~shared] < 0).any():
            raise Misfit("ranges share memory in a different way than for larger sizes")


def _ranges(traced: Sequence[list[Command]]) -> tuple[Any, Any]:
    """The offsets and the lengths of all ranges, in order. `Misfit` if one does not fit an i64."""
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
