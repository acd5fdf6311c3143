"""Buffers: ranges of blocks of device memory, or host memory that a device imports.

A buffer owns no Vulkan object of its own: `handle` is the VkBuffer of its block and `base` its first byte in it.
`place` names the same bytes for as long as the block lives, and no other bytes ever, so recordings may be
cached by it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from orchestrion.hal.backend import BackendBuffer, Bytes, MemoryUse

if TYPE_CHECKING:
    from .allocator import Allocator, Block
    from .api import Handle
    from .transfer import Mirror


class VulkanBuffer(BackendBuffer):
    """`size` bytes of `block` from `base` on."""

    __slots__ = ("_allocator", "base", "block", "handle", "host", "host_cached", "mirror", "place", "size", "use")

    def __init__(self, allocator: Allocator, block: Block, base: int, size: int, use: MemoryUse) -> None:
        self._allocator = allocator
        self.block = block
        self.handle: Handle = block.handle
        self.base = base
        self.size = size
        self.use = use
        self.place = block.number << 64 | base
        self.mirror: Mirror | None = None  #: staging memory that results are read ahead into (`transfer.py`)
        self.host: Bytes | None = None if block.host is None else block.host[base : base + size]
        self.host_cached = block.place.cached

    def release(self) -> None:
        mirror, self.mirror = self.mirror, None
        if mirror is not None:
            mirror.memory.release()
        self._allocator.free(self)


class ImportedBuffer(BackendBuffer):
    """Host memory as a device sees it; `memory` is kept alive and never written."""

    __slots__ = ("_destroy", "base", "handle", "host", "place", "size")

    def __init__(self, handle: Handle, base: int, memory: Bytes, number: int, destroy: Any) -> None:
        self.handle = handle
        self.base = base
        self.size = memory.size
        self.place = number << 64 | base
        self.host: Bytes | None = memory
        self._destroy = destroy

    def release(self) -> None:
        self._destroy()
        self.host = None
