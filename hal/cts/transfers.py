"""Copies and fills: any byte range, nothing around it touched."""

import numpy as np

from .case import Group
from .rig import Rig

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
