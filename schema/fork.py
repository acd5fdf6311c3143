"""Locks that a forked process can take, whatever the threads of its parent held when it was forked.

A fork copies memory, not threads: a lock that another thread held stays held in the child for ever. So every lock that
outlives one call is made by `new_lock` or `new_rlock`, which remember it, and each child frees all of them before it
runs anything else. What such a lock guards must be of use in the child even if the parent's thread was interrupted
half way: a cache that may have lost a row is, a queue of a device is not. The latter refuses its use in a child
(`hal/fork.py`).
"""

import os
import threading
from collections.abc import Callable
from typing import Any
from weakref import WeakSet

_locks: WeakSet[Any] = WeakSet()


def new_lock() -> threading.Lock:
    """A `threading.Lock` that is free again in a forked process."""
    lock = threading.Lock()
    _locks.add(lock)
    return lock


def new_rlock() -> Any:
    """A `threading.RLock` that is free again in a forked process."""
    lock = threading.RLock()
    _locks.add(lock)
    return lock


def remember_lock(lock: Any) -> None:
    """Have a lock that somebody else made, such as the standard library, freed in a forked process."""
    _locks.add(lock)


def remembered_locks() -> list[Any]:
    """All that exist now."""
    return [*_locks]


def after_fork(hook: Callable[[int], None]) -> Callable[[int], None]:
    """Call in each process that is forked, with the parent's number. Systems without fork need none."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=lambda: hook(os.getppid()))
    return hook


@after_fork
def _free_locks(parent: int) -> None:
    """The first hook of all, since this module is imported by whoever adds one. As `threading` frees its own locks."""
    for lock in remembered_locks():
        lock._at_fork_reinit()
