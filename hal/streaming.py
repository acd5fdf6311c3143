"""A device whose programs may have more constants than device memory: a layer around any driver's device.

- The layer exists only on request (`open_device(streaming=True)`), so no other device pays for it. The front uses it
  like any other backend. `residency.py` decides where constants lie.
- Work without streamed constants, or whose constants are all resident, goes to the driver unchanged. Other work becomes
  several submissions. With two windows, the constants of the next submission are copied while the previous one runs.
- A worker thread runs, in order, the submitted work whose windows must be filled in between. Later work waits for the
  worker, so that all work of the device stays in order.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

from .backend import (
    BackendBuffer,
    BackendCommandBuffer,
    BackendDevice,
    BackendQueue,
    BackendSemaphore,
    BackendWork,
    Bytes,
    Point,
    Span,
    Watcher,
)
from .device_layer import DeviceLayer
from .errors import HalError, Unsupported
from .lifetime import WATCH_SECONDS
from .residency import PlannedSegment, Pool, StreamedMemory, StreamedRecording, Window
from .timeline import Worker

if TYPE_CHECKING:
    from .device import Device


class StreamingQueue(BackendQueue):
    """Passes work to the driver's queue, as several submissions where windows must be filled."""

    def __init__(self, device: BackendDevice, timed: bool) -> None:
        self._device = device
        self._inner = device.queue
        self._worker = Worker("orchestrion-streaming")
        self._semaphore: BackendSemaphore | None = None  #: advanced by each submission of planned segments
        self._submitted = 0
        self._uncertain = False  #: True after an exception ended a run: the work in flight is unknown
        self._timed = timed
        self._counts: deque[int] = deque()  #: per submission to this queue: the number of submissions to the driver
        self._spans: deque[list[Span]] = deque()

    @property
    def busy(self) -> bool:
        """Whether the worker uses the driver's queue, or will use it."""
        return bool(self._worker.busy)

    def submit(
        self,
        batch: Sequence[BackendWork],
        waits: Sequence[Point],
        signals: Sequence[Point],
        watcher: Watcher | None = None,
    ) -> None:
        _refuse_streamed_slots(batch)
        if not self._worker.busy and all([_needs_no_windows(commands) for commands, _ in batch]):
            self._inner.submit(self._without_windows(batch), waits, signals, watcher)
            if batch:
                self._count(1)
        else:
            self._worker.submit(waits, partial(self._work, batch, watcher) if batch else None, signals)

    def execute(
        self, commands: BackendCommandBuffer, table: Sequence[BackendBuffer], watcher: Watcher | None = None
    ) -> None:
        self.execute_batch(((commands, table),), watcher)

    def execute_batch(self, batch: Sequence[BackendWork], watcher: Watcher | None = None) -> None:
        if self._worker.busy:
            self._worker.drain()
        _refuse_streamed_slots(batch)
        self._run(batch, watcher)

    def write(self, buffer: BackendBuffer, offset: int, data: Bytes) -> None:
        if not isinstance(buffer, StreamedMemory):
            if self._worker.busy:
                self._worker.drain()
            return self._inner.write(buffer, offset, data)
        self.wait_idle()
        buffer.pool.flush(buffer)
        buffer.array[offset : offset + data.size] = data
        buffer.pool.written(buffer)

    def read(self, buffer: BackendBuffer, offset: int, out: Bytes) -> None:
        if self._worker.busy:
            self._worker.drain()
        if not isinstance(buffer, StreamedMemory):
            return self._inner.read(buffer, offset, out)
        buffer.pool.flush(buffer)
        out[:] = buffer.array[offset : offset + out.size]

    def wait_idle(self) -> None:
        self._worker.drain()
        self._inner.wait_idle()

    def recover(self, signals: Sequence[Point], unsure: Sequence[Point] = ()) -> None:
        self._uncertain = True
        if self._worker.busy:
            self._worker.recover(self._inner.wait_idle, signals, unsure)
        else:
            self._inner.recover(signals, unsure)

    def take_timings(self) -> list[list[Span]]:
        """Joins the times of the driver's submissions that one submission to this queue became."""
        if self._worker.busy:
            return []
        self._spans.extend(self._inner.take_timings())
        rows = []
        while self._counts and len(self._spans) >= self._counts[0]:
            rows.append([span for _ in range(self._counts.popleft()) for span in self._spans.popleft()])
        return rows

    def close(self) -> None:
        self._worker.close()
        if self._semaphore is not None:
            self._semaphore.release()

    def _without_windows(self, batch: Sequence[BackendWork]) -> list[BackendWork]:
        """The driver's work for a batch without windows to fill."""
        works: list[BackendWork] = []
        for commands, table in batch:
            assert isinstance(commands, StreamedRecording)
            works += [(piece.recording, table) for piece in self._pieces(commands)]
        return works

    def _pieces(self, commands: StreamedRecording) -> tuple[PlannedSegment, ...]:
        if commands.plan is None:
            return (PlannedSegment(commands.plain, None, (), (), frozenset()),)
        for piece in commands.plan.pieces:
            for memory in piece.dirty:
                memory.dirty = True
        return commands.plan.pieces

    def _work(self, batch: Sequence[BackendWork], watcher: Watcher | None) -> None:
        """Runs a batch in the worker. When it raises, the work is over."""
        try:
            self._run(batch, watcher)
        except BaseException:
            self._uncertain = True
            with suppress(HalError):
                self._inner.wait_idle()
            raise

    def _run(self, batch: Sequence[BackendWork], watcher: Watcher | None) -> None:
        """Run a batch in order, and wait for it."""
        self._recover_interrupted()
        first, submitted = self._submitted, 0
        try:
            for pool in dict.fromkeys([_recording(commands).pool for commands, _ in batch]):
                if pool is not None:
                    pool.place([one for one, _ in map(_split, batch) if one.pool is pool])
            submitted = 1
            self._run_placed(batch, watcher)
        finally:
            submitted = max(submitted, self._submitted - first)
            self._count(submitted)
        statistics = _recording(batch[0][0]).statistics
        if statistics is not None:
            statistics.submissions += submitted - 1

    def _run_placed(self, batch: Sequence[BackendWork], watcher: Watcher | None) -> None:
        first, pending = self._submitted, list[tuple[PlannedSegment, BackendWork]]()
        for commands, table in batch:
            assert isinstance(commands, StreamedRecording)
            for piece in self._pieces(commands):
                if piece.window is not None and piece.window.content is not piece:
                    self._flush(pending, watcher)
                    self._fill(commands, piece, piece.window, watcher)
                pending.append((piece, (piece.recording, table)))
                if piece.written:
                    self._flush(pending, watcher)
                    self._read_back(commands, piece, watcher)
        if self._submitted == first:
            return self._inner.execute_batch([work for _, work in pending], watcher)
        self._flush(pending, watcher)
        for value in range(first + 1, self._submitted + 1):
            self._wait(value, watcher)

    def _recover_interrupted(self) -> None:
        """After an exception: wait for the work in flight, and reach the values of submissions that were not made."""
        if self._uncertain:
            self._inner.wait_idle()
            if self._semaphore is not None and self._semaphore.value() < self._submitted:
                self._semaphore.signal(self._submitted)
            self._uncertain = False

    def _flush(self, pending: list[tuple[PlannedSegment, BackendWork]], watcher: Watcher | None) -> None:
        """Submit the pending segments."""
        if not pending:
            return
        if self._semaphore is None:
            self._semaphore = self._device.create_semaphore(0)
        self._submitted += 1
        for piece, _ in pending:
            if piece.window is not None:
                piece.window.busy = self._submitted
        self._inner.submit([work for _, work in pending], (), [(self._semaphore, self._submitted)], watcher)
        pending.clear()

    def _fill(
        self, commands: StreamedRecording, piece: PlannedSegment, window: Window, watcher: Watcher | None
    ) -> None:
        """Copy the constants of a segment into its window. The driver copies in order; the host waits."""
        window.content = None
        host = window.buffer.host
        if host is not None and window.busy:
            self._wait(window.busy, watcher, report=False)
        for memory, start, end, place in piece.parts:
            assert isinstance(memory, StreamedMemory)
            data = memory.array[start:end]
            if host is not None:
                host[place : place + data.size] = data
            elif data.size:
                self._inner.write(window.buffer, place, data)
        window.content = piece
        if commands.statistics is not None:
            commands.statistics.host_to_device_bytes += piece.bytes

    def _read_back(self, commands: StreamedRecording, piece: PlannedSegment, watcher: Watcher | None) -> None:
        """Copy what a segment wrote into its window to host memory."""
        assert piece.window is not None and commands.pool is not None
        self._wait(self._submitted, watcher)
        for memory, start, end, place in piece.written:
            assert isinstance(memory, StreamedMemory)
            data = memory.array[start:end]
            commands.pool.download(piece.window.buffer, place, data)
            if commands.statistics is not None:
                commands.statistics.device_to_host_bytes += data.size
        commands.pool.forget_windows()

    def _wait(self, value: int, watcher: Watcher | None, report: bool = True) -> None:
        """Wait for a value of the semaphore. `report`: whether to raise the error of a failed submission; each is
        raised once.
        """
        while not self._reached(value, report):
            if watcher is not None:
                watcher.check()

    def _reached(self, value: int, report: bool) -> bool:
        assert self._semaphore is not None
        try:
            return self._semaphore.wait(value, WATCH_SECONDS)
        except HalError:
            if report:
                raise
            return True

    def _count(self, submissions: int) -> None:
        if self._timed:
            self._counts.append(submissions)


class StreamingDevice(DeviceLayer):
    """A layer around the device of a driver. It fills windows between two commands. `timed`: the device was opened
    with profiling.
    """

    def __init__(self, inner: BackendDevice, timed: bool = False) -> None:
        super().__init__(inner)
        self.queue = self._queue = StreamingQueue(inner, timed)

    def create_pool(self, device: Device) -> Pool:
        """Returns the pool of one program; `device` is the program's share."""
        pool = Pool(self._inner, device)
        device.on_memory_pressure(pool.release_memory)
        return pool

    def create_command_buffer(self, slots: int) -> StreamedRecording:
        return StreamedRecording(self._inner, slots)

    def trim(self) -> bool:
        return not self._queue.busy and self._inner.trim()

    def close(self) -> None:
        self._queue.close()
        self._inner.close()


def _needs_no_windows(commands: BackendCommandBuffer) -> bool:
    """Whether the driver can run a recording now: it binds nothing streamed, or everything it binds is resident."""
    recording = _recording(commands)
    if recording.pool is None:
        return True
    plan = recording.plan
    return plan is not None and plan.generation == recording.pool.generation and not plan.pieces[0].window


def _refuse_streamed_slots(batch: Sequence[BackendWork]) -> None:
    for _, table in batch:
        for slot, buffer in enumerate(table):
            if isinstance(buffer, StreamedMemory):
                raise Unsupported(
                    f"slot {slot}: a constant of {buffer.size} bytes that is streamed can be bound by a recording, not "
                    "put into a slot"
                )


def _recording(commands: BackendCommandBuffer) -> StreamedRecording:
    assert isinstance(commands, StreamedRecording)
    return commands


def _split(work: BackendWork) -> tuple[StreamedRecording, Sequence[BackendBuffer]]:
    return _recording(work[0]), work[1]
