"""The caller's events as semaphores, and the handles for work that the caller enqueues directly.

An event is a semaphore with the values 0, and 1 for complete or failed. It is polled; it is neither waited for in the
driver nor given a callback (see docs/decisions/native-events.md).
"""

from __future__ import annotations

import time
from collections import deque
from contextlib import suppress
from typing import Any, NamedTuple

import pyopencl as cl

from orchestrion.hal.backend import BackendSemaphore
from orchestrion.hal.errors import EventFailed, HalError, InvalidArgument

from .failures import translate

#: seconds between two polls: the time waited so far divided by PAUSE_FRACTION, within these bounds
MIN_PAUSE, MAX_PAUSE, PAUSE_FRACTION = 0.00005, 0.002, 8
#: status of a user event whose work failed: "execution status error for events in wait list"
FAILED = -14


class OpenCLHandles(NamedTuple):
    """The device's OpenCL objects. See `Device.native`."""

    context: cl.Context
    device: cl.Device
    queue: cl.CommandQueue


class EventSemaphore(BackendSemaphore):
    """A semaphore over a `pyopencl.Event` of any context. A `UserEvent` can be signalled."""

    __slots__ = ("_event", "_failure")

    def __init__(self, event: Any) -> None:
        if not isinstance(event, cl.Event):
            raise InvalidArgument(f"expected a pyopencl.Event, got {type(event).__name__}")
        self._event: Any = event
        _drop_finished()
        self._failure: HalError | None = None

    @classmethod
    def create(cls, context: Any) -> EventSemaphore:
        """Returns a semaphore over a new user event of a context."""
        try:
            return cls(cl.UserEvent(context))
        except (TypeError, cl.Error) as error:
            raise InvalidArgument(f"no event can be made in {context!r}: {error}") from error

    @property
    def native(self) -> Any:
        return self._event

    def value(self) -> int:
        return int(self._failure is not None or self._status() <= cl.command_execution_status.COMPLETE)

    def signal(self, value: int) -> None:
        self._complete(value, cl.command_execution_status.COMPLETE)

    def fail(self, value: int, error: HalError) -> None:
        self._failure = error
        if isinstance(self._event, cl.UserEvent):
            self._complete(value, FAILED)

    def wait(self, value: int, timeout: float | None) -> bool:
        if value > 1:
            raise InvalidArgument(f"an event reaches 1, a wait for {value} would not end")
        start = time.monotonic()
        while self.value() < value:
            waited = time.monotonic() - start
            if timeout is not None and waited >= timeout:
                return False
            time.sleep(min(max(waited / PAUSE_FRACTION, MIN_PAUSE), MAX_PAUSE))
        if value == 1:
            self._check()
        return True

    def release(self) -> None:
        del self._event

    def __del__(self) -> None:
        """PyOpenCL waits for a transfer whose event is dropped, while holding the interpreter lock; a finalizer must
        not. Nor does it query the event's status. The event is queued, and the creation of the next one drops the
        finished ones.
        """
        event = getattr(self, "_event", None)
        if event is not None and not isinstance(event, cl.UserEvent):
            _unfinished.append(event)

    def _status(self) -> int:
        try:
            return int(self._event.command_execution_status)
        except cl.Error as error:
            raise translate("reading the status of an event", error, waiting=True) from error

    def _check(self) -> None:
        if self._failure is not None:
            raise type(self._failure)(str(self._failure)) from self._failure
        status = self._status()
        if status < 0:
            raise EventFailed(f"the event ended with status {status} ({_name(status)})")

    def _complete(self, value: int, status: int) -> None:
        if value != 1:
            raise InvalidArgument(f"an event reaches 1, not {value}")
        reason = why_unsignallable(self._event)
        if reason:
            raise InvalidArgument(reason)
        try:
            self._event.set_status(status)
        except cl.Error as error:
            raise InvalidArgument(f"the event cannot be completed: {error}") from error


_unfinished: deque[cl.Event] = deque()


def _drop_finished() -> None:
    """Drop the events that are over."""
    with suppress(IndexError):  # another thread does the same
        for _ in range(len(_unfinished)):
            event = _unfinished.popleft()
            if event.command_execution_status > cl.command_execution_status.COMPLETE:
                _unfinished.append(event)


def why_unsignallable(event: Any) -> str:
    """Why the caller cannot complete the event; empty if it can."""
    return "" if isinstance(event, cl.UserEvent) else "the event is of a command, which completes it; no UserEvent"


def _name(status: int) -> str:
    """OpenCL's name of an error code."""
    codes: Any = cl.status_code
    return str(codes.to_string(status, "no code of OpenCL's"))
