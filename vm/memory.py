"""What a context's program holds: host bytes counted here, device bytes by the HAL, one limit over both."""

from orchestrion.hal.lifetime import Account

from .errors import MemoryExceeded


class Memory:
    """Host memory of one context. `budget` is charged by host and device memory alike."""

    __slots__ = ("_host", "budget")

    def __init__(self, limit: int | None) -> None:
        self.budget = Account(limit)
        self._host = Account(None)

    def charge(self, size: int) -> None:
        """`MemoryExceeded`, and nothing charged, when the limit forbids it."""
        if not self.budget.charge(size):
            budget = self.budget
            raise MemoryExceeded(f"{size} bytes exceed the limit of {budget.limit} bytes ({budget.live} in use)")
        self._host.charge(size)

    def refund(self, size: int) -> None:
        self.budget.refund(size)
        self._host.refund(size)

    @property
    def peak_host_bytes(self) -> int:
        return self._host.peak
