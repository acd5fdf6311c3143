"""The records of an open device: objects of the driver that are owned, and work that uses them.

`lifetime.py` states the rules of ownership.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from .account import Account
from .backend import Point
from .errors import HalError

if TYPE_CHECKING:
    from .buffer import Buffer
    from .command_buffer import CommandBuffer
    from .lifetime import DeviceState


class Releasable(Protocol):
    def release(self) -> None: ...


class Submitted(Protocol):
    submitted: int


class ResourceRef:
    """Ownership of one backend object, and of the bytes that it was charged for."""

    __slots__ = ("__weakref__", "accounts", "backend", "device_state", "size")

    backend: Releasable

    def __init__(
        self, state: "DeviceState", backend: Releasable | None, accounts: Sequence[Account] = (), size: int = 0
    ) -> None:
        """Without a backend object: the owner of the bytes that `accounts` are charged with from then on, until `hold`
        gives it the object.
        """
        self.accounts = accounts
        self.size = size
        if backend is not None:
            self.backend = backend
        self.device_state = state  # last: an interrupt before it leaves the object to the driver
        if backend is not None:
            state.owned.add(id(backend))

    def hold(self, backend: Releasable) -> None:
        """Own a backend object, too."""
        self.backend = backend
        self.device_state.owned.add(id(backend))

    def __del__(self) -> None:
        state = getattr(self, "device_state", None)
        if state is None:
            return
        backend = getattr(self, "backend", None)
        if backend is not None:
            state.discard(backend, tuple(self.accounts), self.size)
            return
        for account in self.accounts:
            account.refund(self.size)


#: recordings and the buffers in their slots
Batch = Sequence[tuple["CommandBuffer | None", Sequence["Buffer"]]]


class LaunchedCall:
    """A blocking call on a driver that overlaps. It is in flight while it has a `batch`; afterwards the object is
    reused.
    """

    __slots__ = ("batch", "number", "ticket", "writes_before")

    def __init__(self, ticket: Any) -> None:
        self.ticket = ticket  #: the driver's ticket, created once
        self.number = 0  #: the value of `DeviceState.launch_count` at its launch
        self.writes_before = 0  #: writes begun before this call; they are over when it is
        self.batch: Batch = ()


class Garbage(NamedTuple):
    """An object that nothing refers to any more."""

    backend: Releasable
    accounts: tuple[Account, ...]
    size: int


class SubmissionRecord(NamedTuple):
    """A submission in flight."""

    number: int  #: its value on the device state's timeline
    refs: tuple[object, ...]  #: the refs of the objects that it uses
    unreported_errors: list[HalError] | None  #: receives its error; None if a fence reports it
    waits: Sequence[Point]  #: the points that it waits for before it runs
