"""What a forked process inherits: the memory of its parent's devices, without the threads that served them.

So nothing of them is used there, and nothing released; every use is refused by name, and what was loaded is loaded
again. `after_fork` is how a layer puts that into effect; locks that a thread of the parent may have held are replaced
by a `ForkedLock`, so that the hot path need not ask in which process it is.
"""

import os
from collections.abc import Callable
from typing import NoReturn


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


def after_fork(hook: Callable[[int], None]) -> Callable[[int], None]:
    """Call in each process that is forked, with the parent's number. Systems without fork need none."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=lambda: hook(os.getppid()))
    return hook
