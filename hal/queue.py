"""Submits work. The hot path of a call is `execute`: compare, count, pass to the driver.

- Submissions start in the order in which they were made, by any thread or share. `submit` returns at once. `execute`
  returns when the work is over. A driver that computes in the calling thread holds the device's lock until then. A
  driver that overlaps gets the work under the lock, and is waited for without it, so that other threads can submit
  meanwhile (`OverlappingQueue`).
- A batch is several recordings in one submission, in order, as if a barrier stood between them.
- Everything that a submission uses is kept alive until it is over, also if an exception ends the call that made it
  (`lifetime.py`). Work is stored in `DeviceState.current`, or in a `LaunchedCall`, before the driver is called. Whoever
  finds it there after an exception recovers first.
"""

from __future__ import annotations

import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Any, NoReturn

from .backend import BackendWork, Bytes, Point, Watcher
from .buffer import Buffer
from .command_buffer import CommandBuffer
from .errors import DeadlineExceeded, DeviceLost, HalError, InvalidArgument
from .fork import ForkedLock
from .parallel_jobs import Progress, no_progress
from .resources import LaunchedCall
from .semaphore import Fence, Semaphore
from .waiting import to_its_end

if TYPE_CHECKING:
    from .device import Device

#: a recording, and the buffer of each of its slots
Work = tuple[CommandBuffer, Sequence[Buffer]]

#: bytes of writes that may be pending in the driver before the queue is drained
MAX_PENDING_WRITE_BYTES = 64 << 20


class Queue:
    """`Device.queue`: submits work in order. Each share of a device has its own `Queue` over the same queue of the
    driver.
    """

    __slots__ = (
        "_backend",
        "_execute",
        "_device_state",
        "_last",
        "_lock",
        "_statistics",
        "_unreported_errors",
        "device",
    )

    def __init__(self, device: Device) -> None:
        self.device = device
        self._device_state = device.device_state
        self._lock: Any = device.device_state.lock  #: or a `ForkedLock`
        self._backend = device.device_state.backend.queue
        self._execute = self._backend.execute
        self._statistics = device.statistics
        self._last = 0  #: submission made here, on the device state's timeline
        self._unreported_errors: list[HalError] = []  #: of submissions made here that signal nothing

    def execute(self, commands: CommandBuffer, buffers: Sequence[Buffer] = (), watcher: Watcher | None = None) -> None:
        """Run a recording with `buffers` in its slots, and return when it is done. Raises its error if it fails.

        An exception from `watcher.check` ends the call. A driver that computes in this thread ends its work with it; on
        other drivers the work runs to its end, and keeps the resources it uses.
        """
        state = self._device_state
        with self._lock:
            if state.current is not None:
                state.recover()
            needs = commands.needs
            if needs is None or commands.device_state is not state or len(buffers) != len(needs):
                self._refuse(commands, buffers)
            table = []
            for buffer, (length, rights) in zip(buffers, needs):  # noqa: B905
                if buffer.device_state is not state or buffer.size < length or rights & ~buffer.rights:
                    self._refuse(commands, buffers)
                table.append(buffer.backend)
            if commands.overlaps:
                for overlap in commands.overlaps:
                    overlap.check(buffers)
            state.current = ((commands, buffers),)
            try:
                self._execute(commands.backend, table, watcher)
            except BaseException:
                state.recover_current()
                raise
            state.current = None
            if state.pending_write_bytes:
                state.forget_writes(state.writes_begun)
            statistics = self._statistics
            statistics.submissions += 1
            statistics.waits += 1
            statistics.dispatches += commands.dispatches
            statistics.bytes_copied += commands.bytes_copied
        if state.garbage or state.deferred_garbage:
            state.collect()

    def execute_batch(self, batch: Sequence[Work], watcher: Watcher | None = None) -> None:
        """As `execute`, for several recordings in order: one submission and one wait."""
        state = self._device_state
        if not batch:
            raise InvalidArgument("a batch of no command buffers")
        self.device.check_open()
        with self._lock:
            state.recover()
            works = [self._work(*work) for work in batch]
            state.current = batch
            try:
                self._backend.execute_batch(works, watcher)
            except BaseException:
                state.recover_current()
                raise
            state.current = None
            if state.pending_write_bytes:
                state.forget_writes(state.writes_begun)
            self._statistics.waits += 1
            self._count(batch)
        if state.garbage or state.deferred_garbage:
            state.collect()

    @property
    def prepares(self) -> bool:
        """Whether `prepare` makes anything that a submission would make otherwise."""
        return self._backend.prepares

    def prepare(self, works: Sequence[Work], progress: Progress = no_progress) -> None:
        """Do in advance what the first submissions of recordings with these buffers would do before anything runs: the
        driver compiles code and creates what it keeps. `progress` is called as code is compiled.

        Nothing is submitted, and other threads may use the device meanwhile. Raises the errors of `execute`.
        """
        self.device.check_open()
        if not self._backend.prepares:
            return
        with self._lock:
            self._device_state.recover()
            backends = [self._work(*work) for work in works]
        self._backend.prepare(backends, self._using, progress)

    @contextmanager
    def _using(self) -> Generator[None]:
        """A context manager around a use of the driver's queue that runs no work; it holds the lock."""
        state = self._device_state
        with self._lock:
            state.recover()
            state.current = ()
            try:
                yield
            except BaseException:
                state.recover_current()
                raise
            state.current = None

    def submit(
        self,
        commands: CommandBuffer | None,
        buffers: Sequence[Buffer] = (),
        wait: Fence | None = None,
        signal: Fence | None = None,
        watcher: Watcher | None = None,
    ) -> None:
        """Enqueue and return. The work starts when `wait` is reached, and `signal` is reached when it is over.

        Without `commands` only the fences are chained. If the work fails, waiting for `signal` raises its error. If the
        driver computes on the host, a `HalError` from `watcher.check` ends the work.
        """
        if commands is None and buffers:
            raise InvalidArgument(f"{len(buffers)} buffers without a command buffer")
        self.submit_batch([] if commands is None else [(commands, buffers)], wait, signal, watcher)

    def submit_batch(
        self,
        batch: Sequence[Work],
        wait: Fence | None = None,
        signal: Fence | None = None,
        watcher: Watcher | None = None,
    ) -> None:
        """As `submit`, for several recordings in order, as one submission."""
        state = self._device_state
        self.device.check_open()
        with self._lock:
            state.recover()
            works: list[BackendWork] = []
            refs: list[object] = []
            for commands, buffers in batch:
                works.append(self._work(commands, buffers))
                refs += [buffer.ref for buffer in buffers]
                refs += commands.refs
            waits = [(semaphore.alive(), value) for semaphore, value in wait.points] if wait else []
            refs += [semaphore.ref for semaphore, _ in wait.points] if wait else []
            promised: list[tuple[Semaphore, int]] = []
            try:
                signals = self._promise(signal, promised) if signal else []
                refs += [semaphore.ref for semaphore, _ in promised]
                self._enqueue(batch, works, waits, signals, refs, watcher)
                self._count(batch, state.submitted)
            except BaseException as error:
                if isinstance(error, DeviceLost):
                    state.lose(error)
                if not state.unsure:  # the driver refused the submission, or did not get it
                    to_its_end(partial(_break_promises, promised))
                if state.current is not None:
                    state.recover_current()
                raise
            state.current, state.unsure = None, ()
        if state.garbage or state.deferred_garbage:
            state.collect()

    def _promise(self, signal: Fence, promised: list[tuple[Semaphore, int]]) -> list[Point]:
        """The points to signal. Appends to `promised` those that must be withdrawn if the submission is not made."""
        signals: list[Point] = []
        for semaphore, value in signal.points:
            promised.append((semaphore, value))
            try:
                signals.append(semaphore.promise(value))
            except HalError:
                promised.pop()
                raise
        return signals

    def _enqueue(
        self,
        batch: Sequence[Work],
        works: Sequence[BackendWork],
        waits: Sequence[Point],
        signals: list[Point],
        refs: list[object],
        watcher: Watcher | None,
    ) -> None:
        """Pass a submission to the driver, and keep its refs on the device state's timeline. The lock is held.

        `state.current` stays set unless the driver refuses; the caller resets it.
        """
        state = self._device_state
        state.retire()
        state.unsure = tuple(signals)
        state.current = batch
        signals.append(state.track(refs, None if signals else self._unreported_errors, waits))
        try:
            self._backend.submit(works, waits, signals, watcher)
        except HalError:  # the driver refused it
            state.untrack()
            state.current, state.unsure = None, ()
            raise
        except Exception:
            state.unsure = ()
            raise
        self._last = state.submitted

    def write(self, buffer: Buffer, offset: int, data: Bytes) -> None:
        """For `Buffer.write`, which has validated: copy to an unmapped buffer, in order with later submissions."""
        state = self._device_state
        with self._lock:
            state.recover()
            if state.pending_write_bytes + data.size > MAX_PENDING_WRITE_BYTES:
                self._backend.wait_idle()
                state.forget_writes(state.writes_begun)
            state.add_write(data.size, buffer.ref)
            state.current = ()
            try:
                self._backend.write(buffer.backend, offset, data)
            except BaseException:
                state.recover_current()
                raise
            state.current = None

    def read(self, buffer: Buffer, offset: int, out: Bytes) -> None:
        """For `Buffer.read`, which has validated: copy from an unmapped buffer, after all earlier work."""
        state = self._device_state
        with self._lock:
            state.recover()
            state.current = ()
            try:
                self._backend.read(buffer.backend, offset, out)
            except BaseException:
                state.recover_current()
                raise
            state.current = None
            state.forget_writes(state.writes_begun)
        self._statistics.waits += 1
        if state.garbage or state.deferred_garbage:
            state.collect()

    def wait_pending(self, most: int, timeout: float | None) -> None:
        """Block until at most `most` submissions are in flight. Their errors are reported elsewhere. Raises
        DeadlineExceeded after `timeout` seconds.
        """
        state = self._device_state
        with self._lock:
            state.recover()
            state.retire()
            timeline = state.timeline
            if timeline is None or len(state.in_flight) <= most:
                return
            number = state.in_flight[-most - 1].number
        over = True
        with suppress(HalError):
            over = timeline.wait(number, timeout)
        if not over:
            raise DeadlineExceeded(f"more than {most} submissions were under way after {timeout} s")

    def wait_idle(self) -> None:
        """Block until the work submitted here, and what other shares submitted before it, is over.

        Raises the first error of work submitted here that signals no fence.
        """
        self.device.check_open()
        self._statistics.waits += 1
        unreported_errors = self.drain()
        if unreported_errors:
            raise unreported_errors[0]

    def drain(self) -> list[HalError]:
        """As `wait_idle`, but returns the errors as a list. The last share also waits for work that other shares left
        behind.
        """
        self.finish(None)
        unreported_errors, self._unreported_errors = self._unreported_errors, []
        return unreported_errors

    def finish(self, timeout: float | None) -> bool:
        """Wait for what `drain` waits for. Returns False if `timeout` seconds pass first."""
        state = self._device_state
        return state.wait_submitted(state.submitted if state.open_shares == 1 else self._last, timeout)

    def invalidate_after_fork(self, error: Exception) -> Any:
        """See `Device.invalidate_after_fork`. Returns the replacement of the lock."""
        self._lock = ForkedLock(error)
        return self._lock

    def invalidate_after_loss(self) -> None:
        """See `DeviceState.lose`."""
        self._backend = self._device_state.backend.queue
        self._execute = self._backend.execute

    def _count(self, batch: Sequence[Work], number: int = 0) -> None:
        """Count a submission. `number`: its number on the device state's timeline; 0 if it is over."""
        statistics = self._statistics
        statistics.submissions += 1
        for commands, buffers in batch:
            statistics.dispatches += commands.dispatches
            statistics.bytes_copied += commands.bytes_copied
            if number:
                for buffer in (*buffers, *commands.direct):
                    buffer.submitted = number

    def _work(self, commands: CommandBuffer, buffers: Sequence[Buffer]) -> BackendWork:
        """Returns the driver's objects of a recording and its slots, validated."""
        state, needs = self._device_state, commands.needs
        if needs is None or len(buffers) != len(needs) or commands.device_state is not state:
            self._refuse(commands, buffers)
        for buffer, (length, rights) in zip(buffers, needs, strict=True):
            if buffer.device_state is not state or buffer.size < length or rights & ~buffer.rights:
                self._refuse(commands, buffers)
        for overlap in commands.overlaps:
            overlap.check(buffers)
        return commands.backend, [buffer.backend for buffer in buffers]

    def _refuse(self, commands: CommandBuffer, buffers: Sequence[Buffer]) -> NoReturn:
        """Raises the error that describes what is wrong. The hot path only detects that something is."""
        self.device.check_open()
        name = self.device.info.id
        if commands.device_state is not self._device_state:
            raise InvalidArgument(f"command buffer of device {commands.device.info.id} submitted to {name}")
        if commands.needs is None:
            raise InvalidArgument(f"command buffer is {commands.state}, not finished")
        if len(buffers) != len(commands.needs):
            raise InvalidArgument(f"{len(buffers)} buffers for a command buffer with {len(commands.needs)} slots")
        for slot, (buffer, (length, rights)) in enumerate(zip(buffers, commands.needs, strict=True)):
            if buffer.device_state is None:
                raise InvalidArgument(f"slot {slot}: buffer of {buffer.size} bytes was released")
            if buffer.device_state is not self._device_state:
                raise InvalidArgument(f"slot {slot}: buffer of device {buffer.device.info.id} submitted to {name}")
            if buffer.size < length:
                raise InvalidArgument(f"slot {slot}: buffer of {buffer.size} bytes, the recording needs {length}")
            if rights & ~buffer.rights:
                raise InvalidArgument(f"slot {slot}: buffer lacks write access")
        raise AssertionError("a submit was refused without a reason")


class OverlappingQueue(Queue):
    """The queue over a driver whose blocking calls are launched under the lock and waited for without it."""

    __slots__ = ("_launch", "_wait")

    def __init__(self, device: Device) -> None:
        super().__init__(device)
        self._launch = self._backend.launch
        self._wait = self._backend.wait

    def execute(self, commands: CommandBuffer, buffers: Sequence[Buffer] = (), watcher: Watcher | None = None) -> None:
        """See `Queue.execute`."""
        state = self._device_state
        call: LaunchedCall | None = None
        try:
            with self._lock:
                if state.interrupted_calls or state.current is not None:
                    state.recover()
                needs = commands.needs
                if needs is None or commands.device_state is not state or len(buffers) != len(needs):
                    self._refuse(commands, buffers)
                table = []
                for buffer, (length, rights) in zip(buffers, needs):  # noqa: B905
                    if buffer.device_state is not state or buffer.size < length or rights & ~buffer.rights:
                        self._refuse(commands, buffers)
                    table.append(buffer.backend)
                if commands.overlaps:
                    for overlap in commands.overlaps:
                        overlap.check(buffers)
                call = state.idle_calls.pop() if state.idle_calls else state.make_call()
                state.launch_count = call.number = state.launch_count + 1
                call.writes_before = state.writes_begun
                call.batch = ((commands, buffers),)
                self._launch(call.ticket, commands.backend, table)
                statistics = self._statistics
                statistics.submissions += 1
                statistics.waits += 1
                statistics.dispatches += commands.dispatches
                statistics.bytes_copied += commands.bytes_copied
            self._wait(call.ticket, watcher)
        except BaseException:
            if call is not None and call.batch:
                state.interrupted_calls.append(call)  # one step of C: a second Ctrl-C comes behind it
                state.recover_interrupted_call()
            raise
        call.batch = ()
        state.idle_calls.append(call)
        if state.garbage or state.deferred_garbage or state.pending_write_bytes:
            self._after_call(call.writes_before)

    def execute_batch(self, batch: Sequence[Work], watcher: Watcher | None = None) -> None:
        """See `Queue.execute_batch`."""
        state = self._device_state
        if not batch:
            raise InvalidArgument("a batch of no command buffers")
        self.device.check_open()
        call: LaunchedCall | None = None
        try:
            with self._lock:
                state.recover()
                works = [self._work(*work) for work in batch]
                call = state.idle_calls.pop() if state.idle_calls else state.make_call()
                state.launch_count = call.number = state.launch_count + 1
                call.writes_before = state.writes_begun
                call.batch = batch
                self._backend.launch_batch(call.ticket, works)
                self._statistics.waits += 1
                self._count(batch)
            self._wait(call.ticket, watcher)
        except BaseException:
            if call is not None and call.batch:
                state.interrupted_calls.append(call)
                state.recover_interrupted_call()
            raise
        call.batch = ()
        state.idle_calls.append(call)
        if state.garbage or state.deferred_garbage or state.pending_write_bytes:
            self._after_call(call.writes_before)

    def prepare(self, works: Sequence[Work], progress: Progress = no_progress) -> None:
        """See `Queue.prepare`. Also creates the `LaunchedCall` of the first blocking call."""
        super().prepare(works, progress)
        state = self._device_state
        with self._lock:
            if not state.idle_calls:
                state.idle_calls.append(state.make_call())

    def _after_call(self, written: int) -> None:
        """A call is over, and with it the writes begun before it. Release what waited for it."""
        state = self._device_state
        if state.pending_write_bytes:
            with self._lock:
                state.forget_writes(written)
        state.collect()

    def invalidate_after_loss(self) -> None:
        """See `DeviceState.lose`. The driver waits for work in flight."""
        super().invalidate_after_loss()
        self._launch = self._backend.launch

    def finish(self, timeout: float | None) -> bool:
        """See `Queue.finish`. The last share also waits for blocking calls of other threads."""
        state = self._device_state
        end = None if timeout is None else time.monotonic() + timeout
        if not super().finish(timeout):
            return False
        if end is None or state.open_shares != 1:
            return True
        return state.wait_launched_calls(end - time.monotonic())


def queue_of(device: Device) -> Queue:
    """Returns the kind of queue for a share that its driver supports."""
    kind = OverlappingQueue if device.device_state.backend.queue.overlaps else Queue
    return kind(device)


def _break_promises(promised: list[tuple[Semaphore, int]]) -> None:
    while promised:
        semaphore, value = promised[-1]
        semaphore.break_promise(value)
        promised.pop()
