"""Bytes in use, and what may be in use."""

from collections import deque

from .fork import new_lock


class Account:
    """Bytes in use and their limit. Refunds never lock, for they come from finalizers.

    `origin` is what an error adds to the limit: who set it, where that is not the caller.
    """

    __slots__ = ("_freed", "_live", "_lock", "limit", "origin", "peak")

    def __init__(self, limit: int | None) -> None:
        self.limit = limit
        self.origin = ""
        self.peak = 0
        self._live = 0
        self._freed: deque[int] = deque()
        self._lock = new_lock()

    def charge(self, size: int, charged: "list[Account] | None" = None) -> bool:
        """Take `size` bytes and enter this account in `charged`; False, and nothing taken, when the limit forbids it.

        Both happen or neither: Python handles signals between calls, and no call stands between the two. So an
        interrupt leaves no bytes that nobody gives back.
        """
        with self._lock:
            live = self._apply_refunds() + size
            if self.limit is not None and live > self.limit:
                return False
            if live > self.peak:
                self.peak = live
            enter = None if charged is None else charged.append
            self._live = live
            if enter is not None:
                enter(self)
        return True

    def refund(self, size: int) -> None:
        self._freed.append(size)

    @property
    def live(self) -> int:
        with self._lock:
            return self._apply_refunds()

    def _apply_refunds(self) -> int:
        """Bytes in use. Python handles no signal between the two steps of a turn, for neither is a call."""
        freed = self._freed
        while freed:
            self._live -= freed[0]
            del freed[0]
        return self._live
