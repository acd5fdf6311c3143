"""Plans how a recording runs when the constants that it binds do not fit the device memory at one time.

A recording is cut into segments, each a run of commands whose constants fit a window, a buffer in device memory. Before
a segment runs, its constants are copied from host memory into a window. Other constants are resident: they stay in
device memory from call to call. This file does the arithmetic: which bytes go where, which constants stay. It knows
nothing of devices; all sizes and offsets are bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

#: a constant: whatever can be hashed
Memory = Any

#: every range in a window starts at a multiple of this, or of the device's alignment of bindings if that is larger
ALIGNMENT = 256
#: a window takes one part in so many of the memory, unless a command needs more; docs/decisions/streaming.md
WINDOW_SHARE = 16
#: and no more than this, unless a command needs more
MAX_WINDOW_BYTES = 256 << 20


class Use(NamedTuple):
    """A range of a constant that a command reads or writes."""

    memory: Memory
    start: int
    end: int


class WindowRange(NamedTuple):
    """A range of a constant, and where in the window it lies."""

    memory: Memory
    start: int
    end: int
    window_offset: int


class Segment(NamedTuple):
    """Commands `first` to `last` (not included) of a recording, and what their window holds."""

    first: int
    last: int
    parts: tuple[WindowRange, ...]


class Arrangement(NamedTuple):
    """Which constants are resident, and the windows for the others. No windows: everything is resident."""

    resident: frozenset[Memory]
    windows: int
    window_bytes: int


class Excess(NamedTuple):
    """A command of a recording that needs more than there is: `bytes` of constants at one time."""

    recording: int
    command: int
    bytes: int


class Ranges:
    """The union of uses: for each constant, ranges that do not overlap, in order. Immutable."""

    __slots__ = ("_alignment", "_found", "size")

    def __init__(self, alignment: int, found: Mapping[Memory, tuple[tuple[int, int], ...]] | None = None) -> None:
        self._alignment = alignment
        self._found = {} if found is None else found
        #: bytes that a window for them has
        self.size = sum(self._aligned(end - start) for ranges in self._found.values() for start, end in ranges)

    def adding(self, uses: Iterable[Use]) -> Ranges:
        """The union with further uses."""
        found = dict(self._found)
        for memory, start, end in uses:
            start -= start % self._alignment  # what is aligned in the constant is then aligned in the window
            found[memory] = _united(found.get(memory, ()), start, end)
        return self if found == self._found else Ranges(self._alignment, found)

    def parts(self) -> tuple[WindowRange, ...]:
        """Where each range lies in a window: one behind the other."""
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
    """The segments of a recording, each as long as the window allows. No command needs more than a window."""
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
    """Bytes of a window that holds these uses."""
    return Ranges(alignment).adding(uses).size


def arrange(
    sizes: Mapping[Memory, int], recordings: Sequence[Sequence[Sequence[Use]]], room: int, alignment: int
) -> Arrangement | Excess:
    """How to run these recordings with `room` bytes of device memory, or the command that needs more.

    `sizes`: the bytes that each constant takes in device memory. Constants that many commands bind stay first, then
    small ones: these save most copies for their memory. A second window lets the copies for a segment go on while the
    one before runs.
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
