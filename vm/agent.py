"""The two threads of a device that serve all submitted calls on it: one runs their code, one waits for the device.

- An `Agent` is a thread with a row of events, run one after the other, and a clock. It starts with the first event and
  ends after `LINGER` seconds without any, so nobody has to close it. Events never fail.
- A device's `Agents` are found by its state, so contexts and programs of one open device share them. Submissions are
  made by `run` alone and end in their order, so `wait` only ever blocks on the oldest.
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
LINGER = 1.0


class Timer:
    """An event at a moment of the monotonic clock, until `stop`."""

    __slots__ = ("_event", "_when")

    def __init__(self, when: float, event: Event) -> None:
        self._when = when
        self._event: Event | None = event

    def stop(self) -> None:
        self._event = None

    def left(self) -> float | None:
        """Seconds until it is due; None when it was stopped."""
        return None if self._event is None else self._when - time.monotonic()

    def event(self) -> Event | None:
        return self._event

    def __lt__(self, other: Timer) -> bool:
        return self._when < other._when


class Agent:
    """One thread that runs events in order."""

    __slots__ = ("_alive", "_alone", "_changed", "_events", "_name", "_posted", "_timers")

    def __init__(self, name: str) -> None:
        self._name = name
        self._changed = Changed()
        self._events: deque[Event] = deque()
        self._timers: list[Timer] = []
        self._alone = new_lock()  #: held by the thread while it lives
        self._alive = False
        self._posted = 0

    def post(self, event: Event) -> None:
        """Run an event soon, after those posted before."""
        with self._changed.lock:
            self._events.append(event)
            self._wake()

    def at(self, when: float, event: Event) -> Timer:
        """Run an event when the monotonic clock reaches `when`."""
        timer = Timer(when, event)
        with self._changed.lock:
            heappush(self._timers, timer)
            self._wake()
        return timer

    def _wake(self) -> None:
        """Under the lock."""
        if not self._alive:
            start_thread(self._work, self._name)  # after an exception here a second one starts, and ends at once
            self._alive = True
        self._posted += 1
        self._changed.notify()

    def _work(self) -> None:
        if not self._alone.acquire(False):
            return
        try:
            while (event := self._next()) is not None:
                event()
                del event
        except BaseException:
            with self._changed.lock:
                self._end()  # the next event starts another
            raise

    def _next(self) -> Event | None:
        """The next event, waited for; None when the thread is to end."""
        idle = time.monotonic() + LINGER
        while True:
            with self._changed.lock:
                left = self._due()
                if self._events:
                    return self._events.popleft()
                patience = idle - time.monotonic() if left is None else min(left, LINGER)
                if patience <= 0:
                    self._end()
                    return None
                posted = self._posted
            self._changed.wait_for(lambda posted=posted: self._posted != posted, patience)  # type: ignore[misc]

    def _end(self) -> None:
        """Under the lock."""
        self._alive = False
        self._alone.release()

    def _due(self) -> float | None:
        """Make events of the timers that are due; seconds until the next, None without one."""
        while self._timers:
            left = self._timers[0].left()
            if left is not None and left > 0:
                return left
            event = heappop(self._timers).event()
            if event is not None:
                self._events.append(event)
        return None


class Agents:
    """The threads of one device: `run` for code, `wait` for the device."""

    __slots__ = ("run", "wait")

    def __init__(self, device: str) -> None:
        self.run = Agent(f"orchestrion-calls-{device}")
        self.wait = Agent(f"orchestrion-waits-{device}")

    @staticmethod
    def of(state: DeviceState) -> Agents:
        """Those of an open device, made when first asked for."""
        with _lock:
            found = _agents.get(state)
            if found is None:
                found = _agents[state] = Agents(state.backend.info.id)
            return found


@after_fork
def _forget(parent: int) -> None:
    """Their threads are the parent's."""
    _agents.clear()


_lock = new_lock()
_agents: weakref.WeakKeyDictionary[DeviceState, Agents] = weakref.WeakKeyDictionary()
