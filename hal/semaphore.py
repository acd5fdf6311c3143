"""Timeline semaphores and fences: how work, devices and the host wait for each other.

A semaphore is a 64-bit value that only grows. A wait names the value to reach, and may start before any work promises
it. A fence is a set of (semaphore, value) points, reached when all of them are. When a submission fails, the values
that it promised are reached all the same, and waiting for one raises its error.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from .backend import BackendSemaphore, Point, Watcher
from .errors import DeadlineExceeded, InvalidArgument
from .lifetime import WATCH_SECONDS, ResourceRef
from .lost import DetectLoss

if TYPE_CHECKING:
    from .device import Device

MAX_VALUE = 2**63 - 1


class Semaphore:
    """A timeline semaphore of a device. Made by `Device.create_semaphore` and `Device.import_semaphore`."""

    __slots__ = ("_promised", "_released", "backend", "device", "ref")

    def __init__(self, device: Device, backend: BackendSemaphore) -> None:
        self.device = device
        self.backend = backend
        self.ref = ResourceRef(device.device_state, self.backend)
        self._promised: deque[int] = deque()
        self._released = False
        device.live["semaphore"] += 1

    @property
    def value(self) -> int:
        return self._current(self.alive())

    @property
    def native(self) -> Any:
        """The handle in the driver's own API (`VkSemaphore`, `pyopencl.Event`). This object owns it unless it was
        imported. None on a device without one.
        """
        return self.alive().native

    def signal(self, value: int) -> None:
        """Set the value from the host. It must be above the current value and below all values that submitted work will
        signal; raises InvalidArgument otherwise.
        """
        backend = self.alive()
        with self.device.signal_lock:
            current = self._current(backend)
            if not current < value <= MAX_VALUE:
                raise InvalidArgument(f"semaphore value {value} is not above the current {current}")
            pending = self._pending(current)
            if pending and value >= pending[0]:
                raise InvalidArgument(f"semaphore value {value} is not below {pending[0]}, promised by work in flight")
            with DetectLoss(self.device.device_state):
                backend.signal(value)

    def wait(self, value: int, timeout: float | None = None) -> None:
        """Block until `value` is reached. Raises DeadlineExceeded after `timeout` seconds, and the error of failed
        work.
        """
        self.device.statistics.waits += 1
        with DetectLoss(self.device.device_state):
            reached = self.alive().wait(value, None if timeout is None else float(timeout))
        if not reached:
            raise DeadlineExceeded(f"semaphore at {self.value} did not reach {value} in {timeout} s")

    def watch(self, value: int, watcher: Watcher, deadline: float | None = None) -> None:
        """Block until `value` is reached or `watcher.check` raises. It is called every tenth of a second, and at
        `deadline` (of `time.monotonic`). Raises the error of failed work.
        """
        self.device.statistics.waits += 1
        backend = self.alive()
        while True:
            left = WATCH_SECONDS if deadline is None else max(0.0, deadline - time.monotonic())
            with DetectLoss(self.device.device_state):
                if backend.wait(value, min(WATCH_SECONDS, left)):
                    return
            watcher.check()

    def promise(self, value: int) -> Point:
        """For the queue: submitted work will signal this value."""
        backend = self.alive()
        with self.device.signal_lock:
            current = self._current(backend)
            pending = self._pending(current)
            last = pending[-1] if pending else current
            if not last < value <= MAX_VALUE:
                raise InvalidArgument(f"semaphore value {value} to signal is not above {last}")
            pending.append(value)
        return backend, value

    def break_promise(self, value: int) -> None:
        """Undo the last promise: its submission was not made. A second call does nothing."""
        with self.device.signal_lock:
            if self._promised and self._promised[-1] == value:
                self._promised.pop()

    def promised(self, value: int) -> bool:
        """Whether the value is reached, or submitted work will reach it."""
        current = self._current(self.alive())
        with self.device.signal_lock:
            pending = self._pending(current)
            return value <= (pending[-1] if pending else current)

    def alive(self) -> BackendSemaphore:
        if self._released:
            raise InvalidArgument("semaphore was released")
        return self.backend

    def release(self) -> None:
        """End the use of the semaphore. A second call does nothing."""
        if not self._released:
            self._end()
            self.device.device_state.collect()

    def _end(self) -> None:
        self._released = True
        self.device.live["semaphore"] -= 1
        del self.backend, self.ref

    def __del__(self) -> None:
        if hasattr(self, "_released") and not self._released:
            self._end()

    def _current(self, backend: BackendSemaphore) -> int:
        with DetectLoss(self.device.device_state):
            return backend.value()

    def _pending(self, current: int) -> deque[int]:
        while self._promised and self._promised[0] <= current:
            self._promised.popleft()
        return self._promised


class Fence:
    """A set of (semaphore, value) points, reached when all of them are. An empty fence is always reached."""

    __slots__ = ("points",)

    def __init__(self, points: Iterable[tuple[Semaphore, int]] = ()) -> None:
        highest: dict[Semaphore, int] = {}
        for semaphore, value in points:
            highest[semaphore] = max(value, highest.get(semaphore, 0))
        self.points: tuple[tuple[Semaphore, int], ...] = tuple(highest.items())

    @staticmethod
    def join(*fences: Fence) -> Fence:
        """Returns a fence that is reached when all of `fences` are."""
        return Fence(point for fence in fences for point in fence.points)

    @property
    def reached(self) -> bool:
        return all(semaphore.value >= value for semaphore, value in self.points)

    @property
    def promised(self) -> bool:
        """Whether it is reached, or submitted work will reach it."""
        return all(semaphore.promised(value) for semaphore, value in self.points)

    def signal(self) -> None:
        """Signal every point from the host."""
        for semaphore, value in self.points:
            semaphore.signal(value)

    def wait(self, timeout: float | None = None) -> None:
        """Block until all points are reached; raises the errors of `Semaphore.wait`."""
        end = None if timeout is None else time.monotonic() + float(timeout)
        for semaphore, value in self.points:
            semaphore.wait(value, None if end is None else max(0.0, end - time.monotonic()))

    def watch(self, watcher: Watcher, deadline: float | None = None) -> None:
        """Block until all points are reached, or until `watcher.check` raises; see `Semaphore.watch`."""
        for semaphore, value in self.points:
            semaphore.watch(value, watcher, deadline)
