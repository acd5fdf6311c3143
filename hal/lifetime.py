"""Who keeps a driver's objects alive, and when they are released.

- A `Lease` owns one backend object. Handles (`Buffer`, `CommandBuffer`, …) hold one; a recording holds those of all it
  refers to; work in flight holds those of its recording and table. When the last holder lets go, the
  object is released, never earlier. So `release` on a handle ends its use, not the work under way.
- A `Home` is one open backend device. Its lock is held by whoever uses the queue; nobody ever waits for that lock to
  release an object: what cannot be released now is left in `garbage`, and the holder of the lock clears it.
- Work that was submitted (not executed) carries a number on the home's own timeline, and its leases
  stay in `in_flight` until that number is reached.
- A closed home closes its backend when the last lease is gone, so that memory still in use is never freed.
"""

import atexit
import threading
import weakref
from collections import deque
from collections.abc import Iterable
from typing import Protocol

from .backend import BackendDevice, BackendSemaphore, Bytes
from .errors import HalError
from .fork import after_fork


class Releasable(Protocol):
    def release(self) -> None: ...


class Submitted(Protocol):
    submitted: int


class Account:
    """Bytes in use and their limit. Refunds never lock, for they come from finalizers."""

    __slots__ = ("_freed", "_live", "_lock", "limit", "peak")

    def __init__(self, limit: int | None) -> None:
        self.limit = limit
        self.peak = 0
        self._live = 0
        self._freed: deque[int] = deque()
        self._lock = threading.Lock()

    def charge(self, size: int) -> bool:
        """Take `size` bytes; False, and nothing taken, when the limit forbids it."""
        with self._lock:
            live = self._settle() + size
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
            return self._settle()

    def _settle(self) -> int:
        while self._freed:
            self._live -= self._freed.popleft()
        return self._live


class Lease:
    """Ownership of one backend object, and of the bytes it was charged for."""

    __slots__ = ("accounts", "backend", "home", "size")

    def __init__(self, home: "Home", backend: Releasable, accounts: tuple[Account, ...] = (), size: int = 0) -> None:
        self.home = home
        self.backend = backend
        self.accounts = accounts
        self.size = size
        home.owned.add(id(backend))

    def __del__(self) -> None:
        self.home.discard(self.backend, self.accounts, self.size)


class Home:
    """One open backend device: the queue's lock, work in flight, garbage."""

    __slots__ = (
        "__weakref__",
        "_last",
        "abandoned",
        "backlog",
        "backend",
        "closed",
        "garbage",
        "in_flight",
        "lock",
        "owned",
        "shares",
        "sources",
        "submitted",
        "timeline",
    )

    def __init__(self, backend: BackendDevice) -> None:
        self.backend = backend
        self.lock = threading.Lock()
        self.garbage: deque[tuple[Releasable, tuple[Account, ...], int]] = deque()
        self.in_flight: deque[tuple[int, tuple[object, ...], list[HalError] | None]] = deque()
        self.timeline: BackendSemaphore | None = None
        self.submitted = 0
        self.owned: set[int] = set()
        self.sources: list[tuple[Bytes, Lease]] = []
        self.backlog = 0
        #: a token per share, and one for whoever is the last to leave: `pop` settles races without a lock
        self.shares: list[None] = []
        self._last = [None]
        self.closed = False
        self.abandoned = False
        _homes.add(self)

    def discard(self, backend: Releasable, accounts: tuple[Account, ...], size: int) -> None:
        """Release soon: now if the queue is free, else when its holder lets go. Never blocks."""
        if self.abandoned:
            return
        self.garbage.append((backend, accounts, size))
        self.collect()

    def collect(self) -> None:
        """Release what nothing refers to any more, unless another thread holds the queue, which then does it."""
        while (self.garbage or self.in_flight) and self.lock.acquire(False):
            try:
                if self.in_flight:
                    self.retire()
                self._clear()
            finally:
                self.lock.release()
            if not self.garbage:
                return

    def make_room(self) -> None:
        """Release all that can be without waiting for submitted work."""
        self.collect()
        if not self.sources or self.in_flight:
            return
        with self.lock:
            self.backend.queue.wait_idle()
            self.forget_sources()
        self.collect()

    def untrack(self) -> None:
        """The submission tracked last did not come about; the lock is held."""
        self.in_flight.pop()
        self.submitted -= 1

    def track(self, leases: Iterable[object], unheard: list[HalError] | None) -> tuple[BackendSemaphore, int]:
        """Keep leases until the point given is reached. Where no fence will tell of a failure, `unheard` receives it.
        The lock is held.
        """
        if self.timeline is None:
            self.timeline = self.backend.create_semaphore(0)
        self.submitted += 1
        self.in_flight.append((self.submitted, tuple(leases), unheard))
        return self.timeline, self.submitted

    def wait_for(self, resource: "Submitted") -> None:
        """Wait until the last submission that uses a buffer is over. Raises, once, the error of one that failed."""
        last, resource.submitted = resource.submitted, 0
        if self.timeline is not None:
            self.timeline.wait(last, None)

    def wait_submitted(self, last: int) -> None:
        """Wait until submission `last`, and so all before it, is over, and no write waits in the driver."""
        if last and self.timeline is not None:
            if self.timeline.value() < last:
                _failure(self.timeline, last, None)
            with self.lock:
                self.retire()
        if self.sources:
            with self.lock:
                self.backend.queue.wait_idle()
                self.forget_sources()
        self.collect()

    def forget_sources(self) -> None:
        """The queue was waited for: what writes copied from is needed no more; the lock is held."""
        self.sources.clear()
        self.backlog = 0

    def retire(self) -> None:
        """Let go of what finished work held; the lock is held."""
        if not self.in_flight or self.timeline is None:
            return
        reached = self.timeline.value()
        while self.in_flight and self.in_flight[0][0] <= reached:
            number, _, unheard = self.in_flight.popleft()
            failure = None if unheard is None else _failure(self.timeline, number, 0.0)
            if failure is not None and unheard is not None:
                unheard.append(failure)

    def leave(self) -> bool:
        """A share is closed, or was dropped. True for the last one, who then closes the home."""
        self.shares.pop()
        if self.shares:
            return False
        try:
            self._last.pop()
        except IndexError:  # another thread left at the same time and closes
            return False
        return True

    def close(self) -> None:
        """Close the backend as soon as no lease is left; never, if work is under way that nobody waited for."""
        self.closed = True
        with self.lock:
            self.retire()
            self._clear()

    def _clear(self) -> None:
        while self.garbage:
            backend, accounts, size = self.garbage.popleft()
            backend.release()
            self.owned.discard(id(backend))
            for account in accounts:
                account.refund(size)
        if self.closed and not self.owned:
            self._shut()

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


_homes: weakref.WeakSet[Home] = weakref.WeakSet()


@after_fork
def _leave(parent: int) -> None:
    """They are the parent's, who releases what is in them."""
    _abandon()


@atexit.register
def _abandon() -> None:
    """At exit the system takes everything back; finalizers that run while modules are torn down must not."""
    for home in _homes:
        home.abandoned = True
