"""Command buffers: one program, encoded once per binding table and replayed.

Vulkan fixes buffers when commands are recorded, and binding them later (update after bind, push descriptors) is not
there or not faster everywhere. So recordings are cached by the places of the buffers in the table, RECORDINGS of them
(fewer of long programs), the least recently used going first. The same table submitted again meanwhile, or twice at
once, uses the same one; a recording in flight is never encoded anew.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from orchestrion.hal.backend import BackendCommandBuffer, BackendExecutable, Binding, MemoryUse
from orchestrion.hal.errors import Unsupported

from .buffer import VulkanBuffer
from .executable import VulkanExecutable
from .recording import Barrier, Copy, Dispatch, Fill, Program, Recording, limit_barriers

if TYPE_CHECKING:
    from .device import VulkanDevice

RECORDINGS = 16
#: commands in all recordings of one command buffer, above which only the last two recordings are kept: a driver takes a
#: few hundred bytes for each
COMMANDS = 1 << 16
#: a pattern that vkCmdFillBuffer cannot repeat is copied from a buffer that holds at most this many bytes of it
PATTERN_BYTES = 1 << 20
#: bytes that a command buffer binds for bindings of no length, since Vulkan has no empty ranges
EMPTY_BYTES = 32

Key = tuple[int, ...]


class VulkanCommandBuffer(BackendCommandBuffer):
    """See the top of this file. Calls are serialised by the front, as the queue's are."""

    def __init__(self, device: VulkanDevice) -> None:
        self._device = device
        info = device.api.new(
            "VkCommandPoolCreateInfo",
            flags=device.api.vk.VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT,
            queueFamilyIndex=device.queue_family,
        )
        self._pool = device.api.create(device.vk.vkCreateCommandPool, device.handle, info, "a command pool")
        self._program = Program()
        self._patterns: list[VulkanBuffer] = []
        self._recordings: OrderedDict[Key, Recording] = OrderedDict()
        self._spare: list[Recording] = []  # without a table; some may still be under way
        self._table: Sequence[Any] | None = None
        self._recording: Any = None  # of this table
        self._timeline = device.timeline

    def dispatch(
        self,
        executable: BackendExecutable,
        entry: int,
        groups: tuple[int, int, int],
        bindings: Sequence[Binding],
        parameters: bytes,
    ) -> None:
        assert isinstance(executable, VulkanExecutable)
        pipeline, layout = executable.pipelines[entry], executable.layouts[entry]
        for position, (binding, least) in enumerate(zip(bindings, executable.least_bytes[entry], strict=False)):
            if 0 < binding.length < least:
                name = executable.entries[entry].name
                raise Unsupported(
                    f"binding {position} of entry {name}: {binding.length} bytes are less than one element of {least}, "
                    "which a device without robust buffer access 2 cannot bound"
                )
        if self._program.empty is None and not all([binding.length for binding in bindings]):
            self._program.empty = self._device.allocator.allocate(EMPTY_BYTES, MemoryUse.ARENA)
        bound = self._program.bound(layout, tuple(bindings))
        self._program.commands.append(Dispatch(self._device, pipeline, layout.pipeline, bound, parameters, groups))

    def copy(self, source: Binding, target: Binding) -> None:
        self._program.commands.append(Copy(self._device, source, target))

    def fill(self, target: Binding, pattern: bytes) -> None:
        length = self.fill_bytes(target, pattern)
        if not length:
            self._program.commands.append(Fill(self._device, target, int.from_bytes((pattern * 4)[:4], "little")))
            return
        buffer = self._device.allocator.allocate_staging(length)
        self._patterns.append(buffer)
        assert buffer.host is not None, "host-visible memory is mapped"
        buffer.host.reshape(-1, len(pattern))[:] = list(pattern)
        self._program.commands.append(Copy(self._device, Binding(buffer, 0, length), target))

    def fill_bytes(self, target: Binding, pattern: bytes) -> int:
        """Of the buffer from which a pattern is copied, 0 where the device repeats a word by itself."""
        aligned = target.offset % 4 == 0 and target.length % 4 == 0
        repeats = ((pattern * 4)[:4] * 2)[: len(pattern)] == pattern
        return 0 if aligned and repeats else min(target.length, PATTERN_BYTES)

    def barrier(self) -> None:
        """One between what is before and what comes after; neither is needed at an end, where recordings meet."""
        commands = self._program.commands
        if commands and not isinstance(commands[-1], Barrier):
            commands.append(Barrier(self._device))

    def finish(self) -> None:
        commands = self._program.commands
        if commands and isinstance(commands[-1], Barrier):
            commands.pop()
        commands.append(Barrier(self._device, last=True))
        limit_barriers(commands)

    def recording(self, table: Sequence[Any]) -> Recording:
        """The program encoded for this table; for the one before it is at hand."""
        if table != self._table:
            self._table = None  # for when this fails halfway
            self._recording = self._find(table)
            self._table = table
        recording: Recording = self._recording
        return recording

    def trim(self) -> bool:
        """Release the recordings that are not under way, but for that of the latest table; whether there were any."""
        reached, latest = self._timeline.poll(), self._recording if self._table is not None else None
        idle = [one for one in self._recordings.items() if one[1] is not latest and one[1].pending <= reached]
        for key, recording in idle:
            del self._recordings[key]
            recording.release()
        spare = [one for one in self._spare if one.pending <= reached]
        self._spare = [one for one in self._spare if one.pending > reached]
        for recording in spare:
            recording.release()
        return bool(idle or spare)

    def release(self) -> None:
        device = self._device
        for recording in (*self._recordings.values(), *self._spare):
            recording.release()
        device.vk.vkDestroyCommandPool(device.handle, self._pool, device.api.null)
        for buffer in self._patterns:
            buffer.release()
        if self._program.empty is not None:
            self._program.empty.release()

    def _find(self, table: Sequence[Any]) -> Recording:
        key = tuple([buffer.place for buffer in table])
        recording = self._recordings.get(key)
        if recording is None:
            return self._encode(key, table)
        self._recordings.move_to_end(key)
        return recording

    def _encode(self, key: Key, table: Sequence[Any]) -> Recording:
        most = max(2, min(RECORDINGS, COMMANDS // len(self._program.commands)))
        if len(self._recordings) >= most:
            self._spare.append(self._recordings.popitem(last=False)[1])
        recording = self._take_spare() or Recording(self._device, self._pool, self._program)
        try:
            recording.encode(table)
        except BaseException:
            recording.release()  # it may be half encoded, and cannot be begun again then
            raise
        self._recordings[key] = recording
        return recording

    def _take_spare(self) -> Recording | None:
        """One that is not under way, if there is one; more of them are left over from a busier time, and go."""
        if not self._spare:
            return None
        launched = {recording for ticket in self._device.tickets for recording in ticket.recordings}
        reached = self._timeline.poll()
        idle = [spare for spare in self._spare if spare.pending <= reached and spare not in launched]
        self._spare = [spare for spare in self._spare if spare not in idle]
        for spare in idle[1:]:
            spare.release()
        return idle[0] if idle else None
