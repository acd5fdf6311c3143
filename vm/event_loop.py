"""Threads that run events: each device has two of them for its submitted calls.

- An `EventLoop` is a thread with a queue of events and timers. It runs one event at a time, in order. The thread starts
  with the first event and ends after `IDLE_SECONDS` without one, so nobody has to close it. Events do not raise.
- The `DeviceLoops` of an open device belong to its state, so all contexts and programs on the device share them. The
  loop `run` executes the code of submitted calls; the loop `wait` blocks until the device has finished work. Only `run`
  submits work and work ends in the order of submission, so `wait` always blocks on the oldest work.
"""

from __future__ import annotations

import time
import weakref
from collections import deque
from collections.abc import Callable
from heapq import heappop, heappush
from typing import TYPE_CHECKING

from orchestrion.hal.fork import after_fork, new_lock
from orchestrion.hal.waiting import Changed, start_thread

if TYPE_CHECKING:
    from orchestrion.hal.lifetime import DeviceState

Event = Callable[[], None]
#: seconds without events after which a thread ends
IDLE_SECONDS = 1.0


class Timer:
    """An event that is due at a time of the monotonic clock, unless `stop` is called before."""

    __slots__ = ("_event", "_when")

    def __init__(self, when: float, event: Event) -> None:
        self._when = when
        self._event: Event | None = event

    def stop(self) -> None:
        self._event = None

    def seconds_left(self) -> float | None:
        """Seconds until it is due, negative afterwards; None after `stop`."""
        return None if self._event is None else self._when - time.monotonic()

    def event(self) -> Event | None:
        return self._event

    def __lt__(self, other: Timer) -> bool:
        return self._when < other._when


class EventLoop:
    """A thread that runs events in order."""

    __slots__ = ("_alive", "_changed", "_events", "_name", "_posted", "_running", "_timers")

    def __init__(self, name: str) -> None:
        self._name = name
        self._changed = Changed()
        self._events: deque[Event] = deque()
        self._timers: list[Timer] = []
        self._running = new_lock()  #: held by the thread while it lives
        self._alive = False
        self._posted = 0

    def post(self, event: Event) -> None:
        """Run an event after those that were posted before."""
        with self._changed.lock:
            self._events.append(event)
            self._wake()

    def at(self, when: float, event: Event) -> Timer:
        """Run an event when the monotonic clock reaches `when`, in seconds."""
        timer = Timer(when, event)
        with self._changed.lock:
            heappush(self._timers, timer)
            self._wake()
        return timer

    def _wake(self) -> None:
        """Let the thread look at the queue; start it if there is none. The lock is held."""
        if not self._alive:
            start_thread(
                self._work, self._name
            )  # if this raises after the start, a second thread starts and ends at once
            self._alive = True
        self._posted += 1
        self._changed.notify()

    def _work(self) -> None:
        if not self._running.acquire(False):
            return
        try:
            while (event := self._next()) is not None:
                event()
                del event
        except BaseException:
            with self._changed.lock:
                self._end()  # the next event starts another thread
            raise

    def _next(self) -> Event | None:
        """Wait for the next event; None when the thread shall end."""
        idle_end = time.monotonic() + IDLE_SECONDS
        while True:
            with self._changed.lock:
                left = self._queue_due_timers()
                if self._events:
                    return self._events.popleft()
                timeout = idle_end - time.monotonic() if left is None else min(left, IDLE_SECONDS)
                if timeout <= 0:
                    self._end()
                    return None
                posted = self._posted
            self._changed.wait_for(lambda posted=posted: self._posted != posted, timeout)  # type: ignore[misc]

    def _end(self) -> None:
        """Note that the thread ends. The lock is held."""
        self._alive = False
        self._running.release()

    def _queue_due_timers(self) -> float | None:
        """Queue the events of timers that are due. Gives the seconds until the next timer; None without timers."""
        while self._timers:
            left = self._timers[0].seconds_left()
            if left is not None and left > 0:
                return left
            event = heappop(self._timers).event()
            if event is not None:
                self._events.append(event)
        return None


class DeviceLoops:
    """The event loops of one device: `run` executes code, `wait` blocks until the device has finished work."""

    __slots__ = ("run", "wait")

    def __init__(self, device: str) -> None:
        self.run = EventLoop(f"orchestrion-calls-{device}")
        self.wait = EventLoop(f"orchestrion-waits-{device}")

    @staticmethod
    def of(state: DeviceState) -> DeviceLoops:
        """The loops of an open device, made at the first call."""
        with _lock:
            found = _loops.get(state)
            if found is None:
                found = _loops[state] = DeviceLoops(state.backend.info.id)
            return found


@after_fork
def _forget(parent: int) -> None:
    """In a forked process there are no threads of the parent."""
    _loops.clear()


_lock = new_lock()
_loops: weakref.WeakKeyDictionary[DeviceState, DeviceLoops] = weakref.WeakKeyDictionary()
