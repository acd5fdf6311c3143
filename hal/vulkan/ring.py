"""A ring of mapped staging memory: taken in order by the host, given back in the same order once copies are over.

Positions only grow; the byte of a position is its remainder by the size. Not thread-safe: callers of the queue take
turns.
"""

from collections import deque
from typing import Protocol

from .buffer import VulkanBuffer

#: bytes; copies start at multiples, as devices want them for speed
ALIGNMENT = 64


class Counter(Protocol):
    """A queue's timeline."""

    def poll(self) -> int:
        """The last submission that is over."""

    def wait_for(self, number: int) -> None:
        """Block until a submission is over."""


class Ring:
    """`memory` is the staging buffer. `_sealed`: per submission under way, up to which position it uses the ring."""

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
        """Whether a submission under way uses it."""
        return bool(self._sealed)

    def take(self, size: int) -> int | None:
        """The first of `size` bytes that nobody uses; None if there are not as many in one piece."""
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
        """What was taken before position `head` is in use until that submission is over."""
        self._sealed.append((counter, number, head))

    def unseal(self, counter: Counter, number: int) -> None:
        """That submission, the last one sealed, did not come about."""
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
        """Everything is free again: no submission uses it, and nothing waits in it."""
        self._head = self._tail = 0
