"""The queue of the CPU. A worker thread runs submitted work; blocking calls run in the caller's thread. The threads of
the pool help both.
"""

from collections.abc import Sequence
from functools import partial

from orchestrion.hal.backend import (
    BackendBuffer,
    BackendCommandBuffer,
    BackendQueue,
    BackendWork,
    Bytes,
    Point,
    Watcher,
)
from orchestrion.hal.timeline import Worker


def run_all(batch: Sequence[BackendWork], watcher: Watcher | None) -> None:
    """Calls the watcher before each recording, because a short recording never calls it."""
    for commands, table in batch:
        if watcher is not None:
            watcher.check()
        commands.run(table, watcher)  # type: ignore[attr-defined]


class CpuQueue(BackendQueue):
    __slots__ = ("_worker",)

    def __init__(self) -> None:
        self._worker = Worker("orchestrion-cpu")

    def submit(
        self,
        batch: Sequence[BackendWork],
        waits: Sequence[Point],
        signals: Sequence[Point],
        watcher: Watcher | None = None,
    ) -> None:
        self._worker.submit(waits, partial(run_all, batch, watcher) if batch else None, signals)

    def execute(
        self, commands: BackendCommandBuffer, table: Sequence[BackendBuffer], watcher: Watcher | None = None
    ) -> None:
        if self._worker.busy:
            self._worker.drain()
        commands.run(table, watcher)  # type: ignore[attr-defined]

    def execute_batch(self, batch: Sequence[BackendWork], watcher: Watcher | None = None) -> None:
        if self._worker.busy:
            self._worker.drain()
        run_all(batch, watcher)

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
