"""A thread that releases what finalizers left, for devices that are not called any more.

A finalizer may run between any two steps of any thread, also of one that holds a lock. So it takes no lock and calls no
driver: it appends the object to the `garbage` of its device state and puts the state into this thread's queue, whose
`put` is safe in finalizers (`queue.SimpleQueue`). The next call of the device, or the next allocation, releases the
object. This thread checks a moment later and releases the rest.
"""

import atexit
import time
import traceback
from _thread import start_new_thread
from queue import SimpleQueue
from typing import Protocol

from .fork import after_fork, new_lock

#: seconds between a finalizer and the release by this thread; most devices are called again before that
PAUSE = 0.02
#: seconds that process exit waits for a release in progress
EXIT_SECONDS = 5.0


class Reapable(Protocol):
    def reap(self) -> bool:
        """Release what may be released. Returns whether another call may release more."""


class Reaper:
    """One thread for all devices, started with the first device."""

    def __init__(self) -> None:
        self._working = new_lock()  #: held while states are reaped
        self._ended = False
        self.renew()

    def renew(self) -> None:
        """Reset to a new reaper without a thread: in a forked process, thread and queue belong to the parent."""
        self._rows: SimpleQueue[Reapable] = SimpleQueue()
        self._started = False

    def start(self) -> None:
        """Start the thread unless it runs. Must not be called by finalizers."""
        if not self._started:
            self._started = True
            start_new_thread(self._work, ())

    def schedule(self, state: Reapable) -> None:
        """Have a state reaped soon. For finalizers: a single call in C."""
        self._rows.put(state)

    def end(self) -> None:
        """At exit: stop the thread. A thread that the interpreter ends inside of a driver may crash the process."""
        self._ended = True
        if self._working.acquire(timeout=EXIT_SECONDS):
            self._working.release()

    def _work(self) -> None:
        while not self._ended:
            states = [self._rows.get()]
            time.sleep(PAUSE)
            while not self._rows.empty():
                states.append(self._rows.get())
            with self._working:
                self._reap(states)
            del states

    def _reap(self, states: list[Reapable]) -> None:
        for state in dict.fromkeys(states):
            if self._ended:
                return
            try:
                again = state.reap()
            except Exception:  # a warning that is an error, say: the next state is served all the same
                traceback.print_exc()
                continue
            if again:
                self._rows.put(state)


reaper = Reaper()


@after_fork
def _renew(parent: int) -> None:
    reaper.renew()


@atexit.register
def _end() -> None:
    reaper.end()
