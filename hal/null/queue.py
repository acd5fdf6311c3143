"""The queue of the null device."""

from collections.abc import Sequence

from orchestrion.hal.backend import BackendWork, Watcher
from orchestrion.hal.host_queue import HostQueue

from .command_buffer import NullCommandBuffer


class NullQueue(HostQueue):
    def __init__(self) -> None:
        super().__init__("orchestrion-null")

    def run_all(self, batch: Sequence[BackendWork], watcher: Watcher | None) -> None:
        for commands, table in batch:
            assert isinstance(commands, NullCommandBuffer)
            commands.run(table)
