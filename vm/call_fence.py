"""A fence for a function that runs in another thread while a submitted call waits for it."""

from __future__ import annotations

from collections.abc import Callable

from orchestrion.hal.fork import new_lock
from orchestrion.hal.semaphore import Fence

from .errors import VmError


class CallFence(Fence):
    """Reached when an imported function, which runs in another thread, is over. Waiting raises its error."""

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
        """Called when it is reached."""
        if self._error is not None:
            raise self._error

    def listen(self, listener: Callable[[], None]) -> None:
        """Call `listener` once it is reached, from any thread; at once if it is."""
        with self._lock:
            if not self._over:
                self._listeners.append(listener)
                return
        listener()

    def end(self, error: VmError | None) -> None:
        with self._lock:
            self._error, self._over = error, True
            listeners, self._listeners = self._listeners, []
        for listener in listeners:
            listener()
