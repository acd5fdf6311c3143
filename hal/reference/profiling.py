"""The reference device with profiling: reads the host's clock before the first and after the last step of
each command.
"""

from collections.abc import Callable, Sequence
from functools import partial

from orchestrion.hal.backend import (
    BackendBuffer,
    BackendCommandBuffer,
    BackendExecutable,
    BackendWork,
    Binding,
    Point,
    Span,
    Watcher,
)
from orchestrion.hal.timing import Timing, Timings, now

from .command_buffer import Bound, ReferenceCommandBuffer, Table
from .device import ReferenceDevice
from .interrupt import Interrupt
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


class ProfiledQueue(ReferenceQueue):
    __slots__ = ("_timings",)

    def __init__(self, interrupt: Interrupt) -> None:
        super().__init__(interrupt)
        self._timings = Timings()

    def submit(
        self,
        batch: Sequence[BackendWork],
        waits: Sequence[Point],
        signals: Sequence[Point],
        watcher: Watcher | None = None,
    ) -> None:
        if not batch:
            super().submit(batch, waits, signals, watcher)
            return
        work = partial(_timed, self._timings.begin(), batch, partial(self._work, batch, watcher))
        self._worker.submit(waits, work, signals)

    def execute(
        self, commands: BackendCommandBuffer, table: Sequence[BackendBuffer], watcher: Watcher | None = None
    ) -> None:
        self.execute_batch([(commands, table)], watcher)

    def execute_batch(self, batch: Sequence[BackendWork], watcher: Watcher | None = None) -> None:
        self._worker.drain()
        _timed(self._timings.begin(), batch, partial(super().execute_batch, batch, watcher))

    def take_timings(self) -> list[list[Span]]:
        return self._timings.take()


def _timed(timing: Timing, batch: Sequence[BackendWork], work: Callable[[], None]) -> None:
    spans: list[Span] = []
    for commands, _ in batch:
        assert isinstance(commands, ProfiledCommandBuffer)
        commands.spans = spans
    try:
        work()
    finally:
        timing.end(spans)


class ProfiledDevice(ReferenceDevice):
    queue_class = ProfiledQueue
    command_buffer_class = ProfiledCommandBuffer
