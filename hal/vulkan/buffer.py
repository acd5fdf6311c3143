"""Buffers: ranges of blocks of device memory, imported host memory, and ranges of the caller's own buffers.

A buffer owns no Vulkan object: `handle` is the VkBuffer of its block, and `base` its first byte in it. `memory_id`
identifies the same bytes while the block lives, and is never reused, so recordings are cached by it.
"""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING, Any

from orchestrion.hal.backend import BackendBuffer, Bytes, MemoryUse, NativeRange

if TYPE_CHECKING:
    from .allocator import Allocator, Block
    from .api import Handle
    from .transfer import Readback


#: memory ids of borrowed buffers, each used once; those of blocks are positive
_memory_ids = count(-1, -1)


class VulkanBuffer(BackendBuffer):
    """`size` bytes of `block` from byte `base` on."""

    padded = True  #: whether the last word of the buffer belongs to it, even if the buffer ends within that word

    __slots__ = ("_allocator", "base", "block", "handle", "host", "host_cached", "readback", "memory_id", "size", "use")

    def __init__(self, allocator: Allocator, block: Block, base: int, size: int, use: MemoryUse) -> None:
        self._allocator = allocator
        self.block = block
        self.handle: Handle = block.handle
        self.base = base
        self.size = size
        self.use = use
        self.memory_id = block.number << 64 | base
        self.readback: Readback | None = None  #: staging memory for prefetched results (`transfer.py`)
        self.host: Bytes | None = None if block.host is None else block.host[base : base + size]
        self.host_cached = block.choice.cached

    @property
    def native(self) -> NativeRange:
        return NativeRange(self.handle, self.base, self.size)

    def release(self) -> None:
        readback, self.readback = self.readback, None
        if readback is not None:
            readback.memory.release()
        self._allocator.free(self)


class ImportedBuffer(BackendBuffer):
    """Host memory as the device accesses it. `memory` is kept alive and never written. It ends with a whole word."""

    padded = True

    __slots__ = ("_destroy", "base", "handle", "host", "memory_id", "size")

    def __init__(self, handle: Handle, base: int, memory: Bytes, number: int, destroy: Any) -> None:
        self.handle = handle
        self.base = base
        self.size = memory.size
        self.memory_id = number << 64 | base
        self.host: Bytes | None = memory
        self._destroy = destroy

    @property
    def native(self) -> NativeRange:
        return NativeRange(self.handle, self.base, self.size)

    def release(self) -> None:
        self._destroy()
        self.host = None


class BorrowedBuffer(BackendBuffer):
    """`size` bytes from byte `base` on of the caller's VkBuffer. The caller keeps it and its memory until this is
    released.
    """

    padded = False

    __slots__ = ("base", "handle", "host", "memory_id", "size")

    def __init__(self, handle: Handle, base: int, size: int) -> None:
        self.handle = handle
        self.base = base
        self.size = size
        self.memory_id = next(_memory_ids)
        self.host: Bytes | None = None

    @property
    def native(self) -> NativeRange:
        return NativeRange(self.handle, self.base, self.size)

    def release(self) -> None:
        """Nothing to release: the caller owns the VkBuffer."""
