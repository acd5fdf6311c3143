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

    def charge(self, size: int, charged: "list[Account] | None" = None) -> bool:
        """Charge `size` bytes and enter this account in `charged`. Returns False, and charges nothing, if that exceeds
        the limit.

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


def refund(accounts: list[Account], size: int) -> None:
    """Refund `size` bytes to each account and take it out of the list. After an interrupt, a second call does the
    rest: no call stands between the two steps of a turn.
    """
    while accounts:
        accounts[-1]._freed += (size,)
        del accounts[-1]
