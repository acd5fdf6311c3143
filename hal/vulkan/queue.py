"""The queue: submits work in order.

- The hot path is one vkQueueSubmit (`launch`, under the device's lock), one vkWaitForFences and one vkResetFences
  (`wait`, without it), with structs made in advance. Each launched submission uses the fence of its `Ticket`; several
  may be in flight. The wait is divided into slices, so that Ctrl-C and a watcher take effect.
- A recording is in flight while a ticket has it, or until the queue's timeline reaches its `pending`.
- After an exception it is unknown which steps of the call were done. `abandon` leaves the ticket's fence unchanged, and
  `recover` submits a signal that is reached when all earlier work is over. Numbers of the timeline are never reused.
- `submit` adds the queue's own timeline to the signals, so that recordings and staging memory can be reused.
- Each recording ends with a full barrier, so memory is also consistent between submissions.
- If buffers are not mapped (`staged`), each submission includes the copies that `transfer.py` has pending: uploads and
  zeroing of fresh memory before the recordings, results after them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from itertools import repeat
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from orchestrion.hal.backend import (
    NOT_MADE,
    BackendBuffer,
    BackendCommandBuffer,
    BackendQueue,
    BackendWork,
    Bytes,
    Point,
    Watcher,
)
from orchestrion.hal.errors import HalError
from orchestrion.hal.parallel_jobs import Progress, Using

from .api import Handle
from .first_launches import compile_entries
from .recording import STAGES, Recording
from .semaphore import SLICE, Timeline, VulkanSemaphore
from .transfer import Download, Transfers

if TYPE_CHECKING:
    from .device import VulkanDevice

#: nanoseconds of one wait of the driver
SLICE_NS = int(SLICE * 1e9)


class Ticket:
    """A fence, and the submission that signals it. `recordings` are those in flight; `number` is the value that the
    queue's timeline has certainly reached when it is over. `wait` changes it without the device's lock, each attribute
    in one step.
    """

    __slots__ = ("abandoned", "fence", "fences", "number", "recordings")

    def __init__(self, fences: Any) -> None:
        self.fences = fences  #: the fence as an array for the driver, which writes it there; null before that
        self.fence: Handle = fences[0]
        self.number = 0
        self.recordings: Sequence[Recording] = ()
        self.abandoned = False


class VulkanQueue(BackendQueue):
    """A VkQueue. The front serialises all calls except `wait`."""

    overlaps = True
    prepares = True

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
        self.transfers = Transfers(device, self, self.timeline)
        self._staged = device.allocator.staged
        self.tickets: list[Ticket] = []  #: all tickets except abandoned ones
        self._own = self.create_ticket()  #: the ticket of `execute`
        #: abandoned tickets, the timeline value at which the fence of each may be destroyed, and the fence
        self._left: dict[Ticket, tuple[int, Handle]] = {}
        self._made: tuple[Sequence[Point], list[int]] = ((), [])  #: signals and result of the last submission

    def create_ticket(self) -> Ticket:
        api, device = self._api, self._device
        ticket = Ticket(api.ffi.new("VkFence[1]"))
        self.tickets.append(ticket)  # first: if Ctrl-C comes after the next call, `close` destroys the fence
        result = device.vk.vkCreateFence(device.handle, api.new("VkFenceCreateInfo"), api.null, ticket.fences)
        api.check(result, "a fence")
        ticket.fence = ticket.fences[0]
        return ticket

    def prepare(self, works: Sequence[BackendWork], using: Using, progress: Progress) -> None:
        jobs = dict.fromkeys([job for commands, _ in works for job in commands.launches])  # type: ignore[attr-defined]
        compile_entries(self._device, [*jobs], using, progress)
        for commands, table in works:
            with using():
                commands.recording(table)  # type: ignore[attr-defined]

    def launch(self, ticket: Ticket, commands: BackendCommandBuffer, table: Sequence[BackendBuffer]) -> None:
        if self._staged:
            self._launch_staged(ticket, ((commands, table),))
            return
        recording: Recording = commands.recording(table)  # type: ignore[attr-defined]
        ticket.recordings = (recording,)
        ticket.number = self.timeline.submitted
        result = self._submit(self.handle, 1, recording.submit_info, ticket.fence)
        if result:
            raise self._api.error(result, "submitting work")

    def _launch_staged(self, ticket: Ticket, batch: Sequence[BackendWork]) -> None:
        """Launch with all pending transfers, in one submission."""
        recordings = self._recordings(batch)
        ticket.recordings = recordings
        ticket.number = self.timeline.submitted
        self._enqueue(recordings, (), (), batch, fence=ticket.fence)
        ticket.number = self.timeline.submitted

    def launch_batch(self, ticket: Ticket, batch: Sequence[BackendWork]) -> None:
        if self._staged:
            self._launch_staged(ticket, batch)
            return
        recordings = self._recordings(batch)
        ticket.recordings = recordings
        ticket.number = self.timeline.submitted
        buffers = self._api.ffi.new("VkCommandBuffer[]", [recording.buffer for recording in recordings])
        info = self._api.new("VkSubmitInfo", commandBufferCount=len(recordings), pCommandBuffers=buffers)
        result = self._submit(self.handle, 1, info, ticket.fence)
        if result:
            raise self._api.error(result, "submitting work")
        for recording in recordings:  # the ticket has them; earlier submissions of them are over before it
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
        if timeline.reached < ticket.number:  # a fence includes everything submitted before it
            timeline.reached = ticket.number  # another thread may lower it, and poll the device again

    def abandon(self, ticket: Ticket) -> None:
        if ticket.abandoned:
            return
        number = self.timeline.submitted + 1
        for recording in ticket.recordings:
            recording.pending = number
        with suppress(ValueError):
            self.tickets.remove(ticket)
        self._left[ticket] = number, ticket.fences[0]
        ticket.abandoned = True  # set last: everything above can be repeated

    def execute(
        self, commands: BackendCommandBuffer, table: Sequence[BackendBuffer], watcher: Watcher | None = None
    ) -> None:
        """For layers between the front and this queue that do not overlap."""
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
        """Those of `unsure` that no submission signals. The caller signals them, and they count as failed."""
        made, results = self._made
        if results == [0] and all(point in made for point in unsure):
            return []
        for semaphore, value in unsure:
            assert isinstance(semaphore, VulkanSemaphore)
            semaphore.expect_failure(value, HalError(NOT_MADE))
        return [*unsure]

    def _wait_for_device(self) -> None:
        """Wait until all submitted work is over. A lost device runs nothing, so its work counts as over."""
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
            self._enqueue(self._recordings(batch), waits, signals, batch)
        except HalError as error:
            self._fail(signals, error)

    def write(self, buffer: BackendBuffer, offset: int, data: Bytes) -> None:
        self._retire()
        self.transfers.write(buffer, offset, data)
        if not self._staged:  # the caller's memory: launches include no transfers then
            self.transfers.flush()

    def read(self, buffer: BackendBuffer, offset: int, out: Bytes) -> None:
        self._retire()
        self.transfers.read(buffer, offset, out)

    def submit_transfers(self, downloads: Sequence[Download]) -> int:
        """Submit the pending transfers, then these downloads. Returns the number of the submission."""
        self._enqueue([], (), (), downloads=downloads)
        return self.timeline.submitted

    def wait_idle(self) -> None:
        launched = any([ticket.recordings for ticket in self.tickets])  # launches signal fences, not the timeline
        if launched or self.transfers.due:
            self._enqueue([], (), ())
        self.timeline.wait()
        self._retire()

    def close(self) -> None:
        """Release everything. Only transfers without later work may be in flight."""
        with suppress(HalError):  # the device is lost, so its work is over
            self.timeline.wait()
        self._retire()
        self.transfers.release()
        self.timeline.semaphore.release()
        for ticket in (*self.tickets, *self._left):
            self._device.vk.vkDestroyFence(self._device_handle, ticket.fences[0], self._api.null)

    def _recordings(self, batch: Sequence[BackendWork]) -> list[Recording]:
        """The recordings of the next submission. Each counts as in flight from now on, so that none is encoded for
        another table.
        """
        found = []
        for commands, table in batch:
            recording = commands.recording(table)  # type: ignore[attr-defined]
            recording.pending = self.timeline.submitted + 1
            found.append(recording)
        return found

    def _enqueue(
        self,
        recordings: list[Recording],
        waits: Sequence[Point],
        signals: Sequence[Point],
        batch: Sequence[BackendWork] = (),
        downloads: Sequence[Download] = (),
        fence: Handle = None,
    ) -> None:
        """Submit with the pending transfers, which also prefetch what `batch` writes."""
        api, timeline = self._api, self.timeline
        value = timeline.submitted + 1
        handles = [recording.buffer for recording in recordings]
        ends: list[Any] = [*signals, (timeline.semaphore, value)]
        starts: list[Any] = list(waits)
        done: list[int] = []
        if self._staged or downloads or self.transfers.due:
            extra = self.transfers.compose(value, used_by(batch), downloads)
            handles, done = [*extra.ahead, *handles, *extra.behind], extra.sent
            starts += extra.waits
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
            commandBufferCount=len(handles),
            pCommandBuffers=api.ffi.new("VkCommandBuffer[]", handles),
            signalSemaphoreCount=len(ends),
            pSignalSemaphores=api.ffi.new("VkSemaphore[]", [semaphore.handle for semaphore, _ in ends]),
        )
        self._made = signals, done
        timeline.submitted = value  # before vkQueueSubmit: after an exception the number must not be reused
        # submit and store the result in one step of C, so that no exception comes in between
        done.extend(map(self._submit, (self.handle,), (1,), (info,), (api.null if fence is None else fence,)))
        self.transfers.check_submission()
        if done[0]:
            timeline.submitted = value - 1
            raise api.error(done[0], "submitting work")

    def _fail(self, signals: Sequence[Point], error: HalError) -> None:
        """Fail the signals of work that could not be submitted, after earlier work, which may signal lower values, is
        over.
        """
        self.timeline.wait()
        for semaphore, value in signals:
            semaphore.fail(value, error)

    def _retire(self) -> None:
        """Reclaim what finished transfers used, and destroy the fences that are over."""
        self.transfers.retire()
        reached = self.timeline.poll() if self._left else 0
        over = [ticket for ticket, (number, _) in self._left.items() if number <= reached]
        if over:  # take out and destroy in one step of C, so that Ctrl-C leaves none that is neither
            fences = map(itemgetter(1), map(self._left.pop, over))
            destroy = self._device.vk.vkDestroyFence
            deque(map(destroy, repeat(self._device_handle), fences, repeat(self._api.null)), maxlen=0)


def used_by(batch: Sequence[BackendWork]) -> list[BackendBuffer]:
    """The buffers that recordings may write: those in their slots, and those bound directly."""
    return [buffer for commands, table in batch for buffer in (*table, *commands.named)]  # type: ignore[attr-defined]
