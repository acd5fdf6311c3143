"""The reference device with profiling: reads the host's clock before the first and after the last step of
each command.
"""

from collections.abc import Callable, Sequence
from functools import partial

from orchestrion.hal.backend import BackendExecutable, Binding, Span
from orchestrion.hal.timed_queue import TimedQueue
from orchestrion.hal.timing import now

from .command_buffer import Bound, ReferenceCommandBuffer, Table
from .device import ReferenceDevice
from .program import Registers
from .queue import ReferenceQueue


class ProfiledCommandBuffer(ReferenceCommandBuffer):
    """A recording that times its commands. A run appends their spans to `spans`."""

    __slots__ = ("_started", "spans")

    spans: list[Span]

    def dispatch(
        self,
        executable: BackendExecutable,
        entry: int,
        groups: tuple[int, int, int],
        bindings: Sequence[Binding],
        parameters: bytes,
    ) -> None:
        super().dispatch(executable, entry, groups, bindings, parameters)
        self._time_last()

    def copy(self, source: Binding, target: Binding) -> None:
        super().copy(source, target)
        self._time_last()

    def fill(self, target: Binding, pattern: bytes) -> None:
        super().fill(target, pattern)
        self._time_last()

    def _time_last(self) -> None:
        self._commands[-1] = partial(self._timed, self._commands[-1])

    def _timed(self, command: Callable[[Table], Bound], table: Table) -> Bound:
        steps, registers = command(table)
        return (self._begin, *steps, self._end), registers

    def _begin(self, registers: Registers) -> None:
        self._started = now()

    def _end(self, registers: Registers) -> None:
        self.spans.append((self._started, now()))


class ProfiledQueue(TimedQueue, ReferenceQueue):
    """The queue of the reference device with profiling."""


class ProfiledDevice(ReferenceDevice):
    queue_class = ProfiledQueue
    command_buffer_class = ProfiledCommandBuffer
