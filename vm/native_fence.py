"""Fences over events and semaphores of the caller: `cl_event`, and Vulkan timeline semaphores.

- A `NativeFence` is reached when its event completes. Reaching the fence completes the event.
- One thread, the `Poller`, polls the events that have listeners. It sleeps for a part of the time since the newest
  event was added, at most `MAX_SECONDS`, and ends when there is no event. No thread blocks on an event, and no thread
  of a driver runs Python: docs/decisions/native-events.md says why.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from orchestrion.hal.errors import DriverUnavailable, HalError, InvalidArgument
from orchestrion.hal.fork import after_fork, new_lock
from orchestrion.schema.hints import install

from .event_loop import EventLoop, Timer
from .fence import Fence, as_hal_error

if TYPE_CHECKING:
    from orchestrion.hal.backend import BackendSemaphore
    from orchestrion.hal.device import Device

#: seconds between two polls of all events: the time since the newest event was added, divided by `PART`, within bounds
MIN_SECONDS, MAX_SECONDS, PART = 0.00005, 0.002, 8


def from_cl_event(event: Any) -> Fence:
    """See `Fence`."""
    opencl = _events()
    return NativeFence(opencl.EventSemaphore(event), 1, None, opencl.why_unsignallable(event))


def from_vk_semaphore(semaphore: Any, value: int, device: Device) -> Fence:
    """See `Fence`. The device stays open until the fence is reached or dropped."""
    imported = device.import_semaphore(semaphore)
    backend, ref = imported.backend, imported.ref
    imported.release()
    return NativeFence(backend, value, ref, "")


def to_cl_event(fence: Fence, context: Any) -> Any:
    """See `Fence`."""
    semaphore = _events().EventSemaphore.create(context)
    native = NativeFence(semaphore, 1, None, "")
    fence.listen(lambda: native.pass_on(fence))
    return semaphore.native


def as_fence(thing: object) -> Fence | None:
    """The fence of an object that is a fence or a `pyopencl.Event`; None for anything else."""
    if isinstance(thing, Fence):
        return thing
    pyopencl = sys.modules.get("pyopencl")  # a caller with an event has imported it
    return from_cl_event(thing) if pyopencl is not None and isinstance(thing, pyopencl.Event) else None


def _events() -> Any:
    try:
        from orchestrion.hal.opencl import event
    except ImportError as error:
        raise DriverUnavailable(f"pyopencl cannot be imported ({error}): {install('opencl')}") from error
    return event


class NativeFence(Fence):
    """A fence that is reached when a native semaphore has `value`. Keeps `owner` alive until then."""

    __slots__ = ("_owner", "_poll_lock", "_semaphore", "_value", "unsignallable")

    def __init__(self, semaphore: BackendSemaphore, value: int, owner: object, unsignallable: str) -> None:
        super().__init__()
        self._semaphore = semaphore
        self._value = value
        self._owner = owner
        self._poll_lock = new_lock()
        self.unsignallable = unsignallable

    def done(self) -> bool:
        if not self._done and self._poll_lock.acquire(False):  # else another thread is polling
            try:
                self._poll()
            finally:
                self._poll_lock.release()
        return self._done

    def settle(self, error: BaseException | None) -> bool:
        """Complete the event, or let it fail. False if it has ended."""
        with self._poll_lock:
            self._poll()
            if self._done:
                return False
            try:
                if error is None:
                    self._semaphore.signal(self._value)
                else:
                    self._semaphore.fail(self._value, as_hal_error(error))
            except InvalidArgument:  # somebody else has completed it at the same time
                self._poll()
                return False
            except HalError as failure:
                error = error or failure
            return self._settled(error)

    def pass_on(self, fence: Fence) -> None:
        """Reach this fence as another one was reached. For a listener of that fence."""
        self.settle(fence.exception())

    def signal(self) -> None:
        if self.unsignallable:
            raise InvalidArgument(f"the fence cannot be signalled: {self.unsignallable}")
        super().signal()

    def listen(self, listener: Callable[[], None]) -> None:
        super().listen(listener)
        if not self._done:
            _poller.watch(self)

    def forget(self, listener: Callable[[], None]) -> None:
        super().forget(listener)
        if not self._listeners:
            _poller.forget(self)

    def _poll(self) -> None:
        """Reach the fence if the semaphore has the value. The caller holds `_poll_lock`."""
        if self._done:
            return
        try:
            if self._semaphore.value() < self._value:
                return
            self._semaphore.wait(self._value, 0.0)
        except Exception as error:  # any error is raised where the fence is waited for, not in the polling thread
            self._settled(error)
        else:
            self._settled(None)

    def _settled(self, error: BaseException | None) -> bool:
        """Reach the fence: the event has ended and is not used any more."""
        self._owner = None
        return super().settle(error)


class Poller:
    """The thread that polls native fences."""

    def __init__(self) -> None:
        self._loop = EventLoop("orchestrion-events")
        self._lock = new_lock()
        self._watched: dict[NativeFence, float] = {}  #: the time at which each was added, in seconds of the clock
        self._posted = False
        self._timer: Timer | None = None

    def watch(self, fence: NativeFence) -> None:
        """Poll a fence from now on, until it is reached."""
        with self._lock:
            self._watched.setdefault(fence, time.monotonic())
            if self._posted:
                return
            self._posted = True
        self._loop.post(self._sweep)

    def forget(self, fence: NativeFence) -> None:
        """Stop polling a fence: it has no listeners."""
        with self._lock:
            self._watched.pop(fence, None)

    def _sweep(self) -> None:
        """Poll all fences, and set the timer for the next poll."""
        with self._lock:
            self._posted = False
            watched = [*self._watched]
        for fence in watched:
            if fence.done():
                self.forget(fence)
        del watched
        with self._lock:
            if self._timer is not None:
                self._timer.stop()
                self._timer = None
            if self._watched:
                now = time.monotonic()
                pause = (now - max(self._watched.values())) / PART
                self._timer = self._loop.at(now + min(max(pause, MIN_SECONDS), MAX_SECONDS), self._sweep)


_poller = Poller()


@after_fork
def _renew(parent: int) -> None:
    global _poller
    _poller = Poller()
