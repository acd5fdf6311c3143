"""The queue: work in order.

- The hot path is one vkQueueSubmit (`launch`, under the device's lock), one vkWaitForFences and one vkResetFences
  (`wait`, outside of it) with structs made beforehand. Each launched submission has the fence of its `Ticket`, and
  several may be under way. The wait is in slices, so that Ctrl-C and a watcher are heard.
- A recording is under way while a ticket has it, or until the queue's timeline reaches its `pending`.
- After an exception nobody knows which steps of the call were done: `abandon` leaves the ticket's fence as it is, and
  `recover` submits a signal, which is reached when all earlier work is over. Numbers of the timeline are never used
  twice.
- `submit` adds the queue's own timeline to the signals, so that recordings and staging memory can be used again.
- Each recording ends with a full barrier, so submissions also follow each other in memory.
- Buffers that are not mapped are written and read through staging memory.
- Fresh memory that the host cannot write (`Allocator.uncleared`) is zeroed ahead of the next submission.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from orchestrion.hal.backend import (
    NOT_MADE,
    BackendBuffer,
    BackendCommandBuffer,
    BackendQueue,
    BackendWork,
    Binding,
    Bytes,
    Point,
    Watcher,
)
from orchestrion.hal.errors import HalError

from .allocator import padded_size
from .api import Handle
from .buffer import VulkanBuffer
from .command_buffer import VulkanCommandBuffer
from .recording import STAGES, Recording
from .semaphore import SLICE, VulkanSemaphore

if TYPE_CHECKING:
    from .device import VulkanDevice

#: bytes of staging memory one transfer takes at a time
STAGING_BYTES = 64 << 20
#: nanoseconds of one wait in the driver
SLICE_NS = int(SLICE * 1e9)


class Timeline:
    """The queue's own count of submissions: `submitted` so far, `reached` as last seen."""

    __slots__ = ("reached", "semaphore", "submitted")

    def __init__(self, semaphore: VulkanSemaphore) -> None:
        self.semaphore = semaphore
        self.submitted = 0
        self.reached = 0

    def poll(self) -> int:
        if self.reached < self.submitted:
            self.reached = min(self.semaphore.value(), self.submitted)
        return self.reached

    def wait(self) -> None:
        if self.reached < self.submitted:
            self.semaphore.wait(self.submitted, None)
            self.reached = self.submitted


class Ticket:
    """A fence, and the submission that signals it: `recordings` while it is under way, and how far the queue's timeline
    is for sure when it is over. `wait` changes it outside of the device's lock, each attribute in one step.
    """

    __slots__ = ("abandoned", "fence", "fences", "number", "recordings")

    def __init__(self, fence: Handle, fences: Any) -> None:
        self.fence = fence
        self.fences = fences  #: the same as an array for the driver
        self.number = 0
        self.recordings: Sequence[Recording] = ()
        self.abandoned = False


class VulkanQueue(BackendQueue):
    """A VkQueue. All calls but `wait` are serialised by the front."""

    overlaps = True

    def __init__(self, device: VulkanDevice) -> None:
        api = device.api
        self._device = device
        self._api = api
        queue = api.ffi.new("VkQueue *")
        device.vk.vkGetDeviceQueue(device.handle, device.queue_family, 0, queue)
        self.handle: Handle = queue[0]
        self._device_handle = device.handle
        self._submit = device.vk.vkQueueSubmit
        self._wait = device.vk.vkWaitForFences
        self._reset = device.vk.vkResetFences
        self._timeout: int = api.vk.VK_TIMEOUT
        self.timeline = Timeline(VulkanSemaphore.create(api, device.handle, device.vk, 0))
        self._staging: deque[tuple[int, VulkanCommandBuffer, VulkanBuffer]] = deque()
        self._allocator = device.allocator
        self._uncleared = device.allocator.uncleared
        self._fills: deque[tuple[int, VulkanCommandBuffer, list[VulkanBuffer]]] = deque()  #: under way, by timeline
        self.tickets: list[Ticket] = []  #: all but abandoned ones
        self._own = self.create_ticket()  #: of `execute`
        #: abandoned tickets, and the number of the timeline at which each one's fence may be destroyed
        self._left: dict[Ticket, int] = {}
        self._made: tuple[Sequence[Point], list[int]] = ((), [])  #: signals of the last submission, and its result

    def create_ticket(self) -> Ticket:
        api, device = self._api, self._device
        fence = api.create(device.vk.vkCreateFence, device.handle, api.new("VkFenceCreateInfo"), "a fence")
        ticket = Ticket(fence, api.ffi.new("VkFence[1]", [fence]))
        self.tickets.append(ticket)
        return ticket

    def launch(self, ticket: Ticket, commands: BackendCommandBuffer, table: Sequence[BackendBuffer]) -> None:
        if self._uncleared:
            self._fill_uncleared()
        recording: Recording = commands.recording(table)  # type: ignore[attr-defined]
        ticket.recordings = (recording,)
        ticket.number = self.timeline.submitted
        result = self._submit(self.handle, 1, recording.submit_info, ticket.fence)
        if result:
            raise self._api.error(result, "submitting work")

    def launch_batch(self, ticket: Ticket, batch: Sequence[BackendWork]) -> None:
        self._fill_uncleared()
        recordings = self._recordings(batch)
        ticket.recordings = recordings
        ticket.number = self.timeline.submitted
        buffers = self._api.ffi.new("VkCommandBuffer[]", [recording.buffer for recording in recordings])
        info = self._api.new("VkSubmitInfo", commandBufferCount=len(recordings), pCommandBuffers=buffers)
        result = self._submit(self.handle, 1, info, ticket.fence)
        if result:
            raise self._api.error(result, "submitting work")
        for recording in recordings:  # the ticket has them; what was submitted before is over before
            recording.pending = 0

    def wait(self, ticket: Ticket, watcher: Watcher | None = None) -> None:
        device, fences, wait = self._device_handle, ticket.fences, self._wait
        result = wait(device, 1, fences, 1, SLICE_NS)
        while result == self._timeout:
            if watcher is not None:
                watcher.check()
            result = wait(device, 1, fences, 1, SLICE_NS)
        if result:
            raise self._api.error(result, "waiting for work")
        result = self._reset(device, 1, fences)
        if result:
            raise self._api.error(result, "resetting a fence")
        ticket.recordings = ()
        timeline = self.timeline
        if timeline.reached < ticket.number:  # a fence waits for everything submitted before it
            timeline.reached = ticket.number  # less, if another thread comes between: then the device is asked again

    def abandon(self, ticket: Ticket) -> None:
        if ticket.abandoned:
            return
        number = self.timeline.submitted + 1
        for recording in ticket.recordings:
            recording.pending = number
        with suppress(ValueError):
            self.tickets.remove(ticket)
        self._left[ticket] = number
        ticket.abandoned = True  # last: until then all of this may be repeated

    def execute(
        self, commands: BackendCommandBuffer, table: Sequence[BackendBuffer], watcher: Watcher | None = None
    ) -> None:
        """For layers between the front and this that do not overlap."""
        self.launch(self._own, commands, table)
        self.wait(self._own, watcher)

    def execute_batch(self, batch: Sequence[BackendWork], watcher: Watcher | None = None) -> None:
        self.launch_batch(self._own, batch)
        self.wait(self._own, watcher)

    def recover(self, signals: Sequence[Point], unsure: Sequence[Point] = ()) -> None:
        """See `BackendQueue.recover`. Waits only if the driver refuses the submission of the signal."""
        if self._own.recordings:
            self.abandon(self._own)
            self._own = self.create_ticket()
        missing = self._missing(unsure)
        try:
            self._enqueue([], (), [*missing, *signals])
        except HalError:
            self._wait_for_device()
            self._reach(signals)
            self._reach(missing)

    def _missing(self, unsure: Sequence[Point]) -> list[Point]:
        """Those of `unsure` that no submission signals: the caller signals them, and they count as failed."""
        made, results = self._made
        if results == [0] and all(point in made for point in unsure):
            return []
        for semaphore, value in unsure:
            assert isinstance(semaphore, VulkanSemaphore)
            semaphore.expect_failure(value, HalError(NOT_MADE))
        return [*unsure]

    def _wait_for_device(self) -> None:
        """Wait until all submitted work is over. A lost device runs nothing, so its work is over, too."""
        result = self._device.vk.vkDeviceWaitIdle(self._device_handle)
        if result and result != self._api.vk.VK_ERROR_DEVICE_LOST:
            raise self._api.error(result, "waiting for the device")
        self.timeline.reached = self.timeline.submitted

    def _reach(self, points: Sequence[Point]) -> None:
        for semaphore, value in points:
            if semaphore.value() < value:
                semaphore.signal(value)

    def submit(
        self,
        batch: Sequence[BackendWork],
        waits: Sequence[Point],
        signals: Sequence[Point],
        watcher: Watcher | None = None,
    ) -> None:
        self._retire()
        try:
            self._fill_uncleared()
            self._enqueue(self._recordings(batch), waits, signals)
        except HalError as error:
            self._fail(signals, error)

    def write(self, buffer: BackendBuffer, offset: int, data: Bytes) -> None:
        self._retire()
        self._fill_uncleared()
        for start in range(0, data.size, STAGING_BYTES):
            part = data[start : start + STAGING_BYTES]
            staging = self._stage(part.size)
            assert staging.host is not None, "host-visible memory is mapped"
            staging.host[:] = part
            commands = self._transfer(Binding(staging, 0, part.size), Binding(buffer, offset + start, part.size))
            self._staging.append((self.timeline.submitted + 1, commands, staging))
            self._enqueue(self._recordings([(commands, ())]), (), ())
            if part.size == STAGING_BYTES:
                self.wait_idle()

    def read(self, buffer: BackendBuffer, offset: int, out: Bytes) -> None:
        self._fill_uncleared()
        for start in range(0, out.size, STAGING_BYTES):
            part = out[start : start + STAGING_BYTES]
            staging = self._stage(part.size)
            assert staging.host is not None, "host-visible memory is mapped"
            commands = self._transfer(Binding(buffer, offset + start, part.size), Binding(staging, 0, part.size))
            self._staging.append((self.timeline.submitted + 1, commands, staging))
            self._enqueue(self._recordings([(commands, ())]), (), ())
            self.timeline.wait()
            part[:] = staging.host
            self._retire()

    def wait_idle(self) -> None:
        if any([ticket.recordings for ticket in self.tickets]):  # launched work signals a fence, not the timeline
            self._enqueue([], (), ())
        self.timeline.wait()
        self._retire()

    def close(self) -> None:
        """Release everything. Nothing is under way but fills of fresh memory that no later work followed."""
        with suppress(HalError):  # a lost device: its work is over
            self.timeline.wait()
        self._retire()
        self.timeline.semaphore.release()
        for ticket in (*self.tickets, *self._left):
            self._device.vk.vkDestroyFence(self._device_handle, ticket.fence, self._api.null)

    def _recordings(self, batch: Sequence[BackendWork]) -> list[Recording]:
        """Those of the next submission. Each counts as under way from here on, so that none is encoded anew for another
        table.
        """
        found = []
        for commands, table in batch:
            recording = commands.recording(table)  # type: ignore[attr-defined]
            recording.pending = self.timeline.submitted + 1
            found.append(recording)
        return found

    def _enqueue(self, recordings: list[Recording], waits: Sequence[Point], signals: Sequence[Point]) -> None:
        api, timeline = self._api, self.timeline
        value = timeline.submitted + 1
        ends: list[Any] = [*signals, (timeline.semaphore, value)]
        starts: list[Any] = list(waits)
        values = api.new(
            "VkTimelineSemaphoreSubmitInfo",
            waitSemaphoreValueCount=len(starts),
            pWaitSemaphoreValues=api.ffi.new("uint64_t[]", [point for _, point in starts]),
            signalSemaphoreValueCount=len(ends),
            pSignalSemaphoreValues=api.ffi.new("uint64_t[]", [point for _, point in ends]),
        )
        info = api.new(
            "VkSubmitInfo",
            pNext=values,
            waitSemaphoreCount=len(starts),
            pWaitSemaphores=api.ffi.new("VkSemaphore[]", [semaphore.handle for semaphore, _ in starts]),
            pWaitDstStageMask=api.ffi.new("uint32_t[]", [STAGES] * len(starts)),
            commandBufferCount=len(recordings),
            pCommandBuffers=api.ffi.new("VkCommandBuffer[]", [recording.buffer for recording in recordings]),
            signalSemaphoreCount=len(ends),
            pSignalSemaphores=api.ffi.new("VkSemaphore[]", [semaphore.handle for semaphore, _ in ends]),
        )
        done: list[int] = []
        self._made = signals, done
        timeline.submitted = value  # before vkQueueSubmit: after an exception the number must not be used again
        # submit and store the result in one step of C, so that no exception comes between the two
        done.extend(map(self._submit, (self.handle,), (1,), (info,), (api.null,)))
        if done[0]:
            timeline.submitted = value - 1
            raise api.error(done[0], "submitting work")

    def _fail(self, signals: Sequence[Point], error: HalError) -> None:
        """What could not be submitted fails its signals, once earlier work, which may signal lower values, is over."""
        self.timeline.wait()
        for semaphore, value in signals:
            semaphore.fail(value, error)

    def _stage(self, size: int) -> VulkanBuffer:
        return self._allocator.allocate_staging(size)

    def _fill_uncleared(self) -> None:
        """Submit fills of fresh memory, ahead of whatever may use it; a submission ends with a full barrier."""
        if not self._uncleared:
            return
        buffers = self._allocator.begin_fills()
        commands = VulkanCommandBuffer(self._device)
        kept = False
        try:
            for buffer in buffers:
                commands.fill(Binding(buffer, 0, padded_size(buffer.size)), bytes(4))
            commands.finish()
            recordings = self._recordings([(commands, ())])
            self._fills.append((self.timeline.submitted + 1, commands, buffers))
            kept = True
            self._enqueue(recordings, (), ())
        except BaseException as error:
            if kept and not isinstance(error, HalError):
                raise  # perhaps submitted: the row stays in `_fills`, and the buffers in `uncleared` to be filled again
            if kept:
                self._fills.pop()
            self._allocator.end_fills(buffers)
            commands.release()
            raise
        self._allocator.forget_uncleared(buffers)

    def _transfer(self, source: Binding, target: Binding) -> VulkanCommandBuffer:
        commands = VulkanCommandBuffer(self._device)
        commands.copy(source, target)
        commands.finish()
        return commands

    def _retire(self) -> None:
        """Release what finished transfers and fills used, and fences that are over."""
        staging, fills = self._staging, self._fills
        reached = self.timeline.poll() if staging or fills or self._left else 0
        while fills and fills[0][0] <= reached:
            _, commands, cleared = fills.popleft()
            commands.release()
            self._allocator.end_fills(cleared)
        for ticket in [ticket for ticket, number in self._left.items() if number <= reached]:
            del self._left[ticket]
            self._device.vk.vkDestroyFence(self._device_handle, ticket.fence, self._api.null)
        while staging and staging[0][0] <= reached:
            _, commands, buffer = staging.popleft()
            commands.release()
            buffer.release()
