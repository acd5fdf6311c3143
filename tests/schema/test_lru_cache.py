"""`LruCache` keeps its entries in the order of last use."""

import pytest

from orchestrion.schema.lru_cache import LruCache


def test_the_least_recently_used_entry_is_evicted_first() -> None:
    cache: LruCache[str, int] = LruCache()
    cache["a"], cache["b"], cache["c"] = 1, 2, 3
    assert cache.use("a") == 1 and cache.use("d") is None
    assert cache.oldest == ("b", 2)
    assert [cache.evict() for _ in range(3)] == [2, 3, 1]
    with pytest.raises(KeyError):
        cache.evict()


def test_put_removes_entries_beyond_the_limit() -> None:
    cache: LruCache[str, int] = LruCache()
    assert cache.put("a", 1, 2) == [] and cache.put("b", 2, 2) == []
    assert cache.use("a") == 1
    assert cache.put("c", 3, 2) == [("b", 2)]
    assert list(cache) == ["a", "c"]


def test_a_replaced_entry_is_the_one_used_last() -> None:
    cache: LruCache[str, int] = LruCache()
    cache.put("a", 1, 2)
    cache.put("b", 2, 2)
    assert cache.put("a", 10, 2) == []
    assert cache.popitem(last=False) == ("b", 2)
    assert len(cache) == 1 and cache.use("a") == 10


def test_a_cache_without_room_holds_nothing() -> None:
    cache: LruCache[str, int] = LruCache()
    assert cache.put("a", 1, 0) == [("a", 1)] and not cache
