"""The CPU as a device: makes the objects of its sibling files."""

from dataclasses import replace
from typing import ClassVar

from orchestrion.hal.backend import BackendDevice, BackendExecutable, Bytes, DeviceInfo, Entry, MemoryUse
from orchestrion.hal.errors import Unsupported
from orchestrion.hal.timeline import SoftSemaphore

from .buffer import CpuBuffer
from .command_buffer import CpuCommandBuffer
from .driver import FORMAT, LIBRARY_FORMAT
from .executable import CpuExecutable
from .pool import shared_pool
from .processor import architecture
from .queue import CpuQueue
from .thread_count import thread_count, thread_note


class CpuDevice(BackendDevice):
    queue_class: ClassVar[type[CpuQueue]] = CpuQueue
    command_buffer_class: ClassVar[type[CpuCommandBuffer]] = CpuCommandBuffer
    compiles: ClassVar[bool] = False
    indirect_dispatch: ClassVar[bool] = True

    def __init__(self, info: DeviceInfo, threads: int | None = None) -> None:
        """`threads`: the most threads that run one dispatch, the caller's included; `thread_count()` by default."""
        self._architecture = architecture()
        self._threads = thread_count() if threads is None else threads
        self.info = replace(info, notes=(thread_note(self._threads),))
        self._pool = shared_pool(self._threads)
        self.queue = self._queue = self.queue_class()

    def allocate(self, size: int, use: MemoryUse) -> CpuBuffer:
        make = CpuBuffer.allocate_pages if use is MemoryUse.CONSTANT else CpuBuffer.allocate
        return make(size, self.info.memory_bytes)

    def import_host(self, memory: Bytes) -> CpuBuffer:
        return CpuBuffer(memory)

    def create_executable(self, format: str, payload: memoryview, entries: tuple[Entry, ...]) -> BackendExecutable:
        if format == FORMAT:
            return CpuExecutable(payload, entries, self._architecture)
        if format == LIBRARY_FORMAT:
            from .library_calls import LibraryExecutable  # few programs have one

            return LibraryExecutable(payload, entries)
        raise Unsupported(f"format {format}, this device runs {FORMAT} and {LIBRARY_FORMAT}")

    def create_command_buffer(self, slots: int) -> CpuCommandBuffer:
        return self.command_buffer_class(self._pool, self._threads, slots)

    def create_semaphore(self, initial: int) -> SoftSemaphore:
        return SoftSemaphore(initial)

    def close(self) -> None:
        self._queue.close()
