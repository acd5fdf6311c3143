"""Devices in a forked process. It inherits the memory of its parent's devices, without the threads that served them.

So the child uses and releases nothing of them. Every use raises an error, and whatever was loaded is loaded again.
`after_fork` registers how a layer does that. The lock of a device's queue, or of a context, is replaced by a
`ForkedLock`, so the hot path does not check in which process it is. All other locks are made by `new_lock`, and are
free in the child (`schema/fork.py`).
"""

from typing import NoReturn

from orchestrion.schema.fork import after_fork as after_fork
from orchestrion.schema.fork import new_lock as new_lock
from orchestrion.schema.fork import new_rlock as new_rlock


class ForkedLock:
    """Replaces the lock of an object that belongs to the parent process; acquiring it raises an error."""

    __slots__ = ("_error",)

    def __init__(self, error: Exception) -> None:
        self._error = error

    def refuse(self) -> NoReturn:
        raise type(self._error)(str(self._error))

    def acquire(self, blocking: bool = True, timeout: float = -1) -> NoReturn:
        self.refuse()

    def __enter__(self) -> NoReturn:
        self.refuse()

    def __exit__(self, *_: object) -> None:
        """Unreachable: `__enter__` always raises."""
