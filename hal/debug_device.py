"""A device that runs one dispatch at a time and reports what each one reads and writes. For comparing devices.

- Only `open_debug_device` opens it, so no other device pays for it. The front uses it like any other backend. Programs
  are loaded on it with `profiling=True`, so that recordings know which entry of the module a dispatch runs.
- A recording is stored in pieces, each a recording of the driver: one dispatch, or the copies and fills between two
  dispatches. The pieces are submitted and waited for one by one. The bindings of a dispatch are read back before and
  after it.
- Calls block. Submitting work without waiting raises Unsupported.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from .backend import (
    BackendBuffer,
    BackendCommandBuffer,
    BackendDevice,
    BackendExecutable,
    BackendQueue,
    BackendWork,
    Binding,
    Bytes,
    Entry,
    Point,
    Watcher,
)
from .device import Device
from .errors import Unsupported
from .policy import Policy
from .profiling import ProfilingDevice, ProfilingQueue, Recorder
from .registry import find_device


class Step(NamedTuple):
    """A dispatch that ran. `before` has the bytes of the bindings that it may read, `after` of those that
    it may write.
    """

    entry: Entry
    groups: tuple[int, int, int]
    parameters: bytes
    tag: object  #: the value of `Recorder.tag` when it was recorded
    before: tuple[Bytes | None, ...]
    after: tuple[Bytes | None, ...]


#: called with each step; an exception from it ends the call
Observer = Callable[[Step], None]


class _Dispatch(NamedTuple):
    entry: Entry
    groups: tuple[int, int, int]
    bindings: tuple[Binding, ...]
    parameters: bytes
    tag: object


class _Pieces(Recorder):
    """A recording in pieces. A piece without a dispatch only moves bytes."""

    def __init__(self, device: BackendDevice, slots: int, owner: object) -> None:
        self._device = device
        self._slots = slots
        super().__init__(device.create_command_buffer(slots), owner)
        self.pieces: list[tuple[BackendCommandBuffer, _Dispatch | None]] = [(self.inner, None)]

    def dispatch(
        self,
        executable: BackendExecutable,
        entry: int,
        groups: tuple[int, int, int],
        bindings: Sequence[Binding],
        parameters: bytes,
    ) -> None:
        self._begin(_Dispatch(executable.entries[entry], groups, tuple(bindings), parameters, self.tag))
        self.inner.dispatch(executable, entry, groups, bindings, parameters)

    def copy(self, source: Binding, target: Binding) -> None:
        self._move()
        self.inner.copy(source, target)

    def fill(self, target: Binding, pattern: bytes) -> None:
        self._move()
        self.inner.fill(target, pattern)

    def fill_bytes(self, target: Binding, pattern: bytes) -> int:
        return self.inner.fill_bytes(target, pattern)

    def finish(self) -> None:
        for piece, _ in self.pieces:
            piece.finish()

    def release(self) -> None:
        for piece, _ in self.pieces:
            piece.release()

    def _move(self) -> None:
        if self.pieces[-1][1] is not None:
            self._begin(None)

    def _begin(self, row: _Dispatch | None) -> None:
        self.inner = self._device.create_command_buffer(self._slots)
        self.pieces.append((self.inner, row))


class _Queue(ProfilingQueue):
    """Submits the pieces of recordings. It collects no times."""

    def __init__(self, inner: BackendQueue) -> None:
        super().__init__(inner)
        self.observer: Observer | None = None

    def submit(
        self,
        batch: Sequence[BackendWork],
        waits: Sequence[Point],
        signals: Sequence[Point],
        watcher: Watcher | None = None,
    ) -> None:
        if batch:
            raise Unsupported("a device that runs step by step takes calls that block, not work that is submitted")
        self._inner.submit(batch, waits, signals, watcher)

    def execute(
        self, commands: BackendCommandBuffer, table: Sequence[BackendBuffer], watcher: Watcher | None = None
    ) -> None:
        assert isinstance(commands, _Pieces)
        for piece, row in commands.pieces:
            if row is None or self.observer is None:
                self._inner.execute(piece, table, watcher)
                continue
            before = self._contents(row, table, "write")
            self._inner.execute(piece, table, watcher)
            after = self._contents(row, table, "read")
            self.observer(Step(row.entry, row.groups, row.parameters, row.tag, before, after))

    def execute_batch(self, batch: Sequence[BackendWork], watcher: Watcher | None = None) -> None:
        for commands, table in batch:
            self.execute(commands, table, watcher)

    def _contents(self, row: _Dispatch, table: Sequence[BackendBuffer], unless: str) -> tuple[Bytes | None, ...]:
        """The bytes of all bindings whose access is not `unless`, None for the others."""
        accesses = (access for access, _ in row.entry.bindings)
        return tuple(
            None if access == unless else self._content(binding, table)
            for access, binding in zip(accesses, row.bindings, strict=True)
        )

    def _content(self, binding: Binding, table: Sequence[BackendBuffer]) -> Bytes:
        buffer = table[binding.source] if isinstance(binding.source, int) else binding.source
        if buffer.host is not None:
            return buffer.host[binding.offset : binding.offset + binding.length].copy()
        out = np.empty(binding.length, np.uint8)
        if binding.length:
            self._inner.read(buffer, binding.offset, out)
        return out


class _DebugDevice(ProfilingDevice):
    """A layer around a device that the driver opened as usual. All of its memory can be read back."""

    def __init__(self, inner: BackendDevice) -> None:
        super().__init__(inner)
        self.queue = self.profile = self.steps = _Queue(inner.queue)

    def import_host(self, memory: Bytes) -> BackendBuffer | None:
        return None

    def create_command_buffer(self, slots: int) -> Recorder:
        return _Pieces(self._inner, slots, self)


def open_debug_device(name: str, policy: Policy | None = None) -> Device:
    """Open `driver` or `driver:index` as a debug device. `observe` sets the observer."""
    driver, info = find_device(name)
    return Device.of(_DebugDevice(driver.open(info)), policy=policy)


def observe(device: Device, observer: Observer | None) -> None:
    """From now on call `observer` with each dispatch of a device of `open_debug_device`. None stops observing."""
    backend = device.device_state.driver
    assert isinstance(backend, _DebugDevice), "the device was not opened by open_debug_device"
    backend.steps.observer = observer
