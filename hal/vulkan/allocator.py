"""Device memory: blocks from the driver, cut into buffers.

A block is one VkDeviceMemory with one VkBuffer over all of it. A buffer is a range of a block, so making one needs no
call of the driver, and the driver's limit on allocations is never reached. Free ranges are sorted and merged; the first
that fits is taken. Small buffers share blocks of BLOCK bytes; a large buffer gets a block of its own size. One empty
block per memory type is kept, so that repeated allocations of one size do not pay for new pages.

A buffer is zeroed when it is made, up to the next multiple of ALIGNMENT: by the host if its block is mapped, otherwise
by the device. Buffers that the device must zero are in `uncleared` until the queue fills them, before the next
submission. A block whose buffers are being filled is not freed (`Block.fills`).

A finalizer may call `free` at any time, even while this thread is in `allocate`: it only appends the range to `_freed`,
and whoever holds the lock reclaims it.
"""

import mmap
import warnings
from bisect import bisect
from collections import deque
from collections.abc import Sequence
from functools import partial
from itertools import count
from typing import Any

import numpy as np

from orchestrion.hal.backend import Bytes, MemoryUse
from orchestrion.hal.errors import DeviceOutOfMemory
from orchestrion.hal.fork import new_lock

from .api import WHOLE_SIZE, Api, Handle
from .budget import Budget
from .buffer import ImportedBuffer, VulkanBuffer
from .heaps import Machine, MemoryChoice, choose
from .physical import PhysicalDevice

BLOCK = 16 << 20
#: alignment of every buffer: the largest that Vulkan allows a device to require of a storage buffer's offset
ALIGNMENT = 256

#: bytes; a device may round the end of a binding up to a multiple of this. Only whole words of host memory are
#: imported, because the bytes after them do not belong to the program
WORD = 4

#: a unique number for each block made in this process
_numbers = count(1)


class Block:
    """A VkBuffer over its own memory, its mapping if there is one, and its free ranges (offset, size), sorted."""

    __slots__ = ("fills", "handle", "host", "memory", "number", "choice", "ranges", "size")

    def __init__(self, memory: Handle, handle: Handle, choice: MemoryChoice, size: int, host: Bytes | None) -> None:
        self.memory = memory
        self.handle = handle
        self.choice = choice
        self.size = size
        self.host = host
        self.number = next(_numbers)
        self.ranges: list[tuple[int, int]] = [(0, size)]
        self.fills = 0  #: submissions in flight that zero a range of it

    @property
    def empty(self) -> bool:
        """Whether no buffer lies in it."""
        return self.ranges == [(0, self.size)]

    @property
    def disposable(self) -> bool:
        """Whether it may be freed."""
        return self.empty and not self.fills

    def fits(self, size: int) -> bool:
        """Whether a buffer of this size may lie here. Small buffers are not put into a large block, which they would
        keep alive.
        """
        return self.size <= BLOCK or 2 * size >= self.size

    def take(self, size: int) -> int | None:
        """Returns the offset of `size` free bytes, or None."""
        for position, (offset, room) in enumerate(self.ranges):
            if room > size:
                self.ranges[position] = (offset + size, room - size)
                return offset
            if room == size:
                del self.ranges[position]
                return offset
        return None

    def give(self, offset: int, size: int) -> None:
        """Return a range, and merge it with its neighbours."""
        ranges = self.ranges
        position = bisect(ranges, (offset, size))
        if position < len(ranges) and ranges[position][0] == offset + size:
            size += ranges.pop(position)[1]
        if position and sum(ranges[position - 1]) == offset:
            position -= 1
            offset, before = ranges.pop(position)
            size += before
        ranges.insert(position, (offset, size))


class Allocator:
    """Makes the buffers of one device."""

    def __init__(self, api: Api, physical: PhysicalDevice, device: Handle, functions: Any) -> None:
        self._api = api
        self._device = device
        self._vk = functions
        self._max_allocation = physical.max_allocation
        unified = physical.machine is Machine.UNIFIED  # otherwise kernels would read imported memory over the bus
        self._imports = unified and "VK_EXT_external_memory_host" in physical.extensions
        self._import_alignment = physical.info.limits.host_import_alignment
        self._binding_alignment = physical.info.limits.min_binding_alignment
        self._choices = choose(physical.memory_types, physical.device_type)
        self._blocks: dict[MemoryChoice, list[Block]] = {choice: [] for row in self._choices.values() for choice in row}
        self._budget = Budget(api, physical.handle, "VK_EXT_memory_budget" in physical.extensions)
        self._name = physical.info.id
        upload_queue = physical.upload_queue or (physical.queue_family, 0)
        self._families = sorted({physical.queue_family, upload_queue[0]})
        #: whether some buffers are not mapped, so the host cannot write them directly
        self.staged = any(not choice.mapped for row in self._choices.values() for choice in row)
        self._freed: deque[VulkanBuffer] = deque()
        self._lock = new_lock()
        self.uncleared: dict[int, VulkanBuffer] = {}  #: by memory id: buffers that the device must zero

    def allocate(self, size: int, use: MemoryUse) -> VulkanBuffer:
        """Returns a buffer of `size` bytes, all zero."""
        padded = padded_size(size)
        with self._lock:
            buffer = self._find(size, use)
        if buffer.block.choice.slow:
            self._warn(buffer, use)
        host = buffer.block.host
        with self._lock:
            if host is None:
                self.uncleared[buffer.memory_id] = buffer
        if host is not None:
            host[buffer.base : buffer.base + padded] = 0
        return buffer

    def allocate_staging(self, size: int) -> VulkanBuffer:
        """Returns mapped memory with undefined contents. The caller writes all of it before anything reads it."""
        with self._lock:
            return self._find(size, MemoryUse.STAGING)

    def begin_fills(self) -> list[VulkanBuffer]:
        """Returns the buffers to zero now. Their blocks are kept until `end_fills`. The front serialises the calls."""
        with self._lock:
            self._reclaim()
            found = list(self.uncleared.values())
            for buffer in found:
                buffer.block.fills += 1
        return found

    def forget_uncleared(self, buffers: Sequence[VulkanBuffer]) -> None:
        """The fills of these buffers are submitted. A memory id may belong to another buffer by now, which stays."""
        with self._lock:
            for buffer in buffers:
                if self.uncleared.get(buffer.memory_id) is buffer:
                    del self.uncleared[buffer.memory_id]

    def end_fills(self, buffers: Sequence[VulkanBuffer]) -> None:
        """The fills of these buffers are over, or were not submitted."""
        with self._lock:
            for buffer in buffers:
                buffer.block.fills -= 1

    def free(self, buffer: VulkanBuffer) -> None:
        self._freed.append(buffer)
        while self._freed and not self._lock.locked():  # its holder, perhaps this thread, reclaims otherwise
            with self._lock:  # unlike after `acquire`, an interrupt cannot leave it locked
                self._reclaim()

    def import_host(self, memory: Bytes) -> ImportedBuffer | None:
        """Returns a buffer over the whole pages around `memory`, or None if the driver refuses, for any reason."""
        alignment = self._import_alignment
        if not self._imports or alignment > mmap.PAGESIZE:  # rounding to more could reach unmapped pages
            return None
        address = memory.ctypes.data
        base = address % alignment
        if base % self._binding_alignment or memory.size == 0 or memory.size % WORD:
            return None
        made = self._import(address - base, -(-(base + memory.size) // alignment) * alignment)
        if made is None:
            return None
        handle, imported = made
        return ImportedBuffer(handle, base, memory, next(_numbers), partial(self._destroy, handle, imported))

    def trim(self) -> bool:
        """Free the blocks without buffers. Returns whether there were any."""
        with self._lock:
            self._reclaim()
            freed = False
            for blocks in self._blocks.values():
                for block in [block for block in blocks if block.disposable]:
                    blocks.remove(block)
                    self._destroy(block.handle, block.memory)
                    freed = True
        return freed

    def close(self) -> None:
        """Free everything. No buffer is in use."""
        with self._lock:
            self._reclaim()
            for blocks in self._blocks.values():
                for block in blocks:
                    self._destroy(block.handle, block.memory)
                blocks.clear()

    def _reclaim(self) -> None:
        """Reclaim the freed ranges. The lock is held."""
        while self._freed:
            buffer = self._freed.popleft()
            block = buffer.block
            block.give(buffer.base, padded_size(buffer.size))
            self.uncleared.pop(buffer.memory_id, None)
            if block.empty:
                self._keep_one(block)

    def _find(self, size: int, use: MemoryUse) -> VulkanBuffer:
        """Returns a new buffer, not zeroed. The lock is held.

        Heaps above their budget are tried last, because the driver may move their memory back and forth.
        """
        self._reclaim()
        errors = []
        for within_budget in (True, False):
            for choice in self._choices[use]:
                try:
                    found = self._take(choice, padded_size(size), within_budget)
                except DeviceOutOfMemory as error:
                    errors.append(str(error))
                    continue
                if found is None:
                    continue
                return VulkanBuffer(self, *found, size, use)
        raise DeviceOutOfMemory("; ".join(dict.fromkeys(errors)) or f"no memory type for {size} bytes ({use.value})")

    def _warn(self, buffer: VulkanBuffer, use: MemoryUse) -> None:
        try:
            warnings.warn(
                f"device {self._name} has no room for {buffer.size} bytes ({use.value}): they lie in host memory, "
                "which the device reads slowly",
                RuntimeWarning,
                2,
            )
        except RuntimeWarning:  # the caller made warnings errors
            self.free(buffer)
            raise

    def _keep_one(self, newest: Block) -> None:
        blocks = self._blocks[newest.choice]
        for block in [block for block in blocks if block.disposable and block is not newest]:
            blocks.remove(block)
            self._destroy(block.handle, block.memory)

    def _take(self, choice: MemoryChoice, size: int, within_budget: bool) -> tuple[Block, int] | None:
        """Returns a range of a block, a new one if necessary; None if a new block would exceed the heap's budget."""
        blocks = self._blocks[choice]
        for block in blocks:
            base = block.take(size) if block.fits(size) else None
            if base is not None:
                return block, base
        for block in [block for block in blocks if block.disposable]:  # too small; free them for the new block
            blocks.remove(block)
            self._destroy(block.handle, block.memory)
        heap = choice.type.heap
        wanted = max(size, min(BLOCK, heap.size // 8 // ALIGNMENT * ALIGNMENT))
        if within_budget:
            self._budget.refresh()
            if not self._budget.has_room(heap, wanted) and size <= min(heap.size, self._max_allocation):
                return None
        block = self._make(choice, wanted)
        blocks.append(block)
        base = block.take(size)
        assert base is not None, "a new block holds what it was made for"
        return block, base

    def _make(self, choice: MemoryChoice, size: int) -> Block:
        heap = choice.type.heap
        limit = min(heap.size, self._max_allocation)
        if size > limit:
            raise DeviceOutOfMemory(f"{size} bytes of device memory asked for, the device's limit is {limit}")
        what = f"{size} bytes of device memory{self._budget.describe(heap)}"
        handle, memory = self._buffer(size, self._api.null), None
        try:
            needs = self._needs(handle)
            index = choice.type.index
            if not needs.memoryTypeBits >> index & 1:
                raise DeviceOutOfMemory(f"{what}: memory type {index} does not hold buffers")
            info = self._api.new("VkMemoryAllocateInfo", allocationSize=needs.size, memoryTypeIndex=index)
            memory = self._api.create(self._vk.vkAllocateMemory, self._device, info, what)
            self._api.check(self._vk.vkBindBufferMemory(self._device, handle, memory, 0), what)
            host = self._map(memory, size) if choice.mapped else None
        except BaseException:
            self._destroy(handle, memory)
            raise
        return Block(memory, handle, choice, size, host)

    def _buffer(self, size: int, chain: Any) -> Handle:
        vk = self._api.vk
        usage = (
            vk.VK_BUFFER_USAGE_STORAGE_BUFFER_BIT
            | vk.VK_BUFFER_USAGE_UNIFORM_BUFFER_BIT
            | vk.VK_BUFFER_USAGE_INDIRECT_BUFFER_BIT
            | vk.VK_BUFFER_USAGE_TRANSFER_SRC_BIT
            | vk.VK_BUFFER_USAGE_TRANSFER_DST_BIT
        )
        shared = self._families if len(self._families) > 1 else []  # both queues use the buffer at any time
        info = self._api.new(
            "VkBufferCreateInfo",
            pNext=chain,
            size=size,
            usage=usage,
            sharingMode=self._api.vk.VK_SHARING_MODE_CONCURRENT if shared else 0,
            queueFamilyIndexCount=len(shared),
            pQueueFamilyIndices=self._api.ffi.new("uint32_t[]", shared),
        )
        return self._api.create(self._vk.vkCreateBuffer, self._device, info, f"a buffer of {size} bytes")

    def _needs(self, handle: Handle) -> Any:
        needs = self._api.ffi.new("VkMemoryRequirements *")
        self._vk.vkGetBufferMemoryRequirements(self._device, handle, needs)
        return needs

    def _map(self, memory: Handle, size: int) -> Bytes:
        address = self._api.ffi.new("void **")
        result = self._vk.vkMapMemory(self._device, memory, 0, WHOLE_SIZE, 0, address)
        self._api.check(result, f"mapping {size} bytes of device memory")
        return np.frombuffer(self._api.ffi.buffer(address[0], size), np.uint8)

    def _import(self, address: int, size: int) -> tuple[Handle, Handle] | None:
        api, kind = self._api, self._api.vk.VK_EXTERNAL_MEMORY_HANDLE_TYPE_HOST_ALLOCATION_BIT_EXT
        pointer = api.ffi.cast("void *", address)
        properties = api.new("VkMemoryHostPointerPropertiesEXT")
        if self._vk.vkGetMemoryHostPointerPropertiesEXT(self._device, kind, pointer, properties):
            return None
        handle = self._buffer(size, api.new("VkExternalMemoryBufferCreateInfo", handleTypes=kind))
        needs = self._needs(handle)
        kinds = properties.memoryTypeBits & needs.memoryTypeBits
        if not kinds or needs.size > size:
            self._destroy(handle, None)
            return None
        info = api.new(
            "VkMemoryAllocateInfo",
            pNext=api.new("VkImportMemoryHostPointerInfoEXT", handleType=kind, pHostPointer=pointer),
            allocationSize=size,
            memoryTypeIndex=(kinds & -kinds).bit_length() - 1,
        )
        memory = api.ffi.new("VkDeviceMemory *")
        if self._vk.vkAllocateMemory(self._device, info, api.null, memory):
            self._destroy(handle, None)
            return None
        if self._vk.vkBindBufferMemory(self._device, handle, memory[0], 0):
            self._destroy(handle, memory[0])
            return None
        return handle, memory[0]

    def _destroy(self, handle: Handle, memory: Handle | None) -> None:
        self._vk.vkDestroyBuffer(self._device, handle, self._api.null)
        if memory is not None:
            self._vk.vkFreeMemory(self._device, memory, self._api.null)


def padded_size(size: int) -> int:
    """Bytes that a buffer takes in its block."""
    return -(-size // ALIGNMENT) * ALIGNMENT
