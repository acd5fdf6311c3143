"""One VkCommandBuffer with its descriptor sets: a program of commands encoded for one binding table.

- A `Program` is what was recorded: commands, each of which knows its arguments and asks the table only for what depends
  on it, and the descriptor sets they share.
- A `Recording` may be submitted while it is under way, and several times at once. `pending` is the value of the queue's
  timeline at which its last submission is over: until then it is not encoded anew.
- It ends with a barrier to everything after it, the host included, so that the submissions of a queue follow
  each other like commands between which a barrier was recorded.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

from orchestrion.hal.backend import Binding

from .api import Api, Handle

if TYPE_CHECKING:
    from .buffer import ImportedBuffer, VulkanBuffer
    from .device import VulkanDevice
    from .executable import Layout

    Table = Sequence[VulkanBuffer | ImportedBuffer]

STAGE_COMPUTE, STAGE_TRANSFER, STAGE_HOST = 0x800, 0x1000, 0x4000
ACCESS_SHADER_READ, ACCESS_SHADER_WRITE = 0x20, 0x40
ACCESS_TRANSFER_READ, ACCESS_TRANSFER_WRITE, ACCESS_HOST_READ = 0x800, 0x1000, 0x2000
STAGES = STAGE_COMPUTE | STAGE_TRANSFER
WRITES = ACCESS_SHADER_WRITE | ACCESS_TRANSFER_WRITE
READS = ACCESS_SHADER_READ | ACCESS_TRANSFER_READ
BIND_POINT_COMPUTE, SHADER_STAGE_COMPUTE, DESCRIPTOR_STORAGE_BUFFER = 1, 0x20, 7


class Command(Protocol):
    def encode(self, buffer: Handle, sets: Any, table: Table) -> None: ...


class Dispatch:
    """A launch. `bound` is the number of its descriptor set in the program, -1 without bindings."""

    __slots__ = ("_bound", "_groups", "_layout", "_null", "_parameters", "_pipeline", "_size", "_vk")

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

    def __init__(self, device: VulkanDevice, target: Binding, word: int) -> None:
        self._vk = device.vk
        self._target = target
        self._word = word

    def encode(self, buffer: Handle, sets: Any, table: Table) -> None:
        where = self._target
        target = resolve(where, table)
        self._vk.vkCmdFillBuffer(buffer, target.handle, target.base + where.offset, where.length, self._word)


class Barrier:
    """What follows sees the writes of what came before; `host` includes the host."""

    __slots__ = ("_barrier", "_null", "_stages", "_vk")

    def __init__(self, device: VulkanDevice, host: bool = False) -> None:
        self._vk = device.vk
        self._null = device.api.null
        self._stages = STAGES | (STAGE_HOST if host else 0)
        seen = READS | WRITES | (ACCESS_HOST_READ if host else 0)
        self._barrier = device.api.new("VkMemoryBarrier", srcAccessMask=WRITES, dstAccessMask=seen)

    def encode(self, buffer: Handle, sets: Any, table: Table) -> None:
        null = self._null
        self._vk.vkCmdPipelineBarrier(buffer, STAGES, self._stages, 0, 1, self._barrier, 0, null, 0, null)


def resolve(binding: Binding, table: Table) -> VulkanBuffer | ImportedBuffer:
    """The buffer a binding names, or that the table puts into its slot."""
    source = binding.source
    return table[source] if isinstance(source, int) else source  # type: ignore[return-value]


class Program:
    """What was recorded: `commands`, and `sets`, the distinct (layout, bindings) that dispatches refer to by number."""

    __slots__ = ("commands", "sets")

    def __init__(self) -> None:
        self.commands: list[Command] = []
        self.sets: dict[tuple[Layout, tuple[Binding, ...]], int] = {}

    def bound(self, layout: Layout, bindings: tuple[Binding, ...]) -> int:
        if not bindings:
            return -1
        return self.sets.setdefault((layout, bindings), len(self.sets))


class Recording:
    """A program encoded for a table. `submit_info` submits it alone."""

    __slots__ = (
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
        buffers = api.ffi.new("VkCommandBuffer[1]")
        info = api.new("VkCommandBufferAllocateInfo", commandPool=command_pool, commandBufferCount=1)
        result = device.vk.vkAllocateCommandBuffers(device.handle, info, buffers)
        api.check(result, "a command buffer")
        self.buffer = buffers[0]
        self.submit_info = api.new("VkSubmitInfo", commandBufferCount=1, pCommandBuffers=buffers)
        self._sets = api.ffi.new("VkDescriptorSet[]", max(1, len(program.sets)))
        self._infos = api.ffi.new("VkDescriptorBufferInfo[]", sum(len(bindings) for _, bindings in program.sets))
        self._writes = api.ffi.new("VkWriteDescriptorSet[]", len(program.sets))
        if program.sets:
            self._allocate_sets()

    def encode(self, table: Table) -> None:
        """Record anew, for these buffers; no earlier submission is under way."""
        api, vk, buffer = self._device.api, self._device.vk, self.buffer
        self._write_sets(table)
        api.check(vk.vkBeginCommandBuffer(buffer, self._device.begin_info), "recording commands")
        for command in self._program.commands:
            command.encode(buffer, self._sets, table)
        api.check(vk.vkEndCommandBuffer(buffer), "recording commands")

    def release(self) -> None:
        """Free the descriptor sets; the command buffer goes with its pool."""
        if self._pool is not None:
            self._device.vk.vkDestroyDescriptorPool(self._device.handle, self._pool, self._device.api.null)

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
        index, empty = 0, self._device.empty
        for _, bindings in self._program.sets:
            for binding in bindings:
                info = self._infos[index]
                buffer = resolve(binding, table) if binding.length else empty
                info.buffer = buffer.handle
                info.offset = buffer.base + binding.offset if binding.length else buffer.base
                info.range = binding.length or buffer.size
                index += 1
        device = self._device
        device.vk.vkUpdateDescriptorSets(device.handle, len(self._writes), self._writes, 0, device.api.null)
