"""Memory of the null device: a NumPy array of bytes."""

import numpy as np

from orchestrion.hal.backend import BackendBuffer, Bytes
from orchestrion.hal.errors import DeviceOutOfMemory


class NullBuffer(BackendBuffer):
    """A NumPy array as device memory. `host` is the array; an imported array is used directly."""

    __slots__ = ("host", "size")

    def __init__(self, host: Bytes) -> None:
        self.host: Bytes | None = host
        self.size = host.size

    @classmethod
    def allocate(cls, size: int) -> "NullBuffer":
        try:
            return cls(np.zeros(size, np.uint8))
        except (MemoryError, ValueError) as error:
            raise DeviceOutOfMemory(f"allocation of {size} bytes failed: {error}") from error

    def release(self) -> None:
        self.host = None
