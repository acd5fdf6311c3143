"""Imported host memory: read in place, neither copied nor written, and kept alive while something refers to it."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable

import numpy as np

from orchestrion.hal.backend import Bytes
from orchestrion.hal.buffer import Buffer
from orchestrion.hal.errors import InvalidArgument
from orchestrion.hal.semaphore import Fence

from .case import Group
from .expect import raises
from .kernels import ADD, INCREMENT
from .rig import Rig, whole

case = Group("imports", __doc__, "import-host")


def aligned(rig: Rig, size: int) -> Bytes:
    """Host memory with the alignment that the device requires, `size` rounded up to it; contains 0, 1, 2 ..."""
    alignment = max(16, rig.device.info.limits.host_import_alignment)
    size = -(-size // alignment) * alignment
    padded = np.zeros(size + alignment, np.uint8)
    start = -padded.ctypes.data % alignment
    data = padded[start : start + size]
    data[:] = np.arange(size) % 251
    return data


def imported(rig: Rig, data: Bytes) -> Buffer:
    buffer = rig.device.allocator.import_host(data)
    assert buffer is not None
    return buffer


def copied(rig: Rig, source: Buffer) -> Buffer:
    """A new buffer with a copy of the content of `source`."""
    target = rig.zeros(source.size)
    rig.run(rig.copying(source.size), source, target)
    return target


@case
def read_in_place(rig: Rig) -> None:
    """Imported host memory is read in place, and never written."""
    alignment = max(1, rig.device.info.limits.host_import_alignment)
    padded = np.zeros(3 * alignment + 4096, np.uint8)
    start = -padded.ctypes.data % alignment
    data = padded[start : start + 2 * alignment + 2048 // alignment * alignment]
    data[:] = np.arange(data.size) % 251
    data.flags.writeable = False
    buffer = rig.device.allocator.import_host(data)
    assert buffer is not None
    rig.holds(buffer, data)
    target = rig.zeros(data.size)
    commands = rig.recording()
    commands.copy(buffer, 0, target, 0, data.size)
    with raises(InvalidArgument, match="lacks write access"):
        commands.fill(buffer, 0, 4, b"\0")
    commands.finish()
    rig.run(commands)
    rig.holds(target, data)
    with raises(InvalidArgument, match="lacks write access"):
        buffer.write(np.zeros(1, np.uint8))
    assert rig.device.statistics.imports == 1


@case
def source_of_copies(rig: Rig) -> None:
    """Any byte range of imported memory is copied from, direct and through a slot."""
    data = aligned(rig, 4096)
    source, target = imported(rig, data), rig.zeros(128)
    commands = rig.recording(1)
    commands.copy(source, 5, target, 3, 33)
    commands.copy(0, 63, target, 64, 64)
    commands.finish()
    rig.run(commands, source)
    want = np.zeros(128, np.uint8)
    want[3:36], want[64:128] = data[5:38], data[63:127]
    rig.holds(target, want)


@case.needing("dispatch")
def read_by_a_dispatch(rig: Rig) -> None:
    """A kernel reads imported memory, also at an offset."""
    data = aligned(rig, 4096 + rig.binding_step)
    words, step = data.view(np.uint32), rig.binding_step
    source, target = imported(rig, data), rig.zeros(256)
    commands = rig.recording(1)
    rig.dispatch(commands, ADD, [(source, 0, 256), (0, step, 256), whole(target)], 64, 1)
    commands.finish()
    rig.run(commands, source)
    rig.computed(target, words[:64] + words[step // 4 :][:64] + np.uint32(1))


@case
def change_by_the_host_is_seen(rig: Rig) -> None:
    """Memory is imported without a copy: the device sees what the host writes between two calls."""
    data = aligned(rig, 4096)
    source, target = imported(rig, data), rig.zeros(data.size)
    commands = rig.copying(data.size)
    for value in (1, 2, 3):
        data[:] = value
        rig.run(commands, source, target)
        rig.holds(target, np.full(data.size, value, np.uint8))


@case
def never_written(rig: Rig) -> None:
    """Fills, copies, writes and kernels into imported memory are refused, direct and through a slot."""
    data = aligned(rig, 4096)
    before = data.copy()
    source = imported(rig, data)
    commands = rig.recording(1)
    attempts: tuple[Callable[[], object], ...] = (
        lambda: commands.fill(source, 0, 16, b"\1"),
        lambda: commands.copy(0, 0, source, 0, 16),
        lambda: source.write(np.zeros(4, np.uint8)),
        lambda: rig.dispatch(commands, INCREMENT, [(source, 0, 64)], 16, 1),
        lambda: rig.run(rig.filling(0, 16, 1), source),
    )
    for attempt in attempts:
        with raises(InvalidArgument, match="write access"):
            attempt()
    np.testing.assert_array_equal(data, before)


@case
def kept_alive(rig: Rig) -> None:
    """The array lives as long as the buffer, and goes with it."""
    data = aligned(rig, 4096)
    owner, want = data.base, data.copy()
    assert isinstance(owner, np.ndarray)
    alive = weakref.ref(owner)
    buffer = imported(rig, data)
    del data, owner
    gc.collect()
    rig.holds(copied(rig, buffer), want)
    assert alive() is not None
    buffer.release()
    rig.device.queue.wait_idle()
    gc.collect()
    rig.soon(lambda: alive() is None, True)


@case
def released_while_in_flight(rig: Rig) -> None:
    """Work under way reads imported memory though the handle and the array's name are gone."""
    data = aligned(rig, 1 << 16)
    want = np.array(data)
    source, target = imported(rig, data), rig.zeros(data.size)
    gate, done = rig.device.create_semaphore(), rig.device.create_semaphore()
    commands = rig.copying(data.size)
    rig.device.queue.submit(commands, (source, target), Fence([(gate, 1)]), Fence([(done, 1)]))
    source.release()
    del data
    gc.collect()
    others = [np.full(want.size, 0xEE, np.uint8) for _ in range(4)]
    gate.signal(1)
    done.wait(1, rig.patience)
    rig.holds(target, want)
    del others


@case
def several_of_one_array(rig: Rig) -> None:
    """One array may be imported more than once, and in parts; each buffer reads its own range."""
    alignment = max(16, rig.device.info.limits.host_import_alignment)
    data = aligned(rig, 4 * alignment)
    first, again, part = imported(rig, data), imported(rig, data), imported(rig, data[alignment : 3 * alignment])
    for buffer, want in ((first, data), (again, data), (part, data[alignment : 3 * alignment])):
        rig.holds(copied(rig, buffer), want)
        rig.holds(buffer, want)
    first.release()
    rig.holds(copied(rig, again), data)


@case
def read_only_mapping(rig: Rig) -> None:
    """The mapping of imported memory, where there is one, cannot be written through."""
    data = aligned(rig, 4096)
    mapped = imported(rig, data).map()
    if mapped is not None:
        np.testing.assert_array_equal(mapped, data)
        assert not mapped.flags.writeable
    del mapped


@case
def not_aligned(rig: Rig) -> None:
    """Memory that is not aligned as the device asks is not imported, and nothing is counted; the caller copies."""
    alignment = rig.device.info.limits.host_import_alignment
    data = aligned(rig, 4096)
    if alignment > 1:
        assert rig.device.allocator.import_host(data[1:]) is None
    assert rig.device.allocator.import_host(data[:0]) is None
    with raises(InvalidArgument, match="not contiguous"):
        rig.device.allocator.import_host(data[::2])
    assert rig.device.statistics.imports == 0
    assert rig.device.leaks == ()


@case
def not_charged(rig: Rig) -> None:
    """Imported memory is the host's: it is counted as an import, and charged to no limit."""
    with rig.device.share(memory_limit=16) as device:
        buffer = imported(rig.on(device), aligned(rig, 1 << 16))
        assert device.allocator.live_bytes == 0
        assert (device.statistics.imports, device.statistics.allocations) == (1, 0)
        assert device.leaks == ("1 buffer",)
        buffer.release()
