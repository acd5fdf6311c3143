"""Memory of devices that compute with the CPU: arrays of bytes in the memory of the host."""

from typing import Self

import numpy as np

from .backend import NO_LIMIT, BackendBuffer, Bytes
from .errors import DeviceOutOfMemory

#: bytes of a cache line, to which memory is aligned
ALIGNMENT = 64


class ArrayBuffer(BackendBuffer):
    """A NumPy array of bytes as device memory. `host` is the array; an imported array is used directly."""

    __slots__ = ("host", "size")

    def __init__(self, host: Bytes) -> None:
        self.host: Bytes | None = host
        self.size = host.size

    @classmethod
    def allocate(cls, size: int, limit: int = NO_LIMIT) -> Self:
        """Returns zeroed memory. Raises DeviceOutOfMemory above `limit` bytes, or if the system has no more."""
        if size > limit:
            raise DeviceOutOfMemory(f"allocation of {size} bytes, the device has {limit}")
        try:
            return cls(aligned_zeros(size))
        except (MemoryError, ValueError) as error:
            raise DeviceOutOfMemory(f"allocation of {size} bytes failed: {error}") from error

    def release(self) -> None:
        self.host = None


def aligned_zeros(size: int) -> Bytes:
    """Zeroed bytes that begin at a cache line. Raises MemoryError or ValueError if the system has no more."""
    memory = np.zeros(size + ALIGNMENT - 1, np.uint8)
    start = -memory.ctypes.data % ALIGNMENT
    return memory[start : start + size]
