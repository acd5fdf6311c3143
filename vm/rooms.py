"""Device memory that serves arguments and results of growing shapes, on devices with indirect dispatch.

A `Room` is memory for one argument, or for one result that the program asks memory for. It has room for the greatest
shape that the signature declares, if that is affordable (`capacity.py`), else for the shape of the call, and at least
twice what it had before once a call outgrows that. A tensor lies at its start, contiguous. So most calls of other sizes
allocate nothing, and find the same buffers, for which recordings are encoded already.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from orchestrion.hal.backend import MemoryUse
from orchestrion.hal.errors import OutOfMemory

from .capacity import affordable
from .size_expressions import read_size

if TYPE_CHECKING:
    from orchestrion.hal.buffer import Buffer
    from orchestrion.hal.device import Device

    from .exports import Value


class Room:
    """Memory for one tensor. `declared`: bytes of the greatest shape, None if the signature does not say one."""

    __slots__ = ("_buffer", "_declared", "_use")

    def __init__(self, declared: int | None, use: MemoryUse) -> None:
        self._declared = declared
        self._use = use
        self._buffer: Buffer | None = None

    def find(self, size: int) -> Buffer | None:
        """The memory, if it has room for so many bytes."""
        buffer = self._buffer
        return buffer if buffer is not None and buffer.size >= size else None

    def make(self, device: Device, size: int) -> Buffer:
        """Memory of at least so many bytes, in place of what there is. `OutOfMemory` when there is none even of these.

        What was there before is let go of first.
        """
        before, self._buffer = 0 if self._buffer is None else self._buffer.size, None
        declared = self._declared
        wanted = [max(size, 2 * before), size]
        if declared is not None and declared >= size and affordable(device, declared):
            wanted.insert(0, declared)
        for each in wanted[:-1]:
            room = device.allocator.room
            if room is not None and each > room:  # nobody shall give up memory for what is not needed
                continue
            with suppress(OutOfMemory):
                self._buffer = device.allocator.allocate(each, self._use)
                return self._buffer
        self._buffer = device.allocator.allocate(size, self._use)
        return self._buffer

    def drop(self) -> bool:
        """Let go of the memory; whether there was any."""
        found, self._buffer = self._buffer is not None, None
        return found


class ResultRooms:
    """Rooms for the results that a call allocates, in the order in which it asks. The next call gives them again: a
    caller gets copies of what is in them.
    """

    __slots__ = ("_next", "_rooms", "changed")

    def __init__(self, values: Sequence[Value]) -> None:
        self._rooms = [Room(declared_bytes(value), MemoryUse.OUTPUT) for value in values]
        self._next = 0
        self.changed = False  #: whether memory was made since someone set this to False

    def begin(self) -> ResultRooms:
        """Another call starts."""
        self._next = 0
        return self

    def find(self, size: int) -> Buffer | None:
        """Memory for the next result; None when it has to be made."""
        number = self._next
        return self._rooms[number].find(size) if number < len(self._rooms) else None

    def take(self, device: Device, size: int) -> Buffer:
        """As `find`, made if it has to be, and the turn of the result behind. `OutOfMemory` as `Room.make`."""
        if self._next >= len(self._rooms):
            return device.allocator.allocate(size, MemoryUse.OUTPUT)
        room = self._rooms[self._next]
        found = room.find(size)
        if found is None:
            found, self.changed = room.make(device, size), True
        self._next += 1
        return found

    def drop(self) -> bool:
        """Let go of all memory; whether there was any."""
        return any([room.drop() for room in self._rooms])


def declared_bytes(value: Value) -> int | None:
    """Of the greatest shape that a signature allows; None if it declares no bound for a symbol of it."""
    size = value.dtype.itemsize
    texts = iter(value.expressions)
    for dim in value.shape:
        if dim >= 0:
            size *= dim
            continue
        expression = read_size(next(texts))
        greatest = {} if expression is None else {name: most for name, most in expression.symbols.items() if most}
        most = None if expression is None else expression.value(greatest)
        if most is None or most < 0:
            return None
        size *= most
    return size
