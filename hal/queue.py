"""Submits work. The hot path of a call is `Queue.execute`: compare, count, hand to the driver.

- Submissions start in the order they were made, whatever thread or share made them; `execute` holds the
  queue until its work is done, `submit` returns at once.
- A batch is several recordings in one submission, in order, as if a barrier stood between them.
- Everything a submission touches is kept alive until it is over, also where an exception ends the call that made it:
  `Home.current` holds what is being handed to the driver, and whoever finds it set settles that first (`lifetime.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, NoReturn

from .backend import BackendWork, Bytes, Point, Watcher
from .buffer import Buffer, name_rights
from .command_buffer import CommandBuffer
from .errors import DeadlineExceeded, HalError, InvalidArgument
from .fork import ForkedLock
from .semaphore import Fence, Semaphore
from .waiting import to_its_end

if TYPE_CHECKING:
    from .device import Device

#: a recording, and the buffer of each of its slots
Work = tuple[CommandBuffer, Sequence[Buffer]]

#: host bytes that writes may keep waiting in the driver before the queue is drained
WRITE_BACKLOG = 64 << 20


class Queue:
    """`Device.queue`: in-order work. Shares of a device have a `Queue` each over the same queue of the driver."""

    __slots__ = ("_backend", "_execute", "_home", "_last", "_lock", "_statistics", "_unheard", "device")

    def __init__(self, device: Device) -> None:
        self.device = device
        self._home = device.home
        self._lock: Any = device.home.lock  #: or a `ForkedLock`
        self._backend = device.home.backend.queue
        self._execute = self._backend.execute
        self._statistics = device.statistics
        self._last = 0  #: submission made here, on the home's timeline
        self._unheard: list[HalError] = []  #: of submissions made here that signal nothing

    def execute(self, commands: CommandBuffer, buffers: Sequence[Buffer] = (), watcher: Watcher | None = None) -> None:
        """Run a recording with `buffers` in its slots and return when it is done. Raises its error if it fails.

        What `watcher.check` raises ends the call. A driver that works in this thread ends its work with it; on others
        the work goes on to its end, and keeps what it uses.
        """
        home = self._home
        with self._lock:
            if home.current is not None:
                home.settle()
            needs = commands.needs
            if needs is None or commands.home is not home or len(buffers) != len(needs):
                self._refuse(commands, buffers)
            table = []
            for buffer, (length, rights) in zip(buffers, needs):  # noqa: B905
                if buffer.home is not home or buffer.size < length or rights & ~buffer.rights:
                    self._refuse(commands, buffers)
                table.append(buffer.backend)
            if commands.overlaps:
                for overlap in commands.overlaps:
                    overlap.check(buffers)
            home.current = ((commands, buffers),)
            try:
                self._execute(commands.backend, table, watcher)
            except BaseException:
                home.break_off()
                raise
            home.current = None
            if home.backlog:
                home.forget_sources()
            statistics = self._statistics
            statistics.submissions += 1
            statistics.waits += 1
            statistics.dispatches += commands.dispatches
            statistics.bytes_copied += commands.bytes_copied
        if home.garbage:
            home.collect()

    def execute_batch(self, batch: Sequence[Work], watcher: Watcher | None = None) -> None:
        """As `execute`, for several recordings in order: one submission and one wait."""
        home = self._home
        if not batch:
            raise InvalidArgument("a batch of no command buffers")
        self.device.check_open()
        with self._lock:
            home.settle()
            works = [self._work(*work) for work in batch]
            home.current = batch
            try:
                self._backend.execute_batch(works, watcher)
            except BaseException:
                home.break_off()
                raise
            home.current = None
            if home.backlog:
                home.forget_sources()
            self._statistics.waits += 1
            self._count(batch)
        if home.garbage:
            home.collect()

    def submit(
        self,
        commands: CommandBuffer | None,
        buffers: Sequence[Buffer] = (),
        wait: Fence | None = None,
        signal: Fence | None = None,
        watcher: Watcher | None = None,
    ) -> None:
        """Enqueue and return: the work starts when `wait` is reached, and `signal` is reached when it is over.

        Without `commands` only the fences are chained. If the work fails, waiting for `signal` raises its error. Where
        the driver works on the host, the `HalError` that `watcher.check` raises ends the work.
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
        home = self._home
        self.device.check_open()
        with self._lock:
            home.settle()
            works: list[BackendWork] = []
            leases: list[object] = []
            for commands, buffers in batch:
                works.append(self._work(commands, buffers))
                leases += [buffer.lease for buffer in buffers]
                leases += commands.leases
            waits = [(semaphore.alive(), value) for semaphore, value in wait.points] if wait else []
            leases += [semaphore.lease for semaphore, _ in wait.points] if wait else []
            promised: list[tuple[Semaphore, int]] = []
            try:
                signals = self._promise(signal, promised) if signal else []
                leases += [semaphore.lease for semaphore, _ in promised]
                self._enqueue(batch, works, waits, signals, leases, watcher)
                self._count(batch, home.submitted)
            except BaseException:
                if not home.unsure:  # the driver refused the submission, or did not get it
                    to_its_end(partial(_break_promises, promised))
                if home.current is not None:
                    home.break_off()
                raise
            home.current, home.unsure = None, ()
        if home.garbage:
            home.collect()

    def _promise(self, signal: Fence, promised: list[tuple[Semaphore, int]]) -> list[Point]:
        """The points to signal. Adds to `promised` what is to be broken if the submission does not come about."""
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
        leases: list[object],
        watcher: Watcher | None,
    ) -> None:
        """Hand a submission to the driver, with what it holds on the home's timeline; the lock is held.

        `home.current` stays set unless the driver refuses; the caller resets it.
        """
        home = self._home
        home.retire()
        home.unsure = tuple(signals)
        home.current = batch
        signals.append(home.track(leases, None if signals else self._unheard, waits))
        try:
            self._backend.submit(works, waits, signals, watcher)
        except HalError:  # the driver refused it
            home.untrack()
            home.current, home.unsure = None, ()
            raise
        except Exception:
            home.unsure = ()
            raise
        self._last = home.submitted

    def write(self, buffer: Buffer, offset: int, data: Bytes) -> None:
        """For `Buffer.write`, which has checked: copy to a buffer without mapping, in order with later submissions."""
        home = self._home
        with self._lock:
            home.settle()
            source = data.copy()
            if home.backlog + source.size > WRITE_BACKLOG:
                self._backend.wait_idle()
                home.forget_sources()
            home.sources.append((source, buffer.lease))
            home.backlog += source.size
            home.current = ()
            try:
                self._backend.write(buffer.backend, offset, source)
            except BaseException:
                home.break_off()
                raise
            home.current = None

    def read(self, buffer: Buffer, offset: int, out: Bytes) -> None:
        """For `Buffer.read`, which has checked: copy from a buffer without mapping, after all earlier work."""
        home = self._home
        with self._lock:
            home.settle()
            home.current = ()
            try:
                self._backend.read(buffer.backend, offset, out)
            except BaseException:
                home.break_off()
                raise
            home.current = None
            home.forget_sources()
        self._statistics.waits += 1
        if home.garbage:
            home.collect()

    def wait_pending(self, most: int, timeout: float | None) -> None:
        """Block until at most `most` submissions are under way; how they end is told elsewhere. `DeadlineExceeded`."""
        home = self._home
        with self._lock:
            home.settle()
            home.retire()
            timeline = home.timeline
            if timeline is None or len(home.in_flight) <= most:
                return
            number = home.in_flight[-most - 1].number
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
        unheard = self.drain()
        if unheard:
            raise unheard[0]

    def drain(self) -> list[HalError]:
        """As `wait_idle`, with the errors as a list. The last share waits for what others left behind as well."""
        self.finish(None)
        unheard, self._unheard = self._unheard, []
        return unheard

    def finish(self, timeout: float | None) -> bool:
        """Wait for what `drain` waits for; False when `timeout` seconds passed first."""
        home = self._home
        return home.wait_submitted(home.submitted if len(home.shares) == 1 else self._last, timeout)

    def disown(self, error: Exception) -> Any:
        """See `Device.disown`. Gives what takes the place of the lock."""
        self._lock = ForkedLock(error)
        return self._lock

    def _count(self, batch: Sequence[Work], number: int = 0) -> None:
        """`number`: of the submission on the home's timeline, 0 if it is over."""
        statistics = self._statistics
        statistics.submissions += 1
        for commands, buffers in batch:
            statistics.dispatches += commands.dispatches
            statistics.bytes_copied += commands.bytes_copied
            if number:
                for buffer in (*buffers, *commands.direct):
                    buffer.submitted = number

    def _work(self, commands: CommandBuffer, buffers: Sequence[Buffer]) -> BackendWork:
        """A recording and its slots, checked."""
        home, needs = self._home, commands.needs
        if needs is None or len(buffers) != len(needs) or commands.home is not home:
            self._refuse(commands, buffers)
        for buffer, (length, rights) in zip(buffers, needs, strict=True):
            if buffer.home is not home or buffer.size < length or rights & ~buffer.rights:
                self._refuse(commands, buffers)
        for overlap in commands.overlaps:
            overlap.check(buffers)
        return commands.backend, [buffer.backend for buffer in buffers]

    def _refuse(self, commands: CommandBuffer, buffers: Sequence[Buffer]) -> NoReturn:
        """Say what is wrong: the hot path only finds that something is."""
        self.device.check_open()
        name = self.device.info.id
        if commands.home is not self._home:
            raise InvalidArgument(f"command buffer of device {commands.device.info.id} submitted to {name}")
        if commands.needs is None:
            raise InvalidArgument(f"command buffer is {commands.state}, not finished")
        if len(buffers) != len(commands.needs):
            raise InvalidArgument(f"{len(buffers)} buffers for a command buffer with {len(commands.needs)} slots")
        for slot, (buffer, (length, rights)) in enumerate(zip(buffers, commands.needs, strict=True)):
            if buffer.home is None:
                raise InvalidArgument(f"slot {slot}: buffer of {buffer.size} bytes was released")
            if buffer.home is not self._home:
                raise InvalidArgument(f"slot {slot}: buffer of device {buffer.device.info.id} submitted to {name}")
            if buffer.size < length:
                raise InvalidArgument(f"slot {slot}: buffer of {buffer.size} bytes, the recording needs {length}")
            if rights & ~buffer.rights:
                raise InvalidArgument(f"slot {slot}: buffer lacks {name_rights(rights & ~buffer.rights)}")
        raise AssertionError("a submit was refused without a reason")


def _break_promises(promised: list[tuple[Semaphore, int]]) -> None:
    while promised:
        semaphore, value = promised[-1]
        semaphore.break_promise(value)
        promised.pop()
