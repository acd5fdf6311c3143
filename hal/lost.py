"""Replacements for a lost device: every use raises DeviceLost, with the reason of the loss.

`DeviceState.lose` installs them, so the hot path checks nothing. Housekeeping (waiting for work that may still run,
releasing objects, closing) continues with the driver's own device, `DeviceState.driver`.
"""

from abc import update_abstractmethods
from types import FunctionType
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from .backend import BackendDevice, BackendQueue
from .errors import DeviceLost

if TYPE_CHECKING:
    from .lifetime import DeviceState

T = TypeVar("T", bound=BackendDevice | BackendQueue)


def _refuse(lost: Any, *arguments: object, **named: object) -> NoReturn:
    """Raises the error of the loss, a new object each time: a stored exception would keep the frames of its
    traceback.
    """
    error = DeviceLost(lost.message)
    error.refused = True
    raise error


def _refusing(cls: type[T]) -> type[T]:
    """Class decorator: all methods and properties of the interface, the only base, refuse. `message` says why."""
    for name, member in vars(cls.__base__).items():
        if not name.startswith("_") and isinstance(member, FunctionType | property):
            setattr(cls, name, property(_refuse) if isinstance(member, property) else _refuse)
    return update_abstractmethods(cls)


@_refusing
class LostQueue(BackendQueue):
    """The queue of a lost device."""

    def __init__(self, message: str) -> None:
        self.message = message


@_refusing
class LostDevice(BackendDevice):
    """A lost device. `close` closes nothing; the device state closes the driver's own device."""

    def __init__(self, inner: BackendDevice, reason: DeviceLost) -> None:
        self.info = inner.info
        self.message = f"device {inner.info.id} was lost before: {reason}"
        self.queue = LostQueue(self.message)  # type: ignore[abstract]


class DetectLoss:
    """A context manager: a DeviceLost that leaves the block loses the device."""

    __slots__ = ("_state",)

    def __init__(self, state: "DeviceState") -> None:
        self._state = state

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: object) -> None:
        if isinstance(error, DeviceLost) and not error.refused:
            self._state.lose(error)
