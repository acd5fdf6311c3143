"""A second queue for large uploads, so that they run concurrently with the main queue.

A family for transfers only is a separate copy engine on most GPUs; otherwise a second queue of the compute family is
used. Buffers belong to both families (`VK_SHARING_MODE_CONCURRENT`). Buffers have no layout that a family could own, so
that costs nothing on known hardware, and thousands of ranges of one VkBuffer need no ownership transfers. Timeline
semaphores order the queues: an upload waits for all earlier work of the main queue, and the main queue's next
submission waits for the upload.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from orchestrion.hal.backend import Bytes, Point

from .api import Handle
from .buffer import BorrowedBuffer, VulkanBuffer
from .recording import STAGE_TRANSFER
from .semaphore import Timeline, VulkanSemaphore
from .transfer import CommandBuffers, Transfers, chunks

if TYPE_CHECKING:
    from .device import VulkanDevice


class UploadQueue:
    """A VkQueue of that family. The front serialises calls, like those of the main queue."""

    def __init__(self, device: VulkanDevice, family: int, index: int) -> None:
        self._device = device
        queue = device.api.ffi.new("VkQueue *")
        device.vk.vkGetDeviceQueue(device.handle, family, index, queue)
        self._handle: Handle = queue[0]
        self._timeline = Timeline(VulkanSemaphore.create(device.api, device.handle, device.vk, 0))
        self._commands = CommandBuffers(device, family)
        self._rows: deque[tuple[int, Handle]] = deque()  #: submissions in flight
        self._made: tuple[int, list[int]] = (0, [0])  #: number and result of the last submission
        self._last = 0  #: the last successful submission
        self._joined = 0  #: the last submission that the main queue has waited for

    @property
    def due(self) -> bool:
        """Whether the main queue must still wait for an upload."""
        return self._last > self._joined

    def waits(self) -> list[Point]:
        """The points that the main queue's next submission waits for."""
        return [(self._timeline.semaphore, self._last)] if self.due else []

    def joined(self) -> None:
        """The main queue has submitted work that waits."""
        self._joined = self._last

    def write(self, transfers: Transfers, buffer: VulkanBuffer | BorrowedBuffer, offset: int, data: Bytes) -> None:
        earlier = transfers.flush()
        for start, part in chunks(data):
            at = transfers.fill(part)
            self._retire()
            commands = self._commands.begin()
            transfers.copy(commands, transfers.ring.memory, at, buffer, offset + start, part.size)
            self._commands.end(commands)
            self._submit(transfers, commands, earlier)

    def check_submission(self, transfers: Transfers) -> None:
        """Examine the result of the last submission. May be repeated."""
        number, result = self._made
        if result == [0]:
            self._last = number
        else:
            transfers.ring.unseal(self._timeline, number)

    def _submit(self, transfers: Transfers, commands: Handle, earlier: int) -> None:
        device, api, timeline = self._device, self._device.api, self._timeline
        number, result = timeline.submitted + 1, list[int]()
        values = api.new(
            "VkTimelineSemaphoreSubmitInfo",
            waitSemaphoreValueCount=1,
            pWaitSemaphoreValues=api.ffi.new("uint64_t[1]", [earlier]),
            signalSemaphoreValueCount=1,
            pSignalSemaphoreValues=api.ffi.new("uint64_t[1]", [number]),
        )
        info = api.new(
            "VkSubmitInfo",
            pNext=values,
            waitSemaphoreCount=1,
            pWaitSemaphores=api.ffi.new("VkSemaphore[1]", [device.timeline.semaphore.handle]),
            pWaitDstStageMask=api.ffi.new("uint32_t[1]", [STAGE_TRANSFER]),
            commandBufferCount=1,
            pCommandBuffers=api.ffi.new("VkCommandBuffer[1]", [commands]),
            signalSemaphoreCount=1,
            pSignalSemaphores=api.ffi.new("VkSemaphore[1]", [timeline.semaphore.handle]),
        )
        timeline.submitted = number  # never reused, even after an exception
        self._made = number, result
        transfers.ring.seal(timeline, number, transfers.ring.head)
        self._rows.append((number, commands))
        # submit and store the result in one step of C, so that no exception comes in between
        result.extend(map(device.vk.vkQueueSubmit, (self._handle,), (1,), (info,), (api.null,)))
        self.check_submission(transfers)
        api.check(result[0], "submitting an upload")

    def _retire(self) -> None:
        if not self._rows:
            return
        reached = self._timeline.poll()
        while self._rows and self._rows[0][0] <= reached:
            commands = self._rows[0][1]
            del self._rows[0]
            self._commands.give([commands])

    def release(self) -> None:
        """Free everything. No upload is in flight."""
        self._commands.release()
        self._timeline.semaphore.release()
