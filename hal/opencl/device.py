"""An open OpenCL device: a context, an in-order queue, and the objects of the sibling files.

`heaps.py` chooses the kind of memory of a buffer.
"""

from typing import Any, ClassVar
from weakref import WeakSet

import pyopencl as cl
from pyopencl.characterize import has_src_build_cache

from orchestrion.hal.backend import BackendBuffer, BackendDevice, Bytes, DeviceInfo, Entry, MemoryUse
from orchestrion.hal.cache import Cache
from orchestrion.hal.errors import DeviceOutOfMemory
from orchestrion.hal.fork import new_lock
from orchestrion.hal.timeline import SoftSemaphore

from .api import Api, why_no_command_buffers
from .buffer import BorrowedBuffer, DeviceBuffer, ImportedBuffer, SharedBuffer
from .command_buffer import OpenCLCommandBuffer
from .driver import machine_of_device
from .event import EventSemaphore, OpenCLHandles
from .executable import OpenCLExecutable
from .failures import translate
from .heaps import KINDS, Kind, Machine
from .launches import Launch, Launcher, compiles_at_launch
from .queue import OpenCLQueue


class OpenCLDevice(BackendDevice):
    queue_class: ClassVar[type[OpenCLQueue]] = OpenCLQueue
    queue_properties: ClassVar[Any] = 0

    def __init__(
        self,
        info: DeviceInfo,
        device: cl.Device,
        machine: Machine | None = None,
        recorded: bool | None = None,
        builds_kept: bool | None = None,
    ) -> None:
        """`machine`: overrides how the device shares memory with the host. `recorded` and `builds_kept` set to False
        disable command buffers, and the driver's own cache of built programs on disk.
        """
        self.info = info
        self._device = device
        self._kinds = KINDS[machine_of_device(device) if machine is None else machine]
        self._recorded = not why_no_command_buffers(device) if recorded is None else recorded
        try:
            self._context = cl.Context([device])
            self._handle = cl.CommandQueue(self._context, device, self.queue_properties)
        except cl.Error as error:
            raise translate(f"device {info.id} cannot be opened", error) from error
        self._api = Api(device, self._recorded)
        #: the command buffers of the front, for `trim`
        self._command_buffers: WeakSet[OpenCLCommandBuffer] = WeakSet()
        self._command_buffers_lock = new_lock()
        kept = bool(has_src_build_cache(device)) if builds_kept is None else builds_kept
        self._cache = None if kept else Cache("opencl")
        self._launcher = Launcher(self._api, self._context, device, info.index) if compiles_at_launch(device) else None
        self._queue = self.queue_class(self._api, self._handle)
        self._queue.launcher = self._launcher
        self.queue = self._queue

    def allocate(self, size: int, use: MemoryUse) -> BackendBuffer:
        most = self.info.limits.max_binding_length
        if size > most:
            raise DeviceOutOfMemory(f"allocation of {size} bytes exceeds the device's largest, {most} bytes")
        try:
            kind = self._kinds[use]
            if kind is Kind.SHARED:
                return SharedBuffer(self._context, size)
            return DeviceBuffer(self._context, self._handle, size, kind is Kind.HOST)
        except cl.Error as error:
            raise translate(f"allocation of {size} bytes", error) from error

    def import_host(self, memory: Bytes) -> BackendBuffer | None:
        if not self._device.host_unified_memory or memory.size > self.info.limits.max_binding_length:
            return None
        try:
            return ImportedBuffer(self._context, memory)
        except cl.Error as error:
            raise translate(f"import of {memory.size} bytes of host memory", error) from error

    def import_buffer(self, handle: Any, offset: int, size: int, writable: bool) -> BorrowedBuffer:
        return BorrowedBuffer.over(self._context, handle, offset, size, writable)

    def create_executable(self, format: str, payload: memoryview, entries: tuple[Entry, ...]) -> OpenCLExecutable:
        if self._launcher is None:
            return self.build(payload, entries)
        with self._launcher.building(payload, entries):
            return self.build(payload, entries)

    def launch_here(self, launch: Launch) -> None:
        """Launch, so that the driver compiles its code, in this process."""
        if self._launcher is not None:
            self._launcher.launch_here(launch)

    def build(self, payload: memoryview, entries: tuple[Entry, ...]) -> OpenCLExecutable:
        """Build a program in this process."""
        return OpenCLExecutable(self._api, self._context, self._device, self._cache, payload, entries)

    def create_command_buffer(self, slots: int) -> OpenCLCommandBuffer:
        commands = OpenCLCommandBuffer(self._api, self._handle.int_ptr, self._recorded)
        with self._command_buffers_lock:
            self._command_buffers.add(commands)
        return commands

    def create_semaphore(self, initial: int) -> SoftSemaphore:
        return SoftSemaphore(initial)

    def import_semaphore(self, handle: Any) -> EventSemaphore:
        return EventSemaphore(handle)

    @property
    def native(self) -> OpenCLHandles:
        return OpenCLHandles(self._context, self._device, self._handle)

    def trim(self) -> bool:
        with self._command_buffers_lock:
            kept = [*self._command_buffers]
        trimmed = [commands.trim() for commands in kept]
        return any(trimmed)

    def close(self) -> None:
        try:
            self._queue.close()
        finally:
            del self._handle, self._context
