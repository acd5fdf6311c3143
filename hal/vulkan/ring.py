"""A ring of mapped staging memory: the host takes ranges in order, and copies release them in the same order.

Positions only grow; the byte of a position is its remainder modulo the size. Not thread-safe: the callers of the queue
take turns.
"""

from collections import deque
from typing import Protocol

from .buffer import VulkanBuffer

#: bytes; copies start at multiples of this, which is faster on many devices
ALIGNMENT = 64


class Counter(Protocol):
    """The timeline of a queue."""

    def poll(self) -> int:
        """The last submission that is over."""

    def wait_for(self, number: int) -> None:
        """Block until a submission is over."""


class Ring:
    """A staging ring in `memory`. `_sealed`: for each submission in flight, the position up to which it
    uses the ring.
    """

    __slots__ = ("_head", "_sealed", "_tail", "memory", "size")

    def __init__(self, memory: VulkanBuffer) -> None:
        self.memory = memory
        self.size = memory.size
        self._head = 0
        self._tail = 0
        self._sealed: deque[tuple[Counter, int, int]] = deque()

    @property
    def head(self) -> int:
        return self._head

    @property
    def busy(self) -> bool:
        """Whether a submission in flight uses it."""
        return bool(self._sealed)

    def take(self, size: int) -> int | None:
        """Returns the first of `size` contiguous free bytes, or None if there are not enough."""
        assert size <= self.size, "a chunk is smaller than the ring"
        self.retire()
        start = self._head
        if start % self.size + size > self.size:
            start += -start % self.size
        end = start + -(-size // ALIGNMENT) * ALIGNMENT
        if end - self._tail > self.size:
            return None
        self._head = end
        return start % self.size

    def seal(self, counter: Counter, number: int, head: int) -> None:
        """The bytes taken before position `head` are in use until submission `number` is over."""
        self._sealed.append((counter, number, head))

    def unseal(self, counter: Counter, number: int) -> None:
        """Undo the last `seal`: its submission was not made."""
        if self._sealed and self._sealed[-1][:2] == (counter, number):
            self._sealed.pop()

    def retire(self) -> None:
        while self._sealed and self._sealed[0][1] <= self._sealed[0][0].poll():
            self._tail = self._sealed[0][2]
            del self._sealed[0]

    def wait(self) -> None:
        """Wait for the oldest submission that uses the ring."""
        counter, number, _ = self._sealed[0]
        counter.wait_for(number)

    def reset(self) -> None:
        """Free everything: no submission uses the ring, and no upload is pending in it."""
        self._head = self._tail = 0
