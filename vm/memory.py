"""What a context's program holds: host bytes counted here, device bytes by the HAL, one limit over both."""

import weakref
from collections.abc import Callable

from orchestrion.hal.lifetime import Account

from .errors import MemoryExceeded


class Memory:
    """Host memory of one context. `budget` is charged by host and device memory alike.

    `program` is the memory of the program's own context: host bytes of all contexts are counted there together.
    """

    __slots__ = ("_host", "_on_full", "budget")

    def __init__(self, limit: float | None, program: "Memory | None" = None) -> None:
        self.budget = Account(None)
        self._on_full: weakref.WeakMethod[Callable[[], bool]] | None = None
        self.restrict(limit)
        self._host: Account = Account(None) if program is None else program._host

    def restrict(self, limit: float | None, origin: str = "") -> None:
        """Change the limit, in bytes; None is no limit. What is held already stays. `origin`: see `Account`."""
        self.budget.limit = None if limit is None else int(limit)
        self.budget.origin = origin

    def on_full(self, callback: Callable[[], bool]) -> None:
        """Have a bound method called before a charge is refused, which lets go of what can be made again and tells
        whether it did.
        """
        self._on_full = weakref.WeakMethod(callback)

    def charge(self, size: int) -> None:
        """`MemoryExceeded`, and nothing charged, when the limit forbids it, also after `on_full`."""
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
        self.budget.refund(size)
        self._host.refund(size)

    @property
    def accounts(self) -> tuple[Account, ...]:
        """What `charge` charges."""
        return self.budget, self._host

    @property
    def peak_host_bytes(self) -> int:
        """The most that the contexts of the program ever held at one time."""
        return self._host.peak
