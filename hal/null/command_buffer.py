"""Recordings of the null device: a list of steps, each a function of the table of slot buffers."""

from collections.abc import Callable, Sequence

import numpy as np

from orchestrion.hal.backend import BackendBuffer, BackendCommandBuffer, BackendExecutable, Binding

Table = Sequence[BackendBuffer]


class NullCommandBuffer(BackendCommandBuffer):
    __slots__ = ("_steps",)

    def __init__(self) -> None:
        self._steps: list[Callable[[Table], None]] = []

    def dispatch(
        self,
        executable: BackendExecutable,
        entry: int,
        groups: tuple[int, int, int],
        bindings: Sequence[Binding],
        parameters: bytes,
    ) -> None:
        """Accepted, but no step is recorded: the null device computes nothing."""

    def copy(self, source: Binding, target: Binding) -> None:
        def step(table: Table) -> None:
            target.memory(table)[:] = source.memory(table)

        self._steps.append(step)

    def fill(self, target: Binding, pattern: bytes) -> None:
        word = np.frombuffer(pattern, np.uint8)

        def step(table: Table) -> None:
            target.memory(table).reshape(-1, word.size)[:] = word

        self._steps.append(step)

    def barrier(self) -> None:
        """Nothing to do: steps run one after the other."""

    def finish(self) -> None:
        return

    def run(self, table: Table) -> None:
        for step in self._steps:
            step(table)

    def release(self) -> None:
        self._steps.clear()
