"""A Vulkan device with profiling: a timestamp before and after each command, in a query pool of its recording.

- A barrier before each command prevents overlap, so that each span belongs to one command.
- Timestamps are read after their submission is over, by the next submission or the next query. Until then its
  recordings are not reused: each submission in flight has its own.
- The queue family states the valid bits of a tick, the device the length of a tick; `HostClock` maps ticks.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

from orchestrion.hal.backend import (
    BackendBuffer,
    BackendCommandBuffer,
    BackendExecutable,
    BackendWork,
    Binding,
    Point,
    Span,
    Watcher,
)
from orchestrion.hal.errors import HalError
from orchestrion.hal.timing import HostClock, Timing, Timings, now

from .api import Api, Handle
from .command_buffer import Key, VulkanCommandBuffer
from .device import VulkanDevice
from .parameters import ParameterBlock
from .physical import PhysicalDevice
from .queue import VulkanQueue
from .recording import Barrier, Command, Program, Recording

if TYPE_CHECKING:
    from .recording import Table

STAGE_BOTTOM = 0x2000
QUERY_TIMESTAMP, RESULT_64_BIT = 2, 1
TICK_BYTES = 8
#: seconds within which all signals of a submission arrive after the first
PATIENCE = 1.0
#: the number of submissions that compare the clocks when a device is opened
CALIBRATIONS = 4


class ProfiledProgram(Program):
    """A program with timestamps. `timed`: the number of commands so far. `queries`: the pool of the recording being
    encoded.
    """

    __slots__ = ("queries", "timed")

    def __init__(self) -> None:
        super().__init__()
        self.timed = 0
        self.queries: Handle = None


class Reset:
    """Resets the pool; the first command."""

    __slots__ = ("_program", "_vk")
    stage = 0

    def __init__(self, device: VulkanDevice, program: ProfiledProgram) -> None:
        self._vk = device.vk
        self._program = program

    def encode(self, buffer: Handle, sets: Any, table: Table) -> None:
        if self._program.timed:
            self._vk.vkCmdResetQueryPool(buffer, self._program.queries, 0, 2 * self._program.timed)


class Timed:
    """A command between two timestamps. It starts after all earlier commands are done."""

    __slots__ = ("_barrier", "_command", "_memory_id", "_program", "_vk", "stage")

    def __init__(self, device: VulkanDevice, program: ProfiledProgram, command: Command) -> None:
        self._vk = device.vk
        self._program = program
        self._command = command
        self.stage = command.stage
        self._barrier = Barrier(device)
        self._memory_id = 2 * program.timed
        program.timed += 1

    def encode(self, buffer: Handle, sets: Any, table: Table) -> None:
        stamp, queries = self._vk.vkCmdWriteTimestamp, self._program.queries
        self._barrier.encode(buffer, sets, table)
        stamp(buffer, STAGE_BOTTOM, queries, self._memory_id)
        self._command.encode(buffer, sets, table)
        stamp(buffer, STAGE_BOTTOM, queries, self._memory_id + 1)


class ProfiledRecording(Recording):
    """A recording with a query pool. `busy` from when it is handed out until its timestamps were read, because its pool
    serves one submission at a time.
    """

    __slots__ = ("_profiled", "_queries", "busy", "key")

    def __init__(self, device: VulkanDevice, command_pool: Handle, program: ProfiledProgram) -> None:
        super().__init__(device, command_pool, program)
        self._profiled = program
        self.busy = False
        self.key: Key | None = None
        info = device.api.new("VkQueryPoolCreateInfo", queryType=QUERY_TIMESTAMP, queryCount=max(1, 2 * program.timed))
        self._queries = device.api.create(device.vk.vkCreateQueryPool, device.handle, info, "a query pool")

    def encode(self, table: Table, block: ParameterBlock | None = None, lengths: Sequence[int] | None = None) -> None:
        self._profiled.queries = self._queries
        super().encode(table, block, lengths)

    def read(self) -> list[Span]:
        """Returns the spans of the last submission, which is over, in nanoseconds of the device."""
        device, count = self._device, 2 * self._profiled.timed
        if not count:
            return []
        ticks = device.api.ffi.new("uint64_t[]", count)
        result = device.vk.vkGetQueryPoolResults(
            device.handle, self._queries, 0, count, TICK_BYTES * count, ticks, TICK_BYTES, RESULT_64_BIT
        )
        device.api.check(result, "reading timestamps")
        times = nanoseconds(list(ticks), device.physical.timestamp_bits, device.physical.timestamp_period)
        return list(zip(times[0::2], times[1::2], strict=True))

    def release(self) -> None:
        device = self._device
        device.vk.vkDestroyQueryPool(device.handle, self._queries, device.api.null)
        super().release()


def nanoseconds(ticks: Sequence[int], bits: int, period: float) -> list[int]:
    """Converts the ticks of one recording. Only `bits` of a tick are valid, and they may wrap around once."""
    mask = (1 << bits) - 1
    numerator, denominator = period.as_integer_ratio()
    first = ticks[0] & mask
    return [(first + (tick - first & mask)) * numerator // denominator for tick in ticks]


class ProfiledCommandBuffer(VulkanCommandBuffer):
    """A command buffer whose recordings are all spare; each submission gets one of its own."""

    def __init__(self, device: VulkanDevice) -> None:
        super().__init__(device)
        assert isinstance(device.queue, ProfiledQueue)
        self._queue = device.queue
        self._timed = ProfiledProgram()
        self._timed.commands.append(Reset(device, self._timed))
        self._program = self._timed
        self._all: list[ProfiledRecording] = []

    def dispatch(
        self,
        executable: BackendExecutable,
        entry: int,
        groups: tuple[int, int, int],
        bindings: Sequence[Binding],
        parameters: bytes,
    ) -> None:
        super().dispatch(executable, entry, groups, bindings, parameters)
        self._time_last()

    def copy(self, source: Binding, target: Binding) -> None:
        super().copy(source, target)
        self._time_last()

    def fill(self, target: Binding, pattern: bytes) -> None:
        super().fill(target, pattern)
        self._time_last()

    def mark(self) -> None:
        """Record a command that does nothing but take time."""
        self._timed.commands.append(Timed(self._device, self._timed, Barrier(self._device)))

    def recording(self, table: Sequence[Any]) -> ProfiledRecording:
        self._queue.read_times()
        key = tuple([buffer.memory_id for buffer in table])
        free = [recording for recording in self._all if not recording.busy]
        recording = next((one for one in free if one.key == key), free[0] if free else None)
        if recording is None:
            recording = ProfiledRecording(self._device, self._pool, self._timed)
            self._all.append(recording)
        if recording.key != key:
            recording.encode(table, self.block(self._fixed))
            recording.key = key
        recording.busy = True
        return recording

    def release(self) -> None:
        self._queue.read_times()
        for recording in self._all:
            recording.release()
        super().release()

    def _time_last(self) -> None:
        commands = self._timed.commands
        commands[-1] = Timed(self._device, self._timed, commands[-1])


class _Flight(NamedTuple):
    """A submission whose timestamps were not read yet. It is over when the queue's timeline reaches `number`; `signals`
    are reached just before.
    """

    number: int
    timing: Timing
    submitted: int
    recordings: list[ProfiledRecording]
    signals: Sequence[Point]


class ProfiledQueue(VulkanQueue):
    overlaps = False

    def __init__(self, device: VulkanDevice) -> None:
        super().__init__(device)
        self._clock = HostClock()
        self._timings = Timings()
        self._flights: deque[_Flight] = deque()
        self._used: list[ProfiledRecording] = []

    def execute(
        self, commands: BackendCommandBuffer, table: Sequence[BackendBuffer], watcher: Watcher | None = None
    ) -> None:
        self.execute_batch([(commands, table)], watcher)

    def execute_batch(self, batch: Sequence[BackendWork], watcher: Watcher | None = None) -> None:
        timing, submitted = self._timings.begin(), now()
        try:
            super().execute_batch(batch, watcher)
        except BaseException:  # its recordings may still run, until the next submission is over
            timing.end(())
            self._flights.append(_Flight(self.timeline.submitted + 1, Timing(), submitted, self._used, ()))
            raise
        self._flights.append(_Flight(self.timeline.submitted, timing, submitted, self._used, ()))
        self.read_times()

    def submit(
        self,
        batch: Sequence[BackendWork],
        waits: Sequence[Point],
        signals: Sequence[Point],
        watcher: Watcher | None = None,
    ) -> None:
        if not batch:
            super().submit(batch, waits, signals, watcher)
            return
        timing, submitted, before = self._timings.begin(), now(), self.timeline.submitted
        super().submit(batch, waits, signals, watcher)
        if self.timeline.submitted == before:  # not submitted: its signals were failed
            timing.end(())
        else:
            self._flights.append(_Flight(self.timeline.submitted, timing, submitted, self._used, signals[-1:]))

    def take_timings(self) -> list[list[Span]]:
        self.read_times()
        return self._timings.take()

    def read_times(self) -> None:
        """Read the timestamps of finished submissions."""
        while self._flights and self._is_over(self._flights[0]):
            _, timing, submitted, recordings, _ = self._flights.popleft()
            spans: list[Span] = []
            with suppress(HalError):  # the device is lost, which every wait reports
                spans = [span for recording in recordings for span in recording.read()]
            for recording in recordings:
                recording.busy = False
            timing.end(self._clock.place(spans, submitted, now()))

    def _is_over(self, flight: _Flight) -> bool:
        """Whether a submission is over. If the front already knows that it is, wait for it. The front's own signal is
        the last one, and always outlives the others.
        """
        if flight.number <= self.timeline.poll():
            return True
        heard = any([semaphore.value() >= value for semaphore, value in flight.signals])
        return heard and self.timeline.semaphore.wait(flight.number, PATIENCE)

    def _recordings(self, batch: Sequence[BackendWork]) -> list[Recording]:
        found = super()._recordings(batch)
        self._used = [recording for recording in found if isinstance(recording, ProfiledRecording)]
        return found


class ProfiledDevice(VulkanDevice):
    indirect_dispatch = False  # each submission is timed by queries of its own recording
    queue_class = ProfiledQueue
    command_buffer_class = ProfiledCommandBuffer

    def __init__(self, api: Api, physical: PhysicalDevice) -> None:
        super().__init__(api, physical)
        commands = ProfiledCommandBuffer(self)
        commands.mark()
        commands.finish()
        for _ in range(CALIBRATIONS):
            self.queue.execute(commands, ())
        self.queue.take_timings()
        commands.release()
