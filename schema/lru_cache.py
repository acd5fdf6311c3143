"""A mapping in the order of last use, for caches that evict the least recently used entry.

The owner decides when an entry is evicted, and holds its own lock if several threads use the cache.
"""

from collections import OrderedDict
from typing import TypeVar

K = TypeVar("K")
V = TypeVar("V")


class LruCache(OrderedDict[K, V]):
    """Entries from the least to the most recently used. Assigning a new key makes it the most recently used."""

    def use(self, key: K) -> V | None:
        """The value of a key, which becomes the most recently used; None without the key."""
        value = self.get(key)
        if value is not None:
            self.move_to_end(key)
        return value

    def put(self, key: K, value: V, max_entries: int) -> list[tuple[K, V]]:
        """Adds or replaces an entry, which becomes the most recently used. Removes and returns the entries beyond
        `max_entries`, the least recently used first.
        """
        self[key] = value
        self.move_to_end(key)
        return [self.popitem(last=False) for _ in range(len(self) - max_entries)]

    @property
    def oldest(self) -> tuple[K, V]:
        """The least recently used key and its value. Raises StopIteration if the cache is empty."""
        return next(iter(self.items()))

    def evict(self) -> V:
        """Removes the least recently used entry, and returns its value. Raises KeyError if the cache is empty."""
        return self.popitem(last=False)[1]
