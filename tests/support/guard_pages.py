"""Memory of the CPU device between two pages that nobody may touch: an access beside it ends the process.

Within `guard_pages(at_end)` every allocation of the device ends at such a page, or begins at one. The front rounds
sizes up to 16 bytes. Memory is unmapped when it is released, so that a later access is caught, too.
"""

import ctypes
import mmap
from collections.abc import Iterator
from contextlib import contextmanager
from unittest.mock import patch

import numpy as np

from orchestrion.hal.cpu.buffer import CpuBuffer
from orchestrion.hal.cpu.code_memory import ANONYMOUS, READ_WRITE, libc, map_memory
from orchestrion.hal.errors import DeviceOutOfMemory

PAGE = mmap.PAGESIZE
PROT_NONE = 0


class GuardedMemory:
    """`size` bytes between two guard pages, next to the second one if `at_end`."""

    __slots__ = ("_length", "_start", "view")

    def __init__(self, size: int, at_end: bool) -> None:
        inner = -(-size // PAGE) * PAGE
        self._length = inner + 2 * PAGE
        self._start = map_memory(self._length, READ_WRITE, ANONYMOUS)
        for guard in (self._start, self._start + PAGE + inner):
            assert libc.mprotect(guard, PAGE, PROT_NONE) == 0
        first = self._start + PAGE + (inner - size if at_end else 0)
        self.view = np.ctypeslib.as_array((ctypes.c_uint8 * size).from_address(first))

    def release(self) -> None:
        libc.munmap(self._start, self._length)


class GuardedBuffer(CpuBuffer):
    """Guarded memory as a buffer."""

    __slots__ = ("_memory",)

    def __init__(self, size: int, at_end: bool) -> None:
        self._memory = GuardedMemory(size, at_end)
        super().__init__(self._memory.view)

    def release(self) -> None:
        super().release()
        self._memory.release()


@contextmanager
def guard_pages(at_end: bool) -> Iterator[list[GuardedBuffer]]:
    """Returns the list of the buffers made within it."""
    made: list[GuardedBuffer] = []

    def allocate(cls: type[CpuBuffer], size: int, limit: int) -> CpuBuffer:
        if size > limit:
            raise DeviceOutOfMemory(f"allocation of {size} bytes, the device has {limit}")
        made.append(GuardedBuffer(size, at_end))
        return made[-1]

    with patch.object(CpuBuffer, "allocate", classmethod(allocate)):
        yield made
