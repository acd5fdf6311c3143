"""The queue of the reference device. A worker thread runs submitted work; blocking calls run in the caller's thread.

NumPy stores its settings for overflow and similar warnings in a context variable. Work runs inside of a context in
which all warnings are off: entering it costs 20 ns, `np.errstate` 2 us. IEEE results are defined, so warnings do not
matter.
"""

from collections.abc import Sequence
from contextvars import Context, copy_context
from functools import partial

import numpy as np

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

from .command_buffer import ReferenceCommandBuffer
from .interrupt import Interrupt


def silent_context() -> Context:
    """A context without NumPy warnings, for one thread at a time."""
    context = copy_context()
    context.run(partial(np.seterr, all="ignore"))
    return context


def _run_all(batch: Sequence[BackendWork], watcher: Watcher | None) -> None:
    """Calls the watcher before each recording, because a short recording never calls it."""
    for commands, table in batch:
        if watcher is not None:
            watcher.check()
        assert isinstance(commands, ReferenceCommandBuffer)
        commands.run(table)


class ReferenceQueue(BackendQueue):
    __slots__ = ("_interrupt", "_run", "_worker", "_worker_run")

    def __init__(self, interrupt: Interrupt) -> None:
        self._interrupt = interrupt
        self._worker = Worker("orchestrion-reference")
        self._run = silent_context().run
        self._worker_run = silent_context().run

    def submit(
        self,
        batch: Sequence[BackendWork],
        waits: Sequence[Point],
        signals: Sequence[Point],
        watcher: Watcher | None = None,
    ) -> None:
        self._worker.submit(waits, partial(self._work, batch, watcher) if batch else None, signals)

    def _work(self, batch: Sequence[BackendWork], watcher: Watcher | None) -> None:
        self._interrupt.watcher = watcher
        try:
            self._worker_run(_run_all, batch, watcher)
        finally:
            self._interrupt.watcher = None

    def execute(
        self, commands: BackendCommandBuffer, table: Sequence[BackendBuffer], watcher: Watcher | None = None
    ) -> None:
        if self._worker.busy:
            self._worker.drain()
        self._interrupt.watcher = watcher
        try:
            self._run(commands.run, table)  # type: ignore[attr-defined]
        finally:
            self._interrupt.watcher = None

    def execute_batch(self, batch: Sequence[BackendWork], watcher: Watcher | None = None) -> None:
        if self._worker.busy:
            self._worker.drain()
        self._interrupt.watcher = watcher
        try:
            self._run(_run_all, batch, watcher)
        finally:
            self._interrupt.watcher = None

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
