"""Bugs of drivers, each seeded into a right one, with the conformance case that finds it.

A bug is a class derived from a wrapped one (`wrapped_driver.py`), or a patch of the front where the front is what
keeps the rule. `test_cts_seeded_bugs.py` runs the named case on the driver with and without it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from wrapped_driver import (
    Dispatch,
    Submission,
    WrappedBuffer,
    WrappedCommandBuffer,
    WrappedDevice,
    WrappedQueue,
    WrappedSemaphore,
    unwrap_points,
)

from orchestrion.hal.backend import (
    BackendBuffer,
    BackendCommandBuffer,
    BackendExecutable,
    BackendSemaphore,
    BackendWork,
    Binding,
    Bytes,
    DeviceInfo,
    Entry,
    MemoryUse,
    Point,
    Watcher,
)
from orchestrion.hal.errors import HalError, OutOfMemory
from orchestrion.hal.lifetime import DeviceState
from orchestrion.hal.null.executable import NullExecutable
from orchestrion.schema.errors import ModuleError

#: bytes of memory of a device that has little
LITTLE = 128 << 20
#: seconds that slow work takes
SLOW = 0.15


def same(info: DeviceInfo) -> DeviceInfo:
    return info


@dataclass(frozen=True)
class Bug:
    """`case` finds it on the driver `on`. `right` is the device without the bug, where that is not `WrappedDevice`."""

    name: str
    case: str
    device: type[WrappedDevice] = WrappedDevice
    on: str = "reference"
    mapped: bool = True
    right: type[WrappedDevice] = WrappedDevice
    change: Callable[[DeviceInfo], DeviceInfo] = same
    patch: Callable[[pytest.MonkeyPatch], None] | None = None


def device(**classes: type[Any]) -> type[WrappedDevice]:
    """A wrapped device with other classes: `queue`, `command_buffer`, `semaphore`, `buffer`."""
    return type("Buggy", (WrappedDevice,), {f"{name}_class": value for name, value in classes.items()})


# recordings


class LostBarrier(WrappedCommandBuffer):
    def barrier(self) -> None:
        return


class BindingOffset(WrappedCommandBuffer):
    """The offset of a binding is forgotten where its buffer comes by a slot."""

    def changed(self, one: Dispatch) -> Dispatch:
        wrong = [binding._replace(offset=0) if isinstance(binding.source, int) else binding for binding in one.bindings]
        return one._replace(bindings=wrong)


class BindingLength(WrappedCommandBuffer):
    """A binding reaches to the end of its buffer."""

    def changed(self, one: Dispatch) -> Dispatch:
        wrong = [
            binding
            if isinstance(binding.source, int)
            else binding._replace(length=binding.source.size - binding.offset)
            for binding in one.bindings
        ]
        return one._replace(bindings=wrong)


class Parameters(WrappedCommandBuffer):
    """The words come in another order."""

    def changed(self, one: Dispatch) -> Dispatch:
        return one._replace(parameters=one.parameters[4:] + one.parameters[:4])


class FirstParameters(WrappedCommandBuffer):
    """All dispatches of a recording get the words of the first."""

    first: bytes | None = None

    def changed(self, one: Dispatch) -> Dispatch:
        self.first = self.first or one.parameters
        return one._replace(parameters=self.first)


class EntryNumber(WrappedCommandBuffer):
    """The number of an entry is one too high, up to the last."""

    def changed(self, one: Dispatch) -> Dispatch:
        entries = one.executable.entries
        wrong = min(one.entry + 1, len(entries) - 1)
        return one._replace(entry=wrong) if len(entries[wrong].bindings) == len(one.bindings) else one


class ThirdDimension(WrappedCommandBuffer):
    """A grid has two dimensions."""

    def changed(self, one: Dispatch) -> Dispatch:
        return one._replace(groups=(*one.groups[:2], 1))


class LastWorkgroup(WrappedCommandBuffer):
    """The last workgroup of a row, which may be part of one, does not run."""

    def changed(self, one: Dispatch) -> Dispatch:
        x, y, z = one.groups
        return one._replace(groups=(max(1, x - 1), y, z))


class Limited(WrappedCommandBuffer):
    """Right: the device refuses grids above its limits, which differ from dimension to dimension."""

    LIMITS = (1 << 20, 64, 16)

    def changed(self, one: Dispatch) -> Dispatch:
        assert all(count <= limit for count, limit in zip(one.groups, self.LIMITS, strict=True)), one.groups
        return one


class GridSwapped(Limited):
    def changed(self, one: Dispatch) -> Dispatch:
        x, y, z = one.groups
        return super().changed(one._replace(groups=(y, x, z)))


def limited(info: DeviceInfo) -> DeviceInfo:
    return replace(info, limits=replace(info.limits, max_workgroup_count=Limited.LIMITS))


class PartialFill(WrappedCommandBuffer):
    """A fill ends at a whole word."""

    def fill(self, target: Binding, pattern: bytes) -> None:
        if target.length >= 4:
            super().fill(target._replace(length=target.length // 4 * 4), pattern)


class UpdateLimit(WrappedCommandBuffer):
    """A fill ends at 64 KiB, as an update of a buffer in a command would."""

    def fill(self, target: Binding, pattern: bytes) -> None:
        super().fill(target._replace(length=min(target.length, 65536)), pattern)


class PatternOfFourBytes(WrappedCommandBuffer):
    """Of a pattern of eight bytes the first four are repeated."""

    def fill(self, target: Binding, pattern: bytes) -> None:
        super().fill(target, pattern[:4])


class OneByteLess(WrappedCommandBuffer):
    """A copy leaves its last byte out."""

    def copy(self, source: Binding, target: Binding) -> None:
        length = source.length - 1
        if length:
            super().copy(source._replace(length=length), target._replace(length=length))


class CopyOffset(WrappedCommandBuffer):
    """A copy starts at a multiple of 4."""

    def copy(self, source: Binding, target: Binding) -> None:
        super().copy(source._replace(offset=source.offset // 4 * 4), target)


class SlotNumber(WrappedCommandBuffer):
    """A copy to a slot above 31 goes to the one 32 below."""

    def copy(self, source: Binding, target: Binding) -> None:
        if isinstance(target.source, int):
            target = target._replace(source=target.source % 32)
        super().copy(source, target)


# the queue


class LateQueue(WrappedQueue):
    """Right: work takes a while."""

    def late(self) -> list[Point]:
        """A point that is reached after a while."""
        semaphore = self.device.create_semaphore(0)
        threading.Timer(SLOW, semaphore.signal, (1,)).start()
        return [(semaphore, 1)]

    def changed(self, one: Submission) -> Submission:
        return one._replace(waits=[*one.waits, *self.late()])


class SignalBeforeTheEnd(LateQueue):
    """Signals when the work starts."""

    def changed(self, one: Submission) -> Submission:
        self.inner.submit([], unwrap_points(one.waits), unwrap_points(one.signals))
        return super().changed(Submission(one.batch, [], []))


class ReturnBeforeTheEnd(LateQueue):
    """A blocking call returns when its work is submitted."""

    def execute(
        self, commands: BackendCommandBuffer, table: Sequence[BackendBuffer], watcher: Watcher | None = None
    ) -> None:
        self.submit([(commands, [*table])], [], [], watcher)


class LostSignal(WrappedQueue):
    """Of several signals the first is forgotten."""

    def changed(self, one: Submission) -> Submission:
        return one._replace(signals=one.signals[-1:])


class WaitIgnored(WrappedQueue):
    def changed(self, one: Submission) -> Submission:
        return one._replace(waits=[])


class FirstWait(WrappedQueue):
    """Of several waits the first is waited for."""

    def changed(self, one: Submission) -> Submission:
        return one._replace(waits=one.waits[:1])


class BatchReversed(WrappedQueue):
    def execute_batch(self, batch: Sequence[BackendWork], watcher: Watcher | None = None) -> None:
        super().execute_batch([*reversed(batch)], watcher)


class BatchTable(WrappedQueue):
    """All of a batch get the table of the first."""

    def execute_batch(self, batch: Sequence[BackendWork], watcher: Watcher | None = None) -> None:
        first = {id(commands): table for commands, table in reversed(batch)}
        super().execute_batch([(commands, first[id(commands)]) for commands, _ in batch], watcher)


class PreviousTable(WrappedQueue):
    """A recording runs with the table of the call before."""

    def __init__(self, inner: Any, device: WrappedDevice) -> None:
        super().__init__(inner, device)
        self.tables: dict[int, Sequence[BackendBuffer]] = {}

    def execute(
        self, commands: BackendCommandBuffer, table: Sequence[BackendBuffer], watcher: Watcher | None = None
    ) -> None:
        before = self.tables.get(id(commands), table)
        self.tables[id(commands)] = table
        super().execute(commands, before, watcher)


class SecondDropped(WrappedQueue):
    """A recording that was submitted with the same table is not run again."""

    def __init__(self, inner: Any, device: WrappedDevice) -> None:
        super().__init__(inner, device)
        self.seen: set[tuple[int, ...]] = set()

    def changed(self, one: Submission) -> Submission:
        fresh = [work for work in one.batch if self._key(work) not in self.seen]
        self.seen |= {self._key(work) for work in one.batch}
        return one._replace(batch=fresh)

    @staticmethod
    def _key(work: BackendWork) -> tuple[int, ...]:
        return (id(work[0]), *map(id, work[1]))


class ReadBeforeTheEnd(WrappedQueue):
    """A read does not wait for submitted work."""

    def read(self, buffer: BackendBuffer, offset: int, out: Bytes) -> None:
        assert isinstance(buffer, WrappedBuffer) and buffer.inner.host is not None
        out[:] = buffer.inner.host[offset : offset + out.size]


class WriteAhead(WrappedQueue):
    """A write goes ahead of submitted work."""

    def write(self, buffer: BackendBuffer, offset: int, data: Bytes) -> None:
        assert isinstance(buffer, WrappedBuffer) and buffer.inner.host is not None
        buffer.inner.host[offset : offset + data.size] = data


# semaphores


class FailureForgotten(WrappedSemaphore):
    def fail(self, value: int, error: HalError) -> None:
        self.signal(value)


class GoesBackwards(WrappedSemaphore):
    """A value that is read a second time is one less."""

    seen = 0

    def value(self) -> int:
        value = super().value()
        if value and value == self.seen:
            return value - 1
        self.seen = value
        return value


class Bits32(WrappedSemaphore):
    def value(self) -> int:
        return super().value() & 0xFFFFFFFF


class WaitForTheExactValue(WrappedSemaphore):
    """A wait ends when the value is the one waited for, not when it is above."""

    def wait(self, value: int, timeout: float | None) -> bool:
        return super().wait(value, timeout) and self.value() == value


# memory


class Dirty(WrappedDevice):
    def allocate(self, size: int, use: MemoryUse) -> BackendBuffer:
        made = super().allocate(size, use)
        assert made.host is not None
        made.host[:] = 0xCD
        return made


class DirtyPadding(WrappedDevice):
    """The last bytes of an allocation, which the host did not ask for, are not cleared."""

    def allocate(self, size: int, use: MemoryUse) -> BackendBuffer:
        made = super().allocate(size, use)
        assert made.host is not None
        made.host[-1:] = 0xCD
        return made


class OneMemory(WrappedDevice):
    """Small buffers of one size share their memory."""

    def __init__(self, inner: Any, info: DeviceInfo, mapped: bool) -> None:
        super().__init__(inner, info, mapped)
        self.shared: dict[int, Bytes] = {}

    def allocate(self, size: int, use: MemoryUse) -> BackendBuffer:
        place = self.shared.setdefault(size, np.zeros(size, np.uint8))
        inner = self.inner.import_host(place)
        assert inner is not None
        return self.buffer_class(inner, True)


class Counted(WrappedBuffer):
    """Right: the memory of a released buffer is there for the next."""

    device: LittleMemory

    def release(self) -> None:
        self.device.used -= self.size
        super().release()


class LittleMemory(WrappedDevice):
    """Right: a device with little memory."""

    def __init__(self, inner: Any, info: DeviceInfo, mapped: bool) -> None:
        super().__init__(inner, info, mapped)
        self.used = 0

    def allocate(self, size: int, use: MemoryUse) -> BackendBuffer:
        if self.used + size > LITTLE:
            raise OutOfMemory(f"allocation of {size} bytes: {self.used} of {LITTLE} are in use")
        self.used += size
        made = Counted(self.inner.allocate(size, use), self.mapped)
        made.device = self
        return made


class Leaking(LittleMemory):
    """Released memory is lost."""

    def allocate(self, size: int, use: MemoryUse) -> BackendBuffer:
        made = super().allocate(size, use)
        self.used += size
        return made


class ImportCopied(WrappedDevice):
    def import_host(self, memory: Bytes) -> BackendBuffer | None:
        return super().import_host(memory.copy())


class ImportWritten(WrappedDevice):
    """The driver puts a mark of its own behind what it imports."""

    def import_host(self, memory: Bytes) -> BackendBuffer | None:
        if memory.flags.writeable:
            memory[-1] ^= 1
        return super().import_host(memory)


class AnyPayload(WrappedDevice):
    """What is no code is taken for code that does nothing."""

    def create_executable(self, format: str, payload: memoryview, entries: tuple[Entry, ...]) -> BackendExecutable:
        try:
            return super().create_executable(format, payload, entries)
        except ModuleError:
            return NullExecutable(entries)


# rules that the front keeps


def released_early(patch: pytest.MonkeyPatch) -> None:
    """What a submission uses is not kept alive."""
    track = DeviceState.track
    patch.setattr(DeviceState, "track", lambda state, refs, *rest: track(state, (), *rest))


def never_retired(patch: pytest.MonkeyPatch) -> None:
    """What a submission used is kept for ever."""
    kept: list[object] = []
    track = DeviceState.track

    def keep(state: DeviceState, refs: Any, *rest: Any) -> tuple[BackendSemaphore, int]:
        refs = tuple(refs)
        kept.append(refs)
        return track(state, refs, *rest)

    patch.setattr(DeviceState, "track", keep)


BUGS = (
    Bug("lost barrier", "barriers.read_after_write_fill_copy_direct", device(command_buffer=LostBarrier)),
    Bug("lost barrier between dispatches", "barriers.write_after_write_dispatch_dispatch_slots",
        device(command_buffer=LostBarrier)),
    Bug("binding offset lost", "dispatches.bindings_at_multiples_of_the_alignment_slots",
        device(command_buffer=BindingOffset)),
    Bug("binding length ignored", "dispatches.nothing_behind_a_binding_direct", device(command_buffer=BindingLength),
        "vulkan"),
    Bug("parameter words in another order", "executables.parameter_words", device(command_buffer=Parameters), "opencl"),
    Bug("parameters of the first dispatch", "dispatches.parameters", device(command_buffer=FirstParameters), "opencl"),
    Bug("entry number off by one", "executables.each_entry", device(command_buffer=EntryNumber)),
    Bug("third dimension of a grid dropped", "dispatches.grids_of_every_shape", device(command_buffer=ThirdDimension),
        "opencl"),
    Bug("last workgroup dropped", "dispatches.sums_of_any_size_direct", device(command_buffer=LastWorkgroup), "opencl"),
    Bug("dimensions of a grid swapped", "dispatches.more_workgroups_than_one_dimension_takes",
        device(command_buffer=GridSwapped), right=device(command_buffer=Limited), change=limited),
    Bug("partial fill", "transfers.filled_with_1_byte_direct", device(command_buffer=PartialFill)),
    Bug("fill ends at 64 KiB", "transfers.large_fills", device(command_buffer=UpdateLimit)),
    Bug("pattern cut to four bytes", "transfers.filled_with_8_bytes_slots", device(command_buffer=PatternOfFourBytes)),
    Bug("copy of one byte less", "transfers.copied_whole_direct", device(command_buffer=OneByteLess)),
    Bug("copy from an aligned offset", "transfers.copied_at_every_alignment_slots", device(command_buffer=CopyOffset)),
    Bug("slot number cut to five bits", "recordings.many_slots", device(command_buffer=SlotNumber)),
    Bug("signal before the work is over", "semaphores.submission_signals", device(queue=SignalBeforeTheEnd),
        right=device(queue=LateQueue)),
    Bug("return before the work is over", "transfers.copied_whole_slots", device(queue=ReturnBeforeTheEnd),
        right=device(queue=LateQueue)),
    Bug("lost signal", "semaphores.submission_signals", device(queue=LostSignal)),
    Bug("wait ignored", "semaphores.submission_waits_for_the_host", device(queue=WaitIgnored)),
    Bug("second wait ignored", "semaphores.several_waits", device(queue=FirstWait)),
    Bug("batch in reverse", "batches.fills_in_order", device(queue=BatchReversed)),
    Bug("batch with the first table", "batches.many_tables", device(queue=BatchTable)),
    Bug("table of the previous call", "recordings.tables_come_back", device(queue=PreviousTable)),
    Bug("second submission dropped", "submissions.second_of_two_equal_ones", device(queue=SecondDropped)),
    Bug("read before the work is over", "submissions.host_read_waits_for_a_writer", device(queue=ReadBeforeTheEnd),
        mapped=False),
    Bug("write ahead of the work", "submissions.host_write_is_not_seen_by_earlier_work", device(queue=WriteAhead),
        mapped=False),
    Bug("failure not propagated", "semaphores.failed_value", device(semaphore=FailureForgotten)),
    Bug("value goes backwards", "semaphores.never_goes_backwards", device(semaphore=GoesBackwards)),
    Bug("semaphore of 32 bits", "semaphores.large_values", device(semaphore=Bits32)),
    Bug("wait for the exact value", "semaphores.values_may_be_skipped", device(semaphore=WaitForTheExactValue)),
    Bug("dirty fresh memory", "memory.fresh_memory_is_zero", Dirty),
    Bug("dirty padding", "memory.fresh_memory_is_zero", DirtyPadding),
    Bug("buffers share memory", "memory.many_at_once", OneMemory),
    Bug("released memory is lost", "memory.given_back", Leaking, right=LittleMemory),
    Bug("import that copies", "imports.change_by_the_host_is_seen", ImportCopied),
    Bug("import that writes", "imports.never_written", ImportWritten),
    Bug("any payload taken for code", "executables.payload_of_noise", AnyPayload),
    Bug("early release", "lifetimes.buffer_released_while_in_flight", patch=released_early),
    Bug("work that is over is never let go", "lifetimes.nothing_is_left_of_work", patch=never_retired),
)  # fmt: skip
