"""The queue of profiled devices that compute with the CPU."""

from collections.abc import Callable, Sequence
from functools import partial

from .backend import BackendBuffer, BackendCommandBuffer, BackendWork, Point, Span, Watcher
from .host_queue import HostQueue
from .timing import Timing, Timings


class TimedQueue(HostQueue):
    """The queue of a device with profiling, before the driver's own queue among the bases of its class. Its recordings
    append the spans of their commands to their attribute `spans`.
    """

    def __init__(self, *arguments: object) -> None:
        super().__init__(*arguments)  # type: ignore[arg-type]
        self._timings = Timings()

    def submit(
        self,
        batch: Sequence[BackendWork],
        waits: Sequence[Point],
        signals: Sequence[Point],
        watcher: Watcher | None = None,
    ) -> None:
        work = partial(_timed, self._timings.begin(), batch, partial(self._work, batch, watcher)) if batch else None
        self._worker.submit(waits, work, signals)

    def execute(
        self, commands: BackendCommandBuffer, table: Sequence[BackendBuffer], watcher: Watcher | None = None
    ) -> None:
        self.execute_batch([(commands, table)], watcher)

    def execute_batch(self, batch: Sequence[BackendWork], watcher: Watcher | None = None) -> None:
        self._worker.drain()
        _timed(self._timings.begin(), batch, partial(self.run_all, batch, watcher))

    def take_timings(self) -> list[list[Span]]:
        return self._timings.take()


def _timed(timing: Timing, batch: Sequence[BackendWork], work: Callable[[], None]) -> None:
    spans: list[Span] = []
    for commands, _ in batch:
        commands.spans = spans  # type: ignore[attr-defined]
    try:
        work()
    finally:
        timing.end(spans)
