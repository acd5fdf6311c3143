"""Records what a device ran and when: a layer between the front and the backend of a device opened with profiling.

- The layer exists only on such devices, so no other device pays for it. The front uses it like any other backend.
- Command buffers note what is recorded. The queue pairs that with the times that the driver measured. The recording
  code may set the owner of a recording and a tag for the next commands; the owner then gets its submissions by `take`.
- All times are nanoseconds of `hal.timing.now`. The front holds the device's lock around every operation of a queue.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import NamedTuple
from weakref import WeakKeyDictionary

from .backend import (
    BackendBuffer,
    BackendCommandBuffer,
    BackendDevice,
    BackendExecutable,
    BackendQueue,
    BackendWork,
    Binding,
    Bytes,
    Point,
    Span,
    Watcher,
)
from .command_buffer import CommandBuffer
from .device import Device
from .device_layer import DeviceLayer
from .errors import InvalidArgument
from .timing import now

#: the most submissions kept for an owner that does not take them; older ones are dropped
MAX_KEPT_SUBMISSIONS = 1 << 16


class Command(NamedTuple):
    """One recorded dispatch, copy or fill. `tag` is the value of `Recorder.tag` at that time."""

    kind: str  #: "dispatch", "copy" or "fill"
    name: str  #: the entry's name for a dispatch, otherwise the kind
    groups: tuple[int, int, int]  #: workgroups of a dispatch, otherwise (0, 0, 0)
    bytes: tuple[int, ...]  #: length of each binding; of source and target of a copy; of a fill's range
    tag: object


class Submission(NamedTuple):
    """Finished work: a span per command, fewer if it failed. `submitted` is the time of submission."""

    submitted: int
    commands: tuple[Command, ...]
    spans: tuple[Span, ...]


class Recorder(BackendCommandBuffer):
    """Notes what is recorded. `owner` may be set until the recording is submitted; `tag` applies to the commands
    recorded after it is set.
    """

    def __init__(self, inner: BackendCommandBuffer, owner: object) -> None:
        self.inner = inner
        self.owner = owner
        self.tag: object = None
        self.commands: list[Command] = []

    def dispatch(
        self,
        executable: BackendExecutable,
        entry: int,
        groups: tuple[int, int, int],
        bindings: Sequence[Binding],
        parameters: bytes,
    ) -> None:
        self.inner.dispatch(executable, entry, groups, bindings, parameters)
        self._note("dispatch", executable.entries[entry].name, groups, *bindings)

    def copy(self, source: Binding, target: Binding) -> None:
        self.inner.copy(source, target)
        self._note("copy", "copy", (0, 0, 0), source, target)

    def fill(self, target: Binding, pattern: bytes) -> None:
        self.inner.fill(target, pattern)
        self._note("fill", "fill", (0, 0, 0), target)

    def fill_bytes(self, target: Binding, pattern: bytes) -> int:
        return self.inner.fill_bytes(target, pattern)

    def barrier(self) -> None:
        self.inner.barrier()

    def finish(self) -> None:
        self.inner.finish()

    def release(self) -> None:
        self.inner.release()

    def _note(self, kind: str, name: str, groups: tuple[int, int, int], *bindings: Binding) -> None:
        self.commands.append(Command(kind, name, groups, tuple(binding.length for binding in bindings), self.tag))


class _Pending(NamedTuple):
    owner: object
    submitted: int
    commands: tuple[Command, ...]


class ProfilingQueue(BackendQueue):
    """Passes everything on, and keeps submissions until the driver has timed them."""

    def __init__(self, inner: BackendQueue) -> None:
        self._inner = inner
        self._pending: deque[_Pending] = deque()
        self._done: WeakKeyDictionary[object, deque[Submission]] = WeakKeyDictionary()

    def submit(
        self,
        batch: Sequence[BackendWork],
        waits: Sequence[Point],
        signals: Sequence[Point],
        watcher: Watcher | None = None,
    ) -> None:
        self._inner.submit(self._note(batch) if batch else batch, waits, signals, watcher)

    def execute(
        self, commands: BackendCommandBuffer, table: Sequence[BackendBuffer], watcher: Watcher | None = None
    ) -> None:
        ((inner, table),) = self._note([(commands, table)])
        try:
            self._inner.execute(inner, table, watcher)
        finally:
            self.collect()

    def execute_batch(self, batch: Sequence[BackendWork], watcher: Watcher | None = None) -> None:
        try:
            self._inner.execute_batch(self._note(batch), watcher)
        finally:
            self.collect()

    def write(self, buffer: BackendBuffer, offset: int, data: Bytes) -> None:
        self._inner.write(buffer, offset, data)

    def read(self, buffer: BackendBuffer, offset: int, out: Bytes) -> None:
        self._inner.read(buffer, offset, out)

    def wait_idle(self) -> None:
        self._inner.wait_idle()

    def recover(self, signals: Sequence[Point], unsure: Sequence[Point] = ()) -> None:
        self._inner.recover(signals, unsure)

    def collect(self) -> None:
        """Pair the driver's times with submissions. The device state's lock is held."""
        for spans in self._inner.take_timings():
            owner, submitted, commands = self._pending.popleft()
            kept = self._done.setdefault(owner, deque(maxlen=MAX_KEPT_SUBMISSIONS))
            kept.append(Submission(submitted, commands, tuple(spans)))

    def waits(self, owner: object) -> bool:
        """Whether submissions of an owner are not paired yet."""
        return any(row.owner is owner for row in list(self._pending))

    def take(self, owner: object) -> list[Submission]:
        return list(self._done.pop(owner, ()))

    def _note(self, batch: Sequence[BackendWork]) -> list[BackendWork]:
        """Returns the driver's work for a batch, and notes its commands. One owner has the whole batch."""
        recorders: list[Recorder] = []
        works: list[BackendWork] = []
        for commands, table in batch:
            assert isinstance(commands, Recorder)
            recorders.append(commands)
            works.append((commands.inner, table))
        noted = tuple(command for one in recorders for command in one.commands)
        self._pending.append(_Pending(recorders[0].owner, now(), noted))
        return works


class ProfilingDevice(DeviceLayer):
    """A layer around a device that a driver opened with profiling. Each recorded command has exactly one span."""

    def __init__(self, inner: BackendDevice) -> None:
        super().__init__(inner)
        self.queue = self.profile = ProfilingQueue(inner.queue)

    def create_command_buffer(self, slots: int) -> Recorder:
        return Recorder(self._inner.create_command_buffer(slots), self)


def is_profiled(device: Device) -> bool:
    """Whether a device was opened with profiling."""
    return isinstance(device.device_state.driver, ProfilingDevice)


def recorder(commands: CommandBuffer) -> Recorder:
    """The `Recorder` of a command buffer of a profiled device; it takes the owner and the tags."""
    assert isinstance(commands.backend, Recorder)
    return commands.backend


def is_waited_for(device: Device, owner: object) -> bool:
    """Whether submissions of an owner are in flight, or were not paired with times yet."""
    backend = device.device_state.driver
    return isinstance(backend, ProfilingDevice) and backend.profile.waits(owner)


def take(device: Device, owner: object = None) -> list[Submission]:
    """Returns the owner's finished submissions that were not taken yet, in order. Without an owner, those that have
    none.

    Waits while another thread holds the queue. Raises InvalidArgument if the device was not opened with profiling.
    """
    backend = device.device_state.driver
    if not isinstance(backend, ProfilingDevice):
        raise InvalidArgument(f"device {device.info.id} was not opened with profiling")
    owner = backend if owner is None else owner
    if backend.profile.waits(owner):
        with device.device_state.lock:
            backend.profile.collect()
    return backend.profile.take(owner)
