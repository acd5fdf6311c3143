"""Copies between the host and unmapped buffers, through persistent staging memory.

- `write` copies into a ring of mapped memory (`RING_BYTES`) and records a pending upload. Uploads go to the device with
  the next submission, in a command buffer before its recordings, so a call with small inputs is one submission. Once
  `CHUNK_BYTES` are pending, they are submitted by themselves: the host fills one chunk while the device copies the
  previous one.
- Large uploads use the transfer queue if the device has one; the next submission of the main queue waits for them.
- `read` copies through two alternating chunks. The range of an output that was read last, up to `READBACK_BYTES`, is
  prefetched: each later submission that uses the buffer also copies it, as long as somebody reads it. So a call with
  small results is one submission.
- Fresh memory that the host cannot write (`Allocator.uncleared`) is zeroed before the next submission, too.
- An exception may come between any two statements. `TransferBatch.sent` holds the driver's result of the submission,
  stored in the same step of C. `check_submission` examines it before anything else is done, and may be repeated.

Command buffers and staging memory are reused: none is made once there are enough.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from orchestrion.hal.backend import BackendBuffer, Bytes, MemoryUse, Point

from .allocator import padded_size
from .api import Handle
from .buffer import BorrowedBuffer, VulkanBuffer
from .recording import Barrier, fill_words
from .ring import Counter, Ring

if TYPE_CHECKING:
    from .device import VulkanDevice
    from .queue import VulkanQueue
    from .upload_queue import UploadQueue

#: bytes of staging memory for uploads
RING_BYTES = 16 << 20
#: bytes of one copy: a quarter of the ring, so that the host may be three copies ahead
CHUNK_BYTES = RING_BYTES // 4
#: the most bytes of a range that is prefetched after a submission: of an output, and of any other buffer
READBACK_BYTES, SMALL_READBACK_BYTES = 1 << 20, 64
#: the most uploads that wait for a submission
MAX_UPLOADS = 1024


#: a buffer that the host writes to
Target = VulkanBuffer | BorrowedBuffer
#: a range of a buffer to copy to the start of staging memory: buffer, offset, staging memory, length
Download = tuple[BackendBuffer, int, VulkanBuffer, int]


def chunks(data: Bytes) -> Iterator[tuple[int, Bytes]]:
    """Pieces of `data` of at most `CHUNK_BYTES`, each with its offset."""
    for start in range(0, data.size, CHUNK_BYTES):
        yield start, data[start : start + CHUNK_BYTES]


class SubmissionTransfers(NamedTuple):
    """The transfers of a submission: command buffers before and after its recordings, and points to wait for.

    The caller stores the driver's result in `sent`, in the step that submits.
    """

    ahead: list[Handle]
    behind: list[Handle]
    waits: list[Point]
    sent: list[int]


class Upload:
    """A copy that waits for a submission, from byte `at` of the ring to `buffer`. `ordered`: it needs a barrier,
    because it overlaps an earlier upload.
    """

    __slots__ = ("at", "buffer", "length", "offset", "ordered")

    def __init__(self, at: int, buffer: Target, offset: int, length: int, ordered: bool) -> None:
        self.at = at
        self.buffer = buffer
        self.offset = offset
        self.length = length
        self.ordered = ordered

    def meets(self, buffer: Target, offset: int, length: int) -> bool:
        return self.buffer is buffer and self.offset < offset + length and offset < self.offset + self.length


class Readback:
    """A prefetched copy of a buffer's range in staging memory. `number`: the submission that fills it; 0 if it is
    invalid.

    `wanted`: whether it was read since it was filled.
    """

    __slots__ = ("length", "memory", "number", "offset", "wanted")

    def __init__(self, memory: VulkanBuffer, offset: int, length: int) -> None:
        self.memory = memory
        self.offset = offset
        self.length = length
        self.number = 0
        self.wanted = True


class TransferBatch:
    """The transfers of one submission. `sent` is the driver's result of the submission, empty before it."""

    __slots__ = ("cleared", "commands", "dropped", "readbacks_filled", "number", "sent", "uploads")

    def __init__(self, number: int) -> None:
        self.number = number
        self.sent: list[int] = []
        self.commands: list[Handle] = []
        self.cleared: list[VulkanBuffer] = []
        self.uploads: list[Upload] = []
        self.readbacks_filled: list[Readback] = []
        self.dropped: list[VulkanBuffer] = []  #: staging memory of unused readbacks


class CommandBuffers:
    """Reusable command buffers of one queue family. `made` counts them."""

    __slots__ = ("_device", "_free", "_pool", "made")

    def __init__(self, device: VulkanDevice, family: int) -> None:
        self._device = device
        self._free: list[Handle] = []
        self.made = 0
        info = device.api.new(
            "VkCommandPoolCreateInfo",
            flags=device.api.vk.VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT,
            queueFamilyIndex=family,
        )
        self._pool = device.api.create(device.vk.vkCreateCommandPool, device.handle, info, "a command pool")

    def begin(self) -> Handle:
        """Returns a command buffer that is recording."""
        device = self._device
        if not self._free:
            found = device.api.ffi.new("VkCommandBuffer[1]")
            info = device.api.new("VkCommandBufferAllocateInfo", commandPool=self._pool, commandBufferCount=1)
            device.api.check(device.vk.vkAllocateCommandBuffers(device.handle, info, found), "a command buffer")
            self.made += 1
            self._free.append(found[0])
        commands = self._free.pop()
        device.api.check(device.vk.vkBeginCommandBuffer(commands, device.begin_info), "recording commands")
        return commands

    def end(self, commands: Handle) -> None:
        self._device.api.check(self._device.vk.vkEndCommandBuffer(commands), "recording commands")

    def give(self, commands: Iterable[Handle]) -> None:
        """Reuse these command buffers: they are not in flight any more."""
        self._free += commands

    def release(self) -> None:
        """Free the pool with all of its command buffers."""
        self._device.vk.vkDestroyCommandPool(self._device.handle, self._pool, self._device.api.null)


class Transfers:
    """The transfers of one queue. The front serialises calls, like those of the queue."""

    def __init__(self, device: VulkanDevice, queue: VulkanQueue, counter: Counter) -> None:
        self._device = device
        self._queue = queue
        self._counter = counter
        self._allocator = device.allocator
        self._region = device.api.ffi.new("VkBufferCopy[1]")
        self._between, self._last = Barrier(device), Barrier(device, last=True)
        self._ring: Ring | None = None
        self._chunks: list[VulkanBuffer] = []
        self._uploads: list[Upload] = []  #: uploads that wait for a submission
        self._waiting = 0  #: bytes of `_uploads`
        self._rows: deque[TransferBatch] = deque()  #: submissions under way
        self._open: TransferBatch | None = None  #: of a submission of which nobody has looked at the result
        self._dropped: list[VulkanBuffer] = []  #: staging memory to release once the next submission is over
        self.commands = CommandBuffers(device, device.queue_family)
        self.uploader: UploadQueue | None = None

    @property
    def due(self) -> bool:
        """Whether a transfer waits for a submission."""
        return bool(self._uploads or self._allocator.uncleared or (self.uploader is not None and self.uploader.due))

    @property
    def ring(self) -> Ring:
        if self._ring is None:
            self._ring = Ring(self._allocator.allocate_staging(RING_BYTES))
        return self._ring

    # from the host

    def write(self, buffer: BackendBuffer, offset: int, data: Bytes) -> None:
        """Copy `data`, which the caller may change on return, before the next submission."""
        assert isinstance(buffer, VulkanBuffer | BorrowedBuffer)
        self.check_submission()
        if isinstance(buffer, VulkanBuffer) and buffer.readback is not None:
            buffer.readback.number = 0
        if self.uploader is not None and data.size >= CHUNK_BYTES:
            self.uploader.write(self, buffer, offset, data)
            return
        for start, part in chunks(data):
            self._add(buffer, offset + start, part)
            if self._waiting >= CHUNK_BYTES or len(self._uploads) >= MAX_UPLOADS:
                self.flush()

    def _add(self, buffer: Target, offset: int, part: Bytes) -> None:
        at = self.fill(part)
        ordered = any([upload.meets(buffer, offset, part.size) for upload in self._uploads])
        self._waiting += part.size
        self._uploads.append(Upload(at, buffer, offset, part.size, ordered))

    def fill(self, part: Bytes) -> int:
        """Copy a chunk into the ring as soon as there is room. Returns its offset."""
        ring = self.ring
        while (at := ring.take(part.size)) is None:
            if self._uploads:
                self.flush()
            elif ring.busy:
                ring.wait()
            else:  # an exception left bytes taken without an upload
                ring.reset()
        host = ring.memory.host
        assert host is not None, "staging memory is mapped"
        host[at : at + part.size] = part
        return at

    def flush(self) -> int:
        """Submit the pending transfers by themselves. Returns the number of the submission."""
        return self._queue.submit_transfers(())

    # to the host

    def read(self, buffer: BackendBuffer, offset: int, out: Bytes) -> None:
        """Fill `out` with the buffer's content after all earlier work."""
        self.check_submission()
        if isinstance(buffer, VulkanBuffer) and buffer.host is None:
            if out.size <= (READBACK_BYTES if buffer.use is MemoryUse.OUTPUT else SMALL_READBACK_BYTES):
                self._read_mirror(buffer, offset, out)
                return
        if not self._chunks:
            self._chunks = [self._allocator.allocate_staging(CHUNK_BYTES) for _ in range(2)]
        under_way: deque[tuple[int, VulkanBuffer, Bytes]] = deque()
        for index, (start, part) in enumerate(chunks(out)):
            chunk = self._chunks[index % 2]
            number = self._queue.submit_transfers([(buffer, offset + start, chunk, part.size)])
            under_way.append((number, chunk, part))
            if len(under_way) == 2:
                self._take(*under_way.popleft())
        while under_way:
            self._take(*under_way.popleft())

    def _take(self, number: int, memory: VulkanBuffer, out: Bytes, start: int = 0) -> None:
        self._counter.wait_for(number)
        assert memory.host is not None, "staging memory is mapped"
        out[:] = memory.host[start : start + out.size]

    def _read_mirror(self, buffer: VulkanBuffer, offset: int, out: Bytes) -> None:
        readback = buffer.readback
        if readback is None or not readback.offset <= offset <= offset + out.size <= readback.offset + readback.length:
            if readback is not None:
                buffer.readback = None
                self._dropped.append(readback.memory)
            readback = Readback(self._allocator.allocate_staging(out.size), offset, out.size)
            buffer.readback = readback
        if not readback.number:
            readback.number = self._queue.submit_transfers(
                [(buffer, readback.offset, readback.memory, readback.length)]
            )
        elif self.due:  # a read guarantees that all earlier writes are over, also those to other buffers
            self._counter.wait_for(self.flush())
        self._take(readback.number, readback.memory, out, offset - readback.offset)
        readback.wanted = True

    # extra a submission

    def compose(
        self,
        number: int,
        used: Iterable[BackendBuffer],
        downloads: Sequence[Download] = (),
    ) -> SubmissionTransfers:
        """Returns the transfers to submit together with recordings that may write the buffers `used`.

        The caller calls `check_submission` after the submission. An exception before that leaves everything pending.
        """
        self.check_submission()
        self.retire()
        batch = TransferBatch(number)
        self._open = batch
        batch.dropped, self._dropped = self._dropped, []
        ahead = self._record_before(batch)
        behind = self._record_after(batch, [*self._readbacks(used, batch)], downloads)
        if self._ring is not None and batch.uploads:
            self._ring.seal(self._counter, number, self._ring.head)
        self._rows.append(batch)
        return SubmissionTransfers(ahead, behind, [] if self.uploader is None else self.uploader.waits(), batch.sent)

    def check_submission(self) -> None:
        """Examine the result of the last submission: its transfers are done, or pending again. May be repeated."""
        if self.uploader is not None:
            self.uploader.check_submission(self)
        batch = self._open
        if batch is None:
            return
        if batch.sent == [0]:
            taken = set(map(id, batch.uploads))
            self._uploads = [upload for upload in self._uploads if id(upload) not in taken]
            self._waiting = sum([upload.length for upload in self._uploads])
            self._allocator.forget_uncleared(batch.cleared)
            for readback in batch.readbacks_filled:
                readback.number, readback.wanted = batch.number, False
            if self.uploader is not None:
                self.uploader.joined()
        else:
            if self._rows and self._rows[-1] is batch:
                self._rows.pop()
            if self._ring is not None:
                self._ring.unseal(self._counter, batch.number)
            if not batch.sent:  # possibly half recorded; they are freed with the pool
                batch.commands = []
            kept, batch.dropped = batch.dropped, []
            self._dropped = [*self._dropped, *kept]  # earlier submissions may still write them
            self._release_batch(batch)
        self._open = None

    def retire(self) -> None:
        """Reclaim what finished submissions used."""
        if not self._rows:
            return
        reached = self._counter.poll()
        while self._rows and self._rows[0].number <= reached:
            batch = self._rows[0]
            del self._rows[0]
            self._release_batch(batch)

    def _release_batch(self, batch: TransferBatch) -> None:
        commands, batch.commands = batch.commands, []
        self.commands.give(commands)
        cleared, batch.cleared = batch.cleared, []
        self._allocator.end_fills(cleared)
        dropped, batch.dropped = batch.dropped, []
        for memory in dropped:
            memory.release()

    def _record_before(self, batch: TransferBatch) -> list[Handle]:
        """Records the zeroing of fresh memory, then the uploads."""
        if not self._uploads and not self._allocator.uncleared:
            return []
        commands = self.commands.begin()
        batch.commands.append(commands)
        batch.cleared = self._allocator.begin_fills()
        for buffer in batch.cleared:
            fill_words(self._device, commands, buffer.handle, buffer.base, padded_size(buffer.size), 0)
        batch.uploads = [*self._uploads]
        if batch.cleared and batch.uploads:
            self._between.encode(commands, None, ())
        for upload in batch.uploads:
            if upload.ordered:
                self._between.encode(commands, None, ())
            self.copy(commands, self.ring.memory, upload.at, upload.buffer, upload.offset, upload.length)
        self._between.encode(commands, None, ())
        self.commands.end(commands)
        return [commands]

    def _readbacks(
        self, used: Iterable[BackendBuffer], batch: TransferBatch
    ) -> Iterator[tuple[VulkanBuffer, Readback]]:
        """The ranges to prefetch. A readback that nobody read since it was filled is dropped."""
        for buffer in dict.fromkeys(used):
            readback = buffer.readback if isinstance(buffer, VulkanBuffer) else None
            if readback is None:
                continue
            assert isinstance(buffer, VulkanBuffer)
            if readback.wanted:
                yield buffer, readback
            else:
                buffer.readback = None
                batch.dropped.append(readback.memory)

    def _record_after(
        self,
        batch: TransferBatch,
        readbacks: Sequence[tuple[VulkanBuffer, Readback]],
        downloads: Sequence[Download],
    ) -> list[Handle]:
        if not readbacks and not downloads:
            return []
        commands = self.commands.begin()
        batch.commands.append(commands)
        for buffer, readback in readbacks:
            self.copy(commands, buffer, readback.offset, readback.memory, 0, readback.length)
            batch.readbacks_filled.append(readback)
        for source, offset, target, length in downloads:
            self.copy(commands, source, offset, target, 0, length)
        self._last.encode(commands, None, ())
        self.commands.end(commands)
        return [commands]

    def copy(self, commands: Handle, source: Any, start: int, target: Target, offset: int, length: int) -> None:
        """Record one copy."""
        region = self._region[0]
        region.srcOffset, region.dstOffset, region.size = source.base + start, target.base + offset, length
        self._device.vk.vkCmdCopyBuffer(commands, source.handle, target.handle, 1, self._region)

    def release(self) -> None:
        """Free everything. No transfer is in flight."""
        self.check_submission()
        while self._rows:
            self._release_batch(self._rows.popleft())
        self.commands.release()
        if self.uploader is not None:
            self.uploader.release()
        for memory in (*self._dropped, *self._chunks, *([] if self._ring is None else [self._ring.memory])):
            memory.release()
