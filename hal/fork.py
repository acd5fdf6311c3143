"""What a forked process inherits: the memory of its parent's devices, without the threads that served them.

So nothing of them is used there, and nothing released; every use is refused by name, and what was loaded is loaded
again. `after_fork` is how a layer puts that into effect. The lock of a device's queue, or of a context, is replaced by
a `ForkedLock`, so that the hot path need not ask in which process it is. All other locks are made by `new_lock`, and
are free in the child (`schema/fork.py`).
"""

from typing import NoReturn

from orchestrion.schema.fork import after_fork as after_fork
from orchestrion.schema.fork import new_lock as new_lock
from orchestrion.schema.fork import new_rlock as new_rlock


class ForkedLock:
    """In the place of a lock of what belongs to the parent: whoever takes it is refused."""

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
        """Never entered."""
