"""The queue of the null device. A worker thread runs submitted work; blocking calls run in the caller's thread."""

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

from .command_buffer import NullCommandBuffer


class NullQueue(BackendQueue):
    def __init__(self) -> None:
        self._worker = Worker("orchestrion-null")

    def submit(
        self,
        batch: Sequence[BackendWork],
        waits: Sequence[Point],
        signals: Sequence[Point],
        watcher: Watcher | None = None,
    ) -> None:
        self._worker.submit(waits, partial(run, batch), signals)

    def execute(
        self, commands: BackendCommandBuffer, table: Sequence[BackendBuffer], watcher: Watcher | None = None
    ) -> None:
        self.execute_batch([(commands, table)])

    def execute_batch(self, batch: Sequence[BackendWork], watcher: Watcher | None = None) -> None:
        if self._worker.busy:
            self._worker.drain()
        run(batch)

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


def run(batch: Sequence[BackendWork]) -> None:
    for commands, table in batch:
        assert isinstance(commands, NullCommandBuffer)
        commands.run(table)
