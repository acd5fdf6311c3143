"""Command buffers: one program, encoded once per binding table, and replayed.

Vulkan fixes buffers when commands are recorded. Binding them later (update after bind, push descriptors) is unavailable
or slower on some devices. So recordings are cached by the memory ids of the buffers in the table: up to RECORDINGS of
them, fewer of long programs, and the least recently used is dropped first. Submitting the same table again while it is
in flight, or twice at once, uses the same recording. A recording in flight is never encoded again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from orchestrion.hal.backend import (
    BackendBuffer,
    BackendCommandBuffer,
    BackendExecutable,
    BackendInstance,
    Binding,
    IndirectArgument,
    MemoryUse,
)
from orchestrion.hal.errors import Unsupported
from orchestrion.schema.lru_cache import LruCache

from .buffer import VulkanBuffer
from .executable import VulkanExecutable
from .parameters import ParameterBlock, ParameterRange
from .recording import (
    EMPTY_BYTES,
    EMPTY_STEP,
    Barrier,
    Copy,
    Dispatch,
    Fill,
    Program,
    Recording,
    limit_barriers,
    whole_words,
)

if TYPE_CHECKING:
    from .device import VulkanDevice

RECORDINGS = 16
#: commands in all recordings of one command buffer above which only the last two recordings are kept, because a driver
#: takes a few hundred bytes for each command
COMMANDS = 1 << 16
#: bytes of the buffer from which a pattern that vkCmdFillBuffer cannot repeat is copied
PATTERN_BYTES = 1 << 20

Key = tuple[int, ...]


class VulkanCommandBuffer(BackendCommandBuffer):
    """A recording; see the module. The front serialises calls, like those of the queue."""

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
        self._recordings: LruCache[Key, Recording] = LruCache()
        self._spare: list[Recording] = []  # without a table; some may still be in flight
        self._table: Sequence[Any] | None = None
        self._recording: Any = None  # the recording of `_table`
        self._timeline = device.timeline
        self._blocks: list[ParameterBlock] = []
        self.launches: dict[tuple[VulkanExecutable, int], None] = {}  #: the entries that it dispatches
        self._words: list[int] = []  #: the numbers of the fills that repeat a word
        self._fixed = b""  #: the parameters of all dispatches, if none is indirect
        self._data = b""  #: the parameters that `_recording` reads
        self._lengths: tuple[int, ...] = ()  #: the lengths of the copies and fills of `_recording`
        self.named: dict[BackendBuffer, None] = {}  #: directly bound buffers that it may write, if `staged`
        self._staged = device.allocator.staged

    def dispatch(
        self,
        executable: BackendExecutable,
        entry: int,
        groups: tuple[int, int, int],
        bindings: Sequence[Binding],
        parameters: bytes,
    ) -> None:
        parameter_range = self._program.parameters.add(parameters) if parameters else None
        self._dispatch(executable, entry, bindings, parameter_range, groups)

    def dispatch_indirect(self, executable: BackendExecutable, entry: int, bindings: Sequence[Binding]) -> None:
        parameter_range = self._program.parameters.add_indirect(4 * executable.entries[entry].parameter_words)
        self._dispatch(executable, entry, bindings, parameter_range, None)

    def _dispatch(
        self,
        executable: BackendExecutable,
        entry: int,
        bindings: Sequence[Binding],
        parameter_range: ParameterRange | None,
        groups: tuple[int, int, int] | None,
    ) -> None:
        assert isinstance(executable, VulkanExecutable)
        program, device = self._program, self._device
        self.launches[executable, entry] = None
        pipeline, layout = executable.pipelines[entry], executable.layouts[entry]
        for position, (binding, least) in enumerate(zip(bindings, executable.least_bytes[entry], strict=False)):
            if 0 < (length := whole_words(binding.length)) < least:
                name = executable.entries[entry].name
                raise Unsupported(
                    f"binding {position} of entry {name}: {length} bytes are less than one element of {least}, "
                    "which a device without robust buffer access 2 cannot bound"
                )
            if groups is None and isinstance(binding.source, int):
                floor = max(program.floors.get(binding.source, 0), binding.offset + least)
                program.floors[binding.source] = floor
        if groups is not None and program.empty is None and not all([binding.length for binding in bindings]):
            program.empty = device.allocator.allocate(EMPTY_BYTES, MemoryUse.ARENA)
        for binding, (access, _) in zip(bindings, executable.entries[entry].bindings, strict=False):
            if access != "read":
                self._name(binding)
        bound = program.bound(layout, tuple(bindings), executable.in_words[entry])
        program.commands.append(Dispatch(device, program, pipeline, layout.pipeline, bound, parameter_range, groups))

    def _name(self, binding: Binding) -> None:
        if self._staged and not isinstance(binding.source, int):
            self.named[binding.source] = None

    def copy(self, source: Binding, target: Binding) -> None:
        self._name(target)
        self._program.commands.append(Copy(self._device, self._program, source, target))

    def fill(self, target: Binding, pattern: bytes) -> None:
        self._name(target)
        length = self.fill_bytes(target, pattern)
        if not length:
            word = int.from_bytes((pattern * 4)[:4], "little")
            self._words.append(self._program.transfers)
            self._program.commands.append(Fill(self._device, self._program, target, word))
            return
        buffer = self._device.allocator.allocate_staging(length)
        self._patterns.append(buffer)
        assert buffer.host is not None, "host-visible memory is mapped"
        buffer.host.reshape(-1, len(pattern))[:] = list(pattern)
        self._program.commands.append(Copy(self._device, self._program, Binding(buffer, 0, length), target))

    def fill_bytes(self, target: Binding, pattern: bytes) -> int:
        """Bytes of the buffer that a pattern is copied from; 0 if the device repeats a word by itself."""
        aligned = target.offset % 4 == 0 and target.length % 4 == 0
        repeats = ((pattern * 4)[:4] * 2)[: len(pattern)] == pattern
        return 0 if aligned and repeats else min(target.length, PATTERN_BYTES)

    def barrier(self) -> None:
        """Recorded only between commands. At the start and the end of a recording none is needed."""
        commands = self._program.commands
        if commands and not isinstance(commands[-1], Barrier):
            commands.append(Barrier(self._device))

    def finish(self) -> None:
        commands = self._program.commands
        if commands and isinstance(commands[-1], Barrier):
            commands.pop()
        commands.append(Barrier(self._device, last=True))
        limit_barriers(commands)
        program = self._program
        if program.parameters.size and not program.parameters.indirect:
            self._fixed = program.parameters.pack(())
        count = sum(len(bindings) for _, bindings, _ in program.sets)
        if program.parameters.indirect and count:
            if program.empty is not None:
                program.empty.release()
            program.empty = self._device.allocator.allocate(EMPTY_STEP * count, MemoryUse.ARENA)

    def instance(self, arguments: Sequence[IndirectArgument | None], lengths: Sequence[int]) -> VulkanInstance:
        for number in self._words:
            if lengths[number] % 4:
                raise Unsupported(f"a fill of {lengths[number]} bytes in a recording that fills whole words")
        return VulkanInstance(self, self._program.parameters.pack(arguments), tuple(lengths))

    def recording(self, table: Sequence[Any]) -> Recording:
        """The program encoded for this table, with the recorded parameters."""
        return self.recording_of(table, self._fixed, ())

    def recording_of(self, table: Sequence[Any], data: bytes, lengths: tuple[int, ...]) -> Recording:
        """The program encoded for this table, with a block that holds `data`. The recording of the previous call is
        cached.

        `lengths`: the lengths of copies and fills; empty for the recorded ones. The caller submits the recording, or
        sets its `pending`, before it requests another one.
        """
        if table != self._table or data is not self._data or lengths != self._lengths:
            self._table = None  # stays None if this fails halfway
            self._recording = self._find(table, data, lengths)
            self._table, self._data, self._lengths = table, data, lengths
        recording: Recording = self._recording
        return recording

    def trim(self) -> bool:
        """Release the recordings that are not in flight, except that of the latest table. Returns whether there were
        any.
        """
        latest, busy = self._recording if self._table is not None else None, self._under_way()
        idle = [one for one in self._recordings.items() if one[1] is not latest and one[1] not in busy]
        for key, recording in idle:
            del self._recordings[key]
            recording.release()
        spare = [one for one in self._spare if one not in busy]
        self._spare = [one for one in self._spare if one in busy]
        for recording in spare:
            recording.release()
        return bool(idle)

    def release(self) -> None:
        device = self._device
        for recording in (*self._recordings.values(), *self._spare):
            recording.release()
        device.vk.vkDestroyCommandPool(device.handle, self._pool, device.api.null)
        for buffer in self._patterns:
            buffer.release()
        for block in self._blocks:
            block.buffer.release()
        if self._program.empty is not None:
            self._program.empty.release()

    def block(self, data: bytes) -> ParameterBlock | None:
        """A block that holds `data`; None if the program has no parameters. No work in flight reads a block that is
        written.
        """
        if not data:
            return None
        for block in self._blocks:
            if block.data is data:
                return block
        busy = {recording.block for recording in self._under_way()}
        free = next((block for block in self._blocks if block not in busy), None)
        if free is None:
            free = ParameterBlock(self._device.allocator, len(self._blocks), self._program.parameters.size)
            self._blocks.append(free)
        free.write(data)
        return free

    def _find(self, table: Sequence[Any], data: bytes, lengths: tuple[int, ...]) -> Recording:
        block = self.block(data)
        key: Key = (*lengths, *[buffer.memory_id for buffer in table])
        if block is not None:
            key += (block.number,)
        if self._program.parameters.indirect:  # ranges end with the buffer, so its size matters
            key += tuple([buffer.size for buffer in table])
        return self._recordings.use(key) or self._encode(key, table, block, lengths)

    def _encode(
        self, key: Key, table: Sequence[Any], block: ParameterBlock | None, lengths: tuple[int, ...]
    ) -> Recording:
        most = max(2, min(RECORDINGS, COMMANDS // len(self._program.commands)))
        if len(self._recordings) >= most:
            self._spare.append(self._recordings.evict())
        recording = self._take_spare() or Recording(self._device, self._pool, self._program)
        try:
            recording.encode(table, block, lengths or None)
        except BaseException:
            recording.release()  # it may be partly encoded, and could not be begun again
            raise
        self._recordings[key] = recording
        return recording

    def _under_way(self) -> set[Recording]:
        """The recordings in flight: submitted, or launched by a thread that waits for them."""
        launched = {recording for ticket in self._device.tickets for recording in ticket.recordings}
        reached = self._timeline.poll()
        known = (*self._recordings.values(), *self._spare)
        return {recording for recording in known if recording.pending > reached or recording in launched}

    def _take_spare(self) -> Recording | None:
        """Returns a spare recording that is not in flight, or None. Further idle ones are released."""
        if not self._spare:
            return None
        busy = self._under_way()
        idle = [spare for spare in self._spare if spare not in busy]
        self._spare = [spare for spare in self._spare if spare not in idle]
        for spare in idle[1:]:
            spare.release()
        return idle[0] if idle else None


class VulkanInstance(BackendInstance):
    """A recording with arguments for its indirect dispatches. It owns nothing: when it is submitted, its bytes are
    written to a block of the recording.
    """

    def __init__(self, commands: VulkanCommandBuffer, data: bytes, lengths: tuple[int, ...]) -> None:
        self._commands = commands
        self._data = data
        self._lengths = lengths
        self.named = commands.named

    def recording(self, table: Sequence[Any]) -> Recording:
        """See `VulkanCommandBuffer.recording`."""
        return self._commands.recording_of(table, self._data, self._lengths)
