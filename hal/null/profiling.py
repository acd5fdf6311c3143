"""The null device with profiling: reads the host's clock around each command, including dispatches, which
take no time.
"""

from collections.abc import Callable, Sequence
from functools import partial

from orchestrion.hal.backend import BackendExecutable, Binding, Span
from orchestrion.hal.timed_queue import TimedQueue
from orchestrion.hal.timing import now

from .command_buffer import NullCommandBuffer, Table
from .device import NullDevice
from .queue import NullQueue


class ProfiledCommandBuffer(NullCommandBuffer):
    """A recording that times its commands. A run appends their spans to `spans`."""

    __slots__ = ("spans",)

    def __init__(self) -> None:
        super().__init__()
        self.spans: list[Span] = []

    def dispatch(
        self,
        executable: BackendExecutable,
        entry: int,
        groups: tuple[int, int, int],
        bindings: Sequence[Binding],
        parameters: bytes,
    ) -> None:
        self._steps.append(partial(self._timed, lambda table: None))

    def copy(self, source: Binding, target: Binding) -> None:
        super().copy(source, target)
        self._steps[-1] = partial(self._timed, self._steps[-1])

    def fill(self, target: Binding, pattern: bytes) -> None:
        super().fill(target, pattern)
        self._steps[-1] = partial(self._timed, self._steps[-1])

    def _timed(self, step: Callable[[Table], None], table: Table) -> None:
        start = now()
        step(table)
        self.spans.append((start, now()))


class ProfiledQueue(TimedQueue, NullQueue):
    """The queue of the null device with profiling."""


class ProfiledDevice(NullDevice):
    queue_class = ProfiledQueue
    command_buffer_class = ProfiledCommandBuffer
