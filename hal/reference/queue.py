"""The queue of the reference device: a worker for what is submitted, the caller's thread for what is executed.

NumPy keeps what it does about overflow and the like in a context variable. Work runs inside a context in which all
of it is silent, for entering one costs 20 ns and `np.errstate` 2 us; IEEE results are the definition, warnings are not.
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
    """A context for one thread at a time."""
    context = copy_context()
    context.run(partial(np.seterr, all="ignore"))
    return context


def _run_all(batch: Sequence[BackendWork], watcher: Watcher | None) -> None:
    """The watcher is asked before each: a recording that is short asks nobody."""
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
        """What runs in the caller's thread ended with the exception."""
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
