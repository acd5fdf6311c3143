"""Launches without workgroups, which make a driver compile what it compiles at the first launch of an entry.

lavapipe compiles a pipeline when it is first launched: one at a time per process, whatever the VkDevice. So helpers
would not make it faster (docs/decisions/first-launches.md).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from orchestrion.hal.backend import Binding, MemoryUse
from orchestrion.hal.parallel_jobs import Progress, Using, run_jobs

if TYPE_CHECKING:
    from .device import VulkanDevice
    from .executable import VulkanExecutable

    #: an entry of an executable
    Job = tuple[VulkanExecutable, int]

#: bytes of each binding of a launch without workgroups
BINDING_BYTES = 64


def compile_entries(device: VulkanDevice, jobs: Sequence[Job], using: Using, progress: Progress) -> None:
    """Launch the entries that were not launched before. `using()` serialises use of the device's queue."""

    def here(job: Job) -> None:
        with using():
            launch_nothing(device, *job)

    left = [(executable, entry) for executable, entry in jobs if entry not in executable.launched]
    run_jobs(left, here, (), progress)


def launch_nothing(device: VulkanDevice, executable: VulkanExecutable, index: int) -> None:
    """Launch an entry without workgroups, and wait. The driver compiles, and nothing runs."""
    entry = executable.entries[index]
    buffer = device.allocate(BINDING_BYTES, MemoryUse.ARENA)
    commands = device.create_command_buffer(0)
    try:
        bindings = [Binding(buffer, 0, BINDING_BYTES)] * len(entry.bindings)
        commands.dispatch(executable, index, (0, 0, 0), bindings, bytes(4 * entry.parameter_words))
        commands.finish()
        device.queue.execute(commands, ())
    finally:
        commands.release()
        buffer.release()
    executable.launched.add(index)
