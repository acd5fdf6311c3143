"""The null device with profiling: reads the host's clock around each command, including dispatches, which
take no time.
"""

from collections.abc import Callable, Sequence
from functools import partial

from orchestrion.hal.backend import (
    BackendExecutable,
    BackendWork,
    Binding,
    Point,
    Span,
    Watcher,
)
from orchestrion.hal.timing import Timing, Timings, now

from .command_buffer import NullCommandBuffer, Table
from .device import NullDevice
from .queue import NullQueue, run


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


class ProfiledQueue(NullQueue):
    def __init__(self) -> None:
        super().__init__()
        self._timings = Timings()

    def submit(
        self,
        batch: Sequence[BackendWork],
        waits: Sequence[Point],
        signals: Sequence[Point],
        watcher: Watcher | None = None,
    ) -> None:
        work = partial(_timed, self._timings.begin(), batch) if batch else None
        self._worker.submit(waits, work, signals)

    def execute_batch(self, batch: Sequence[BackendWork], watcher: Watcher | None = None) -> None:
        self._worker.drain()
        _timed(self._timings.begin(), batch)

    def take_timings(self) -> list[list[Span]]:
        return self._timings.take()


def _timed(timing: Timing, batch: Sequence[BackendWork]) -> None:
    spans: list[Span] = []
    for commands, _ in batch:
        assert isinstance(commands, ProfiledCommandBuffer)
        commands.spans = spans
    try:
        run(batch)
    finally:
        timing.end(spans)


class ProfiledDevice(NullDevice):
    queue_class = ProfiledQueue
    command_buffer_class = ProfiledCommandBuffer
