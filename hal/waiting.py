"""Locks and waits that stay consistent when a signal handler raises in the middle of them, as Ctrl-C does.

Python runs signal handlers in the main thread after any function call, so `KeyboardInterrupt` may come between two
statements. What is safe, and what this file adds:
- `with lock:` of a `threading.Lock` enters and leaves in C: it is never interrupted halfway.
- `threading.Condition` is written in Python: an exception may leave its lock held for ever, or release it twice.
  `Changed` replaces it.
- After `lock.acquire(False)` the exception may come before the result is stored. `attempt` stores it in the same step.
"""

import threading
import time
from _thread import start_new_thread
from collections import deque
from collections.abc import Callable
from queue import Empty, SimpleQueue
from typing import Any

from .fork import new_lock

#: seconds after which a waiting thread checks its condition again: the thread that should wake it may have been ended
#: by an exception
POLL_SECONDS = 0.5
#: least bytes of the stack of a thread of this package, whatever the application sets for its own threads
STACK = 1 << 20
_stack_lock = new_lock()


def attempt(lock: Any, held: list[bool]) -> None:
    """Acquire a lock if it is free, and then put True into `held`: one call in C, so never one without the other.

    held: list[bool] = []
    try:
        attempt(lock, held)
        ...
    finally:
        if held:
            lock.release()
    """
    held.extend(filter(None, map(lock.acquire, (False,))))


def to_its_end(step: Callable[[], object]) -> None:
    """Run a short step, and run it again if Ctrl-C ended it. For use while an exception is already being handled: a
    second Ctrl-C is dropped. Repeating the step must be harmless.
    """
    while True:
        try:
            step()
            return
        except KeyboardInterrupt:
            continue


def start_thread(work: Callable[[], None], name: str) -> None:
    """Start a daemon thread without waiting for it. `threading.Thread.start` waits until the thread runs, and an
    exception may end that wait. So a helper thread, which runs no signal handlers, starts it. If an exception ends this
    function, the thread may or may not have been started: a caller that tries again may get two.

    Its stack has `STACK` bytes if `threading.stack_size` sets less, else what that sets.
    """
    start_new_thread(_start, (work, name))


def _start(work: Callable[[], None], name: str) -> None:
    thread = threading.Thread(target=work, name=name, daemon=True)
    with _stack_lock:
        size = threading.stack_size()
        if not 0 < size < STACK:
            thread.start()
            return
        threading.stack_size(STACK)
        try:
            thread.start()
        finally:
            threading.stack_size(size)


class Changed:
    """A lock for shared state, and threads that wait for the state to change. Hold `lock` to read or
    change the state.
    """

    __slots__ = ("_waiters", "lock")

    def __init__(self) -> None:
        self.lock = new_lock()
        self._waiters: deque[SimpleQueue[None]] = deque()

    def notify(self) -> None:
        """Wake all waiting threads. The lock is held."""
        while self._waiters:
            self._waiters[0].put(None)
            self._waiters.popleft()

    def wait_for(self, happened: Callable[[], object], timeout: float | None = None) -> bool:
        """Block until `happened()` is true. Returns False if `timeout` seconds pass first. `happened` is called under
        the lock; the caller does not hold it.
        """
        end = None if timeout is None else time.monotonic() + timeout
        while True:
            left = POLL_SECONDS if end is None else min(POLL_SECONDS, end - time.monotonic())
            with self.lock:
                if happened():
                    return True
                if left <= 0:
                    return False
                waiter: SimpleQueue[None] = SimpleQueue()
                self._waiters.append(waiter)
            self._sleep(waiter, left)

    def _sleep(self, waiter: "SimpleQueue[None]", seconds: float) -> None:
        try:
            waiter.get(timeout=seconds)
        except Empty:
            with self.lock:
                if waiter in self._waiters:
                    self._waiters.remove(waiter)
