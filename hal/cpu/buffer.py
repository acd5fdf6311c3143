"""Memory of the CPU: arrays of bytes, 64-byte aligned. Imported host memory is used where it is."""

import numpy as np

from orchestrion.hal.backend import BackendBuffer, Bytes
from orchestrion.hal.errors import DeviceOutOfMemory

ALIGNMENT = 64


class CpuBuffer(BackendBuffer):
    """`host` is the memory, `address` its first byte."""

    __slots__ = ("address", "host", "size")

    def __init__(self, host: Bytes) -> None:
        self.host: Bytes | None = host
        self.size = host.size
        self.address: int = host.ctypes.data

    @classmethod
    def allocate(cls, size: int, limit: int) -> "CpuBuffer":
        """Returns zeroed memory. Raises DeviceOutOfMemory above `limit` bytes, or if the system has no more."""
        if size > limit:
            raise DeviceOutOfMemory(f"allocation of {size} bytes, the device has {limit}")
        try:
            memory = np.zeros(size + ALIGNMENT - 1, np.uint8)
        except (MemoryError, ValueError) as error:
            raise DeviceOutOfMemory(f"allocation of {size} bytes failed: {error}") from error
        start = -memory.ctypes.data % ALIGNMENT
        return cls(memory[start : start + size])

    def release(self) -> None:
        self.host = None
