"""Locks that are free in a forked process, whatever threads of the parent held when it forked.

A fork copies memory, not threads: a lock that another thread held would stay held in the child for ever. So every lock
that outlives one call is made by `new_lock` or `new_rlock`, which register it, and each child frees all of them first.
The state that such a lock guards must be usable in the child even if the parent's thread was interrupted halfway. A
cache that may have lost an entry is usable; the queue of a device is not, and refuses its use in a child
(`hal/fork.py`).
"""

import os
import threading
from collections.abc import Callable
from typing import Any
from weakref import WeakSet

_locks: WeakSet[Any] = WeakSet()


def new_lock() -> threading.Lock:
    """Returns a `threading.Lock` that is free again in a forked process."""
    lock = threading.Lock()
    _locks.add(lock)
    return lock


def new_rlock() -> Any:
    """Returns a `threading.RLock` that is free again in a forked process."""
    lock = threading.RLock()
    _locks.add(lock)
    return lock


def remember_lock(lock: Any) -> None:
    """Register an existing lock, for example of the standard library, to be freed in a forked process."""
    _locks.add(lock)


def remembered_locks() -> list[Any]:
    """All registered locks that still exist."""
    return [*_locks]


def after_fork(hook: Callable[[int], None]) -> Callable[[int], None]:
    """Decorates a function that is called in each forked process, with the parent's id. Not called on systems without
    fork.
    """
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=lambda: hook(os.getppid()))
    return hook


@after_fork
def _free_locks(parent: int) -> None:
    """The first hook, because every module that adds a hook imports this one. Frees locks as `threading`
    frees its own.
    """
    for lock in remembered_locks():
        lock._at_fork_reinit()
