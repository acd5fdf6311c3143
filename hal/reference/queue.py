"""The queue of the reference device.

NumPy stores its settings for overflow and similar warnings in a context variable. Work runs inside of a context in
which all warnings are off: entering it costs 20 ns, `np.errstate` 2 us. IEEE results are defined, so warnings do not
matter.
"""

from collections.abc import Callable, Sequence
from contextvars import Context, copy_context
from functools import partial
from typing import Any

import numpy as np

from orchestrion.hal.backend import BackendBuffer, BackendCommandBuffer, BackendWork, Watcher
from orchestrion.hal.host_queue import HostQueue

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


class ReferenceQueue(HostQueue):
    __slots__ = ("_interrupt", "_run", "_worker_run")

    def __init__(self, interrupt: Interrupt) -> None:
        super().__init__("orchestrion-reference")
        self._interrupt = interrupt
        self._run = silent_context().run
        self._worker_run = silent_context().run

    def run_all(self, batch: Sequence[BackendWork], watcher: Watcher | None) -> None:
        self._run_in(self._run, batch, watcher)

    def _work(self, batch: Sequence[BackendWork], watcher: Watcher | None) -> None:
        self._run_in(self._worker_run, batch, watcher)

    def _run_in(self, run: Callable[..., Any], batch: Sequence[BackendWork], watcher: Watcher | None) -> None:
        """Runs recordings in a context. The watcher can end them."""
        self._interrupt.watcher = watcher
        try:
            run(_run_all, batch, watcher)
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
