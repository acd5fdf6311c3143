"""Buffers: sizes, writes, reads, mapping, imported host memory, limits, views."""

import numpy as np
import pytest

from orchestrion.hal.backend import MemoryUse
from orchestrion.hal.buffer import Buffer, BufferView
from orchestrion.hal.errors import InvalidArgument, OutOfMemory
from orchestrion.schema.dtypes import BY_NUMPY

from .case import Group
from .rig import Rig

case = Group("buffers")

SIZES = (0, 1, 3, 4, 15, 16, 17, 4095, 4096, 4097, (1 << 20) + 3)


@case
def sizes(rig: Rig) -> None:
    """Any size can be allocated, written and read back whole."""
    for size in SIZES:
        data = np.random.default_rng(size).integers(0, 256, size, np.uint8)
        buffer = rig.buffer(data)
        assert buffer.size == size
        rig.holds(buffer, data)


@case
def written_ranges(rig: Rig) -> None:
    """A write touches its range and nothing else, at any byte."""
    want = np.arange(64, dtype=np.uint8)
    buffer = rig.buffer(want)
    for offset, length in ((0, 1), (1, 1), (3, 7), (17, 32), (63, 1), (64, 0)):
        data = np.full(length, 200 + offset % 50, np.uint8)
        buffer.write(data, offset)
        want[offset : offset + length] = data
        rig.holds(buffer, want)


@case
def read_ranges(rig: Rig) -> None:
    buffer = rig.buffer(np.arange(64, dtype=np.uint8))
    for offset, length in ((0, 64), (0, 1), (5, 3), (63, 1), (64, 0)):
        out = np.zeros(length, np.uint8)
        buffer.read(out, offset)
        np.testing.assert_array_equal(out, np.arange(offset, offset + length))


@case
def strided_source(rig: Rig) -> None:
    """An array is written in C order whatever its layout."""
    data = np.arange(24, dtype=np.float32).reshape(4, 6)
    rig.holds(rig.buffer(data.T), np.ascontiguousarray(data.T))
    rig.holds(rig.buffer(data[::2, ::-1]), np.ascontiguousarray(data[::2, ::-1]))


@case
def source_is_free_after_write(rig: Rig) -> None:
    """The array belongs to the caller again when `write` returns."""
    data = rig.random(1 << 16)
    want = data.copy()
    buffer = rig.buffer(data)
    data[:] = 0
    rig.holds(buffer, want)


@case
def buffers_are_apart(rig: Rig) -> None:
    """Neighbours do not share bytes."""
    made = [rig.buffer(np.full(size, number, np.uint8)) for number, size in enumerate((1, 16, 17, 33, 255, 4096))]
    for number, buffer in enumerate(made):
        rig.holds(buffer, np.full(buffer.size, number, np.uint8))


@case
def memory_uses(rig: Rig) -> None:
    """Memory of every use is written and read by the host and by the device."""
    data = rig.random(25).view(np.uint8)
    for use in MemoryUse:
        buffer, copied = rig.device.allocator.allocate(400, use), rig.device.allocator.allocate(400, use)
        buffer.write(data)
        commands = rig.recording()
        commands.copy(buffer, 0, copied, 100, 100)
        commands.finish()
        rig.run(commands)
        rig.holds(buffer, np.append(data, np.zeros(300, np.uint8)))
        rig.holds(copied, np.concatenate([np.zeros(100, np.uint8), data, np.zeros(200, np.uint8)]))


@case
def fresh_memory_is_zero(rig: Rig) -> None:
    """Whatever the memory held before: for the host, for the device, and in the padding behind a buffer."""
    allocator = rig.device.allocator
    for use in MemoryUse:
        for size in SIZES:
            for _ in range(3):
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
                _dirty(Rig(first, rig.computes), first.allocator.allocate(size, use))
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
def mapping(rig: Rig) -> None:
    """Writes through a mapping are seen by the device, and the other way round."""
    buffer, target = rig.zeros(64), rig.zeros(64)
    mapped = buffer.map()
    if mapped is None:
        return
    mapped[:] = np.arange(64)
    commands = rig.recording()
    commands.copy(buffer, 0, target, 0, 64)
    commands.barrier()
    commands.fill(buffer, 0, 64, b"\x07")
    commands.finish()
    rig.run(commands)
    rig.holds(target, np.arange(64, dtype=np.uint8))
    np.testing.assert_array_equal(mapped, np.full(64, 7))


@case
def mapping_outlives_the_handle(rig: Rig) -> None:
    """An array from `map` keeps the memory, not the handle, alive."""
    buffer = rig.buffer(np.arange(64, dtype=np.uint8))
    mapped = buffer.map()
    buffer.release()
    if mapped is None:
        return
    others = [rig.zeros(64) for _ in range(8)]
    np.testing.assert_array_equal(mapped, np.arange(64))
    del others, mapped


@case
def imported_memory(rig: Rig) -> None:
    """Imported host memory is read in place, and never written."""
    alignment = max(1, rig.device.info.limits.host_import_alignment)
    padded = np.zeros(3 * alignment + 4096, np.uint8)
    start = -padded.ctypes.data % alignment
    data = padded[start : start + 2 * alignment + 2048 // alignment * alignment]
    data[:] = np.arange(data.size) % 251
    data.flags.writeable = False
    buffer = rig.device.allocator.import_host(data)
    if buffer is None:
        return
    rig.holds(buffer, data)
    target = rig.zeros(data.size)
    commands = rig.recording()
    commands.copy(buffer, 0, target, 0, data.size)
    with pytest.raises(InvalidArgument, match="lacks write access"):
        commands.fill(buffer, 0, 4, b"\0")
    commands.finish()
    rig.run(commands)
    rig.holds(target, data)
    with pytest.raises(InvalidArgument, match="lacks write access"):
        buffer.write(np.zeros(1, np.uint8))
    assert rig.device.statistics.imports == 1


@case
def memory_limit(rig: Rig) -> None:
    """A limit refuses with both numbers, and what is released may be allocated again."""
    with rig.device.share(memory_limit=4096) as limited:
        first = limited.allocator.allocate(3000)
        with pytest.raises(OutOfMemory, match=r"2000 bytes exceeds the limit of 4096 bytes \(3008 in use\)"):
            limited.allocator.allocate(2000)
        first.write(np.zeros(3000, np.uint8))
        first.release()
        limited.allocator.allocate(4096).release()
        assert limited.allocator.live_bytes == 0
        assert limited.allocator.peak_bytes == 4096


@case
def limit_of_a_share_and_of_the_device(rig: Rig) -> None:
    """Shares are limited one by one and together."""
    with rig.device.share(memory_limit=64) as outer, outer.share(memory_limit=48) as inner:
        held = outer.allocator.allocate(32)
        with pytest.raises(OutOfMemory, match="48 bytes exceeds the limit of 64"):
            inner.allocator.allocate(48)
        held.release()
        inner.allocator.allocate(48).release()
        assert outer.allocator.live_bytes == inner.allocator.live_bytes == 0


@case
def views(rig: Rig) -> None:
    """Every element type of NumPy, rank 0, no elements, any layout."""
    for dtype in BY_NUMPY.values():
        for shape in ((), (3,), (2, 0, 4), (2, 3, 5)):
            buffer = rig.zeros(16 * 32)
            view = BufferView(buffer, dtype, shape, 16)
            bits = np.random.default_rng(1).integers(0, 2 if dtype.name == "i1" else 100, shape)
            data = np.array(bits, dtype.numpy, order="F")
            view.write(data)
            got = view.read()
            assert got.dtype == dtype.numpy and got.shape == shape
            np.testing.assert_array_equal(got, data)
            mapped = view.map()
            if mapped is not None:
                np.testing.assert_array_equal(mapped, data)
            assert not rig.contents(buffer)[:16].any()
