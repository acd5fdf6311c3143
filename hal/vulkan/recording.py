"""One VkCommandBuffer with its descriptor sets: a program of commands encoded for one binding table.

- A `Program` is what was recorded: commands, each of which knows its arguments and asks the table only for what depends
  on it, and the descriptor sets they share.
- A `Recording` may be submitted while it is under way, and several times at once. `pending` is the value of the queue's
  timeline at which its last submission is over; launched submissions stand in the queue's tickets instead. Until both
  are over it is not encoded anew.
- It ends with a barrier to everything after it, the host included, so that the submissions of a queue follow
  each other like commands between which a barrier was recorded.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from operator import or_
from typing import TYPE_CHECKING, Any, Protocol

from orchestrion.hal.backend import Binding

from .api import Api, Handle

if TYPE_CHECKING:
    from .buffer import BorrowedBuffer, ImportedBuffer, VulkanBuffer
    from .device import VulkanDevice
    from .executable import Layout

    AnyBuffer = VulkanBuffer | ImportedBuffer | BorrowedBuffer
    Table = Sequence[AnyBuffer]

STAGE_COMPUTE, STAGE_TRANSFER, STAGE_HOST = 0x800, 0x1000, 0x4000
STAGES = STAGE_COMPUTE | STAGE_TRANSFER
#: stage -> how it reads and writes memory; the host writes before a submission, which waits for that by itself
ACCESSES = ((STAGE_COMPUTE, 0x20, 0x40), (STAGE_TRANSFER, 0x800, 0x1000), (STAGE_HOST, 0x2000, 0))
BIND_POINT_COMPUTE, SHADER_STAGE_COMPUTE, DESCRIPTOR_STORAGE_BUFFER = 1, 0x20, 7


class Command(Protocol):
    stage: int  #: of the pipeline, at which it works; 0 for a barrier

    def encode(self, buffer: Handle, sets: Any, table: Table) -> None: ...


class Dispatch:
    """A launch. `bound` is the number of its descriptor set in the program, -1 without bindings."""

    __slots__ = ("_bound", "_groups", "_layout", "_null", "_parameters", "_pipeline", "_size", "_vk")
    stage = STAGE_COMPUTE

    def __init__(
        self,
        device: VulkanDevice,
        pipeline: Handle,
        layout: Handle,
        bound: int,
        parameters: bytes,
        groups: tuple[int, int, int],
    ) -> None:
        self._vk = device.vk
        self._null = device.api.null
        self._pipeline = pipeline
        self._layout = layout
        self._bound = bound
        self._parameters = device.api.ffi.new("char[]", parameters)
        self._size = len(parameters)
        self._groups = groups

    def encode(self, buffer: Handle, sets: Any, table: Table) -> None:
        vk, layout = self._vk, self._layout
        vk.vkCmdBindPipeline(buffer, BIND_POINT_COMPUTE, self._pipeline)
        if self._bound >= 0:
            where = sets + self._bound
            vk.vkCmdBindDescriptorSets(buffer, BIND_POINT_COMPUTE, layout, 0, 1, where, 0, self._null)
        if self._size:
            vk.vkCmdPushConstants(buffer, layout, SHADER_STAGE_COMPUTE, 0, self._size, self._parameters)
        vk.vkCmdDispatch(buffer, *self._groups)


class Copy:
    """Copies `length` bytes, repeating the source as often as it takes to fill the target; a range onto itself not."""

    __slots__ = ("_count", "_regions", "_source", "_target", "_vk")
    stage = STAGE_TRANSFER

    def __init__(self, device: VulkanDevice, source: Binding, target: Binding) -> None:
        self._vk = device.vk
        self._source = source
        self._target = target
        self._count = -(-target.length // source.length)
        self._regions = device.api.ffi.new("VkBufferCopy[]", self._count)
        for index in range(self._count):
            self._regions[index].size = min(source.length, target.length - index * source.length)

    def encode(self, buffer: Handle, sets: Any, table: Table) -> None:
        source, target = resolve(self._source, table), resolve(self._target, table)
        taken, given = source.base + self._source.offset, target.base + self._target.offset
        if source.handle == target.handle and taken == given:
            return
        regions, step = self._regions, self._source.length
        for index in range(self._count):
            regions[index].srcOffset = taken
            regions[index].dstOffset = given + index * step
        self._vk.vkCmdCopyBuffer(buffer, source.handle, target.handle, self._count, regions)


class Fill:
    """Repeats a 32-bit word over a word-aligned range."""

    __slots__ = ("_target", "_vk", "_word")
    stage = STAGE_TRANSFER

    def __init__(self, device: VulkanDevice, target: Binding, word: int) -> None:
        self._vk = device.vk
        self._target = target
        self._word = word

    def encode(self, buffer: Handle, sets: Any, table: Table) -> None:
        where = self._target
        target = resolve(where, table)
        self._vk.vkCmdFillBuffer(buffer, target.handle, target.base + where.offset, where.length, self._word)


class Barrier:
    """What follows sees the writes of what came before. The `last` one of a recording is for the host, too."""

    __slots__ = ("_after", "_api", "_barrier", "_before", "_vk", "last")
    stage = 0

    def __init__(self, device: VulkanDevice, last: bool = False) -> None:
        self._api = device.api
        self._vk = device.vk
        self.last = last
        self.order(STAGES, STAGES)

    def order(self, before: int, after: int) -> None:
        """Let it order these stages only."""
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
    """Let each barrier order the stages of all commands before it against those of all after it, and no others.

    Behind the last there may be anything, and if there is nothing before it, so may there.
    """
    stages = [command.stage for command in commands]
    before = [*accumulate(stages, or_)]
    after = [*accumulate(reversed(stages), or_)][::-1]
    for command, first, then in zip(commands, before, after, strict=True):
        if isinstance(command, Barrier) and (first, then) != (STAGES, STAGES):
            command.order(first or STAGES, STAGES if command.last else then)


def resolve(binding: Binding, table: Table) -> AnyBuffer:
    """The buffer a binding names, or that the table puts into its slot."""
    source = binding.source
    return table[source] if isinstance(source, int) else source  # type: ignore[return-value]


class Program:
    """What was recorded: `commands`, and `sets`, the distinct (layout, bindings) that dispatches refer to by number.

    `empty`: memory of this command buffer alone that bindings of no length get; None if it has no such binding.
    """

    __slots__ = ("commands", "empty", "sets")

    def __init__(self) -> None:
        self.commands: list[Command] = []
        self.sets: dict[tuple[Layout, tuple[Binding, ...]], int] = {}
        self.empty: VulkanBuffer | None = None

    def bound(self, layout: Layout, bindings: tuple[Binding, ...]) -> int:
        if not bindings:
            return -1
        return self.sets.setdefault((layout, bindings), len(self.sets))


class Recording:
    """A program encoded for a table. `submit_info` submits it alone."""

    __slots__ = (
        "_buffers",
        "_command_pool",
        "_device",
        "_infos",
        "_pool",
        "_program",
        "_sets",
        "_writes",
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
        self._command_pool = command_pool
        self._buffers = buffers = api.ffi.new("VkCommandBuffer[1]")
        info = api.new("VkCommandBufferAllocateInfo", commandPool=command_pool, commandBufferCount=1)
        result = device.vk.vkAllocateCommandBuffers(device.handle, info, buffers)
        api.check(result, "a command buffer")
        self.buffer = buffers[0]
        self.submit_info = api.new("VkSubmitInfo", commandBufferCount=1, pCommandBuffers=buffers)
        self._sets = api.ffi.new("VkDescriptorSet[]", max(1, len(program.sets)))
        self._infos = api.ffi.new("VkDescriptorBufferInfo[]", sum(len(bindings) for _, bindings in program.sets))
        self._writes = api.ffi.new("VkWriteDescriptorSet[]", len(program.sets))
        if program.sets:
            try:
                self._allocate_sets()
            except BaseException:
                self.release()
                raise

    def encode(self, table: Table) -> None:
        """Record anew, for these buffers; no earlier submission is under way."""
        api, vk, buffer = self._device.api, self._device.vk, self.buffer
        self._write_sets(table)
        api.check(vk.vkBeginCommandBuffer(buffer, self._device.begin_info), "recording commands")
        for command in self._program.commands:
            command.encode(buffer, self._sets, table)
        api.check(vk.vkEndCommandBuffer(buffer), "recording commands")

    def release(self) -> None:
        """Free it; no submission is under way."""
        vk, device = self._device.vk, self._device.handle
        vk.vkFreeCommandBuffers(device, self._command_pool, 1, self._buffers)
        if self._pool is not None:
            vk.vkDestroyDescriptorPool(device, self._pool, self._device.api.null)

    def _allocate_sets(self) -> None:
        device, api, sets = self._device, self._device.api, self._program.sets
        size = api.new("VkDescriptorPoolSize", type=DESCRIPTOR_STORAGE_BUFFER, descriptorCount=len(self._infos))
        info = api.new("VkDescriptorPoolCreateInfo", maxSets=len(sets), poolSizeCount=1, pPoolSizes=size)
        self._pool = api.create(device.vk.vkCreateDescriptorPool, device.handle, info, "a descriptor pool")
        layouts = api.ffi.new("VkDescriptorSetLayout[]", [layout.sets for layout, _ in sets])
        taken = api.new(
            "VkDescriptorSetAllocateInfo",
            descriptorPool=self._pool,
            descriptorSetCount=len(sets),
            pSetLayouts=layouts,
        )
        api.check(device.vk.vkAllocateDescriptorSets(device.handle, taken, self._sets), "descriptor sets")
        start = 0
        for index, (_, bindings) in enumerate(sets):
            write = self._writes[index]
            write.sType = api.vk.VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET
            write.dstSet = self._sets[index]
            write.descriptorCount = len(bindings)  # runs on from binding 0 through those that follow
            write.descriptorType = DESCRIPTOR_STORAGE_BUFFER
            write.pBufferInfo = self._infos + start
            start += len(bindings)

    def _write_sets(self, table: Table) -> None:
        if self._pool is None:
            return
        index, empty = 0, self._program.empty
        for _, bindings in self._program.sets:
            for binding in bindings:
                info = self._infos[index]
                if binding.length:
                    buffer = resolve(binding, table)
                    info.buffer = buffer.handle
                    info.offset = buffer.base + binding.offset
                    info.range = binding.length
                else:
                    assert empty is not None, "a binding of no length was recorded without memory for it"
                    info.buffer, info.offset, info.range = empty.handle, empty.base, empty.size
                index += 1
        device = self._device
        device.vk.vkUpdateDescriptorSets(device.handle, len(self._writes), self._writes, 0, device.api.null)
