"""A driver around another one, whose classes tests derive from: to seed bugs, and to vary what is right.

- Unchanged it is a driver like the one inside, and passes the conformance suite.
- Commands between two barriers run in reverse: a device may, so a case that relies on their order, or a barrier that is
  lost, is found on drivers that run one command after the other.
- With `mapped=False` the host sees no memory: reads and writes go through the queue, as on a discrete device.
- Optional parts of the interface are not handed on: no timestamps, no loops and branches, no indirect dispatch. So it
  is a driver of the least interface, which the defaults complete.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, ClassVar, NamedTuple

from orchestrion.hal.backend import (
    BackendBuffer,
    BackendCommandBuffer,
    BackendDevice,
    BackendDriver,
    BackendExecutable,
    BackendQueue,
    BackendSemaphore,
    BackendWork,
    Binding,
    Bytes,
    DeviceInfo,
    Entry,
    MemoryUse,
    Point,
    Watcher,
)
from orchestrion.hal.errors import HalError


class WrappedBuffer(BackendBuffer):
    def __init__(self, inner: BackendBuffer, mapped: bool) -> None:
        self.inner = inner
        self.size = inner.size
        self.host = inner.host if mapped else None
        self.host_cached = inner.host_cached

    def release(self) -> None:
        self.host = None
        self.inner.release()


class WrappedSemaphore(BackendSemaphore):
    def __init__(self, inner: BackendSemaphore) -> None:
        self.inner = inner

    @property
    def native(self) -> Any:
        return self.inner.native

    def value(self) -> int:
        return self.inner.value()

    def signal(self, value: int) -> None:
        self.inner.signal(value)

    def wait(self, value: int, timeout: float | None) -> bool:
        return self.inner.wait(value, timeout)

    def fail(self, value: int, error: HalError) -> None:
        self.inner.fail(value, error)

    def release(self) -> None:
        self.inner.release()


class Dispatch(NamedTuple):
    executable: BackendExecutable
    entry: int
    groups: tuple[int, int, int]
    bindings: Sequence[Binding]
    parameters: bytes


class Submission(NamedTuple):
    batch: Sequence[BackendWork]
    waits: Sequence[Point]
    signals: Sequence[Point]


class WrappedCommandBuffer(BackendCommandBuffer):
    """Keeps what comes between two barriers, and records it in reverse."""

    def changed(self, one: Dispatch) -> Dispatch:
        """What is recorded instead of a dispatch."""
        return one

    def __init__(self, inner: BackendCommandBuffer) -> None:
        self.inner = inner
        self.memo_cache: list[Callable[[], None]] = []

    def dispatch(
        self,
        executable: BackendExecutable,
        entry: int,
        groups: tuple[int, int, int],
        bindings: Sequence[Binding],
        parameters: bytes,
    ) -> None:
        one = self.changed(Dispatch(executable, entry, groups, bindings, parameters))
        one = one._replace(bindings=[unwrap(binding) for binding in one.bindings])
        self.memo_cache.append(lambda: self.inner.dispatch(*one))

    def copy(self, source: Binding, target: Binding) -> None:
        self.memo_cache.append(lambda: self.inner.copy(unwrap(source), unwrap(target)))

    def fill(self, target: Binding, pattern: bytes) -> None:
        self.memo_cache.append(lambda: self.inner.fill(unwrap(target), pattern))

    def fill_bytes(self, target: Binding, pattern: bytes) -> int:
        return self.inner.fill_bytes(unwrap(target), pattern)

    def barrier(self) -> None:
        self.flush()
        self.inner.barrier()

    def finish(self) -> None:
        self.flush()
        self.inner.finish()

    def release(self) -> None:
        self.memo_cache.clear()
        self.inner.release()

    def flush(self) -> None:
        for command in reversed(self.memo_cache):
            command()
        self.memo_cache.clear()


class WrappedQueue(BackendQueue):
    """`device` is the wrapped one: a bug may need a semaphore of it."""

    def __init__(self, inner: BackendQueue, device: WrappedDevice) -> None:
        self.inner = inner
        self.device = device

    def changed(self, one: Submission) -> Submission:
        """What is submitted instead."""
        return one

    def submit(
        self,
        batch: Sequence[BackendWork],
        waits: Sequence[Point],
        signals: Sequence[Point],
        watcher: Watcher | None = None,
    ) -> None:
        one = self.changed(Submission(batch, waits, signals))
        self.inner.submit(unwrap_batch(one.batch), unwrap_points(one.waits), unwrap_points(one.signals), watcher)

    def execute(
        self, commands: BackendCommandBuffer, table: Sequence[BackendBuffer], watcher: Watcher | None = None
    ) -> None:
        ((inner, buffers),) = unwrap_batch([(commands, table)])
        self.inner.execute(inner, buffers, watcher)

    def execute_batch(self, batch: Sequence[BackendWork], watcher: Watcher | None = None) -> None:
        self.inner.execute_batch(unwrap_batch(batch), watcher)

    def write(self, buffer: BackendBuffer, offset: int, data: Bytes) -> None:
        assert isinstance(buffer, WrappedBuffer)
        self.inner.write(buffer.inner, offset, data)

    def read(self, buffer: BackendBuffer, offset: int, out: Bytes) -> None:
        assert isinstance(buffer, WrappedBuffer)
        self.inner.read(buffer.inner, offset, out)

    def wait_idle(self) -> None:
        self.inner.wait_idle()

    def recover(self, signals: Sequence[Point], unsure: Sequence[Point] = ()) -> None:
        self.inner.recover(unwrap_points(signals), unwrap_points(unsure))


class WrappedDevice(BackendDevice):
    buffer_class: ClassVar[type[WrappedBuffer]] = WrappedBuffer
    semaphore_class: ClassVar[type[WrappedSemaphore]] = WrappedSemaphore
    command_buffer_class: ClassVar[type[WrappedCommandBuffer]] = WrappedCommandBuffer
    queue_class: ClassVar[type[WrappedQueue]] = WrappedQueue

    def __init__(self, inner: BackendDevice, info: DeviceInfo, mapped: bool) -> None:
        self.inner = inner
        self.info = info
        self.mapped = mapped
        self.compiles = inner.compiles  # type: ignore[misc]  # of the class in other drivers
        self.queue = self.queue_class(inner.queue, self)

    def allocate(self, size: int, use: MemoryUse) -> BackendBuffer:
        return self.buffer_class(self.inner.allocate(size, use), self.mapped)

    def import_host(self, memory: Bytes) -> BackendBuffer | None:
        inner = self.inner.import_host(memory)
        return None if inner is None else self.buffer_class(inner, self.mapped)

    def create_executable(self, format: str, payload: memoryview, entries: tuple[Entry, ...]) -> BackendExecutable:
        return self.inner.create_executable(format, payload, entries)

    def create_command_buffer(self, slots: int) -> BackendCommandBuffer:
        return self.command_buffer_class(self.inner.create_command_buffer(slots))

    def create_semaphore(self, initial: int) -> BackendSemaphore:
        return self.semaphore_class(self.inner.create_semaphore(initial))

    def close(self) -> None:
        self.inner.close()


class WrappedDriver(BackendDriver):
    """`change` may alter what the devices state of themselves."""

    def __init__(
        self,
        inner: BackendDriver,
        device_class: type[WrappedDevice] = WrappedDevice,
        mapped: bool = True,
        change: Callable[[DeviceInfo], DeviceInfo] = lambda info: info,
    ) -> None:
        self.inner = inner
        self.name = inner.name
        self.conformance = inner.conformance
        self.device_class = device_class
        self.mapped = mapped
        self.change = change

    def devices(self) -> list[DeviceInfo]:
        return [self.change(replace(info, timestamps=False, control_flow=False)) for info in self.inner.devices()]

    def open(self, info: DeviceInfo) -> BackendDevice:
        return self.device_class(self.inner.open(self.inner.devices()[info.index]), info, self.mapped)


def unwrap(binding: Binding) -> Binding:
    """A binding of a wrapped buffer as one of the buffer inside."""
    source = binding.source
    return binding._replace(source=source.inner) if isinstance(source, WrappedBuffer) else binding


def unwrap_batch(batch: Sequence[BackendWork]) -> list[BackendWork]:
    return [(_inner(commands), [_inner(buffer) for buffer in table]) for commands, table in batch]


def unwrap_points(points: Sequence[Point]) -> list[Point]:
    return [(_inner(semaphore), value) for semaphore, value in points]


def _inner(wrapped: Any) -> Any:
    return wrapped.inner
