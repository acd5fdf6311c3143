"""The queue of devices that compute with the CPU.

A worker thread runs submitted work; blocking calls run in the caller's thread.
"""

from collections.abc import Callable, Sequence
from functools import partial

from .backend import BackendBuffer, BackendCommandBuffer, BackendQueue, BackendWork, Bytes, Point, Span, Watcher
from .timeline import Worker
from .timing import Timing, Timings


class HostQueue(BackendQueue):
    """A queue of which a driver only says how recordings run: `run_all`, and `_work` if the worker needs more."""

    __slots__ = ("_worker",)

    def __init__(self, name: str) -> None:
        """`name`: of the worker's thread."""
        self._worker = Worker(name)

    def run_all(self, batch: Sequence[BackendWork], watcher: Watcher | None) -> None:
        """Runs recordings in this thread, one after the other."""
        raise NotImplementedError

    def _work(self, batch: Sequence[BackendWork], watcher: Watcher | None) -> None:
        """Runs recordings in the worker's thread."""
        self.run_all(batch, watcher)

    def submit(
        self,
        batch: Sequence[BackendWork],
        waits: Sequence[Point],
        signals: Sequence[Point],
        watcher: Watcher | None = None,
    ) -> None:
        self._worker.submit(waits, partial(self._work, batch, watcher) if batch else None, signals)

    def execute(
        self, commands: BackendCommandBuffer, table: Sequence[BackendBuffer], watcher: Watcher | None = None
    ) -> None:
        self.execute_batch([(commands, table)], watcher)

    def execute_batch(self, batch: Sequence[BackendWork], watcher: Watcher | None = None) -> None:
        if self._worker.busy:
            self._worker.drain()
        self.run_all(batch, watcher)

    def recover(self, signals: Sequence[Point], unsure: Sequence[Point] = ()) -> None:
        """Work that runs in the caller's thread ended with the exception."""
        self._worker.recover(None, signals, unsure)

    def write(self, buffer: BackendBuffer, offset: int, data: Bytes) -> None:
        self._worker.drain()
        assert buffer.host is not None
        buffer.host[offset : offset + data.size] = data

    def read(self, buffer: BackendBuffer, offset: int, out: Bytes) -> None:
        self._worker.drain()
        assert buffer.host is not None
        out[:] = buffer.host[offset : offset + out.size]

    def wait_idle(self) -> None:
        self._worker.drain()

    def close(self) -> None:
        self._worker.close()


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
