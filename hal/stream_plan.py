"""Plans how a recording runs if the constants that it binds do not fit device memory at the same time.

A recording is cut into segments, runs of commands whose constants fit a window, which is a buffer in device memory.
Before a segment runs, its constants are copied from host memory into a window. Other constants are resident: they stay
in device memory from call to call. This file does the arithmetic: which bytes go where, and which constants stay. It
knows nothing of devices. All sizes and offsets are bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

#: a constant: any hashable object
Memory = Any

#: every range in a window starts at a multiple of this, or of the device's alignment of bindings if that is larger
ALIGNMENT = 256
#: a window takes this fraction (1/16) of the memory, unless a command needs more; see docs/decisions/streaming.md
WINDOW_SHARE = 16
#: the most bytes of a window, unless a command needs more
MAX_WINDOW_BYTES = 256 << 20


class Use(NamedTuple):
    """A range of a constant that a command reads or writes."""

    memory: Memory
    start: int
    end: int


class WindowRange(NamedTuple):
    """A range of a constant, and its offset in the window."""

    memory: Memory
    start: int
    end: int
    window_offset: int


class Segment(NamedTuple):
    """Commands `first` up to, not including, `last` of a recording, and the contents of their window."""

    first: int
    last: int
    parts: tuple[WindowRange, ...]


class Arrangement(NamedTuple):
    """Which constants are resident, and the windows for the others. Without windows everything is resident."""

    resident: frozenset[Memory]
    windows: int
    window_bytes: int


class Excess(NamedTuple):
    """A command of a recording that needs more memory than exists: `bytes` of constants at the same time."""

    recording: int
    command: int
    bytes: int


class Ranges:
    """The union of uses: disjoint ranges in order, for each constant. Immutable."""

    __slots__ = ("_alignment", "_found", "size")

    def __init__(self, alignment: int, found: Mapping[Memory, tuple[tuple[int, int], ...]] | None = None) -> None:
        self._alignment = alignment
        self._found = {} if found is None else found
        #: bytes of a window that holds them
        self.size = sum(self._aligned(end - start) for ranges in self._found.values() for start, end in ranges)

    def adding(self, uses: Iterable[Use]) -> Ranges:
        """The union with further uses."""
        found = dict(self._found)
        for memory, start, end in uses:
            start -= start % self._alignment  # keeps the constant's alignment in the window
            found[memory] = _united(found.get(memory, ()), start, end)
        return self if found == self._found else Ranges(self._alignment, found)

    def parts(self) -> tuple[WindowRange, ...]:
        """The ranges with their offsets in a window, one after the other."""
        parts, place = [], 0
        for memory, ranges in self._found.items():
            for start, end in ranges:
                parts.append(WindowRange(memory, start, end, place))
                place += self._aligned(end - start)
        return tuple(parts)

    def _aligned(self, size: int) -> int:
        return -(-size // self._alignment) * self._alignment


def _united(ranges: tuple[tuple[int, int], ...], start: int, end: int) -> tuple[tuple[int, int], ...]:
    apart = [row for row in ranges if row[1] <= start or end <= row[0]]
    for row in ranges:
        if row not in apart:
            start, end = min(start, row[0]), max(end, row[1])
    return tuple(sorted([*apart, (start, end)]))


def split(commands: Sequence[Sequence[Use]], window_bytes: int, alignment: int) -> list[Segment]:
    """Returns the segments of a recording, each as long as the window allows. No command needs more than a window."""
    segments = []
    first, ranges = 0, Ranges(alignment)
    for place, uses in enumerate(commands):
        grown = ranges.adding(uses)
        if grown.size > window_bytes and place > first:
            segments.append(Segment(first, place, ranges.parts()))
            first, grown = place, Ranges(alignment).adding(uses)
        assert grown.size <= window_bytes, "a command needs more than a window"
        ranges = grown
    segments.append(Segment(first, len(commands), ranges.parts()))
    return segments


def need(uses: Iterable[Use], alignment: int) -> int:
    """The bytes of a window that holds these uses."""
    return Ranges(alignment).adding(uses).size


def arrange(
    sizes: Mapping[Memory, int], recordings: Sequence[Sequence[Sequence[Use]]], room: int, alignment: int
) -> Arrangement | Excess:
    """Returns how to run these recordings with `room` bytes of device memory, or the command that needs more.

    `sizes`: the bytes of each constant in device memory. Constants that many commands bind become resident first, then
    small ones, because these save the most copies per byte. With a second window, the copies for a segment run while
    the previous segment runs.
    """
    if sum(sizes.values()) <= room:
        return Arrangement(frozenset(sizes), 0, 0)
    uses = dict.fromkeys(sizes, 0)
    largest = Excess(0, 0, 0)
    for number, commands in enumerate(recordings):
        for place, command in enumerate(commands):
            largest = max(largest, Excess(number, place, need(command, alignment)), key=lambda row: row.bytes)
            for memory in {use.memory for use in command}:
                uses[memory] += 1
    most = largest.bytes
    if most > room:
        return largest
    usual = min(room // WINDOW_SHARE, MAX_WINDOW_BYTES) // alignment * alignment
    window = max(most, usual, alignment)
    windows = 2 if 2 * window <= room else 1
    left = room - windows * window
    resident = set()
    for memory in sorted(sizes, key=lambda memory: (-uses[memory], sizes[memory])):
        if uses[memory] and sizes[memory] <= left:
            resident.add(memory)
            left -= sizes[memory]
    return Arrangement(frozenset(resident), windows, window)
