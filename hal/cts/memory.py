"""Memory: fresh memory of every size and kind is zero, limits and accounts are exact, exhaustion raises OutOfMemory."""

from __future__ import annotations

from functools import partial

import numpy as np

from orchestrion.hal.backend import MemoryUse
from orchestrion.hal.buffer import Buffer
from orchestrion.hal.errors import OutOfMemory
from orchestrion.hal.lifetime import Account
from orchestrion.hal.semaphore import Fence

from .case import Group
from .expect import raises
from .kernels import ADD
from .rig import Rig, whole

case = Group("memory", __doc__)

#: bytes: nothing, around a word, a granule of allocation, a page, and more than a MiB
SIZES = (0, 1, 3, 4, 5, 15, 16, 17, 31, 33, 63, 64, 65, 255, 257, 4095, 4096, 4097, 65535, 65537, (1 << 20) + 3)


@case
def fresh_memory_is_zero(rig: Rig) -> None:
    """Whatever the memory held before: for the host, for the device, and in the padding behind a buffer."""
    allocator = rig.device.allocator
    for use in MemoryUse:
        for size in SIZES:
            for _ in range(2):
                _dirty(rig, allocator.allocate(size, use))
                fresh, target = allocator.allocate(size, use), rig.buffer(np.full(size, 3, np.uint8))
                commands = rig.recording()
                commands.copy(fresh, 0, target, 0, size)
                commands.finish()
                rig.run(commands)
                rig.holds(target, np.zeros(size, np.uint8))
                rig.holds(fresh, np.zeros(size, np.uint8))
                assert fresh.backend.host is None or not fresh.backend.host.any()
                _dirty(rig, fresh)


@case
def memory_of_a_closed_share_is_not_seen(rig: Rig) -> None:
    """Shares stand for programs: one reads zeros where another left its bytes, also if the device was used between."""
    sizes = (16, 1000, 4096, 1 << 20)
    for use in MemoryUse:
        with rig.device.share() as first:
            for size in sizes:
                _dirty(rig.on(first), first.allocator.allocate(size, use))
        with rig.device.share() as second:
            made = [second.allocator.allocate(size, use) for size in sizes]
            rig.holds(rig.zeros(16), np.zeros(16, np.uint8))
            for buffer in made:
                rig.holds(buffer, np.zeros(buffer.size, np.uint8))
            del made, buffer


@case
def memory_is_zeroed_before_its_first_use(rig: Rig) -> None:
    """What is submitted or written right after an allocation is not undone by the zeroing of it."""
    for use in MemoryUse:
        written, filled = (rig.device.allocator.allocate(4096, use) for _ in range(2))
        written.write(np.arange(4000, dtype=np.uint8))
        commands = rig.recording()
        commands.fill(filled, 0, 4000, b"\x09")
        commands.finish()
        rig.device.queue.submit(commands)
        rig.holds(written, np.append(np.arange(4000, dtype=np.uint8), np.zeros(96, np.uint8)))
        rig.holds(filled, np.append(np.full(4000, 9, np.uint8), np.zeros(96, np.uint8)))


def _dirty(rig: Rig, buffer: Buffer) -> None:
    """Write all of a buffer, by the host and by the device, and release it."""
    buffer.write(np.full(buffer.size, 0xA5, np.uint8))
    if buffer.size:
        commands = rig.recording()
        commands.fill(buffer, 0, buffer.size, b"\x5a")
        commands.finish()
        rig.run(commands)
    if buffer.backend.host is not None:
        buffer.backend.host[:] = 0xC3
    buffer.release()


@case
def memory_limit(rig: Rig) -> None:
    """A limit refuses with both numbers, and what is released may be allocated again."""
    with rig.device.share(memory_limit=4096) as limited:
        first = limited.allocator.allocate(3000)
        with raises(OutOfMemory, match=r"2000 bytes exceeds the limit of 4096 bytes \(3008 in use\)"):
            limited.allocator.allocate(2000)
        first.write(np.zeros(3000, np.uint8))
        first.release()
        limited.allocator.allocate(4096).release()
        rig.soon(lambda: limited.allocator.live_bytes, 0)
        assert limited.allocator.peak_bytes == 4096


@case
def limit_of_a_share_and_of_the_device(rig: Rig) -> None:
    """Shares are limited one by one and together."""
    with rig.device.share(memory_limit=64) as outer, outer.share(memory_limit=48) as inner:
        held = outer.allocator.allocate(32)
        with raises(OutOfMemory, match="48 bytes exceeds the limit of 64"):
            inner.allocator.allocate(48)
        held.release()
        inner.allocator.allocate(48).release()
        rig.soon(lambda: (outer.allocator.live_bytes, inner.allocator.live_bytes), (0, 0))


def _allocate(rig: Rig, size: int, use: MemoryUse) -> Buffer:
    return rig.device.allocator.allocate(size, use)


def _moved(rig: Rig, use: MemoryUse) -> None:
    """Bytes go into a buffer by the host, on by a copy, over by a fill, and out to the host."""
    for size in SIZES:
        data = rig.bytes(size, size)
        first, second = _allocate(rig, size, use), _allocate(rig, size, use)
        first.write(data)
        commands = rig.recording(2)
        commands.copy(0, 0, 1, 0, size)
        commands.barrier()
        commands.fill(0, 0, size, b"\x55")
        commands.finish()
        rig.run(commands, first, second)
        rig.holds(second, data)
        rig.holds(first, np.full(size, 0x55, np.uint8))


for _use in MemoryUse:
    case.add(
        f"of_use_{_use.value}",
        partial(_moved, use=_use),
        f"A {_use.name} buffer of any size takes part in writes, copies, fills and reads.",
    )


@case.needing("dispatch")
def uses_in_one_dispatch(rig: Rig) -> None:
    """Buffers of different uses are bound by one dispatch."""
    data = rig.random(64, 1), rig.random(64, 2)
    made = [_allocate(rig, 256, use) for use in (MemoryUse.CONSTANT, MemoryUse.INPUT, MemoryUse.OUTPUT)]
    for buffer, words in zip(made, data, strict=False):
        buffer.write(words)
    for order in ((0, 1, 2), (1, 0, 2)):
        commands = rig.recording()
        rig.dispatch(commands, ADD, [whole(made[place]) for place in order], 64, 3)
        commands.finish()
        rig.run(commands)
        rig.computed(made[2], data[0] + data[1] + np.uint32(3))


@case
def fresh_words_for_a_fill_of_part(rig: Rig) -> None:
    """What a fill leaves out of a fresh buffer is zero, before it and behind it."""
    for size in (16, 20, 64, 1000):
        for use in MemoryUse:
            _dirty(rig, _allocate(rig, size, use))
            fresh = _allocate(rig, size, use)
            commands = rig.recording(1)
            commands.fill(0, 4, 8, b"\x77")
            commands.finish()
            rig.run(commands, fresh)
            want = np.zeros(size, np.uint8)
            want[4:12] = 0x77
            rig.holds(fresh, want)


@case.needing("dispatch")
def fresh_memory_is_zero_for_a_dispatch(rig: Rig) -> None:
    """The first thing that reads fresh memory may be a kernel: it reads zeros."""
    for use in MemoryUse:
        _dirty(rig, _allocate(rig, 4096, use))
        fresh, target = _allocate(rig, 4096, use), rig.buffer(np.full(1024, 9, np.uint32))
        commands = rig.recording()
        rig.dispatch(commands, ADD, [whole(fresh), whole(fresh), whole(target)], 1024, 5)
        commands.finish()
        rig.run(commands)
        rig.computed(target, np.full(1024, 5, np.uint32))


@case
def reused_in_another_size(rig: Rig) -> None:
    """Memory that is taken again in smaller or larger pieces is zero, too."""
    for use in MemoryUse:
        for sizes in ((4096, 64), (64, 4096), (1000, 999), (17, 31)):
            for size in (*sizes, *sizes):
                fresh = _allocate(rig, size, use)
                rig.holds(fresh, np.zeros(size, np.uint8))
                _dirty(rig, fresh)


@case
def many_at_once(rig: Rig) -> None:
    """500 buffers live at one time, and each holds its own bytes."""
    made = [rig.buffer(rig.bytes(1 + 37 * number % 400, number)) for number in range(500)]
    for number, buffer in enumerate(made):
        rig.holds(buffer, rig.bytes(buffer.size, number))


@case
def allocated_and_released_in_any_order(rig: Rig) -> None:
    """Buffers come and go at random; what lives keeps its bytes, and what is new is zero."""
    random = np.random.default_rng(1)
    live: dict[int, Buffer] = {}
    for number in range(400):
        if live and random.random() < 0.45:
            key = int(random.choice([*live]))
            rig.holds(live[key], rig.bytes(live[key].size, key))
            live.pop(key).release()
            continue
        size = int(random.integers(1, 3000))
        buffer = rig.device.allocator.allocate(size)
        rig.holds(buffer, np.zeros(size, np.uint8))
        buffer.write(rig.bytes(size, number))
        live[number] = buffer
    for key, buffer in live.items():
        rig.holds(buffer, rig.bytes(buffer.size, key))


@case
def more_than_the_device_has(rig: Rig) -> None:
    """An allocation that no device has room for is refused with `OutOfMemory`; nothing is charged, and the next one
    succeeds.
    """
    allocator = rig.device.allocator
    for size in (1 << 60, 1 << 50):
        with raises(OutOfMemory):
            allocator.allocate(size)
    assert allocator.live_bytes == 0
    assert rig.device.statistics.allocations == 0
    rig.holds(rig.zeros(64), np.zeros(64, np.uint8))


@case
def rounded_up_to_a_granule(rig: Rig) -> None:
    """An allocation is charged in steps of 16 bytes, 16 at least; a release gives back as much."""
    allocator = rig.device.allocator
    for size, charged in ((0, 16), (1, 16), (16, 16), (17, 32), (4096, 4096), (4097, 4112)):
        buffer = allocator.allocate(size)
        assert allocator.live_bytes == charged, (size, allocator.live_bytes)
        buffer.release()
        rig.soon(lambda: allocator.live_bytes, 0)


@case
def limit_is_exact(rig: Rig) -> None:
    """Memory up to the limit is given, one granule more is refused, and a refusal charges nothing."""
    with rig.device.share(memory_limit=4096) as limited:
        allocator = limited.allocator
        assert allocator.limit == 4096
        held = [allocator.allocate(1024) for _ in range(4)]
        for _ in range(2):
            with raises(OutOfMemory, match=r"limit of 4096 bytes \(4096 in use\)"):
                allocator.allocate(1)
        assert allocator.live_bytes == allocator.peak_bytes == 4096
        held.pop().release()
        held.append(allocator.allocate(1024))
        for buffer in held:
            buffer.release()
        rig.soon(lambda: allocator.live_bytes, 0)


@case
def limit_of_the_whole_device(rig: Rig) -> None:
    """A refusal by the limit of an outer share takes nothing from the inner one."""
    with rig.device.share(memory_limit=1024) as outer:
        with outer.share() as first, outer.share() as second:
            held = first.allocator.allocate(1000)
            with raises(OutOfMemory, match="64 bytes exceeds the limit of 1024"):
                second.allocator.allocate(64)
            assert second.allocator.live_bytes == 0
            assert outer.allocator.live_bytes == 1008
            held.release()
            second.allocator.allocate(1024).release()
        rig.soon(lambda: outer.allocator.live_bytes, 0)
        assert outer.allocator.peak_bytes == 1024


@case
def budget_is_charged_as_well(rig: Rig) -> None:
    """A budget that a share is given counts what the share allocates, and limits it."""
    budget = Account(256)
    with rig.device.share(budget=budget) as device:
        held = device.allocator.allocate(200)
        assert budget.live == 208
        with raises(OutOfMemory, match="limit of 256 bytes"):
            device.allocator.allocate(64)
        held.release()
        rig.soon(lambda: (device.allocator.live_bytes, budget.live), (0, 0))
        assert budget.peak == 208


@case
def charged_until_work_is_over(rig: Rig) -> None:
    """Memory that submitted work uses is charged until that work is over, whatever becomes of the handle."""
    gate, done = rig.device.create_semaphore(), rig.device.create_semaphore()
    with rig.device.share() as device:
        share = rig.on(device)
        buffer, commands = share.zeros(4096), share.filling(0, 4096, 7)
        device.queue.submit(commands, (buffer,), Fence([(gate, 1)]), Fence([(done, 1)]))
        buffer.release()
        assert device.allocator.live_bytes == 4096
        gate.signal(1)
        done.wait(1, rig.patience)
        device.queue.wait_idle()
        rig.soon(lambda: device.allocator.live_bytes, 0)
        commands.release()


@case
def charged_while_a_recording_refers_to_it(rig: Rig) -> None:
    """A buffer in a recording is charged until the recording goes."""
    allocator = rig.device.allocator
    buffer = rig.zeros(64)
    commands = rig.filling(buffer, 64, 1)
    buffer.release()
    rig.run(commands)
    assert allocator.live_bytes == 64
    commands.release()
    rig.device.queue.wait_idle()
    rig.soon(lambda: allocator.live_bytes, 0)


@case
def peak_stays(rig: Rig) -> None:
    """The peak is the most that was in use at one time, not the sum."""
    allocator = rig.device.allocator
    for _ in range(5):
        pair = allocator.allocate(1000), allocator.allocate(500)
        for buffer in pair:
            buffer.release()
        rig.soon(lambda: allocator.live_bytes, 0)
    allocator.allocate(1200).release()
    assert allocator.peak_bytes == 1008 + 512


@case
def given_back(rig: Rig) -> None:
    """256 MiB in turn, 4 MiB at a time: released memory is there again, on a device that has less."""
    for value in range(64):
        buffer = rig.device.allocator.allocate(4 << 20)
        buffer.write(np.full(16, value, np.uint8), (4 << 20) - 16)
        out = np.empty(32, np.uint8)
        buffer.read(out, (4 << 20) - 32)
        np.testing.assert_array_equal(out, [0] * 16 + [value] * 16)
        buffer.release()
