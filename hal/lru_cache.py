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
        """Returns the value of a key, which becomes the most recently used; None without the key."""
        value = self.get(key)
        if value is not None:
            self.move_to_end(key)
        return value

    @property
    def oldest(self) -> tuple[K, V]:
        """The least recently used key and its value. Raises StopIteration if the cache is empty."""
        return next(iter(self.items()))

    def evict(self) -> V:
        """Remove the least recently used entry, and return its value. Raises KeyError if the cache is empty."""
        return self.popitem(last=False)[1]
