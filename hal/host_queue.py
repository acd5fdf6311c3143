"""The queue of devices that compute with the CPU.

A worker thread runs submitted work; blocking calls run in the caller's thread.
"""

from collections.abc import Sequence
from functools import partial

from .backend import BackendBuffer, BackendCommandBuffer, BackendQueue, BackendWork, Bytes, Point, Watcher
from .timeline import Worker


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
