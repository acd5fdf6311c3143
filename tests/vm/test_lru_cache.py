"""A cache with a bounded number of entries evicts those that were used longest ago."""

import pytest

from orchestrion.vm.lru_cache import LruCache


def test_entries_that_were_used_longest_ago_are_evicted() -> None:
    cache: LruCache[str, int] = LruCache(2)
    assert cache.put("a", 1) == [] and cache.put("b", 2) == []
    assert cache.get("a") == 1
    assert cache.put("c", 3) == [("b", 2)]
    assert list(cache) == ["a", "c"] and cache.get("b") is None


def test_a_replaced_entry_is_the_one_used_last() -> None:
    cache: LruCache[str, int] = LruCache(2)
    cache.put("a", 1)
    cache.put("b", 2)
    assert cache.put("a", 10) == []
    assert cache.pop_oldest() == ("b", 2)
    assert len(cache) == 1 and cache.get("a") == 10


def test_entries_can_be_removed() -> None:
    cache: LruCache[str, int] = LruCache(2)
    cache.put("a", 1)
    assert cache.pop("a") == 1 and cache.pop("a") is None
    with pytest.raises(KeyError):
        cache.pop_oldest()
    cache.put("b", 2)
    cache.clear()
    assert not cache


def test_a_cache_without_room_holds_nothing() -> None:
    cache: LruCache[str, int] = LruCache(0)
    assert cache.put("a", 1) == [("a", 1)] and not cache
