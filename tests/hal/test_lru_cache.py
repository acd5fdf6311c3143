"""`LruCache` keeps its entries in the order of last use."""

import pytest

from orchestrion.hal.lru_cache import LruCache


def test_the_least_recently_used_entry_is_evicted_first() -> None:
    cache: LruCache[str, int] = LruCache()
    cache["a"], cache["b"], cache["c"] = 1, 2, 3
    assert cache.use("a") == 1 and cache.use("d") is None
    assert cache.oldest == ("b", 2)
    assert [cache.evict() for _ in range(3)] == [2, 3, 1]
    with pytest.raises(KeyError):
        cache.evict()
