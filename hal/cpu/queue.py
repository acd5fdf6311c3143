"""The queue of the CPU. The threads of the pool help the thread that runs a recording."""

from collections.abc import Sequence

from orchestrion.hal.backend import BackendBuffer, BackendCommandBuffer, BackendWork, Watcher
from orchestrion.hal.host_queue import HostQueue


class CpuQueue(HostQueue):
    __slots__ = ()

    def __init__(self) -> None:
        super().__init__("orchestrion-cpu")

    def run_all(self, batch: Sequence[BackendWork], watcher: Watcher | None) -> None:
        """Calls the watcher before each recording, because a short recording never calls it."""
        for commands, table in batch:
            if watcher is not None:
                watcher.check()
            commands.run(table, watcher)  # type: ignore[attr-defined]

    def execute(
        self, commands: BackendCommandBuffer, table: Sequence[BackendBuffer], watcher: Watcher | None = None
    ) -> None:
        if self._worker.busy:
            self._worker.drain()
        commands.run(table, watcher)  # type: ignore[attr-defined]
