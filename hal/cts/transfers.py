"""Copies and fills: any byte range, and nothing outside of it."""

from collections.abc import Callable

import numpy as np

from .case import Group
from .rig import Bound, Rig

case = Group("transfers", __doc__)

RANGES = ((0, 0, 64), (0, 1, 1), (1, 0, 3), (3, 5, 7), (7, 2, 32), (63, 0, 1), (16, 32, 16))


@case
def copied_ranges(rig: Rig) -> None:
    """Any source offset, target offset and length, in bytes."""
    source = rig.buffer(np.arange(64, dtype=np.uint8))
    for source_offset, target_offset, length in RANGES:
        target = rig.zeros(64)
        commands = rig.recording()
        commands.copy(source, source_offset, target, target_offset, length)
        commands.finish()
        rig.run(commands)
        want = np.zeros(64, np.uint8)
        want[target_offset : target_offset + length] = np.arange(source_offset, source_offset + length)
        rig.holds(target, want)


@case
def copied_within_a_buffer(rig: Rig) -> None:
    """Ranges of one buffer that touch but do not overlap."""
    buffer = rig.buffer(np.arange(64, dtype=np.uint8))
    commands = rig.recording()
    commands.copy(buffer, 0, buffer, 32, 32)
    commands.finish()
    rig.run(commands)
    rig.holds(buffer, np.concatenate([np.arange(32), np.arange(32)]).astype(np.uint8))


@case
def copied_onto_itself(rig: Rig) -> None:
    """Not a copy at all, whether it is known while recording or comes of the table."""
    data = rig.random(16)
    buffer, other = rig.buffer(data), rig.zeros(64)
    commands = rig.recording(2)
    commands.copy(buffer, 0, buffer, 0, 64)
    commands.copy(0, 4, 1, 4, 32)
    commands.barrier()
    commands.copy(0, 0, 0, 0, 64)
    commands.copy(0, 40, 1, 40, 8)
    commands.finish()
    for _ in range(2):
        rig.run(commands, buffer, buffer)
        rig.holds(buffer, data)
    rig.run(commands, buffer, other)
    want = np.zeros(16, np.uint32)
    want[1:9], want[10:12] = data[1:9], data[10:12]
    rig.holds(other, want)


@case
def copied_between_slots(rig: Rig) -> None:
    """A copy between slots takes the buffers of each submission."""
    commands = rig.recording(2)
    commands.copy(0, 4, 1, 8, 16)
    commands.finish()
    for seed in range(3):
        data = rig.random(8, seed)
        target = rig.zeros(32)
        rig.run(commands, rig.buffer(data), target)
        rig.holds(target, np.concatenate([rig.words(0, 0), data[1:5], rig.words(0, 0)]))


@case
def large_copy(rig: Rig) -> None:
    """A copy of 3 MiB arrives whole."""
    data = rig.random(3 << 18)
    target = rig.zeros(data.nbytes)
    commands = rig.recording(1)
    commands.copy(0, 0, target, 0, data.nbytes)
    commands.finish()
    rig.run(commands, rig.buffer(data))
    rig.holds(target, data)


@case
def filled_ranges(rig: Rig) -> None:
    """Patterns of each size, at offsets and lengths that are multiples of it."""
    for size in (1, 2, 4, 8):
        pattern = bytes(range(0x91, 0x91 + size))
        for offset, length in ((0, 64), (size, size), (3 * size, 2 * size), (64 - size, size), (5 * size, 0)):
            want = np.arange(64, dtype=np.uint8)
            buffer = rig.buffer(want)
            commands = rig.recording()
            commands.fill(buffer, offset, length, pattern)
            commands.finish()
            rig.run(commands)
            want[offset : offset + length] = np.frombuffer(pattern * (length // size), np.uint8)
            rig.holds(buffer, want)


@case
def filled_odd_sizes(rig: Rig) -> None:
    """A byte pattern at any offset and of any length, also where no word is whole."""
    for offset, length in ((1, 1), (1, 2), (3, 2), (2, 5), (1, 62), (5, 59)):
        want = np.zeros(64, np.uint8)
        buffer = rig.buffer(want)
        commands = rig.recording()
        commands.fill(buffer, offset, length, b"\xab")
        commands.finish()
        rig.run(commands)
        want[offset : offset + length] = 0xAB
        rig.holds(buffer, want)


@case
def filled_slot(rig: Rig) -> None:
    """A fill of a slot fills the buffer of each submission."""
    commands = rig.recording(1)
    commands.fill(0, 4, 8, b"\x01\x02\x03\x04")
    commands.finish()
    buffers = [rig.zeros(16) for _ in range(3)]
    for buffer in buffers:
        rig.run(commands, buffer)
    for buffer in buffers:
        rig.holds(buffer, rig.words(0, 0x04030201, 0x04030201, 0))


@case
def ordered_by_barriers(rig: Rig) -> None:
    """Each step sees what the one before the barrier wrote."""
    first, second = rig.zeros(4096), rig.zeros(4096)
    commands = rig.recording()
    commands.fill(first, 0, 4096, b"\x01")
    commands.barrier()
    commands.copy(first, 0, second, 0, 2048)
    commands.barrier()
    commands.fill(first, 0, 4096, b"\x02")
    commands.barrier()
    commands.copy(first, 0, second, 2048, 2048)
    commands.finish()
    rig.run(commands)
    rig.holds(second, np.repeat(np.array([1, 2], np.uint8), 2048))


@case
def nothing(rig: Rig) -> None:
    """Copies and fills of no bytes, also at the very end, and a recording of nothing."""
    buffer = rig.buffer(np.arange(16, dtype=np.uint8))
    commands = rig.recording(1)
    commands.copy(buffer, 16, 0, 0, 0)
    commands.fill(buffer, 16, 0, b"\x01")
    commands.barrier()
    commands.finish()
    rig.run(commands, rig.zeros(0))
    rig.holds(buffer, np.arange(16, dtype=np.uint8))
    assert rig.device.statistics.bytes_copied == 0


#: lengths of copies: within a word, a word, several words, and around a vector of 32 bytes
LENGTHS = (1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33)


@case.direct_and_slots()
def copied_at_every_alignment(rig: Rig, bound: type[Bound]) -> None:
    """Copies of 1 to 33 bytes from and to every place of a word, in one recording, touch their ranges alone."""
    data = rig.bytes(256)
    places = [(source, target, length) for source in range(8) for target in range(8) for length in LENGTHS]
    want = np.full(48 * len(places), 0x11, np.uint8)
    buffers = bound(rig, rig.buffer(data), rig.buffer(want))
    source, target = buffers.sources
    commands = buffers.recording()
    for number, (from_offset, to_offset, length) in enumerate(places):
        start = 48 * number + to_offset
        commands.copy(source, 64 + from_offset, target, start, length)
        want[start : start + length] = data[64 + from_offset :][:length]
    buffers.run(commands)
    rig.holds(buffers.buffers[1], want)
    rig.holds(buffers.buffers[0], data)


def _fill(size: int) -> Callable[[Rig, type[Bound]], None]:
    def fill(rig: Rig, bound: type[Bound]) -> None:
        pattern = bytes(range(0xA1, 0xA1 + size))
        ranges = [(offset * size, count * size) for offset in range(9) for count in (1, 2, 3, 4, 5, 7, 8, 9, 16, 17)]
        room = 32 * size
        want = np.full(room * len(ranges), 0x33, np.uint8)
        buffers = bound(rig, rig.buffer(want))
        (target,) = buffers.sources
        commands = buffers.recording()
        for number, (offset, length) in enumerate(ranges):
            start = room * number + offset
            commands.fill(target, start, length, pattern)
            want[start : start + length] = np.frombuffer(pattern * (length // size), np.uint8)
        buffers.run(commands)
        rig.holds(buffers.buffers[0], want)

    return fill


for _size in (1, 2, 4, 8):
    case.add_both(
        f"filled_with_{_size}_byte{'s' if _size > 1 else ''}",
        _fill(_size),
        f"A pattern of {_size} bytes, all different, at every offset and length that are multiples of it, keeps to its "
        "range.",
    )


@case.direct_and_slots()
def copied_whole(rig: Rig, bound: type[Bound]) -> None:
    """Whole buffers of any size are copied, the last byte included."""
    for size in (1, 2, 3, 5, 15, 16, 17, 63, 64, 65, 1023, 1025, 65537):
        data = rig.bytes(size, size)
        buffers = bound(rig, rig.buffer(data), rig.zeros(size))
        source, target = buffers.sources
        commands = buffers.recording()
        commands.copy(source, 0, target, 0, size)
        buffers.run(commands)
        rig.holds(buffers.buffers[1], data)


@case.direct_and_slots()
def filled_whole(rig: Rig, bound: type[Bound]) -> None:
    """Whole buffers of any size are filled with a byte, and nothing of a neighbour."""
    for size in (1, 2, 3, 5, 15, 16, 17, 63, 65, 1023, 1025, 65537):
        buffers = bound(rig, rig.zeros(size), rig.zeros(size))
        target, _ = buffers.sources
        commands = buffers.recording()
        commands.fill(target, 0, size, b"\x9c")
        buffers.run(commands)
        rig.holds(buffers.buffers[0], np.full(size, 0x9C, np.uint8))
        rig.holds(buffers.buffers[1], np.zeros(size, np.uint8))


@case
def large_fills(rig: Rig) -> None:
    """Fills of more than 64 KiB with patterns of each size, whose ends are no multiple of 16."""
    for size in (1, 2, 4, 8):
        pattern = bytes(range(0x21, 0x21 + size))
        count = (200_000 // size) + 1
        buffer = rig.zeros(size * (count + 2))
        commands = rig.recording()
        commands.fill(buffer, size, size * count, pattern)
        commands.finish()
        rig.run(commands)
        rig.holds(buffer, np.frombuffer(bytes(size) + pattern * count + bytes(size), np.uint8))


@case
def pattern_of_equal_parts(rig: Rig) -> None:
    """Patterns that are repetitions of a smaller one, zeros and ones fill like any other."""
    for pattern in (b"\0", b"\xff\xff", b"\x07" * 4, b"\x01\x02" * 2, b"\xff" * 8, b"\x01\x02\x03\x04" * 2, bytes(8)):
        buffer = rig.buffer(np.full(128, 0x5B, np.uint8))
        commands = rig.recording()
        commands.fill(buffer, 8, 96, pattern)
        commands.finish()
        rig.run(commands)
        want = np.full(128, 0x5B, np.uint8)
        want[8:104] = np.frombuffer(pattern * (96 // len(pattern)), np.uint8)
        rig.holds(buffer, want)


@case
def large_copy_at_odd_offsets(rig: Rig) -> None:
    """A copy of more than a MiB from an odd offset to another one."""
    data = rig.bytes((1 << 20) + 77)
    source, target = rig.buffer(data), rig.zeros(data.size + 100)
    commands = rig.recording(1)
    commands.copy(0, 3, target, 29, data.size - 10)
    commands.finish()
    rig.run(commands, source)
    want = np.zeros(data.size + 100, np.uint8)
    want[29 : 29 + data.size - 10] = data[3 : data.size - 7]
    rig.holds(target, want)


@case
def halves_change_places(rig: Rig) -> None:
    """Three copies through another buffer exchange the halves of one."""
    data = rig.bytes(2000)
    buffer, other = rig.buffer(data), rig.zeros(1000)
    commands = rig.recording()
    commands.copy(buffer, 0, other, 0, 1000)
    commands.barrier()
    commands.copy(buffer, 1000, buffer, 0, 1000)
    commands.barrier()
    commands.copy(other, 0, buffer, 1000, 1000)
    commands.finish()
    for _ in range(3):
        rig.run(commands)
    rig.holds(buffer, np.concatenate([data[1000:], data[:1000]]))


@case
def scattered_and_gathered(rig: Rig) -> None:
    """A thousand copies of 4 bytes turn the words of a buffer around."""
    data = rig.random(1000)
    source, target = rig.buffer(data), rig.zeros(4000)
    commands = rig.recording(2)
    for place in range(1000):
        commands.copy(0, 4 * place, 1, 4 * (999 - place), 4)
    commands.finish()
    rig.run(commands, source, target)
    rig.holds(target, data[::-1].copy())


@case
def one_source_to_many_targets(rig: Rig) -> None:
    """Copies of one range into many buffers need no barrier between them."""
    data = rig.random(64)
    source, targets = rig.buffer(data), [rig.zeros(256) for _ in range(20)]
    commands = rig.recording()
    for target in targets:
        commands.copy(source, 0, target, 0, 256)
    commands.finish()
    rig.run(commands)
    for target in targets:
        rig.holds(target, data)
