"""Buffers: host writes and reads at any byte, mappings, and typed views."""

import numpy as np

from orchestrion.hal.backend import MemoryUse
from orchestrion.hal.buffer import BufferView
from orchestrion.hal.errors import InvalidArgument
from orchestrion.hal.semaphore import Fence
from orchestrion.schema.dtypes import BY_NAME, BY_NUMPY

from .case import Group
from .expect import raises
from .rig import Rig

case = Group("buffers", __doc__)

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
    """A read gives its range, at any byte."""
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


@case.needing("host-mapping")
def mapping(rig: Rig) -> None:
    """Writes through a mapping are seen by the device, and the other way round."""
    buffer, target = rig.staging(np.zeros(64, np.uint8)), rig.zeros(64)
    mapped = buffer.map()
    assert mapped is not None
    mapped[:] = np.arange(64)
    commands = rig.recording()
    commands.copy(buffer, 0, target, 0, 64)
    commands.barrier()
    commands.fill(buffer, 0, 64, b"\x07")
    commands.finish()
    rig.run(commands)
    rig.holds(target, np.arange(64, dtype=np.uint8))
    np.testing.assert_array_equal(mapped, np.full(64, 7))


@case.needing("host-mapping")
def mapping_outlives_the_handle(rig: Rig) -> None:
    """An array from `map` keeps the memory, not the handle, alive."""
    buffer = rig.staging(np.arange(64, dtype=np.uint8))
    mapped = buffer.map()
    buffer.release()
    assert mapped is not None
    others = [rig.zeros(64) for _ in range(8)]
    np.testing.assert_array_equal(mapped, np.arange(64))
    del others, mapped


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


def _edges(size: int) -> list[tuple[int, int]]:
    """Offsets and lengths at every position within a word, at the start, in the middle and at the end of
    `size` bytes.
    """
    ends = [(size - length, length) for length in range(10)]
    return [(offset, length) for offset in (*range(9), 31, 32, 33) for length in (*range(10), 15, 16, 17, 31)] + ends


@case
def written_at_every_alignment(rig: Rig) -> None:
    """Writes of 0 to 31 bytes at every place of a word touch their range and nothing else."""
    want = rig.bytes(80)
    buffer = rig.buffer(want)
    for number, (offset, length) in enumerate(_edges(80)):
        data = rig.bytes(length, number)
        buffer.write(data, offset)
        want[offset : offset + length] = data
        rig.holds(buffer, want)


@case
def read_at_every_alignment(rig: Rig) -> None:
    """Reads of 0 to 31 bytes at every place of a word give their range, and leave the rest of the array alone."""
    data = rig.bytes(80)
    buffer = rig.buffer(data)
    for offset, length in _edges(80):
        out = np.full(length + 8, 0xEE, np.uint8)
        buffer.read(out[4 : 4 + length], offset)
        np.testing.assert_array_equal(out[4 : 4 + length], data[offset : offset + length])
        assert (out[:4] == 0xEE).all() and (out[4 + length :] == 0xEE).all()


@case
def last_write_wins(rig: Rig) -> None:
    """Writes that overlap leave what the last one wrote."""
    buffer, want = rig.zeros(256), np.zeros(256, np.uint8)
    for number in range(100):
        start = number * 7 % 200
        buffer.write(np.full(40, number, np.uint8), start)
        want[start : start + 40] = number
    rig.holds(buffer, want)


@case
def large_write_and_read(rig: Rig) -> None:
    """9 MiB and 5 bytes arrive whole, in parts of odd sizes."""
    data = rig.bytes((9 << 20) + 5)
    buffer = rig.device.allocator.allocate(data.size)
    half = (4 << 20) + 3
    buffer.write(data[half:], half)
    buffer.write(data[:half])
    out = np.empty_like(data)
    buffer.read(out[: half + 1])
    buffer.read(out[half + 1 :], half + 1)
    assert np.array_equal(out, data)


@case
def many_writes_before_a_read(rig: Rig) -> None:
    """2000 small writes to one buffer, each of which reuses the same array, arrive in order."""
    buffer, source, want = rig.zeros(8000), np.zeros(8, np.uint8), np.zeros(8000, np.uint8)
    for number in range(2000):
        source[:] = number % 251
        where = number * 12 % 7992
        buffer.write(source, where)
        want[where : where + 8] = number % 251
    rig.holds(buffer, want)


@case
def writes_between_calls(rig: Rig) -> None:
    """What the host writes between two calls is seen by the second, and not by the first."""
    source, targets = rig.zeros(1024), [rig.zeros(1024) for _ in range(8)]
    commands = rig.copying(1024)
    for value, target in enumerate(targets):
        source.write(np.full(1024, value, np.uint8))
        rig.run(commands, source, target)
    for value, target in enumerate(targets):
        rig.holds(target, np.full(1024, value, np.uint8))


@case
def reads_between_calls(rig: Rig) -> None:
    """A read behind a call sees what the call did, part by part."""
    buffer = rig.zeros(1024)
    for value in range(8):
        rig.run(rig.filling(0, 1024, value), buffer)
        out = np.empty(3, np.uint8)
        buffer.read(out, 1021 - value)
        assert (out == value).all()


@case
def no_bytes(rig: Rig) -> None:
    """A buffer of no bytes is written, read, viewed, put into a slot and released like any other."""
    buffer = rig.zeros(0)
    buffer.write(np.zeros(0, np.uint8))
    buffer.read(np.zeros(0, np.uint8))
    assert BufferView(buffer, BY_NAME["f32"], (0, 3)).read().shape == (0, 3)
    commands = rig.recording(1)
    commands.fill(0, 0, 0, b"\1")
    commands.finish()
    rig.run(commands, buffer)
    with raises(InvalidArgument, match="bytes 0 to 1 are outside a buffer of 0 bytes"):
        buffer.write(np.zeros(1, np.uint8))


@case.needing("host-mapping")
def mapping_has_the_size_asked_for(rig: Rig) -> None:
    """A mapping is as long as the buffer, without the padding, and two mappings share the memory."""
    for size in (1, 5, 16, 17, 4097):
        buffer = rig.staging(np.zeros(size, np.uint8))
        first, second = buffer.map(), buffer.map()
        assert first is not None and second is not None
        assert first.shape == second.shape == (size,) and first.flags.writeable
        first[size - 1] = 77
        assert second[size - 1] == 77
        want = np.zeros(size, np.uint8)
        want[size - 1] = 77
        rig.holds(buffer, want)
        del first, second


@case.needing("host-mapping")
def mapping_after_submitted_work(rig: Rig) -> None:
    """A mapping is coherent once the work that touches the buffer was waited for."""
    buffer, done = rig.staging(np.zeros(4096, np.uint8)), rig.device.create_semaphore()
    mapped = buffer.map()
    assert mapped is not None
    for value in range(1, 9):
        mapped[:] = 0xEE
        rig.device.queue.submit(rig.filling(0, 4000, value), (buffer,), None, Fence([(done, value)]))
        done.wait(value, rig.patience)
        assert (mapped[:4000] == value).all() and (mapped[4000:] == 0xEE).all()
    del mapped


@case.needing("host-mapping")
def view_maps_its_range(rig: Rig) -> None:
    """A view's mapping is the elements in their shape, and a write through it changes the buffer there."""
    buffer = rig.staging(np.zeros(128, np.uint8))
    mapped = BufferView(buffer, BY_NAME["i32"], (2, 3), 32).map()
    assert mapped is not None and mapped.shape == (2, 3)
    mapped[1, 2] = -1
    want = np.zeros(32, np.int32)
    want[8 + 5] = -1
    rig.holds(buffer, want)
    del mapped


@case
def views_overlap(rig: Rig) -> None:
    """Views of one buffer see each other's bytes, whatever their types."""
    buffer = rig.zeros(64)
    words, bytes_ = BufferView(buffer, BY_NAME["ui32"], (4,), 16), BufferView(buffer, BY_NAME["ui8"], (16,), 16)
    words.write(rig.words(0x04030201, 0, 0, 0xFFFFFFFF))
    np.testing.assert_array_equal(bytes_.read(), [1, 2, 3, 4] + [0] * 8 + [255] * 4)
    bytes_.write(np.arange(16, dtype=np.uint8))
    np.testing.assert_array_equal(words.read(), np.arange(16, dtype=np.uint8).view(np.uint32))
