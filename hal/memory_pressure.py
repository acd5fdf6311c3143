"""Releases memory when it runs out, before an allocation fails: everything that is only kept for reuse.

- An object that keeps memory which it can recreate registers a callback with its share (`Device.on_memory_pressure`). A
  context does so for memoised setups and dynamic slots; the executable cache for code that no program uses.
- If a limit is exceeded, the callbacks of the shares that are charged to it are called. If the driver has no room, the
  callbacks of all shares are called, the driver releases its own memory (`BackendDevice.trim`), and work that holds
  memory is waited for.
- The allocating thread calls the callbacks. The context of another share may be inside of a call in another thread; its
  callback then releases nothing, and never waits.
- After that the allocation is tried once more.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from .errors import DeviceOutOfMemory
from .fork import new_lock

if TYPE_CHECKING:
    from .device import Device
    from .lifetime import Account, DeviceState

T = TypeVar("T")
#: `callback(own)` releases memory, and returns whether it did. `own`: the share that it is registered with is the one
#: that allocates, so the current call is its own. Otherwise a call of it may be running in another thread.
Callback = Callable[[bool], bool]
#: seconds for which an allocation that the driver refused waits for work under way
WAIT_SECONDS = 1.0


class _Registration(NamedTuple):
    share: weakref.ref[Device]
    accounts: tuple[Account, ...]
    callback: weakref.WeakMethod[Callback]


class MemoryPressureCallbacks:
    """The callbacks of one open device. Thread-safe."""

    __slots__ = ("_lock", "_registrations")

    def __init__(self) -> None:
        self._lock = new_lock()
        self._registrations: list[_Registration] = []

    def add(self, share: Device, accounts: tuple[Account, ...], callback: Callback) -> None:
        """Register a bound method while its object lives."""
        with self._lock:
            self._registrations = [row for row in self._registrations if row.callback() is not None]
            self._registrations.append(_Registration(weakref.ref(share), accounts, weakref.WeakMethod(callback)))

    def call(self, share: Device | None, account: Account | None) -> bool:
        """Call the callbacks charged to `account`; all of them if it is None. `share` is the one that allocates.
        Returns whether any released memory.
        """
        with self._lock:
            rows = [*self._registrations]
        given = False
        for row in rows:
            callback = row.callback()
            if callback is not None and (account is None or account in row.accounts):
                own = share is not None and row.share() is share
                given = callback(own) or given
        return given


def free_charged_memory(state: DeviceState, share: Device, account: Account) -> bool:
    """Release memory that is charged to an account and can be recreated. Returns whether there was any."""
    given = state.memory_pressure.call(share, account)
    state.make_room()
    return given


def free_device_memory(state: DeviceState, share: Device | None) -> bool:
    """Release everything on the device that can be recreated. Returns whether there was anything.

    Waits up to WAIT_SECONDS for work in flight, which may hold the last reference to memory. The caller does not hold
    the device's lock.
    """
    given = state.memory_pressure.call(share, None)
    busy = bool(state.in_flight or state.garbage)
    state.finish(WAIT_SECONDS)
    state.make_room()
    with state.lock:
        trimmed = state.lost is None and state.driver.trim()
    return given or busy or trimmed


def retry_after_freeing(state: DeviceState, share: Device | None, attempt: Callable[[], T]) -> T:
    """Returns `attempt()`. If the driver has no room for it, calls `free_device_memory` and then `attempt` a second
    time.

    `attempt` changes nothing when it fails.
    """
    try:
        return attempt()
    except DeviceOutOfMemory:
        if not free_device_memory(state, share):
            raise
    return attempt()
