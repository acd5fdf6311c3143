"""Counts the bytes in use against a limit."""

from collections import deque

from .fork import new_lock


class Account:
    """Bytes in use and their limit. Refunds never lock, because finalizers make them.

    `origin` is text that an error appends to the limit: who set it, if that was not the caller. Empty otherwise.
    """

    __slots__ = ("_freed", "_live", "_lock", "limit", "origin", "peak")

    def __init__(self, limit: int | None) -> None:
        self.limit = limit
        self.origin = ""
        self.peak = 0
        self._live = 0
        self._freed: deque[int] = deque()
        self._lock = new_lock()

    def charge(self, size: int) -> bool:
        """Charge `size` bytes. Returns False, and charges nothing, if that exceeds the limit."""
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
