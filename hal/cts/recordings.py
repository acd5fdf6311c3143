"""Recordings: submitted repeatedly, with the same and with other tables, from several threads."""

import threading

import numpy as np

from orchestrion.hal.command_buffer import CommandBuffer
from orchestrion.hal.semaphore import Fence

from .case import Group
from .kernels import ADD, INCREMENT, IOTA
from .rig import Rig, whole
from .threads import on_shares

case = Group("recordings", __doc__)


@case.needing("dispatch")
def replayed(rig: Rig) -> None:
    """One recording, ten calls: each runs it once."""
    buffer = rig.zeros(256)
    commands = rig.recording(1)
    rig.dispatch(commands, INCREMENT, [(0, 0, 256)], 64, 3)
    commands.finish()
    for _ in range(10):
        rig.run(commands, buffer)
    rig.computed(buffer, np.full(64, 30, np.uint32))


@case.needing("dispatch")
def changing_tables(rig: Rig) -> None:
    """Each submit uses its own table, and goes back to an earlier one."""
    inputs = [rig.random(64, seed) for seed in range(3)]
    sources = [rig.buffer(data) for data in inputs]
    targets = [rig.zeros(256) for _ in range(3)]
    commands = rig.recording(3)
    rig.dispatch(commands, ADD, [(0, 0, 256), (1, 0, 256), (2, 0, 256)], 64)
    commands.finish()
    for i, j, k in ((0, 1, 0), (1, 2, 1), (2, 2, 2), (0, 1, 2), (0, 1, 0), (2, 0, 1)):
        rig.run(commands, sources[i], sources[j], targets[k])
        rig.computed(targets[k], inputs[i] + inputs[j])


@case.needing("dispatch")
def interleaved(rig: Rig) -> None:
    """Recordings that share an executable do not share bindings or parameters."""
    step = max(128, rig.binding_step)
    first, second = rig.zeros(step + 128), rig.zeros(step + 128)
    recordings = []
    for value in (1, 10):
        commands = rig.recording(1)
        rig.dispatch(commands, INCREMENT, [(0, 0, 128)], 32, value)
        rig.dispatch(commands, IOTA, [(0, step, 64)], 16, value)
        commands.finish()
        recordings.append(commands)
    for _ in range(3):
        rig.run(recordings[0], first)
        rig.run(recordings[1], second)
    for buffer, value in ((first, 1), (second, 10)):
        want = np.zeros(step // 4 + 32, np.uint32)
        want[:32] = 3 * value
        want[step // 4 :][:16] = np.arange(16) + value
        rig.computed(buffer, want)


@case
def keeps_what_it_refers_to(rig: Rig) -> None:
    """Handles may be released once they are recorded."""
    data = rig.random(64)
    source, middle, target = rig.buffer(data), rig.zeros(256), rig.zeros(256)
    commands = rig.recording()
    commands.copy(source, 0, middle, 0, 256)
    commands.barrier()
    commands.copy(middle, 0, target, 0, 256)
    rig.dispatch(commands, INCREMENT, [whole(rig.zeros(256))], 64, 1)
    commands.finish()
    source.release()
    middle.release()
    others = [rig.zeros(256) for _ in range(4)]
    for _ in range(2):
        rig.run(commands)
    rig.holds(target, data)
    for other in others:
        rig.holds(other, np.zeros(64, np.uint32))


@case.needing("dispatch")
def shared_by_threads(rig: Rig) -> None:
    """Threads with a share each run recordings of the same executable at the same time."""
    on_shares(rig, _count_to_fifty)


def _count_to_fifty(rig: Rig, number: int) -> None:
    buffer = rig.zeros(256)
    commands = rig.recording(1)
    rig.dispatch(commands, INCREMENT, [(0, 0, 256)], 64, number)
    commands.finish()
    for _ in range(50):
        rig.run(commands, buffer)
    rig.computed(buffer, np.full(64, 50 * number, np.uint32))
    assert rig.device.statistics.submissions == 50
    buffer.release()
    commands.release()


@case
def empty(rig: Rig) -> None:
    """A recording without commands runs, with slots that nothing uses."""
    nothing, slots = rig.recording(), rig.recording(2)
    nothing.finish()
    slots.finish()
    buffer = rig.buffer(rig.words(1, 2))
    for _ in range(2):
        rig.run(nothing)
        rig.run(slots, buffer, rig.zeros(0))
    rig.holds(buffer, rig.words(1, 2))
    assert rig.device.statistics.submissions == 4


@case
def unused_slots(rig: Rig) -> None:
    """Slots that no command uses take any buffer; those around them are found by their numbers."""
    commands = rig.recording(5)
    commands.copy(3, 0, 1, 0, 16)
    commands.finish()
    data, target, none = rig.random(4), rig.zeros(16), rig.zeros(0)
    rig.run(commands, none, target, none, rig.buffer(data), none)
    rig.holds(target, data)


@case
def many_slots(rig: Rig) -> None:
    """64 slots, each with its own buffer, in another order than they are used."""
    count = 64
    commands = rig.recording(count)
    for slot in range(0, count, 2):
        commands.copy((slot + 10) % count, 0, (slot + 11) % count, 0, 16)
    commands.finish()
    data = [rig.random(4, seed) for seed in range(count)]
    buffers = [rig.buffer(words) for words in data]
    rig.run(commands, *buffers)
    for slot in range(count):
        rig.holds(buffers[slot], data[slot - slot % 2])


@case
def one_buffer_in_many_slots(rig: Rig) -> None:
    """A table may put one buffer into several slots, of which different ranges are used."""
    commands = rig.recording(4)
    for slot in range(4):
        commands.fill(slot, 16 * slot, 16, bytes([slot + 1]))
    commands.finish()
    buffer = rig.zeros(64)
    rig.run(commands, *[buffer] * 4)
    rig.holds(buffer, np.repeat(np.arange(1, 5, dtype=np.uint8), 16))


@case
def larger_buffers_than_needed(rig: Rig) -> None:
    """The buffers of a table may be larger than the recording needs, and of other sizes at each submission."""
    commands = rig.recording(2)
    commands.copy(0, 4, 1, 8, 16)
    commands.finish()
    for size in (24, 25, 64, 4097, 24):
        data = rig.bytes(size, size)
        target = rig.zeros(size)
        rig.run(commands, rig.buffer(data), target)
        want = np.zeros(size, np.uint8)
        want[8:24] = data[4:20]
        rig.holds(target, want)


@case
def tables_come_back(rig: Rig) -> None:
    """30 tables in turn, three times around: each submission uses its own."""
    commands = rig.copying(64)
    data = [rig.random(16, seed) for seed in range(30)]
    sources, target = [rig.buffer(words) for words in data], rig.zeros(64)
    for _ in range(3):
        for source, words in zip(sources, data, strict=True):
            rig.run(commands, source, target)
            rig.holds(target, words)


@case
def table_of_another_order(rig: Rig) -> None:
    """The same buffers in other slots are another table."""
    data = [rig.random(16, seed) for seed in range(3)]
    commands = rig.copying(64)
    for source, target in ((0, 1), (1, 0), (0, 2), (2, 0), (1, 2), (2, 1)):
        buffers = [rig.buffer(words) for words in data]
        for _ in range(2):
            rig.run(commands, buffers[source], buffers[target])
        for place, buffer in enumerate(buffers):
            rig.holds(buffer, data[source if place == target else place])


@case
def new_buffer_at_the_place_of_an_old_one(rig: Rig) -> None:
    """A buffer that takes the memory of a released one is a new entry of a table."""
    commands = rig.copying(4096)
    for value in range(20):
        source, target = rig.buffer(np.full(4096, value, np.uint8)), rig.zeros(4096)
        rig.run(commands, source, target)
        rig.holds(target, np.full(4096, value, np.uint8))
        source.release()
        target.release()


@case
def many_commands(rig: Rig) -> None:
    """3000 fills in one recording all take place."""
    buffer, want = rig.zeros(3000), np.zeros(3000, np.uint8)
    commands = rig.recording(1)
    for place in range(3000):
        commands.fill(0, place, 1, bytes([place % 255 + 1]))
        want[place] = place % 255 + 1
    commands.finish()
    rig.run(commands, buffer)
    rig.holds(buffer, want)


@case
def many_recordings(rig: Rig) -> None:
    """200 recordings live at one time, and each does what was recorded into it."""
    buffer = rig.zeros(200)
    made = []
    for place in range(200):
        commands = rig.recording(1)
        commands.fill(0, place, 1, bytes([place]))
        commands.finish()
        made.append(commands)
    for place in (*range(0, 200, 2), *range(199, 0, -2)):
        rig.run(made[place], buffer)
    rig.holds(buffer, np.arange(200, dtype=np.uint8))


@case
def recorded_while_others_run(rig: Rig) -> None:
    """Recording goes on while submitted work waits, and does not wait for it."""
    gate, done, buffer = rig.device.create_semaphore(), rig.device.create_semaphore(), rig.zeros(64)
    rig.device.queue.submit(rig.filling(0, 64, 1), (buffer,), Fence([(gate, 1)]), Fence([(done, 1)]))
    second = rig.recording(1)
    second.fill(0, 0, 32, b"\2")
    second.finish()
    assert done.value == 0
    rig.device.queue.submit(second, (buffer,), None, Fence([(done, 2)]))
    gate.signal(1)
    done.wait(2, rig.patience)
    rig.holds(buffer, np.repeat(np.array([2, 1], np.uint8), 32))


@case
def several_recorded_at_once(rig: Rig) -> None:
    """Two recordings are made at one time, command by command in turn, and do not mix."""
    first, second = rig.recording(1), rig.recording(1)
    for place in range(0, 64, 8):
        first.fill(0, place, 4, b"\1")
        second.fill(0, place + 4, 4, b"\2")
    first.finish()
    second.finish()
    a, b = rig.zeros(64), rig.zeros(64)
    rig.run(first, a)
    rig.run(second, b)
    rig.holds(a, np.tile(np.array([1] * 4 + [0] * 4, np.uint8), 8))
    rig.holds(b, np.tile(np.array([0] * 4 + [2] * 4, np.uint8), 8))


@case
def recorded_in_another_thread(rig: Rig) -> None:
    """A recording may be made in one thread and run in another."""
    made: list[CommandBuffer] = []
    thread = threading.Thread(target=lambda: made.append(rig.filling(0, 64, 9)))
    thread.start()
    thread.join()
    buffer = rig.zeros(64)
    rig.run(made.pop(), buffer)
    rig.holds(buffer, np.full(64, 9, np.uint8))


@case
def abandoned_in_the_middle(rig: Rig) -> None:
    """A recording that is released before it is finished leaves nothing behind, and nothing is run."""
    buffer = rig.buffer(rig.words(1, 2))
    for _ in range(20):
        commands = rig.recording(1)
        commands.fill(buffer, 0, 8, b"\0")
        commands.copy(0, 0, buffer, 0, 4)
        commands.release()
    rig.holds(buffer, rig.words(1, 2))
    assert rig.device.leaks == ("1 buffer",)
    rig.soon(lambda: rig.device.allocator.live_bytes, 16)


@case
def direct_and_slots_in_one_copy(rig: Rig) -> None:
    """A copy goes from a buffer to a slot, and from a slot to a buffer."""
    data, held = rig.random(16), rig.zeros(64)
    source = rig.buffer(data)
    commands = rig.recording(2)
    commands.copy(source, 0, 0, 0, 64)
    commands.barrier()
    commands.copy(0, 0, held, 0, 32)
    commands.copy(1, 0, held, 32, 32)
    commands.finish()
    for seed in (1, 2):
        target, other = rig.zeros(64), rig.random(8, seed)
        rig.run(commands, target, rig.buffer(other))
        rig.holds(target, data)
        rig.holds(held, np.concatenate([data[:8], other]))


@case.needing("dispatch")
def other_tables_while_in_flight(rig: Rig) -> None:
    """One recording is submitted with five tables, none of which is over: each uses its own."""
    buffers = [rig.buffer(np.full(64, value, np.uint32)) for value in range(5)]
    commands = rig.recording(1)
    rig.dispatch(commands, INCREMENT, [(0, 0, 256)], 64, 10)
    commands.finish()
    gate, done = rig.device.create_semaphore(), rig.device.create_semaphore()
    for number, buffer in enumerate(buffers, 1):
        wait = Fence([(gate, 1)]) if number == 1 else None
        rig.device.queue.submit(commands, (buffer,), wait, Fence([(done, number)]))
    assert done.value == 0
    gate.signal(1)
    done.wait(5, rig.patience)
    for value, buffer in enumerate(buffers):
        rig.computed(buffer, np.full(64, value + 10, np.uint32))
