"""The device states of this process: those that are closed with work in flight, and at process exit all of them.

At exit running work is waited for: a driver may crash if the system frees memory that it still uses. After that nothing
is released, since the system frees everything. In a forked process the states belong to the parent.
"""

from __future__ import annotations

import atexit
import sys
import weakref
from typing import TYPE_CHECKING

from .fork import after_fork

if TYPE_CHECKING:
    from .lifetime import DeviceState

#: seconds that the end of the process waits for the work of each device that was not closed
EXIT_SECONDS = 5.0

_all: weakref.WeakSet[DeviceState] = weakref.WeakSet()
#: closed states with work in flight; nothing else refers to them
_unfinished: set[DeviceState] = set()


def enter(state: DeviceState) -> None:
    """Register an opened device. Drops closed ones whose work is over by now."""
    for other in [*_unfinished]:
        other.collect()
        if other.abandoned or not other.unfinished and other.current is None:
            _unfinished.discard(other)
    _all.add(state)


def keep(state: DeviceState) -> None:
    """Keep a closed state alive until its work is over."""
    _unfinished.add(state)


@after_fork
def _leave(parent: int) -> None:
    """In a forked process: the states belong to the parent, which releases them."""
    _abandon()


@atexit.register
def _exit() -> None:
    try:
        for state in [*_all]:
            if not state.finish(EXIT_SECONDS):
                name, count = state.backend.info.id, state.unfinished
                print(f"device {name}: {count} submissions were not over after {EXIT_SECONDS} s", file=sys.stderr)
    finally:
        _abandon()


def _abandon() -> None:
    """Finalizers that run during interpreter shutdown must not release anything."""
    for state in _all:
        state.abandoned = True
