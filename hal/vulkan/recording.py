"""One VkCommandBuffer with its descriptor sets: a program of commands encoded for one binding table.

- A `Program` is the recorded work: commands, and the descriptor sets that they share. A command knows its arguments,
  and reads only slots from the table.
- A `Recording` may be submitted again while it is in flight. `pending` is the value of the queue's timeline at which
  its last submission is over; launched submissions are in the queue's tickets instead. It is not encoded again before
  both are over.
- It ends with a barrier that orders it before everything after it, including the host, so submissions of a queue follow
  each other as if a barrier was recorded between them.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from operator import or_
from typing import TYPE_CHECKING, Any, Protocol

from orchestrion.hal.backend import BackendBuffer, Binding
from orchestrion.hal.errors import Unsupported

from .api import Api, Handle
from .parameters import ParameterBlock, ParameterLayout, ParameterRange
from .spirv_parameters import PARAMETER_SET

if TYPE_CHECKING:
    from .buffer import BorrowedBuffer, ImportedBuffer, VulkanBuffer
    from .device import VulkanDevice
    from .executable import Layout

    AnyBuffer = VulkanBuffer | ImportedBuffer | BorrowedBuffer
    Table = Sequence[AnyBuffer]

STAGE_COMPUTE, STAGE_TRANSFER, STAGE_HOST = 0x800, 0x1000, 0x4000
STAGES = STAGE_COMPUTE | STAGE_TRANSFER
#: bytes of a word
WORD = 4
#: bytes of a fill, above which its offset is aligned (`fill_words`)
LONG_FILL = 4096
#: bytes bound for an empty binding, because Vulkan has no empty ranges, and the distance between those of two bindings
EMPTY_BYTES, EMPTY_STEP = 32, 256
#: stage, its access flags for reads, and for writes; a submission makes earlier writes of the host visible by itself
ACCESSES = ((STAGE_COMPUTE, 0x20, 0x40), (STAGE_TRANSFER, 0x800, 0x1000), (STAGE_HOST, 0x2000, 0))
BIND_POINT_COMPUTE, SHADER_STAGE_COMPUTE = 1, 0x20
DESCRIPTOR_STORAGE_BUFFER, DESCRIPTOR_UNIFORM_BUFFER_DYNAMIC, DESCRIPTOR_STORAGE_BUFFER_DYNAMIC = 7, 8, 9


class Command(Protocol):
    stage: int  #: the pipeline stage of the command; 0 for a barrier

    def encode(self, buffer: Handle, sets: Any, table: Table) -> None: ...


class Dispatch:
    """A launch of `groups` workgroups; None: the counts in the parameter block at `parameter_range`.

    `bound` is the number of its descriptor set in the program, -1 without bindings. `parameter_range` is None for a
    launch with recorded counts and without parameters.
    """

    __slots__ = ("_bound", "_groups", "_layout", "_null", "_offset", "_pipeline", "_parameter_range", "_program", "_vk")
    stage = STAGE_COMPUTE

    def __init__(
        self,
        device: VulkanDevice,
        program: Program,
        pipeline: Handle,
        layout: Handle,
        bound: int,
        parameter_range: ParameterRange | None,
        groups: tuple[int, int, int] | None,
    ) -> None:
        self._vk = device.vk
        self._null = device.api.null
        self._program = program
        self._pipeline = pipeline
        self._layout = layout
        self._bound = bound
        self._parameter_range = parameter_range
        self._groups = groups
        parameters = parameter_range is not None and parameter_range.parameters
        self._offset = (
            device.api.ffi.new("uint32_t[1]", [parameter_range.offset]) if parameter_range and parameters else None
        )

    def encode(self, buffer: Handle, sets: Any, table: Table) -> None:
        vk, layout, program = self._vk, self._layout, self._program
        vk.vkCmdBindPipeline(buffer, BIND_POINT_COMPUTE, self._pipeline)
        if self._bound >= 0:
            where = sets + self._bound
            vk.vkCmdBindDescriptorSets(buffer, BIND_POINT_COMPUTE, layout, 0, 1, where, 0, self._null)
        if self._offset is not None:
            where = sets + len(program.sets)
            vk.vkCmdBindDescriptorSets(buffer, BIND_POINT_COMPUTE, layout, PARAMETER_SET, 1, where, 1, self._offset)
        if self._groups is not None:
            vk.vkCmdDispatch(buffer, *self._groups)
            return
        assert self._parameter_range is not None and program.block is not None, (
            "an indirect launch has a place in a block"
        )
        block = program.block.buffer
        vk.vkCmdDispatchIndirect(buffer, block.handle, block.base + self._parameter_range.counts)


class Copy:
    """Copies `length` bytes, repeating the source as often as needed to fill the target. A copy of a range onto itself
    does nothing.

    If each instance has its own length, it is `program.lengths[number]`.
    """

    __slots__ = ("_number", "_program", "_regions", "_source", "_target", "_vk")
    stage = STAGE_TRANSFER

    def __init__(self, device: VulkanDevice, program: Program, source: Binding, target: Binding) -> None:
        self._vk = device.vk
        self._program = program
        self._number = program.add_transfer()
        self._source = source
        self._target = target
        self._regions = device.api.ffi.new("VkBufferCopy[]", -(-target.length // source.length))

    def encode(self, buffer: Handle, sets: Any, table: Table) -> None:
        source, target = resolve(self._source, table), resolve(self._target, table)
        taken, given = source.base + self._source.offset, target.base + self._target.offset
        length = self._program.length(self._number, self._target)
        if source.handle == target.handle and taken == given or not length:
            return
        regions, step = self._regions, self._source.length
        count = -(-length // step)
        for index in range(count):
            regions[index].srcOffset = taken
            regions[index].dstOffset = given + index * step
            regions[index].size = min(step, length - index * step)
        self._vk.vkCmdCopyBuffer(buffer, source.handle, target.handle, count, regions)


def fill_words(device: VulkanDevice, commands: Handle, handle: Handle, offset: int, length: int, word: int) -> None:
    """Record fills that repeat a 32-bit word over a word-aligned range. Long fills begin at a multiple of
    `PhysicalDevice.fill_alignment`.
    """
    head = -offset % device.physical.fill_alignment
    if head and length > LONG_FILL:
        device.vk.vkCmdFillBuffer(commands, handle, offset, head, word)
        offset, length = offset + head, length - head
    device.vk.vkCmdFillBuffer(commands, handle, offset, length, word)


class Fill:
    """Repeats a 32-bit word over a word-aligned range. The length is chosen as for `Copy`."""

    __slots__ = ("_device", "_number", "_program", "_target", "_word")
    stage = STAGE_TRANSFER

    def __init__(self, device: VulkanDevice, program: Program, target: Binding, word: int) -> None:
        self._device = device
        self._program = program
        self._number = program.add_transfer()
        self._target = target
        self._word = word

    def encode(self, buffer: Handle, sets: Any, table: Table) -> None:
        where = self._target
        target = resolve(where, table)
        length = self._program.length(self._number, where)
        if length:
            fill_words(self._device, buffer, target.handle, target.base + where.offset, length, self._word)


class Barrier:
    """Later commands see the writes of earlier ones. The `last` barrier of a recording includes the host."""

    __slots__ = ("_after", "_api", "_barrier", "_before", "_vk", "last")
    stage = 0

    def __init__(self, device: VulkanDevice, last: bool = False) -> None:
        self._api = device.api
        self._vk = device.vk
        self.last = last
        self.order(STAGES, STAGES)

    def order(self, before: int, after: int) -> None:
        """Restrict it to these stages."""
        self._before = before
        self._after = after | STAGE_HOST if self.last else after
        self._barrier = self._api.new(
            "VkMemoryBarrier",
            srcAccessMask=sum(write for stage, _, write in ACCESSES if stage & self._before),
            dstAccessMask=sum(read | write for stage, read, write in ACCESSES if stage & self._after),
        )

    def encode(self, buffer: Handle, sets: Any, table: Table) -> None:
        null = self._api.null
        self._vk.vkCmdPipelineBarrier(buffer, self._before, self._after, 0, 1, self._barrier, 0, null, 0, null)


def limit_barriers(commands: Sequence[Command]) -> None:
    """Restrict each barrier to order the stages of all commands before it against those of all commands after it.

    Anything may follow the last barrier, and anything may precede a barrier without commands before it.
    """
    stages = [command.stage for command in commands]
    before = [*accumulate(stages, or_)]
    after = [*accumulate(reversed(stages), or_)][::-1]
    for command, first, then in zip(commands, before, after, strict=True):
        if isinstance(command, Barrier) and (first, then) != (STAGES, STAGES):
            command.order(first or STAGES, STAGES if command.last else then)


def resolve(binding: Binding, table: Table) -> AnyBuffer:
    """The buffer of a binding, or the buffer that the table has in its slot."""
    source = binding.source
    return table[source] if isinstance(source, int) else source  # type: ignore[return-value]


def covered(binding: Binding, buffer: BackendBuffer) -> int:
    """The bytes of a range that lie in the buffer. Only for a slot of a program with indirect dispatches they may be
    fewer.
    """
    return min(binding.length, max(0, buffer.size - binding.offset))


def whole_words(length: int) -> int:
    """A number of bytes, rounded up to whole words."""
    return -(-length // WORD) * WORD


class Program:
    """The recorded work: `commands`, and `sets`, the distinct (layout, bindings, whether each binding holds words) that
    dispatches refer to by number.

    `empty`: memory of this command buffer that empty bindings get; None without such a binding. With indirect
    dispatches each empty binding has its own bytes there: dispatches without workgroups are recorded, too, and no
    barrier may stand between them. `parameters`: the ranges of the dispatches' parameters and counts. `block`: the
    parameter block of the recording being encoded. `lengths`: the bytes of its copies and fills, None for the recorded
    ones. `floors`: per slot, the least bytes of a buffer for which accesses can be bounded.
    """

    __slots__ = ("block", "commands", "empty", "floors", "lengths", "parameters", "sets", "transfers")

    def __init__(self) -> None:
        self.commands: list[Command] = []
        self.sets: dict[tuple[Layout, tuple[Binding, ...], tuple[bool, ...]], int] = {}
        self.empty: VulkanBuffer | None = None
        self.parameters = ParameterLayout()
        self.block: ParameterBlock | None = None
        self.floors: dict[int, int] = {}
        self.transfers = 0  #: number of copies and fills so far
        self.lengths: Sequence[int] | None = None

    def add_transfer(self) -> int:
        """The number of a new copy or fill."""
        self.transfers += 1
        return self.transfers - 1

    def length(self, number: int, target: Binding) -> int:
        """Bytes of a copy or fill in the recording that is being encoded."""
        return target.length if self.lengths is None else self.lengths[number]

    def bound(self, layout: Layout, bindings: tuple[Binding, ...], words: tuple[bool, ...]) -> int:
        if not bindings:
            return -1
        return self.sets.setdefault((layout, bindings, words), len(self.sets))


class Recording:
    """A program encoded for a table and a parameter block. `submit_info` submits it alone."""

    __slots__ = (
        "_buffers",
        "_command_pool",
        "_device",
        "_infos",
        "_pool",
        "_program",
        "_sets",
        "_writes",
        "block",
        "buffer",
        "pending",
        "submit_info",
    )

    def __init__(self, device: VulkanDevice, command_pool: Handle, program: Program) -> None:
        api: Api = device.api
        self._device = device
        self._program = program
        self._pool = None
        self.pending = 0
        self.block: ParameterBlock | None = None
        self._command_pool = command_pool
        self._buffers = buffers = api.ffi.new("VkCommandBuffer[1]")
        info = api.new("VkCommandBufferAllocateInfo", commandPool=command_pool, commandBufferCount=1)
        result = device.vk.vkAllocateCommandBuffers(device.handle, info, buffers)
        api.check(result, "a command buffer")
        self.buffer = buffers[0]
        self.submit_info = api.new("VkSubmitInfo", commandBufferCount=1, pCommandBuffers=buffers)
        kinds = [(DESCRIPTOR_STORAGE_BUFFER, layout.sets, len(bindings)) for layout, bindings, _ in program.sets]
        if program.parameters.range:
            kinds.append((device.parameter_kind, device.parameter_set, 1))
        self._sets = api.ffi.new("VkDescriptorSet[]", max(1, len(kinds)))
        self._infos = api.ffi.new("VkDescriptorBufferInfo[]", sum(count for _, _, count in kinds))
        self._writes = api.ffi.new("VkWriteDescriptorSet[]", len(kinds))
        if kinds:
            try:
                self._allocate_sets(kinds)
            except BaseException:
                self.release()
                raise

    def encode(self, table: Table, block: ParameterBlock | None = None, lengths: Sequence[int] | None = None) -> None:
        """Record again, for these buffers, this block and these lengths of copies and fills. No earlier submission is
        in flight.
        """
        api, vk, buffer, program = self._device.api, self._device.vk, self.buffer, self._program
        self.block = program.block = block
        program.lengths = lengths
        self._write_sets(table)
        api.check(vk.vkBeginCommandBuffer(buffer, self._device.begin_info), "recording commands")
        for command in program.commands:
            command.encode(buffer, self._sets, table)
        api.check(vk.vkEndCommandBuffer(buffer), "recording commands")

    def release(self) -> None:
        """Free it. No submission is in flight."""
        vk, device = self._device.vk, self._device.handle
        vk.vkFreeCommandBuffers(device, self._command_pool, 1, self._buffers)
        if self._pool is not None:
            vk.vkDestroyDescriptorPool(device, self._pool, self._device.api.null)

    def _allocate_sets(self, kinds: Sequence[tuple[int, Handle, int]]) -> None:
        """Allocate the sets. `kinds`: descriptor type, layout and number of bindings of each."""
        device, api = self._device, self._device.api
        counts: dict[int, int] = {}
        for kind, _, count in kinds:
            counts[kind] = counts.get(kind, 0) + count
        sizes = api.ffi.new("VkDescriptorPoolSize[]", len(counts))
        for index, (kind, count) in enumerate(counts.items()):
            sizes[index].type, sizes[index].descriptorCount = kind, count
        info = api.new("VkDescriptorPoolCreateInfo", maxSets=len(kinds), poolSizeCount=len(counts), pPoolSizes=sizes)
        self._pool = api.create(device.vk.vkCreateDescriptorPool, device.handle, info, "a descriptor pool")
        layouts = api.ffi.new("VkDescriptorSetLayout[]", [layout for _, layout, _ in kinds])
        taken = api.new(
            "VkDescriptorSetAllocateInfo",
            descriptorPool=self._pool,
            descriptorSetCount=len(kinds),
            pSetLayouts=layouts,
        )
        api.check(device.vk.vkAllocateDescriptorSets(device.handle, taken, self._sets), "descriptor sets")
        start = 0
        for index, (kind, _, count) in enumerate(kinds):
            write = self._writes[index]
            write.sType = api.vk.VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET
            write.dstSet = self._sets[index]
            write.descriptorCount = count  # writes binding 0 and the following ones
            write.descriptorType = kind
            write.pBufferInfo = self._infos + start
            start += count

    def _write_sets(self, table: Table) -> None:
        if self._pool is None:
            return
        program = self._program
        for slot, floor in program.floors.items():
            if whole_words(table[slot].size) < floor:
                raise Unsupported(
                    f"slot {slot}: a buffer of {table[slot].size} bytes ends within an element at byte {floor}, "
                    "which a device without robust buffer access 2 cannot bound"
                )
        index = 0
        for _, bindings, words in program.sets:
            for binding, in_words in zip(bindings, words, strict=True):
                self._describe(index, binding, table, in_words)
                index += 1
        if program.parameters.range:
            assert program.block is not None, "parameters are in a block"
            info, block = self._infos[index], program.block.buffer
            info.buffer, info.offset, info.range = block.handle, block.base, program.parameters.range
        device = self._device
        device.vk.vkUpdateDescriptorSets(device.handle, len(self._writes), self._writes, 0, device.api.null)

    def _describe(self, index: int, binding: Binding, table: Table, in_words: bool) -> None:
        """Write a descriptor. The last word of a binding that holds words may be longer than the binding. The bytes
        behind the end of a buffer are its padding, except in a buffer of the caller.
        """
        info, buffer = self._infos[index], resolve(binding, table)
        length = covered(binding, buffer)
        if in_words and length % WORD:
            length = whole_words(length)
            if binding.offset + length > buffer.size and not buffer.padded:
                raise Unsupported(
                    f"a buffer of the caller with {buffer.size} bytes ends within a word, and code for a device "
                    f"without 8- or 16-bit integers needs whole words: import {whole_words(buffer.size)} bytes"
                )
        if length:
            info.buffer, info.offset, info.range = buffer.handle, buffer.base + binding.offset, length
            return
        empty = self._program.empty
        assert empty is not None, "a binding of no length was recorded without memory for it"
        start = index * EMPTY_STEP % empty.size  # distinct per binding in a program with indirect dispatches
        info.buffer, info.offset, info.range = empty.handle, empty.base + start, EMPTY_BYTES
