"""Who keeps a driver's objects alive, and when they are released.

Ownership:
- A `ResourceRef` owns one backend object. A handle (`Buffer`, `CommandBuffer`, …) holds one. A recording holds those of
  everything it refers to. Submitted work holds those of its recording and table. When the last holder is gone, the
  object is garbage. So `release` on a handle ends its use, not the work in flight.
- A `DeviceState` is one open backend device. Whoever uses the queue holds its `lock`.

Finalizers:
- They run between any two steps of any thread, so they take no lock and call no driver. The finalizer of a ref only
  appends to `garbage`, that of a device only to `dropped_shares`. The next call of the device, the next allocation,
  `release` of a handle, or the `reaper` does the rest (`collect`).
- Objects are released under the lock. No thread waits for the lock to release one: its holder, or the reaper, does it.
- A driver's `release` that raises is counted and causes a warning; the object counts as released. One that Ctrl-C ends
  leaves its object with the driver (`unreleased`).

Work in flight:
- Work that was *submitted* has a number on the device state's own timeline. Its refs stay in `in_flight` until that
  number is reached.
- Work that was *launched* by a blocking call on a driver that overlaps is a `LaunchedCall`, numbered by `launch_count`.
  It takes no refs, because that would cost each call. Instead, garbage that is found while calls are in flight moves to
  `deferred_garbage`, with the number launched last. It stays there until no call up to that number is in flight. A
  later call cannot use it, since its handles are gone.
- Work that was *executed* under the lock is over when the lock is free.

Exceptions inside of a call (Ctrl-C, an error of the driver):
- `current` holds the work that is being given to the driver under the lock, and is None between two calls. A
  `LaunchedCall` that an exception ended is in `interrupted_calls`. Whoever takes the lock to use the queue and finds
  either calls `recover` first: the driver signals another number once all submitted work is over, and nothing is
  released before that (`release_barrier`).
- Calls of other threads are not affected.

Loss:
- A driver that raises `DeviceLost` loses the device for all shares (`lose`): a `LostDevice` replaces the backend, and
  refuses every use. Waiting, releasing and closing continue with the driver's own device.

Closing: a closed state closes its backend when the last ref is gone and nothing is in flight, so memory in use is never
freed. If work does not end, the driver's objects live as long as the process.
"""

import logging
import sys
import time
import warnings
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import partial
from itertools import repeat, starmap
from typing import TYPE_CHECKING

from . import open_states
from .account import Account as Account
from .account import refund
from .backend import BackendDevice, BackendSemaphore, Point, Watcher
from .errors import DeviceLost, HalError
from .fork import new_lock
from .lost import DetectLoss, LostDevice
from .memory_pressure import MemoryPressureCallbacks
from .reaper import reaper
from .resources import Batch as Batch
from .resources import Garbage, Releasable, SubmissionRecord, Submitted
from .resources import LaunchedCall as LaunchedCall
from .resources import ResourceRef as ResourceRef
from .waiting import attempt, to_its_end

if TYPE_CHECKING:
    from .device import Device
    from .streaming import StreamingDevice

_log = logging.getLogger("orchestrion.hal")

#: seconds that closing a device waits for its work by default
CLOSE_SECONDS = 30.0
#: seconds between two calls of a watcher
WATCH_SECONDS = 0.1
#: consecutive failures of the driver after which the reaper stops until the next finalizer
MAX_FAILED_REAPS = 5
#: seconds between two polls of calls of other threads: the first pause, and the longest
FIRST_POLL, LAST_POLL = 0.0002, 0.005


class DeviceState:
    """One open backend device: the queue's lock, work in flight, and garbage."""

    __slots__ = (
        "__weakref__",
        "_writes_forgotten",
        "_reap_scheduled",
        "_failed_reaps",
        "_warnings",
        "abandoned",
        "pending_write_bytes",
        "backend",
        "release_barrier",
        "interrupted_calls",
        "close_seconds",
        "closed",
        "current",
        "dropped_shares",
        "driver",
        "launched_calls",
        "garbage",
        "idle_calls",
        "in_flight",
        "launch_count",
        "deferred_garbage",
        "lock",
        "lost",
        "memory_pressure",
        "owned",
        "release_failures",
        "shares",
        "pending_writes",
        "streaming",
        "submitted",
        "timeline",
        "unreleased",
        "unsure",
        "writes_begun",
    )

    def __init__(self, backend: BackendDevice) -> None:
        #: the device that the front calls; a `LostDevice` once the device is lost
        self.backend = backend
        #: the driver's open device, for waiting, releasing and closing
        self.driver = backend
        #: why the device is lost; None otherwise
        self.lost: DeviceLost | None = None
        #: callbacks that release memory when it runs out
        self.memory_pressure = MemoryPressureCallbacks()
        self.lock = new_lock()
        self.garbage: deque[Garbage] = deque()
        #: garbage that calls up to this number may use
        self.deferred_garbage: deque[tuple[int, Garbage]] = deque()
        #: shares dropped without `close`: number, and the function that clears the executable cache after the last one
        self.dropped_shares: deque[tuple[int, Callable[[], None]]] = deque()
        self.release_failures = 0
        #: those of `owned` whose release Ctrl-C ended: the driver keeps them, so their ids are not given to others
        self.unreleased: dict[int, Releasable] = {}
        self._warnings: deque[str] = deque()
        self._reap_scheduled = False  #: whether the reaper will call `reap`
        self._failed_reaps = 0  #: consecutive calls of `reap` in which the driver failed
        self.in_flight: deque[SubmissionRecord] = deque()
        self.timeline: BackendSemaphore | None = None
        self.submitted = 0
        #: all launched calls, those whose objects may be reused, and those that an exception ended
        self.launched_calls: list[LaunchedCall] = []
        self.idle_calls: list[LaunchedCall] = []
        self.interrupted_calls: deque[LaunchedCall] = deque()
        self.launch_count = 0
        self.owned: set[int] = set()
        #: bytes and target buffer of each write that may not be over; `writes_begun` counts all writes ever begun
        self.pending_writes: deque[tuple[int, ResourceRef]] = deque()
        self.writes_begun = self._writes_forgotten = 0
        self.pending_write_bytes = 0
        #: the open shares by number, in the order of opening
        self.shares: dict[int, weakref.ref[Device]] = {}
        self.closed = False
        self.abandoned = False
        #: the work that is being given to the driver under the lock; None between two of its calls
        self.current: Batch | None = None
        #: the signals of the submission in `current`
        self.unsure: Sequence[Point] = ()
        #: nothing is released before the timeline reaches this number; 0 without one
        self.release_barrier = 0
        self.close_seconds: float = CLOSE_SECONDS
        self.streaming: StreamingDevice | None = None  #: the layer in `backend` that streams constants
        open_states.enter(self)
        reaper.start()

    def discard(self, backend: Releasable, accounts: tuple[Account, ...], size: int) -> None:
        """Queue an object for release. For finalizers."""
        if not self.abandoned:
            self.garbage.append(Garbage(backend, accounts, size))
            self._schedule_reap()

    def drop_share(self, share: int, forget: Callable[[], None]) -> None:
        """Record that a share was dropped without `close`. `forget` is called if it was the last one. For
        finalizers.
        """
        if not self.abandoned:
            self.dropped_shares.append((share, forget))
            self._schedule_reap()

    def _schedule_reap(self) -> None:
        if not self._reap_scheduled:
            self._reap_scheduled = True
            reaper.schedule(self)

    def reap(self) -> bool:
        """Called by the reaper: `collect`. Returns whether the reaper must call again.

        If the driver fails, it calls again a few times. After that the next call of the device releases the rest, or
        raises.
        """
        self._reap_scheduled = False
        try:
            self.collect()
            self._failed_reaps = 0
        except HalError as error:
            self._failed_reaps += 1
            _log.info("%s: what finalizers left is not released yet: %s", self.driver.info.id, error)
        again = (
            bool(self.garbage or self.deferred_garbage or self.dropped_shares or self._failed_reaps)
            and not self.abandoned
        )
        again = again and self._failed_reaps < MAX_FAILED_REAPS
        self._reap_scheduled = self._reap_scheduled or again
        return again

    def collect(self) -> None:
        """Release all garbage, unless another thread holds the queue; that thread then does it."""
        while (self.garbage or self.deferred_garbage or self.in_flight or self.dropped_shares) and self._collect():
            if not self.garbage:
                break
        if self._warnings:
            self._warn()

    def _collect(self) -> bool:
        """`collect` once. Returns False if it was not possible."""
        held: list[bool] = []
        try:
            attempt(self.lock, held)
            if not held or self.current is not None:
                return False
            while self.dropped_shares:
                share, forget = self.dropped_shares[0]
                self.shares.pop(share, None)
                if not self.shares:
                    forget()
                    self.closed = True
                del self.dropped_shares[0]
            if self.in_flight:
                self.retire()
            cleared = self._release_garbage()
            if self.closed and not self.abandoned and self.unfinished:
                open_states.keep(self)
            return cleared
        finally:
            if held:
                self.lock.release()

    def make_call(self) -> LaunchedCall:
        """Returns a new `LaunchedCall`. The lock is held."""
        call = LaunchedCall(self.backend.queue.create_ticket())
        self.launched_calls.append(call)
        return call

    def recover_interrupted_call(self) -> None:
        """Called without the lock after an exception ended a call that is now in `interrupted_calls`.

        From now on, host access to its buffers waits. If recovery fails, the next user of the queue tries again.
        """
        self._handle_loss()
        to_its_end(self._mark_buffers)
        with suppress(HalError), self.lock:
            self.recover()

    def recover_current(self) -> None:
        """As `recover_interrupted_call`, after an exception ended a call of the driver with `current` set. The lock is
        held.
        """
        if self._handle_loss():
            self.current, self.unsure = None, ()
            return
        to_its_end(self._mark_buffers)
        with suppress(HalError):  # `current` stays set then
            self.recover()

    def _handle_loss(self) -> bool:
        """Lose the device if the exception being handled is DeviceLost. Returns True if the device was lost before, so
        that the driver received nothing.
        """
        error = sys.exc_info()[1]
        if not isinstance(error, DeviceLost):
            return False
        if not error.refused:
            to_its_end(partial(self.lose, error))
        return error.refused

    def lose(self, error: DeviceLost) -> None:
        """Mark the device as lost: from now on every use of it is refused. A second call does nothing.

        Thread-safe, with or without the lock.
        """
        if self.lost is not None or self.driver is not self.backend:
            return
        reason = DeviceLost(str(error))
        self.backend = LostDevice(self.driver, reason)  # type: ignore[abstract]
        self.lost = reason
        self.idle_calls.clear()
        for share in [*self.shares.values()]:
            device = share()
            if device is not None:
                device.invalidate_after_loss()

    def _mark_buffers(self) -> None:
        for batch in (self.current or (), *[call.batch for call in [*self.interrupted_calls]]):
            for commands, buffers in batch:
                for buffer in (*buffers, *(() if commands is None else commands.direct)):
                    buffer.submitted = self.submitted + 1

    def recover(self) -> None:
        """If an exception ended an earlier call, have the driver signal when all submitted work is over
        (`BackendQueue.recover`).

        The lock is held. Does not wait if the driver can signal by itself. It can be called again after an exception.
        """
        if self.current is None and not self.interrupted_calls:
            return
        broken = [*self.interrupted_calls]
        self._mark_buffers()
        point = self.track((), None)
        self.release_barrier = self.submitted
        for call in broken:
            self.driver.queue.abandon(call.ticket)
        self.driver.queue.recover([point], self.unsure)
        self.unsure = ()
        self.current = None
        for call in broken:
            call.batch = ()  # the barrier stands for it
            self.interrupted_calls.popleft()
        self.launched_calls = [call for call in self.launched_calls if call not in broken]

    def _recover(self) -> None:
        """`recover` for callers that do not hold the lock."""
        if self.current is not None or self.interrupted_calls:
            with self.lock:
                self.recover()

    def make_room(self) -> None:
        """Release everything that can be released without waiting for submitted work."""
        if self.driver.queue.overlaps or self.pending_writes and not self.in_flight:  # nobody holds the lock for long
            with self.lock, suppress(HalError):
                self.recover()
                if self.pending_writes and not self.in_flight:
                    self.driver.queue.wait_idle()
                    self.forget_writes(self.writes_begun)
        self.collect()

    @property
    def is_stalled(self) -> bool:
        """Whether submitted work waits for a signal that may never come. The lock is held."""
        return any([semaphore.value() < value for row in self.in_flight for semaphore, value in row.waits])

    def untrack(self) -> None:
        """Undo the last `track`: the submission was not made. The lock is held."""
        self.in_flight.pop()
        self.submitted -= 1

    def track(
        self, refs: Iterable[object], unreported_errors: list[HalError] | None, waits: Sequence[Point] = ()
    ) -> tuple[BackendSemaphore, int]:
        """Keep refs alive until the returned point is reached. `unreported_errors` receives the submission's error if
        no fence reports it. The lock is held.
        """
        if self.timeline is None:
            self.timeline = self.driver.create_semaphore(0)
        self.submitted += 1
        self.in_flight.append(SubmissionRecord(self.submitted, tuple(refs), unreported_errors, waits))
        return self.timeline, self.submitted

    def reached(self) -> int:
        """Number of the last submission that is over; 0 without one."""
        if self.timeline is None:
            return 0
        with DetectLoss(self):
            return self.timeline.value()

    def _over(self, number: int, timeout: float | None) -> bool:
        """Whether a submission is over within `timeout` seconds, with success or without."""
        assert self.timeline is not None
        try:
            with DetectLoss(self):
                return self.timeline.wait(number, timeout)
        except HalError:
            return True

    def wait_for(self, resource: "Submitted") -> None:
        """Wait until the last submission that uses a buffer is over. Raises the error of a failed submission once."""
        self._recover()
        if self.timeline is not None:
            last = resource.submitted
            try:
                self.timeline.wait(last, None)
            except HalError as error:
                resource.submitted = 0
                if isinstance(error, DeviceLost):
                    self.lose(error)
                raise
            if resource.submitted == last:
                resource.submitted = 0

    def watch(self, last: int, watcher: Watcher) -> None:
        """Wait until submission `last` is over, or `watcher.check` raises. Errors of the submission are reported
        elsewhere.
        """
        self._recover()
        if last and self.timeline is not None and self.reached() < last:
            while not self._over(last, WATCH_SECONDS):
                watcher.check()

    def wait_submitted(self, last: int, timeout: float | None = None) -> bool:
        """Wait until submission `last` and all before it are over, and no write is pending in the driver. Returns False
        if `timeout` seconds pass first.
        """
        self._recover()
        last = max(last, self.release_barrier)
        if last and self.timeline is not None:
            if self.reached() < last and not self._over(last, timeout):
                return False
            with self.lock:
                self.retire()
        if self.pending_writes:
            with self.lock:
                self.recover()
                self.driver.queue.wait_idle()
                self.forget_writes(self.writes_begun)
        self.collect()
        return True

    def wait_launched_calls(self, timeout: float) -> bool:
        """Wait until the blocking calls of other threads that are in flight now are over. Returns False if `timeout`
        seconds pass first. The lock is not held.
        """
        last, pause, end = self.launch_count, FIRST_POLL, time.monotonic() + timeout
        while self._oldest_call(last + 1) <= last:
            if time.monotonic() >= end:
                return False
            with suppress(HalError):
                self._recover()
            time.sleep(pause)
            pause = min(2 * pause, LAST_POLL)
        return True

    def _oldest_call(self, none: int) -> int:
        """The least number of a call in flight; `none` without one."""
        return min((call.number for call in [*self.launched_calls] if call.batch), default=none)

    def add_write(self, size: int, ref: ResourceRef) -> None:
        """Keep the target buffer of a write of `size` bytes alive. The lock is held."""
        self.pending_writes.append((size, ref))
        self.writes_begun += 1
        self.pending_write_bytes += size

    def forget_writes(self, written: int) -> None:
        """The first `written` writes are over: drop their buffers. The lock is held."""
        while self._writes_forgotten < written:
            size, _ = self.pending_writes.popleft()
            self.pending_write_bytes -= size
            self._writes_forgotten += 1

    def retire(self) -> None:
        """Drop the refs of finished submissions. The lock is held."""
        if not self.in_flight or self.timeline is None:
            return
        reached = self.reached()
        while self.in_flight and self.in_flight[0].number <= reached:
            number, _, unreported_errors, _ = self.in_flight.popleft()
            failure = None if unreported_errors is None else _failure(self.timeline, number, 0.0)
            if isinstance(failure, DeviceLost):
                self.lose(failure)
            if failure is not None and unreported_errors is not None:
                unreported_errors.append(failure)

    def leave(self, share: int) -> bool:
        """Remove a share that was closed or dropped. Returns True if none is left; then the caller closes the device
        state. Two threads that leave at the same time may both get True; `close` may be called twice.
        """
        self.shares.pop(share, None)
        return not self.open_shares

    @property
    def open_shares(self) -> int:
        """The number of shares that are neither closed nor dropped."""
        return len(self.shares.keys() - {share for share, _ in [*self.dropped_shares]})

    def close(self) -> None:
        """Close the backend as soon as no ref is left and no work is in flight. Until then `open_states` keeps this
        object alive.
        """
        self.closed = True
        with self.lock:
            with suppress(HalError):  # nobody knows then what is under way: nothing is released
                self.recover()
            self.retire()
            self._release_garbage()
        if not self.abandoned and (self.unfinished or self.current is not None):
            open_states.keep(self)
        if self._warnings:
            self._warn()

    @property
    def unfinished(self) -> int:
        """The number of submissions and blocking calls that are not known to be over."""
        return len(self.in_flight) + sum([bool(call.batch) for call in [*self.launched_calls]])

    def _release_garbage(self) -> bool:
        """Release the garbage that no work in flight uses. Returns whether that was all of it. The lock is held."""
        if self.release_barrier and self.timeline is not None:
            if self.reached() < self.release_barrier:
                return False
            self.release_barrier = 0
        launched = self.launch_count
        oldest = self._oldest_call(launched + 1)
        if self.garbage:  # in one step of C, so that no exception comes between taking out and putting in
            count = len(self.garbage)
            self.deferred_garbage.extend(
                zip(repeat(launched, count), starmap(self.garbage.popleft, repeat((), count)), strict=True)
            )
        while self.deferred_garbage and self.deferred_garbage[0][0] < oldest:
            self._release_first()
        if self.closed and not (self.owned or self.unfinished or self.abandoned) and self.current is None:
            self._close_backend()
        return not self.deferred_garbage

    def _release_first(self) -> None:
        """Release the first of `deferred_garbage`. If Ctrl-C ends it, the driver keeps the object (`unreleased`)."""
        row = self.deferred_garbage[0][1]
        done, accounts = list[None](), [*row.accounts]
        try:
            done.extend(starmap(row.backend.release, ((),)))  # one step of C: after its end it is known to be done
            self._released(row, done, accounts)
        except BaseException as error:
            if isinstance(error, Exception):
                done.append(None)
            to_its_end(partial(self._released, row, done, accounts))
            if not isinstance(error, Exception):
                raise
            self.release_failed(f"{type(row.backend).__name__} was not released", error)

    def _released(self, row: Garbage, done: list[None], accounts: list[Account]) -> None:
        """Take out a row whose object was released, or stays with the driver. Repeating it is harmless."""
        if self.deferred_garbage and self.deferred_garbage[0][1] is row:
            if done:
                self.owned.discard(id(row.backend))
            else:
                self.unreleased[id(row.backend)] = row.backend
            refund(accounts, row.size)
            del self.deferred_garbage[0]

    def release_failed(self, what: str, error: Exception) -> None:
        """Record an error of the driver that no caller waits for; `_warn` reports it once the lock is free."""
        self.release_failures += 1
        self._warnings.append(f"device {self.backend.info.id}: {what}: {type(error).__name__}: {error}")

    def _warn(self) -> None:
        with suppress(IndexError):  # another thread does the same
            while True:
                warnings.warn(self._warnings.popleft(), RuntimeWarning, 3)

    def finish(self, seconds: float) -> bool:
        """At process exit: wait for running work. Returns False if it is not over after `seconds`. Submissions that
        wait for a signal do not run, and are not waited for.
        """
        if self.abandoned:
            return True
        end = time.monotonic() + seconds
        if not self.lock.acquire(timeout=seconds):
            return False
        try:
            with suppress(HalError):  # what is known to be under way is waited for all the same
                self.recover()
            rows = [*self.in_flight] if self.timeline is not None else []
        finally:
            self.lock.release()
        if not self.wait_launched_calls(max(0.0, end - time.monotonic())):
            return False
        for row in rows:
            if any([semaphore.value() < value for semaphore, value in row.waits]):
                return True
            if not self._over(row.number, max(0.0, end - time.monotonic())):
                return False
        return True

    def _close_backend(self) -> None:
        self.abandoned = True
        try:
            if self.timeline is not None:
                self.timeline.release()
        except Exception as error:
            self.release_failed("its timeline was not released", error)
        try:
            self.driver.close()
        except Exception as error:
            self.release_failed("it was not closed", error)


def _failure(timeline: BackendSemaphore, number: int, timeout: float | None) -> HalError | None:
    try:
        timeline.wait(number, timeout)
    except HalError as error:
        return error
    return None
