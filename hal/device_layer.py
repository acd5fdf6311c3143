"""Base class of layers between the front and the device of a driver."""

from dataclasses import replace
from typing import Any

from .backend import BackendBuffer, BackendDevice, BackendExecutable, BackendSemaphore, Bytes, Entry, MemoryUse


class DeviceLayer(BackendDevice):
    """A device around that of a driver. A subclass defines the queue and the recordings; everything else goes to the
    inner device. A layer works between two commands, so it records no loops.
    """

    def __init__(self, inner: BackendDevice) -> None:
        self.info = replace(inner.info, control_flow=False) if inner.info.control_flow else inner.info
        self._inner = inner

    def allocate(self, size: int, use: MemoryUse) -> BackendBuffer:
        return self._inner.allocate(size, use)

    def import_host(self, memory: Bytes) -> BackendBuffer | None:
        return self._inner.import_host(memory)

    def import_buffer(self, handle: Any, offset: int, size: int, writable: bool) -> BackendBuffer:
        return self._inner.import_buffer(handle, offset, size, writable)

    def create_executable(self, format: str, payload: memoryview, entries: tuple[Entry, ...]) -> BackendExecutable:
        return self._inner.create_executable(format, payload, entries)

    @property
    def compiles(self) -> bool:  # type: ignore[override]
        return self._inner.compiles

    def trial_build(self, format: str, payload: memoryview, entries: tuple[Entry, ...], deadline: float) -> float:
        return self._inner.trial_build(format, payload, entries, deadline)

    def create_semaphore(self, initial: int) -> BackendSemaphore:
        return self._inner.create_semaphore(initial)

    @property
    def native(self) -> Any:
        return self._inner.native

    def import_semaphore(self, handle: Any) -> BackendSemaphore:
        return self._inner.import_semaphore(handle)

    def trim(self) -> bool:
        return self._inner.trim()

    def close(self) -> None:
        self._inner.close()
