"""A fence that a submitted call waits for while a function runs in another thread."""

from __future__ import annotations

from collections.abc import Callable

from orchestrion.hal.fork import new_lock
from orchestrion.hal.semaphore import Fence

from .errors import VmError


class CallFence(Fence):
    """Reached when an imported function, which runs in another thread, has ended. `wait` raises its error."""

    __slots__ = ("_error", "_listeners", "_lock", "_over")

    def __init__(self) -> None:
        super().__init__()
        self._error: VmError | None = None
        self._listeners: list[Callable[[], None]] = []
        self._lock = new_lock()
        self._over = False

    @property
    def reached(self) -> bool:
        return self._over

    def wait(self, timeout: float | None = None) -> None:
        """Raise the error of the function, if it failed. Called when the fence is reached."""
        if self._error is not None:
            raise self._error

    def listen(self, listener: Callable[[], None]) -> None:
        """Call `listener` when the fence is reached, in any thread; at once if it is reached already."""
        with self._lock:
            if not self._over:
                self._listeners.append(listener)
                return
        listener()

    def end(self, error: VmError | None) -> None:
        """Reach the fence. `error`: the error of the function, None if it succeeded."""
        with self._lock:
            self._error, self._over = error, True
            listeners, self._listeners = self._listeners, []
        for listener in listeners:
            listener()
