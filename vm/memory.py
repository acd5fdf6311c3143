"""The memory of a context: host bytes, which are counted here, and device bytes, which the HAL counts, in one limit."""

import weakref
from collections.abc import Callable

from orchestrion.hal.lifetime import Account

from .errors import MemoryExceeded


class Memory:
    """The account of one context. `budget`: the bytes of host and device memory, and their limit.

    `program`: the memory of the context of the program's initializers, which also counts the host bytes of all
    contexts.
    """

    __slots__ = ("_host", "_on_full", "budget")

    def __init__(self, limit: float | None, program: "Memory | None" = None) -> None:
        self.budget = Account(None)
        self._on_full: weakref.WeakMethod[Callable[[], bool]] | None = None
        self.restrict(limit)
        self._host: Account = Account(None) if program is None else program._host

    def restrict(self, limit: float | None, origin: str = "") -> None:
        """Set the limit, in bytes; None is no limit. Memory above it stays charged. `origin`: see `Account`."""
        self.budget.limit = None if limit is None else int(limit)
        self.budget.origin = origin

    def on_full(self, callback: Callable[[], bool]) -> None:
        """Register a bound method that is called before a charge is refused. It releases caches and returns True if it
        released memory.
        """
        self._on_full = weakref.WeakMethod(callback)

    def charge(self, size: int) -> None:
        """Charge `size` bytes of host memory. `MemoryExceeded` if the limit forbids it even after caches are released;
        then nothing is charged.
        """
        if not self.budget.charge(size) and not (self._relieve() and self.budget.charge(size)):
            budget = self.budget
            raise MemoryExceeded(
                f"{size} bytes exceed the limit of {budget.limit} bytes ({budget.live} in use){budget.origin}"
            )
        self._host.charge(size)

    def _relieve(self) -> bool:
        release = None if self._on_full is None else self._on_full()
        return release is not None and release()

    def refund(self, size: int) -> None:
        """Subtract `size` bytes that were charged."""
        self.budget.refund(size)
        self._host.refund(size)

    @property
    def accounts(self) -> tuple[Account, ...]:
        """The accounts that `charge` charges."""
        return self.budget, self._host

    @property
    def peak_host_bytes(self) -> int:
        """The largest number of host bytes that all contexts of the program held at one time."""
        return self._host.peak
