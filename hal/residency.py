"""Constants in host memory, and the device memory that they are copied to.

- A `StreamedMemory` is a buffer whose bytes lie in host memory. The front binds it like any other buffer.
- A `Pool` assigns device memory to these buffers, within the limits of one program. If all fit, each is resident: it
  stays in device memory. Otherwise some are resident, and the others are copied into windows, segment by segment, in
  each run (`stream_plan.py`).
- A `StreamedRecording` stores what was recorded. Its plan is the list of driver recordings that run it. The plan is
  made at the first run, and again after the pool released its memory (`Pool.trim`).

Locks: the pool's lock guards its state. `release` never waits for it, because it may run in a finalizer: released
objects wait in `_released` until a thread has the lock. Plans change only while no planned work is in flight.
"""

from __future__ import annotations

import warnings
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from .allocator import padded_size
from .backend import (
    BackendBuffer,
    BackendCommandBuffer,
    BackendDevice,
    BackendExecutable,
    Binding,
    Bytes,
    MemoryUse,
)
from .buffer import WRITABLE, Buffer
from .errors import DeviceOutOfMemory, HalError, InvalidArgument, MemoryLimitExceeded, OutOfMemory
from .fork import new_lock
from .lifetime import Account, ResourceRef
from .statistics import Statistics
from .stream_plan import ALIGNMENT, Excess, Ranges, Segment, Use, WindowRange, arrange, split
from .waiting import attempt

if TYPE_CHECKING:
    from .device import Device

#: the room of a pool without limits
UNLIMITED = 2**63 - 1


class StreamingWarning(UserWarning):
    """Constants are copied to the device in every call, because they do not fit the given memory."""


class StreamedMemory(BackendBuffer):
    """Bytes in host memory. `dirty`: the copy in device memory was written after the bytes here."""

    __slots__ = ("array", "host", "dirty", "pool", "size")

    def __init__(self, pool: Pool, array: Bytes) -> None:
        self.pool = pool
        self.array = array
        self.size: int = array.size
        self.host: Bytes | None = None  # so the front reads and writes through the queue, which finds the latest copy
        self.dirty = False

    def release(self) -> None:
        self.pool.release_later(self)


class Window:
    """A range of device memory that holds the constants of one segment at a time.

    `content` is the planned segment whose constants it holds. `busy` is the last submission that uses it, a value of
    the queue's semaphore; 0 without one.
    """

    __slots__ = ("buffer", "busy", "content")

    def __init__(self, buffer: BackendBuffer) -> None:
        self.buffer = buffer
        self.content: PlannedSegment | None = None
        self.busy = 0


class PlannedSegment(NamedTuple):
    """One segment of a plan: a recording of the driver, the contents of its window, and what it writes."""

    recording: BackendCommandBuffer
    window: Window | None
    parts: tuple[WindowRange, ...]
    written: tuple[WindowRange, ...]  #: those of `parts` that are read back
    dirty: frozenset[StreamedMemory]  #: resident constants that the segment writes on the device

    @property
    def bytes(self) -> int:
        """Bytes that are copied to fill its window."""
        return sum(part.end - part.start for part in self.parts)


class Plan(NamedTuple):
    generation: int  #: the pool's generation when the plan was made
    pieces: tuple[PlannedSegment, ...]


Resolve = Callable[[Binding], Binding]


class _Command(NamedTuple):
    name: str  #: for error messages
    replay: Callable[[BackendCommandBuffer, Resolve], None]
    uses: tuple[Use, ...]
    writes: tuple[Use, ...]


class StreamedRecording(BackendCommandBuffer):
    """A recording of a streaming device. Without streamed memory it is just `plain`, the driver's own recording.

    `statistics` counts the bytes that runs copy; the front sets it.
    """

    def __init__(self, device: BackendDevice, slots: int) -> None:
        self.plain = device.create_command_buffer(slots)
        self.pool: Pool | None = None
        self.plan: Plan | None = None
        self.statistics: Statistics | None = None
        self.released = False
        self.slots = slots
        self.commands: list[_Command] = []

    def dispatch(
        self,
        executable: BackendExecutable,
        entry: int,
        groups: tuple[int, int, int],
        bindings: Sequence[Binding],
        parameters: bytes,
    ) -> None:
        def replay(commands: BackendCommandBuffer, resolve: Resolve) -> None:
            commands.dispatch(executable, entry, groups, [resolve(binding) for binding in bindings], parameters)

        row = executable.entries[entry]
        written = [one for one, (access, _) in zip(bindings, row.bindings, strict=True) if access != "read"]
        self._add(f"entry {row.name}", replay, bindings, written)

    def copy(self, source: Binding, target: Binding) -> None:
        def replay(commands: BackendCommandBuffer, resolve: Resolve) -> None:
            commands.copy(resolve(source), resolve(target))

        self._add("a copy", replay, (source, target), (target,))

    def fill(self, target: Binding, pattern: bytes) -> None:
        self._add("a fill", lambda commands, resolve: commands.fill(resolve(target), pattern), (target,), (target,))

    def fill_bytes(self, target: Binding, pattern: bytes) -> int:
        return self.plain.fill_bytes(target, pattern)

    def barrier(self) -> None:
        self._add("a barrier", lambda commands, _: commands.barrier(), (), ())

    def finish(self) -> None:
        if self.pool is None:
            self.plain.finish()
            self.commands = []
        else:
            self.pool.join(self)

    def release(self) -> None:
        self.released = True
        try:
            self.plain.release()
        finally:
            if self.pool is not None:
                self.pool.release_later(self)

    def uses(self) -> list[tuple[Use, ...]]:
        """The ranges of streamed memory that each command uses."""
        return [command.uses for command in self.commands]

    def _add(
        self,
        name: str,
        replay: Callable[[BackendCommandBuffer, Resolve], None],
        bindings: Iterable[Binding],
        written: Iterable[Binding],
    ) -> None:
        command = _Command(name, replay, self._streamed(bindings), self._streamed(written))
        self.commands.append(command)
        if self.pool is None:
            replay(self.plain, _unchanged)

    def _streamed(self, bindings: Iterable[Binding]) -> tuple[Use, ...]:
        uses = []
        for source, offset, length in bindings:
            if not isinstance(source, StreamedMemory):
                continue
            if self.pool is not None and source.pool is not self.pool:
                raise InvalidArgument("a recording binds streamed constants of two programs")
            self.pool = source.pool
            uses.append(Use(source, offset, offset + max(length, 1)))  # an empty binding needs an address, too
        return tuple(uses)


class Pool:
    """The device memory for the constants of one program, charged to the program's share."""

    def __init__(self, device: BackendDevice, share: Device) -> None:
        """`device`: the driver's device."""
        self._device = device
        self._state = weakref.ref(share.device_state)
        self._accounts = share.allocator.accounts
        self._statistics = share.statistics
        self._alignment = max(ALIGNMENT, device.info.limits.min_binding_alignment)
        self._lock = new_lock()
        self._joined: deque[StreamedRecording] = deque()
        self._released: deque[StreamedRecording | StreamedMemory] = deque()
        self._members: list[StreamedRecording] = []
        self._resident: dict[StreamedMemory, BackendBuffer] = {}
        self._windows: list[Window] = []
        self._sizes: dict[int, int] = {}  #: id of a device buffer of this pool -> bytes charged for it
        self._reserve = 0
        self._scratch = 0
        self._total = 0  #: bytes of all constants at the last arrangement
        self._told = False
        self._prepared = False  #: False while initializers run, True once calls may run
        self.generation = 1

    def constant(self, device: Device, array: Bytes) -> Buffer:
        """Returns a read-only buffer of a share over host memory, which it keeps alive."""
        memory = StreamedMemory(self, array)
        return Buffer(device, memory, ResourceRef(device.device_state, memory), array.size, 0)

    def allocate(self, device: Device, size: int, accounts: tuple[Account, ...]) -> Buffer:
        """Returns a buffer of `size` bytes, all zero, in host memory. The memory is charged to `accounts`, and refunded
        to them.
        """
        memory = StreamedMemory(self, np.zeros(size, np.uint8))
        return Buffer(device, memory, ResourceRef(device.device_state, memory, accounts, size), size, WRITABLE)

    def adopt(self, commands: BackendCommandBuffer, statistics: Statistics) -> None:
        """Count the copies of a recording's runs in `statistics`."""
        from .profiling import Recorder  # profiling imports the front

        inner = commands.inner if isinstance(commands, Recorder) else commands
        assert isinstance(inner, StreamedRecording)
        inner.statistics = statistics

    def join(self, recording: StreamedRecording) -> None:
        """Include a recording when memory is arranged next."""
        self._joined.append(recording)

    def release_later(self, thing: StreamedRecording | StreamedMemory) -> None:
        """Release an object as soon as the lock is free, which may be now. Never blocks."""
        self._released.append(thing)
        while self._released:
            held: list[bool] = []
            try:
                attempt(self._lock, held)
                if not held:
                    return
                self._apply_changes()
            finally:
                if held:
                    self._lock.release()

    def reserve_scratch(self, size: int) -> None:
        """Leave `size` bytes free: the driver takes them while a dispatch runs."""
        self._scratch = max(self._scratch, size)

    def place(self, recordings: Sequence[StreamedRecording]) -> None:
        """Give all these recordings plans that are valid at the same time. Calling it again is cheap if nothing
        changed.
        """
        roomy = bool(self._windows) and self._total <= self._room() + sum(self._sizes.values())
        if not roomy and all([one.plan is not None and one.plan.generation == self.generation for one in recordings]):
            return
        with self._lock:
            self._apply_changes()
            if roomy or not all([self._fit(one) for one in recordings]):
                self._device.queue.wait_idle()
                self._reset()
                self._arrange()
                for one in recordings:
                    fits = self._fit(one)
                    assert fits, "an arrangement is for all recordings"
        self._warn_streamed(1)

    def prepare(self, device: Device, reserve: int) -> None:
        """Decide what is resident and what is streamed. All recordings of the program exist.

        `reserve`: bytes that its calls will allocate. Warns (StreamingWarning) if constants will be streamed.
        """
        state = device.device_state
        self._reserve, self._prepared = reserve, True
        try:
            with state.lock, self._lock:
                state.recover()
                state.backend.queue.wait_idle()
                self._apply_changes()
                self._reset()
                self._arrange()
                for one in self._members:
                    self._fit(one)
            self._warn_streamed(7)
        finally:
            self._reserve = 0

    def release_memory(self, own: bool) -> bool:
        """Release all device memory, for `Device.on_memory_pressure`. The next run arranges the memory that is free
        then.

        Waits for work in flight. If that waits for a signal that may never come, nothing is released.
        """
        state = self._state()
        if state is None or state.lost is not None or not self._sizes:
            return False
        with state.lock, suppress(HalError):
            state.recover()
            if state.is_stalled:
                return False
            state.driver.queue.wait_idle()
            with self._lock:
                self._apply_changes()
                self._reset()
            return True
        return False

    def written(self, memory: StreamedMemory) -> None:
        """The bytes of `memory` in host memory changed. No work is in flight."""
        with self._lock:
            self._apply_changes()
            if memory in self._resident:
                self._reset()
            self.forget_windows()

    def forget_windows(self) -> None:
        """Mark the contents of all windows as invalid: host memory has changed."""
        for window in self._windows:
            window.content = None

    def flush(self, memory: StreamedMemory) -> None:
        """Copy modified device memory back to host memory."""
        if memory.dirty:
            self._device.queue.wait_idle()
            self.download(self._resident[memory], 0, memory.array)
            memory.dirty = False

    def download(self, buffer: BackendBuffer, offset: int, out: Bytes) -> None:
        """Copy from device memory. The work that writes it was waited for."""
        if buffer.host is not None and buffer.host_cached:
            out[:] = buffer.host[offset : offset + out.size]
        elif out.size:
            self._device.queue.read(buffer, offset, out)

    def _fit(self, recording: StreamedRecording) -> bool:
        """Plan a recording within the present arrangement. Returns False if it does not fit."""
        if recording.plan is not None and recording.plan.generation == self.generation:
            return True
        if not self._windows and not self._make_resident(recording):
            return False
        uses = [[use for use in row if use.memory not in self._resident] for row in recording.uses()]
        room = _size_of(self._windows)
        if any(Ranges(self._alignment).adding(row).size > room for row in uses):
            return False
        self._drop_plan(recording)
        pieces: list[PlannedSegment] = []
        try:
            for segment in split(uses, room, self._alignment) if self._windows else [Segment(0, len(uses), ())]:
                window = self._windows[len(pieces) % len(self._windows)] if segment.parts else None
                pieces.append(self._piece(recording, segment, window))
        except BaseException:
            for piece in pieces:
                self._release(piece.recording)
            raise
        recording.plan = Plan(self.generation, tuple(pieces))
        return True

    def _piece(self, recording: StreamedRecording, segment: Segment, window: Window | None) -> PlannedSegment:
        commands = recording.commands[segment.first : segment.last]
        made = self._device.create_command_buffer(recording.slots)

        def resolve(binding: Binding) -> Binding:
            memory, offset, length = binding
            if not isinstance(memory, StreamedMemory):
                return binding
            if memory in self._resident:
                return Binding(self._resident[memory], offset, length)
            assert window is not None
            part = _part(segment.parts, memory, offset)
            return Binding(window.buffer, part.window_offset + offset - part.start, length)

        try:
            for command in commands:
                command.replay(made, resolve)
            made.finish()
        except BaseException:
            self._release(made)
            raise
        writes = [use for command in commands for use in command.writes]
        dirty = frozenset(use.memory for use in writes if use.memory in self._resident)
        written = {_part(segment.parts, use.memory, use.start) for use in writes if use.memory not in dirty}
        return PlannedSegment(made, window, segment.parts, tuple(written), dirty)

    def _make_resident(self, recording: StreamedRecording) -> bool:
        """Without windows: assign device memory to what a recording uses. Returns False if there is too little."""
        missing = {use.memory: None for row in recording.uses() for use in row if use.memory not in self._resident}
        if sum(padded_size(memory.size) for memory in missing) > self._room():
            return False
        return all([self._upload_resident(memory) for memory in missing])

    def _arrange(self) -> None:
        """Choose residents and windows for all recordings. Nothing is in device memory now."""
        recordings = [one.uses() for one in self._members]
        sizes = {use.memory: padded_size(use.memory.size) for rows in recordings for row in rows for use in row}
        self._total = sum(sizes.values())
        room = self._room()
        found = arrange(sizes, recordings, room, self._alignment)
        if isinstance(found, Excess):
            name = self._members[found.recording].commands[found.command].name
            raise MemoryLimitExceeded(f"{name} binds {found.bytes} bytes of constants, {self._limits(room)}")
        for _ in range(found.windows):
            self._windows.append(Window(self._allocate_device(found.window_bytes)))
        for memory in sizes:
            if memory in found.resident and not self._upload_resident(memory):
                break
        if not found.windows and len(self._resident) < len(sizes):  # the driver has less than the limits allow
            raise DeviceOutOfMemory(f"constants take {self._total} bytes, and the device has less")

    def _upload_resident(self, memory: StreamedMemory) -> bool:
        """Returns False if the driver has no memory left."""
        try:
            buffer = self._allocate_device(padded_size(memory.size))
        except OutOfMemory:
            return False
        try:
            self._upload(buffer, memory.array)
        except BaseException:
            self._device.queue.wait_idle()
            self._free_device(buffer)
            raise
        self._resident[memory] = buffer
        return True

    def _upload(self, buffer: BackendBuffer, array: Bytes) -> None:
        if buffer.host is not None:
            buffer.host[: array.size] = array
        else:
            self._device.queue.write(buffer, 0, array)
        self._statistics.host_to_device_bytes += array.size

    def _allocate_device(self, size: int) -> BackendBuffer:
        """Returns device memory, charged to the accounts. Raises OutOfMemory."""
        for place, account in enumerate(self._accounts):
            if not account.charge(size):
                self._refund(size, self._accounts[:place])
                room = self._limits(self._room())
                raise MemoryLimitExceeded(f"constants need {size} bytes of device memory, {room}")
        try:
            buffer = self._device.allocate(size, MemoryUse.CONSTANT)
        except BaseException:
            self._refund(size, self._accounts)
            raise
        self._sizes[id(buffer)] = size
        self._statistics.allocations += 1
        return buffer

    def _free_device(self, buffer: BackendBuffer) -> None:
        size = self._sizes.pop(id(buffer))
        try:
            self._release(buffer)
        finally:
            self._refund(size, self._accounts)

    def _drop_plan(self, recording: StreamedRecording) -> None:
        """Release a recording's plan. None of it is in flight."""
        plan, recording.plan = recording.plan, None
        for piece in () if plan is None else plan.pieces:
            self._release(piece.recording)

    def _release(self, thing: BackendBuffer | BackendCommandBuffer) -> None:
        """Release an object of the driver. The front reports its error, because no caller waits for it."""
        try:
            thing.release()
        except Exception as error:
            state = self._state()
            if state is not None:
                state.release_failed(f"{type(thing).__name__} was not released", error)

    def _refund(self, size: int, accounts: tuple[Account, ...]) -> None:
        for account in accounts:
            account.refund(size)

    def _room(self) -> int:
        """Bytes left within the limits."""
        rooms = [account.limit - account.live for account in self._accounts if account.limit is not None]
        return max(0, min(rooms, default=UNLIMITED) - self._reserve - self._scratch)

    def _limits(self, room: int) -> str:
        limits = [account for account in self._accounts if account.limit is not None]
        tightest = min(limits, key=lambda account: account.limit - account.live)  # type: ignore[operator]
        return f"{room} bytes are free within the limit of {tightest.limit} bytes{tightest.origin}"

    def _apply_changes(self) -> None:
        """Add the recordings that joined, and drop the released objects. The lock is held."""
        while self._joined:
            self._members.append(self._joined.popleft())
        gone = False
        while self._released:
            thing = self._released.popleft()
            if isinstance(thing, StreamedRecording):
                self._drop_plan(thing)
                gone = True
                continue
            buffer = self._resident.pop(thing, None)
            if buffer is not None:
                self._free_device(buffer)
        if gone:
            self._members = [one for one in self._members if not one.released]
            if not self._members:  # no recordings, so windows are unused
                self.generation += 1
                self._free_windows()

    def _reset(self) -> None:
        """Release all device memory. The lock is held, and no work is in flight."""
        self.generation += 1
        for one in self._members:
            self._drop_plan(one)
        self._free_windows()
        for memory in [*self._resident]:
            self.flush(memory)
            self._free_device(self._resident.pop(memory))

    def _free_windows(self) -> None:
        while self._windows:
            self._free_device(self._windows.pop().buffer)

    def _warn_streamed(self, level: int) -> None:
        """Warn, once, that constants are streamed. `level`: the stack level of the caller's caller."""
        if self._told or not self._windows or not self._prepared:
            return
        self._told = True
        plans = [one.plan for one in self._members if one.plan is not None]
        streamed = sum(piece.bytes for plan in plans for piece in plan.pieces)
        more = self._total - sum(self._sizes.values()) - self._room()
        limit = min(account.limit for account in self._accounts if account.limit is not None)
        warnings.warn(
            f"the constants take {self._total} bytes and do not fit the {limit} bytes of device memory given: "
            f"{streamed} bytes of them are copied to the device in each call; {limit + more} bytes would avoid that",
            StreamingWarning,
            level,
        )


def _size_of(windows: Sequence[Window]) -> int:
    return min((window.buffer.size for window in windows), default=0)


def _part(parts: Iterable[WindowRange], memory: object, offset: int) -> WindowRange:
    return next(part for part in parts if part.memory is memory and part.start <= offset < part.end)


def _unchanged(binding: Binding) -> Binding:
    return binding
