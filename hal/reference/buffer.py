"""Memory of the reference device: NumPy arrays of bytes, 64-byte aligned. Imported host memory is used directly."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from orchestrion.hal.backend import BackendBuffer, Bytes
from orchestrion.hal.errors import DeviceOutOfMemory

if TYPE_CHECKING:
    from .command_buffer import ReferenceCommandBuffer

ALIGNMENT = 64


class ReferenceBuffer(BackendBuffer):
    """Device memory; `host` is the array. `users` are the recordings that keep views of it from their last run."""

    __slots__ = ("host", "size", "users")

    def __init__(self, host: Bytes) -> None:
        self.host: Bytes | None = host
        self.size = host.size
        self.users: set[ReferenceCommandBuffer] = set()

    @classmethod
    def allocate(cls, size: int, limit: int) -> ReferenceBuffer:
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
        for user in tuple(self.users):
            user.unbind()
        del self.host
