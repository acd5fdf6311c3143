"""Who keeps a driver's objects alive, and when they are released.

- A `ResourceRef` owns one backend object. Handles (`Buffer`, `CommandBuffer`, …) hold one; a recording holds those of
  all it refers to; work in flight holds those of its recording and table. When the last holder lets go, the object is
  released, never earlier. So `release` on a handle ends its use, not the work under way.
- A `DeviceState` is one open backend device. Its lock is held by whoever uses the queue; nobody ever waits for that
  lock to release an object: what cannot be released now is left in `garbage`, and the holder of the lock clears it.
- Work that was submitted (not executed) carries a number on the device state's own timeline, and its refs
  stay in `in_flight` until that number is reached.
- `current` holds what is being handed to the driver, and is None between two calls. Whoever takes the lock and finds it
  set knows that an exception (Ctrl-C, an error of the driver) ended the call before, and calls `recover` first: the
  driver signals a further number once all submitted work is over, and nothing is released before that.
- A closed state closes its backend when the last ref is gone, so that memory still in use is never freed. Where work
  does not end, the driver's objects stay as they are for as long as the process lives.
"""

import atexit
import sys
import threading
import time
import weakref
from collections import deque
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple, Protocol

from .backend import BackendDevice, BackendSemaphore, Point, Watcher
from .errors import HalError
from .fork import after_fork
from .waiting import attempt, to_its_end

if TYPE_CHECKING:
    from .buffer import Buffer
    from .command_buffer import CommandBuffer

#: seconds that closing a device waits for its work by default
CLOSE_SECONDS = 30.0
#: seconds between two looks at a watcher
WATCH_SECONDS = 0.1
#: seconds that the end of the process waits for the work of each device that was not closed
EXIT_SECONDS = 5.0


class Releasable(Protocol):
    def release(self) -> None: ...


class Submitted(Protocol):
    submitted: int


class Account:
    """Bytes in use and their limit. Refunds never lock, for they come from finalizers.

    `origin` is what an error adds to the limit: who set it, where that is not the caller.
    """

    __slots__ = ("_freed", "_live", "_lock", "limit", "origin", "peak")

    def __init__(self, limit: int | None) -> None:
        self.limit = limit
        self.origin = ""
        self.peak = 0
        self._live = 0
        self._freed: deque[int] = deque()
        self._lock = threading.Lock()

    def charge(self, size: int) -> bool:
        """Take `size` bytes; False, and nothing taken, when the limit forbids it."""
        with self._lock:
            live = self._apply_refunds() + size
            if self.limit is not None and live > self.limit:
                return False
            self._live = live
            if live > self.peak:
                self.peak = live
        return True

    def refund(self, size: int) -> None:
        self._freed.append(size)

    @property
    def live(self) -> int:
        with self._lock:
            return self._apply_refunds()

    def _apply_refunds(self) -> int:
        while self._freed:
            self._live -= self._freed.popleft()
        return self._live


class ResourceRef:
    """Ownership of one backend object, and of the bytes it was charged for."""

    __slots__ = ("accounts", "backend", "device_state", "size")

    def __init__(
        self, state: "DeviceState", backend: Releasable, accounts: tuple[Account, ...] = (), size: int = 0
    ) -> None:
        self.backend = backend
        self.accounts = accounts
        self.size = size
        self.device_state = state  # last: an interrupt before it leaves the object to the driver
        state.owned.add(id(backend))

    def __del__(self) -> None:
        state = getattr(self, "device_state", None)
        if state is not None:
            state.discard(self.backend, self.accounts, self.size)


class _Row(NamedTuple):
    """A submission under way."""

    number: int  #: on the device state's timeline
    refs: tuple[object, ...]  #: of what it uses
    unreported_errors: list[HalError] | None  #: receives its error; None where a fence tells of it
    waits: Sequence[Point]  #: what it waits for before it runs


class DeviceState:
    """One open backend device: the queue's lock, work in flight, garbage."""

    __slots__ = (
        "__weakref__",
        "abandoned",
        "backlog",
        "backend",
        "barrier",
        "close_seconds",
        "closed",
        "current",
        "garbage",
        "in_flight",
        "lock",
        "owned",
        "shares",
        "sources",
        "submitted",
        "timeline",
        "unsure",
    )

    def __init__(self, backend: BackendDevice) -> None:
        self.backend = backend
        self.lock = threading.Lock()
        self.garbage: deque[tuple[Releasable, tuple[Account, ...], int]] = deque()
        self.in_flight: deque[_Row] = deque()
        self.timeline: BackendSemaphore | None = None
        self.submitted = 0
        self.owned: set[int] = set()
        self.sources: list[ResourceRef] = []
        self.backlog = 0
        #: `id` of each open share; a set whose order is that of opening
        self.shares: dict[int, None] = {}
        self.closed = False
        self.abandoned = False
        #: recordings and buffers that are being handed to the driver; None between two of its calls
        self.current: Sequence[tuple[CommandBuffer | None, Sequence[Buffer]]] | None = None
        #: what the submission in `current` promised to signal
        self.unsure: Sequence[Point] = ()
        #: nothing is released before this number is reached
        self.barrier = 0
        self.close_seconds: float = CLOSE_SECONDS
        _sweep()
        _device_states.add(self)

    def discard(self, backend: Releasable, accounts: tuple[Account, ...], size: int) -> None:
        """Release soon: now if the queue is free, else when its holder lets go. Never blocks."""
        if self.abandoned:
            return
        self.garbage.append((backend, accounts, size))
        self.collect()

    def collect(self) -> None:
        """Release what nothing refers to any more, unless another thread holds the queue, which then does it."""
        while (self.garbage or self.in_flight) and self._collect():
            if not self.garbage:
                return

    def _collect(self) -> bool:
        """Whether that was possible."""
        held: list[bool] = []
        try:
            attempt(self.lock, held)
            if not held or self.current is not None:
                return False
            if self.in_flight:
                self.retire()
            return self._clear()
        finally:
            if held:
                self.lock.release()

    def break_off(self) -> None:
        """Called where an exception ends a call of the driver with `current` set; the lock is held.

        From now on the host waits for the buffers. If settling fails, whoever uses the queue next tries again.
        """
        to_its_end(self._mark)
        with suppress(HalError):  # `current` stays set then
            self.recover()

    def _mark(self) -> None:
        for commands, buffers in self.current or ():
            for buffer in (*buffers, *(() if commands is None else commands.direct)):
                buffer.submitted = self.submitted + 1

    def recover(self) -> None:
        """If `current` is set, have the driver signal when all submitted work is over (`BackendQueue.recover`).

        The lock is held. Does not wait if the driver can signal by itself. After an exception it can be called again.
        """
        if self.current is None:
            return
        self._mark()
        point = self.track((), None)
        self.barrier = self.submitted
        self.backend.queue.recover([point], self.unsure)
        self.unsure = ()
        self.current = None

    def make_room(self) -> None:
        """Release all that can be without waiting for submitted work."""
        self.collect()
        if not self.sources or self.in_flight:
            return
        with self.lock:
            self.recover()
            self.backend.queue.wait_idle()
            self.forget_sources()
        self.collect()

    def untrack(self) -> None:
        """The submission tracked last did not come about; the lock is held."""
        self.in_flight.pop()
        self.submitted -= 1

    def track(
        self, refs: Iterable[object], unreported_errors: list[HalError] | None, waits: Sequence[Point] = ()
    ) -> tuple[BackendSemaphore, int]:
        """Keep refs until the point given is reached. Where no fence will tell of a failure, `unreported_errors`
        receives it. The lock is held.
        """
        if self.timeline is None:
            self.timeline = self.backend.create_semaphore(0)
        self.submitted += 1
        self.in_flight.append(_Row(self.submitted, tuple(refs), unreported_errors, waits))
        return self.timeline, self.submitted

    def wait_for(self, resource: "Submitted") -> None:
        """Wait until the last submission that uses a buffer is over. Raises, once, the error of one that failed."""
        if self.current is not None:
            with self.lock:
                self.recover()
        if self.timeline is not None:
            last = resource.submitted
            try:
                self.timeline.wait(last, None)
            except HalError:
                resource.submitted = 0
                raise
            if resource.submitted == last:
                resource.submitted = 0

    def watch(self, last: int, watcher: Watcher) -> None:
        """Wait until submission `last` is over, or until `watcher.check` raises. How it ends is told elsewhere."""
        if self.current is not None:
            with self.lock:
                self.recover()
        if last and self.timeline is not None and self.timeline.value() < last:
            while not _reached(self.timeline, last, WATCH_SECONDS):
                watcher.check()

    def wait_submitted(self, last: int, timeout: float | None = None) -> bool:
        """Wait until submission `last`, and so all before it, is over, and no write waits in the driver. False when
        `timeout` seconds passed first.
        """
        if self.current is not None:
            with self.lock:
                self.recover()
        last = max(last, self.barrier)
        if last and self.timeline is not None:
            if self.timeline.value() < last and not _reached(self.timeline, last, timeout):
                return False
            with self.lock:
                self.retire()
        if self.sources:
            with self.lock:
                self.recover()
                self.backend.queue.wait_idle()
                self.forget_sources()
        self.collect()
        return True

    def forget_sources(self) -> None:
        """The queue was waited for: what writes copied from is needed no more; the lock is held."""
        self.sources.clear()
        self.backlog = 0

    def retire(self) -> None:
        """Let go of what finished work held; the lock is held."""
        if not self.in_flight or self.timeline is None:
            return
        reached = self.timeline.value()
        while self.in_flight and self.in_flight[0].number <= reached:
            number, _, unreported_errors, _ = self.in_flight.popleft()
            failure = None if unreported_errors is None else _failure(self.timeline, number, 0.0)
            if failure is not None and unreported_errors is not None:
                unreported_errors.append(failure)

    def leave(self, share: int) -> bool:
        """A share is closed, or was dropped. True if none is left: then the caller closes the device state. Two threads
        that leave at one time may both get True; `close` may be called twice.
        """
        self.shares.pop(share, None)
        return not self.shares

    def close(self) -> None:
        """Close the backend as soon as no ref is left and no work is under way. Until then `_unfinished` keeps it."""
        self.closed = True
        with self.lock:
            with suppress(HalError):  # nobody knows then what is under way: nothing is released
                self.recover()
            self.retire()
            self._clear()
        if not self.abandoned and (self.unfinished or self.current is not None):
            _unfinished.add(self)

    @property
    def unfinished(self) -> int:
        """Submissions that are not over, as far as was seen."""
        return len(self.in_flight)

    def _clear(self) -> bool:
        """Release what may go; whether all of it was. The lock is held."""
        if self.barrier and self.timeline is not None:
            if self.timeline.value() < self.barrier:
                return False
            self.barrier = 0
        while self.garbage:
            row = self.garbage[0]
            del self.garbage[0]  # no call before this: it is released once, whatever comes between
            self._release(*row)
        if self.closed and not (self.owned or self.in_flight or self.abandoned) and self.current is None:
            self._shut()
        return True

    def _release(self, backend: Releasable, accounts: tuple[Account, ...], size: int) -> None:
        """If an exception ends this in the middle, the driver keeps the object, and the device stays open."""
        try:
            backend.release()
            self.owned.discard(id(backend))
        finally:
            for account in accounts:
                account.refund(size)

    def finish(self, seconds: float) -> bool:
        """At the end of the process: wait for work that runs. False if it is not over after `seconds`. Submissions that
        wait for a signal do not run, and are not waited for.
        """
        if self.abandoned or not self.lock.acquire(timeout=seconds):
            return self.abandoned
        try:
            with suppress(HalError):  # what is known to be under way is waited for all the same
                self.recover()
            timeline, rows = self.timeline, [*self.in_flight]
        finally:
            self.lock.release()
        if timeline is None:
            return True
        end = time.monotonic() + seconds
        for row in rows:
            if any([semaphore.value() < value for semaphore, value in row.waits]):
                return True
            if not _reached(timeline, row.number, max(0.0, end - time.monotonic())):
                return False
        return True

    def _shut(self) -> None:
        self.abandoned = True
        if self.timeline is not None:
            self.timeline.release()
        self.backend.close()


def _failure(timeline: BackendSemaphore, number: int, timeout: float | None) -> HalError | None:
    try:
        timeline.wait(number, timeout)
    except HalError as error:
        return error
    return None


def _reached(timeline: BackendSemaphore, number: int, timeout: float | None) -> bool:
    """Whether the number is reached within the time, with success or without."""
    try:
        return timeline.wait(number, timeout)
    except HalError:
        return True


_device_states: weakref.WeakSet[DeviceState] = weakref.WeakSet()
#: closed homes with work under way, which nothing else refers to
_unfinished: set[DeviceState] = set()


def _sweep() -> None:
    """Let go of closed homes whose work is over by now."""
    for state in [*_unfinished]:
        state.collect()
        if state.abandoned or not state.in_flight and state.current is None:
            _unfinished.discard(state)


@after_fork
def _leave(parent: int) -> None:
    """They are the parent's, who releases what is in them."""
    _abandon()


@atexit.register
def _exit() -> None:
    """Wait for running work: a driver may crash if the system takes memory back under it."""
    try:
        for state in [*_device_states]:
            if not state.finish(EXIT_SECONDS):
                name, count = state.backend.info.id, state.unfinished
                print(f"device {name}: {count} submissions were not over after {EXIT_SECONDS} s", file=sys.stderr)
    finally:
        _abandon()


def _abandon() -> None:
    """At exit the system takes everything back; finalizers that run while modules are torn down must not."""
    for state in _device_states:
        state.abandoned = True
