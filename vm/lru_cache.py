"""A mapping that keeps the entries used last. Not safe for threads: the owner holds a lock around each call."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from typing import Generic, TypeVar

Key = TypeVar("Key")
Value = TypeVar("Value")


class LruCache(Generic[Key, Value]):
    """At most `max_entries` values by key. `put` evicts the entries that were used longest ago."""

    __slots__ = ("_entries", "_max_entries")

    def __init__(self, max_entries: int) -> None:
        self._entries: OrderedDict[Key, Value] = OrderedDict()
        self._max_entries = max_entries

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[Key]:
        """The keys, least recently used first."""
        return iter(self._entries)

    def get(self, key: Key) -> Value | None:
        """The value of a key, which is now the one used last; None if there is none."""
        found = self._entries.get(key)
        if found is not None:
            self._entries.move_to_end(key)
        return found

    def put(self, key: Key, value: Value) -> list[tuple[Key, Value]]:
        """Add or replace an entry, which is now the one used last. Gives the entries that were evicted."""
        self._entries[key] = value
        self._entries.move_to_end(key)
        return [self.pop_oldest() for _ in range(len(self._entries) - self._max_entries)]

    def pop(self, key: Key) -> Value | None:
        """Remove an entry and give its value; None if there is none."""
        return self._entries.pop(key, None)

    def pop_oldest(self) -> tuple[Key, Value]:
        """Remove and give the entry that was used longest ago. `KeyError` if there is none."""
        return self._entries.popitem(last=False)

    def clear(self) -> None:
        """Remove all entries."""
        self._entries.clear()
