"""What is given back when memory runs out, before an allocation fails: all that is only kept to be used again.

- Whoever keeps something that it can make again (a context its memoised setups and sized slots, the executable cache
  what no program uses) registers a callback with its share, `Device.on_memory_pressure`.
- A limit is relieved by the shares that are charged to it. A driver without room is relieved by all shares, by the
  executable cache, by the driver itself (`BackendDevice.trim`), and by waiting for work that holds on to memory.
- The thread that allocates calls the callbacks. Another share's context may be in the middle of a call in another
  thread: its callback gives nothing back then, and never waits for it.
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
#: `callback(own)` gives memory back, and tells whether it did. `own`: the share that it is registered with allocates,
#: so that its user's call is the one under way; else that call may be under way in another thread
Callback = Callable[[bool], bool]
#: seconds for which an allocation that the driver refused waits for work under way
WAIT_SECONDS = 1.0


class _Registration(NamedTuple):
    share: weakref.ref[Device]
    accounts: tuple[Account, ...]
    callback: weakref.WeakMethod[Callback]


class MemoryPressureCallbacks:
    """The callbacks of one open device. From any thread."""

    __slots__ = ("_lock", "_registrations")

    def __init__(self) -> None:
        self._lock = new_lock()
        self._registrations: list[_Registration] = []

    def add(self, share: Device, accounts: tuple[Account, ...], callback: Callback) -> None:
        """Register a bound method, for as long as its object lives."""
        with self._lock:
            self._registrations = [row for row in self._registrations if row.callback() is not None]
            self._registrations.append(_Registration(weakref.ref(share), accounts, weakref.WeakMethod(callback)))

    def call(self, share: Device | None, account: Account | None) -> bool:
        """Call those charged to `account`, all if it is None; whether anything was given back. `share` allocates."""
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
    """Give back what is charged to an account and can be made again; whether there was anything."""
    given = state.memory_pressure.call(share, account)
    state.make_room()
    return given


def free_device_memory(state: DeviceState, share: Device | None) -> bool:
    """Give back everything on the device that can be made again; whether there was anything.

    Waits up to WAIT_SECONDS for work under way, which may hold memory that nobody else uses. The device's lock is not
    held by the caller.
    """
    given = state.memory_pressure.call(share, None)
    busy = bool(state.in_flight or state.garbage)
    state.finish(WAIT_SECONDS)
    state.make_room()
    with state.lock:
        trimmed = state.lost is None and state.driver.trim()
    return given or busy or trimmed


def retry_after_freeing(state: DeviceState, share: Device | None, attempt: Callable[[], T]) -> T:
    """What `attempt` gives; if the driver has no room for it, at a second attempt after `free_device_memory`.

    `attempt` changes nothing when it fails.
    """
    try:
        return attempt()
    except DeviceOutOfMemory:
        if not free_device_memory(state, share):
            raise
    return attempt()
