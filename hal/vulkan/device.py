"""An open device: the VkDevice, its queue, memory, layouts and caches.

Closing it releases everything. The front has released its objects before, and waited for all work.
"""

from __future__ import annotations

import weakref
from typing import Any, ClassVar, NamedTuple

from orchestrion.hal.backend import BackendDevice, Bytes, Entry, MemoryUse
from orchestrion.hal.cache import Cache
from orchestrion.hal.fork import new_lock

from .allocator import Allocator
from .api import Api, Handle
from .buffer import BorrowedBuffer, ImportedBuffer, VulkanBuffer
from .command_buffer import VulkanCommandBuffer
from .executable import Layout, VulkanExecutable, set_layout
from .physical import PhysicalDevice, feature_chain
from .queue import VulkanQueue
from .recording import DESCRIPTOR_STORAGE_BUFFER_DYNAMIC, DESCRIPTOR_UNIFORM_BUFFER_DYNAMIC
from .semaphore import VulkanSemaphore
from .upload_queue import UploadQueue


class VulkanHandles(NamedTuple):
    """The device's Vulkan objects: cffi handles, as the package `vulkan` takes. See `Device.native`."""

    physical_device: Handle
    device: Handle
    queue: Handle
    queue_family: int


class VulkanDevice(BackendDevice):
    """An open device. `api` is the loader and `vk` this device's functions. Other files use the attributes without
    underscore.
    """

    indirect_dispatch: ClassVar[bool] = True
    queue_class: ClassVar[type[VulkanQueue]] = VulkanQueue
    command_buffer_class: ClassVar[type[VulkanCommandBuffer]] = VulkanCommandBuffer

    def __init__(self, api: Api, physical: PhysicalDevice) -> None:
        self.api = api
        self.physical = physical
        self.info = physical.info
        self.queue_family = physical.queue_family
        self.handle = self._create(api, physical)
        self.vk: Any = api.device_functions(self.handle, physical.suffix, physical.extensions)
        self.cache = Cache("vulkan")
        self.begin_info = api.new("VkCommandBufferBeginInfo", flags=api.vk.VK_COMMAND_BUFFER_USAGE_SIMULTANEOUS_USE_BIT)
        self.allocator = Allocator(api, physical, self.handle, self.vk)
        queue = self._queue = self.queue_class(self)
        if self.allocator.staged and physical.upload_queue is not None:
            queue.transfers.uploader = UploadQueue(self, *physical.upload_queue)
        self.queue = queue
        self.timeline = queue.timeline
        self.tickets = queue.tickets
        self._close_queue = queue.close
        #: the command buffers of the front, for `trim`
        self._command_buffers: weakref.WeakSet[VulkanCommandBuffer] = weakref.WeakSet()
        self._command_buffers_lock = new_lock()
        self._layouts: dict[tuple[int, bool], Layout] = {}
        #: the VkDescriptorSetLayout of all entries' parameters
        uniform = physical.uniform_parameters
        self.parameter_kind = DESCRIPTOR_UNIFORM_BUFFER_DYNAMIC if uniform else DESCRIPTOR_STORAGE_BUFFER_DYNAMIC
        self.parameter_set = set_layout(api, self.handle, self.vk, self.parameter_kind, 1)
        self._layouts_lock = new_lock()

    @staticmethod
    def _create(api: Api, physical: PhysicalDevice) -> Handle:
        wanted = {physical.queue_family: 1}  # family -> queues
        if physical.upload_queue is not None:
            family, index = physical.upload_queue
            wanted[family] = index + 1
        queues = api.ffi.new("VkDeviceQueueCreateInfo[]", len(wanted))
        priorities = api.ffi.new("float[2]", [1.0, 1.0])
        for row, (family, count) in zip(queues, wanted.items(), strict=True):
            row.sType = api.vk.VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO
            row.queueFamilyIndex, row.queueCount, row.pQueuePriorities = family, count, priorities
        info = api.new(
            "VkDeviceCreateInfo",
            pNext=feature_chain(api, physical.enabled),
            queueCreateInfoCount=len(wanted),
            pQueueCreateInfos=queues,
            enabledExtensionCount=len(physical.extensions),
            ppEnabledExtensionNames=api.strings(list(physical.extensions)),
        )
        what = f"opening {physical.info.name}"
        return api.create(api.lib.vkCreateDevice, physical.handle, info, what)

    def allocate(self, size: int, use: MemoryUse) -> VulkanBuffer:
        return self.allocator.allocate(size, use)

    def import_host(self, memory: Bytes) -> ImportedBuffer | None:
        return self.allocator.import_host(memory)

    def import_buffer(self, handle: Any, offset: int, size: int, writable: bool) -> BorrowedBuffer:
        return BorrowedBuffer(self.api.borrowed("VkBuffer", handle), offset, size)

    def create_executable(self, format: str, payload: memoryview, entries: tuple[Entry, ...]) -> VulkanExecutable:
        return VulkanExecutable(self, payload, entries)

    def trial_build(self, format: str, payload: memoryview, entries: tuple[Entry, ...], deadline: float) -> float:
        from .trial_build import trial_build  # only untrusted modules need it

        return trial_build(self, payload, entries, deadline)

    def create_command_buffer(self, slots: int) -> VulkanCommandBuffer:
        commands = self.command_buffer_class(self)
        with self._command_buffers_lock:
            self._command_buffers.add(commands)
        return commands

    def create_semaphore(self, initial: int) -> VulkanSemaphore:
        return VulkanSemaphore.create(self.api, self.handle, self.vk, initial)

    def import_semaphore(self, handle: Any) -> VulkanSemaphore:
        return VulkanSemaphore.borrow(self.api, self.handle, self.vk, handle)

    @property
    def native(self) -> VulkanHandles:
        physical = self.physical
        return VulkanHandles(physical.handle, self.handle, self._queue.handle, physical.queue_family)

    def layout(self, bindings: int, parameters: bool) -> Layout:
        """The single layout of entries with this number of bindings, with or without parameters."""
        with self._layouts_lock:
            key = bindings, parameters
            if key not in self._layouts:
                second = self.parameter_set if parameters else None
                self._layouts[key] = Layout(self.api, self.handle, self.vk, bindings, second)
            return self._layouts[key]

    def trim(self) -> bool:
        with self._command_buffers_lock:
            kept = [*self._command_buffers]
        trimmed = [commands.trim() for commands in kept]
        return self.allocator.trim() or any(trimmed)

    def close(self) -> None:
        self._close_queue()
        for layout in self._layouts.values():
            layout.release()
        self.vk.vkDestroyDescriptorSetLayout(self.handle, self.parameter_set, self.api.null)
        self.allocator.close()
        self.vk.vkDestroyDevice(self.handle, self.api.null)
