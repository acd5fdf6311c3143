"""Device memory for arguments and results whose shapes grow from call to call, on devices with indirect dispatch.

A `GrowableBuffer` holds one argument, or one result that the program allocates. A tensor lies contiguously at its
start. Its size is that of the largest shape that the signature declares, if that is affordable (`capacity.py`).
Otherwise it is the size of the call that needs it, and at least twice the size before. So most calls with other shapes
allocate nothing and use the same buffers, for which the driver has encoded recordings already.
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


class GrowableBuffer:
    """Memory for one tensor. `declared`: bytes of the largest declared shape, None if the signature declares none."""

    __slots__ = ("_buffer", "_declared", "_use")

    def __init__(self, declared: int | None, use: MemoryUse) -> None:
        self._declared = declared
        self._use = use
        self._buffer: Buffer | None = None

    def find(self, size: int) -> Buffer | None:
        """The buffer, if it has at least `size` bytes."""
        buffer = self._buffer
        return buffer if buffer is not None and buffer.size >= size else None

    def grow(self, device: Device, size: int) -> Buffer:
        """Release the buffer and allocate one of at least `size` bytes. `OutOfMemory` if `size` bytes are too many."""
        before, self._buffer = 0 if self._buffer is None else self._buffer.size, None
        declared = self._declared
        preferred = [max(size, 2 * before)]
        if declared is not None and declared >= size and affordable(device, declared):
            preferred.insert(0, declared)
        for each in preferred:
            room = device.allocator.room
            if room is not None and each > room:  # no other memory is released for bytes that the call does not need
                continue
            with suppress(OutOfMemory):
                self._buffer = device.allocator.allocate(each, self._use)
                return self._buffer
        self._buffer = device.allocator.allocate(size, self._use)
        return self._buffer

    def release(self) -> bool:
        """Release the buffer. True if there was one."""
        found, self._buffer = self._buffer is not None, None
        return found


class ResultBuffers:
    """Buffers for the results that a call allocates, in the order of its allocations.

    The next call gets the same buffers, since callers get copies of the results.
    """

    __slots__ = ("_buffers", "_next", "has_grown")

    def __init__(self, values: Sequence[Value]) -> None:
        self._buffers = [GrowableBuffer(declared_bytes(value), MemoryUse.OUTPUT) for value in values]
        self._next = 0
        self.has_grown = False  #: whether a buffer was allocated since the owner set this to False

    def begin(self) -> ResultBuffers:
        """Start a call: its first allocation gets the first buffer."""
        self._next = 0
        return self

    def find(self, size: int) -> Buffer | None:
        """The buffer for the next result, if it has at least `size` bytes."""
        number = self._next
        return self._buffers[number].find(size) if number < len(self._buffers) else None

    def take(self, device: Device, size: int) -> Buffer:
        """The buffer for the next result, grown to `size` bytes if needed. `OutOfMemory` as `GrowableBuffer.grow`."""
        if self._next >= len(self._buffers):
            return device.allocator.allocate(size, MemoryUse.OUTPUT)
        growable = self._buffers[self._next]
        found = growable.find(size)
        if found is None:
            found, self.has_grown = growable.grow(device, size), True
        self._next += 1
        return found

    def release(self) -> bool:
        """Release all buffers. True if there were any."""
        return any([growable.release() for growable in self._buffers])


def declared_bytes(value: Value) -> int | None:
    """The bytes of the largest shape that a signature allows; None if one of its symbols has no declared bound."""
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
