"""The CPU with profiling: each command stands between two stamps, commands that store the clock of the host.

The stamps of a recording belong to its last run, so recordings of a batch run one after the other.
"""

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from orchestrion.hal.backend import BackendExecutable, Binding, Span, Watcher
from orchestrion.hal.timed_queue import TimedQueue

from . import layout
from .command_buffer import CpuCommandBuffer, Table
from .device import CpuDevice
from .program import Command
from .queue import CpuQueue


class ProfiledCommandBuffer(CpuCommandBuffer):
    """A recording that times its commands. A run appends their spans to `spans`."""

    __slots__ = ("_stamps", "spans")

    spans: list[Span]

    def dispatch(
        self,
        executable: BackendExecutable,
        entry: int,
        groups: tuple[int, int, int],
        bindings: Sequence[Binding],
        parameters: bytes,
    ) -> None:
        self._timed(partial(super().dispatch, executable, entry, groups, bindings, parameters))

    def copy(self, source: Binding, target: Binding) -> None:
        self._timed(partial(super().copy, source, target))

    def fill(self, target: Binding, pattern: bytes) -> None:
        self._timed(partial(super().fill, target, pattern))

    def finish(self) -> None:
        """Until here, `memory` of a stamp is 0."""
        numbers = [number for number, row in enumerate(self._commands) if row.operation == layout.STAMP]
        self._stamps = np.zeros(len(numbers), np.int64)
        for place, number in enumerate(numbers):
            self._commands[number] = Command(layout.STAMP, memory=self._stamps.ctypes.data + 8 * place)
        super().finish()

    def run(self, table: Table, watcher: Watcher | None) -> None:
        self._stamps[:] = 0
        try:
            super().run(table, watcher)
        finally:
            times = self._stamps.tolist()
            self.spans += [(start, end) for start, end in zip(times[::2], times[1::2], strict=True) if end]

    def _timed(self, record: Callable[[], None]) -> None:
        self._commands.append(Command(layout.STAMP))
        record()
        self._commands.append(Command(layout.STAMP))


class ProfiledQueue(TimedQueue, CpuQueue):
    """The queue of the CPU with profiling."""


class ProfiledDevice(CpuDevice):
    queue_class = ProfiledQueue
    command_buffer_class = ProfiledCommandBuffer
    indirect_dispatch = False
