"""The null device: makes the objects of its sibling files."""

from typing import ClassVar

from orchestrion.hal.backend import BackendDevice, BackendExecutable, Bytes, DeviceInfo, Entry, MemoryUse
from orchestrion.hal.host_buffer import ArrayBuffer
from orchestrion.hal.timeline import SoftSemaphore

from .command_buffer import NullCommandBuffer
from .executable import NullExecutable
from .queue import NullQueue


class NullDevice(BackendDevice):
    queue_class: ClassVar[type[NullQueue]] = NullQueue
    command_buffer_class: ClassVar[type[NullCommandBuffer]] = NullCommandBuffer
    compiles: ClassVar[bool] = False

    def __init__(self, info: DeviceInfo) -> None:
        self.info = info
        self._queue = self.queue_class()
        self.queue = self._queue

    def allocate(self, size: int, use: MemoryUse) -> ArrayBuffer:
        return ArrayBuffer.allocate(size)

    def import_host(self, memory: Bytes) -> ArrayBuffer:
        return ArrayBuffer(memory)

    def create_executable(self, format: str, payload: memoryview, entries: tuple[Entry, ...]) -> BackendExecutable:
        return NullExecutable(entries)

    def create_command_buffer(self, slots: int) -> NullCommandBuffer:
        return self.command_buffer_class()

    def create_semaphore(self, initial: int) -> SoftSemaphore:
        return SoftSemaphore(initial)

    def close(self) -> None:
        self._queue.close()
