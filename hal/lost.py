"""Replacements for a lost device: every use raises DeviceLost, with the reason of the loss.

`DeviceState.lose` installs them, so the hot path checks nothing. Housekeeping (waiting for work that may still run,
releasing objects, closing) continues with the driver's own device, `DeviceState.driver`.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from .backend import (
    BackendBuffer,
    BackendCommandBuffer,
    BackendDevice,
    BackendExecutable,
    BackendQueue,
    BackendSemaphore,
    BackendWork,
    Bytes,
    Entry,
    MemoryUse,
    Point,
    Span,
    Watcher,
)
from .errors import DeviceLost
from .parallel_jobs import Progress, Using

if TYPE_CHECKING:
    from .lifetime import DeviceState


class _Refusal:
    """Raises the error of the loss, a new object each time: a stored exception would keep the frames of its
    traceback.
    """

    def __init__(self, device: str, reason: DeviceLost) -> None:
        self._message = f"device {device} was lost before: {reason}"

    def refuse(self) -> NoReturn:
        error = DeviceLost(self._message)
        error.refused = True
        raise error


class LostQueue(BackendQueue):
    """The queue of a lost device."""

    def __init__(self, refusal: _Refusal) -> None:
        self._refuse = refusal.refuse

    def submit(
        self,
        batch: Sequence[BackendWork],
        waits: Sequence[Point],
        signals: Sequence[Point],
        watcher: Watcher | None = None,
    ) -> None:
        self._refuse()

    def execute(
        self, commands: BackendCommandBuffer, table: Sequence[BackendBuffer], watcher: Watcher | None = None
    ) -> None:
        self._refuse()

    def execute_batch(self, batch: Sequence[BackendWork], watcher: Watcher | None = None) -> None:
        self._refuse()

    def prepare(self, works: Sequence[BackendWork], using: Using, progress: Progress) -> None:
        self._refuse()

    def create_ticket(self) -> Any:
        self._refuse()

    def launch(self, ticket: Any, commands: BackendCommandBuffer, table: Sequence[BackendBuffer]) -> None:
        self._refuse()

    def launch_batch(self, ticket: Any, batch: Sequence[BackendWork]) -> None:
        self._refuse()

    def wait(self, ticket: Any, watcher: Watcher | None = None) -> None:
        self._refuse()

    def abandon(self, ticket: Any) -> None:
        self._refuse()

    def write(self, buffer: BackendBuffer, offset: int, data: Bytes) -> None:
        self._refuse()

    def read(self, buffer: BackendBuffer, offset: int, out: Bytes) -> None:
        self._refuse()

    def wait_idle(self) -> None:
        self._refuse()

    def recover(self, signals: Sequence[Point], unsure: Sequence[Point] = ()) -> None:
        self._refuse()

    def take_timings(self) -> list[list[Span]]:
        self._refuse()


class LostDevice(BackendDevice):
    """A lost device. `close` closes nothing; the device state closes the driver's own device."""

    def __init__(self, inner: BackendDevice, reason: DeviceLost) -> None:
        refusal = _Refusal(inner.info.id, reason)
        self.info = inner.info
        self.queue = LostQueue(refusal)
        self._refuse = refusal.refuse

    def allocate(self, size: int, use: MemoryUse) -> BackendBuffer:
        self._refuse()

    def import_host(self, memory: Bytes) -> BackendBuffer | None:
        self._refuse()

    def import_buffer(self, handle: Any, offset: int, size: int, writable: bool) -> BackendBuffer:
        self._refuse()

    def create_executable(self, format: str, payload: memoryview, entries: tuple[Entry, ...]) -> BackendExecutable:
        self._refuse()

    def trial_build(self, format: str, payload: memoryview, entries: tuple[Entry, ...], deadline: float) -> float:
        self._refuse()

    def create_command_buffer(self, slots: int) -> BackendCommandBuffer:
        self._refuse()

    def create_semaphore(self, initial: int) -> BackendSemaphore:
        self._refuse()

    @property
    def native(self) -> Any:
        self._refuse()

    def import_semaphore(self, handle: Any) -> BackendSemaphore:
        self._refuse()

    def trim(self) -> bool:
        self._refuse()

    def close(self) -> None:
        self._refuse()


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
