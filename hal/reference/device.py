"""The reference device: makes the objects of its sibling files."""

from hashlib import sha256
from typing import ClassVar
from weakref import WeakValueDictionary

from orchestrion.hal.backend import BackendDevice, Bytes, DeviceInfo, Entry, MemoryUse
from orchestrion.hal.errors import Unsupported
from orchestrion.hal.timeline import SoftSemaphore
from orchestrion.schema.tensor_bytecode import FORMAT

from .buffer import ReferenceBuffer
from .command_buffer import ReferenceCommandBuffer
from .executable import Code, ReferenceExecutable
from .interrupt import Interrupt
from .queue import ReferenceQueue


class ReferenceDevice(BackendDevice):
    queue_class: ClassVar[type[ReferenceQueue]] = ReferenceQueue
    command_buffer_class: ClassVar[type[ReferenceCommandBuffer]] = ReferenceCommandBuffer
    compiles: ClassVar[bool] = False

    def __init__(self, info: DeviceInfo) -> None:
        self.info = info
        self._interrupt = Interrupt()
        self._codes: WeakValueDictionary[bytes, Code] = WeakValueDictionary()
        self.queue = self._queue = self.queue_class(self._interrupt)

    def allocate(self, size: int, use: MemoryUse) -> ReferenceBuffer:
        return ReferenceBuffer.allocate(size, self.info.memory_bytes)

    def import_host(self, memory: Bytes) -> ReferenceBuffer:
        return ReferenceBuffer(memory)

    def create_executable(self, format: str, payload: memoryview, entries: tuple[Entry, ...]) -> ReferenceExecutable:
        if format != FORMAT:
            raise Unsupported(f"format {format}, this device runs {FORMAT}")
        digest = sha256(payload).digest()
        code = self._codes.get(digest)
        if code is None:
            code = self._codes[digest] = Code(payload, self._interrupt.poll)
        return ReferenceExecutable(code, entries)

    def create_command_buffer(self, slots: int) -> ReferenceCommandBuffer:
        return self.command_buffer_class(self.info.memory_bytes, self._interrupt.poll)

    def create_semaphore(self, initial: int) -> SoftSemaphore:
        return SoftSemaphore(initial)

    def close(self) -> None:
        self._queue.close()
