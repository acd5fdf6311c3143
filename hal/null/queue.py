"""The queue of the null device: a worker for what is submitted, the caller's thread for what is executed."""

from collections.abc import Sequence
from functools import partial

from orchestrion.hal.backend import BackendBuffer, BackendCommandBuffer, BackendQueue, Bytes, Point, Watcher
from orchestrion.hal.timeline import Worker

from .command_buffer import NullCommandBuffer


class NullQueue(BackendQueue):
    def __init__(self) -> None:
        self._worker = Worker("orchestrion-null")

    def submit(
        self,
        commands: BackendCommandBuffer | None,
        table: Sequence[BackendBuffer],
        waits: Sequence[Point],
        signals: Sequence[Point],
        watcher: Watcher | None = None,
    ) -> None:
        assert commands is None or isinstance(commands, NullCommandBuffer)
        self._worker.submit(waits, None if commands is None else partial(commands.run, table), signals)

    def execute(
        self, commands: BackendCommandBuffer, table: Sequence[BackendBuffer], watcher: Watcher | None = None
    ) -> None:
        assert isinstance(commands, NullCommandBuffer)
        if self._worker.busy:
            self._worker.drain()
        commands.run(table)

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
