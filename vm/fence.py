"""What calls wait for and signal: a `Fence`, and the `Future` of a submitted call, which is one.

- A fence is of the host: any thread may signal it, calls on any device may wait for it, and that blocks no thread.
- It is reached once, with success or with an error, and what waits for it fails with a failure of it.
- A future gives what the blocking call would have given or raised: by `result`, or `await` in any asyncio loop.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator
from typing import TYPE_CHECKING, Any

from .errors import CallerError, Cancelled

if TYPE_CHECKING:
    import asyncio


class Fence:
    """Something that happens once. `signal` it, or give it to a call as `signal=`."""

    __slots__ = ("_done", "_error", "_listeners", "_lock")

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._done = False
        self._error: BaseException | None = None
        self._listeners: list[Callable[[], None]] = []

    def done(self) -> bool:
        """Whether it is reached, with success or without."""
        return self._done

    def signal(self) -> None:
        """Reach it, from any thread. `CallerError` when it is reached already."""
        if not self.settle(None):
            raise CallerError("the fence is reached already")

    def wait(self, timeout: float | None = None) -> None:
        """Block until it is reached. `TimeoutError` after `timeout` seconds; raises the error it was reached with."""
        error = self.exception(timeout)
        if error is not None:
            try:
                raise error
            finally:
                del self, error  # the error's traceback refers to this frame, and the fence to the error

    def exception(self, timeout: float | None = None) -> BaseException | None:
        """The error it was reached with, or None, once it is reached. `TimeoutError` after `timeout` seconds."""
        if not self._done:
            reached = threading.Event()
            self.listen(reached.set)
            if not reached.wait(timeout):
                self.forget(reached.set)
                raise TimeoutError(f"not reached after {timeout} s")
        return self._error

    def settle(self, error: BaseException | None) -> bool:
        """Reach it, with an error or None; False when that has happened before."""
        with self._lock:
            if self._done:
                return False
            self._error = error
            self._done = True
            listeners, self._listeners = self._listeners, []
        for listener in listeners:
            listener()
        return True

    def listen(self, listener: Callable[[], None]) -> None:
        """Call once when it is reached, in the thread that reaches it; now if it is. A listener does not fail."""
        with self._lock:
            if not self._done:
                self._listeners.append(listener)
                return
        listener()

    def forget(self, listener: Callable[[], None]) -> None:
        """Never mind."""
        with self._lock:
            if listener in self._listeners:
                self._listeners.remove(listener)


class Future(Fence):
    """A submitted call. Reached when the call is over; its arguments are free again from the start."""

    __slots__ = ("_name", "_value")

    def __init__(self, name: str) -> None:
        super().__init__()
        self._name = name
        self._value: Any = None

    def result(self, timeout: float | None = None) -> Any:
        """What the blocking call would have given, once it is there; or raises what that would have raised."""
        try:
            self.wait(timeout)
            return self._value
        finally:
            del self  # see `wait`

    def signal(self) -> None:
        """Refused: the call reaches it."""
        raise CallerError(f"the future of a call of {self._name!r} is reached by the call, nobody else may signal it")

    def cancel(self) -> bool:
        """End the call with `Cancelled`; False when it is over. Work of it that the device has is waited for, unheard.

        Its arrays for `out` may hold anything then.
        """
        return self.settle(Cancelled("the call was cancelled"))

    def deliver(self, value: Any) -> bool:
        """Reach it with a value; False when it is reached."""
        with self._lock:
            if self._done:
                return False
            self._value = value
        return self.settle(None)

    def __await__(self) -> Generator[Any, None, Any]:
        """The result; the call is cancelled when the task that awaits it is."""
        import asyncio

        loop = asyncio.get_running_loop()
        waiter: asyncio.Future[None] = loop.create_future()
        listener = _Awakener(loop, waiter)
        self.listen(listener)
        try:
            yield from waiter
        except asyncio.CancelledError:
            self.cancel()
            raise
        finally:
            self.forget(listener)
        return self.result()

    def __repr__(self) -> str:
        state = "running or waiting" if not self._done else "done" if self._error is None else "failed"
        return f"<call of {self._name!r}, {state}>"


class _Awakener:
    """Tells an asyncio loop from another thread."""

    __slots__ = ("_loop", "_waiter")

    def __init__(self, loop: asyncio.AbstractEventLoop, waiter: asyncio.Future[None]) -> None:
        self._loop = loop
        self._waiter = waiter

    def __call__(self) -> None:
        try:
            self._loop.call_soon_threadsafe(self._wake)
        except RuntimeError:
            if not self._loop.is_closed():  # nobody awaits anything in a closed loop
                raise

    def _wake(self) -> None:
        if not self._waiter.done():
            self._waiter.set_result(None)
