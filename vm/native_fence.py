"""Fences over events and semaphores of the caller's own: `cl_event`, Vulkan timeline semaphores.

- A `NativeFence` is reached when its event is, whoever completes it; to reach the fence is to complete the event.
- One thread looks at the events that somebody listens to, the `Poller`. It sleeps a part of the time that the youngest
  has been waited for, at most `LATEST`, and ends when there is nothing to look at. No thread is blocked by an event,
  and no thread of a driver ever runs Python: docs/decisions/native-events.md says why.
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

#: seconds between two looks at all events: a part of how long the youngest was waited for, within bounds
SOONEST, LATEST, PART = 0.00005, 0.002, 8


def from_cl_event(event: Any) -> Fence:
    """See `Fence`."""
    opencl = _events()
    return NativeFence(opencl.EventSemaphore(event), 1, None, opencl.why_unsignallable(event))


def from_vk_semaphore(semaphore: Any, value: int, device: Device) -> Fence:
    """See `Fence`. The device stays open until it is reached or dropped."""
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
    """A fence, or a fence over what can be nothing else than an event; None for anything else."""
    if isinstance(thing, Fence):
        return thing
    pyopencl = sys.modules.get("pyopencl")  # who has an event has imported it
    return from_cl_event(thing) if pyopencl is not None and isinstance(thing, pyopencl.Event) else None


def _events() -> Any:
    try:
        from orchestrion.hal.opencl import event
    except ImportError as error:
        raise DriverUnavailable(f"pyopencl cannot be imported ({error}): {install('opencl')}") from error
    return event


class NativeFence(Fence):
    """A value of a native semaphore. `owner` is kept alive until it is reached."""

    __slots__ = ("_looking", "_owner", "_semaphore", "_value", "unsignallable")

    def __init__(self, semaphore: BackendSemaphore, value: int, owner: object, unsignallable: str) -> None:
        super().__init__()
        self._semaphore = semaphore
        self._value = value
        self._owner = owner
        self._looking = new_lock()
        self.unsignallable = unsignallable

    def done(self) -> bool:
        if not self._done and self._looking.acquire(False):  # else somebody is just about to know
            try:
                self._look()
            finally:
                self._looking.release()
        return self._done

    def settle(self, error: BaseException | None) -> bool:
        """Complete the event, or let it fail; False when it is over."""
        with self._looking:
            self._look()
            if self._done:
                return False
            try:
                if error is None:
                    self._semaphore.signal(self._value)
                else:
                    self._semaphore.fail(self._value, as_hal_error(error))
            except InvalidArgument:  # it was completed this moment by who else may
                self._look()
                return False
            except HalError as failure:
                error = error or failure
            return self._settled(error)

    def pass_on(self, fence: Fence) -> None:
        """As a listener of another fence: be reached as that one was."""
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

    def _look(self) -> None:
        """Under `_looking`."""
        if self._done:
            return
        try:
            if self._semaphore.value() < self._value:
                return
            self._semaphore.wait(self._value, 0.0)
        except Exception as error:  # whatever it is, it belongs to whoever waits, and not to the thread that looks
            self._settled(error)
        else:
            self._settled(None)

    def _settled(self, error: BaseException | None) -> bool:
        """The event is over: it is not touched any more."""
        self._owner = None
        return super().settle(error)


class Poller:
    """The thread that looks."""

    def __init__(self) -> None:
        self._loop = EventLoop("orchestrion-events")
        self._lock = new_lock()
        self._watched: dict[NativeFence, float] = {}  #: since when
        self._posted = False
        self._timer: Timer | None = None

    def watch(self, fence: NativeFence) -> None:
        """Look at it from now on, until it is reached."""
        with self._lock:
            self._watched.setdefault(fence, time.monotonic())
            if self._posted:
                return
            self._posted = True
        self._loop.post(self._sweep)

    def forget(self, fence: NativeFence) -> None:
        """Nobody listens to it any more."""
        with self._lock:
            self._watched.pop(fence, None)

    def _sweep(self) -> None:
        """Look at all, and say when to do so again."""
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
                self._timer = self._loop.at(now + min(max(pause, SOONEST), LATEST), self._sweep)


_poller = Poller()


@after_fork
def _renew(parent: int) -> None:
    global _poller
    _poller = Poller()
