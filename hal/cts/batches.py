"""Batches: several recordings in one submission, in order, including repetitions, with any tables."""

import time

import numpy as np

from orchestrion.hal.command_buffer import CommandBuffer
from orchestrion.hal.errors import InvalidArgument
from orchestrion.hal.semaphore import Fence

from .case import Group
from .kernels import ADD, INCREMENT
from .rig import Rig

case = Group("batches", __doc__)

#: seconds in which nothing may happen
MOMENT = 0.02


def _increment(rig: Rig, value: int = 1) -> CommandBuffer:
    commands = rig.recording(1)
    rig.dispatch(commands, INCREMENT, [(0, 0, 256)], 64, value)
    commands.finish()
    return commands


def _next(rig: Rig) -> CommandBuffer:
    """slot 1 = slot 0 + 1"""
    commands = rig.recording(2)
    commands.copy(0, 0, 1, 0, 256)
    commands.barrier()
    rig.dispatch(commands, INCREMENT, [(1, 0, 256)], 64, 1)
    commands.finish()
    return commands


def _fill(rig: Rig) -> CommandBuffer:
    commands = rig.recording(1)
    commands.fill(0, 0, 256, b"\7\0\0\0")
    commands.finish()
    return commands


@case.needing("dispatch")
def in_order(rig: Rig) -> None:
    """Each recording sees what those before it wrote."""
    a, b, c = (rig.zeros(256) for _ in range(3))
    add = rig.recording(3)
    rig.dispatch(add, ADD, [(0, 0, 256), (1, 0, 256), (2, 0, 256)], 64)
    add.finish()
    batch = [(_fill(rig), (a,)), (_next(rig), (a, b)), (add, (a, b, c)), (_next(rig), (c, a))]
    for _ in range(2):
        rig.device.queue.execute_batch(batch)
        rig.computed(c, np.full(64, 15, np.uint32))
        rig.computed(a, np.full(64, 16, np.uint32))


@case.needing("dispatch")
def one_recording_again_and_again(rig: Rig) -> None:
    """A batch may hold one recording several times, with the same and with other tables."""
    buffer, other, commands = rig.zeros(256), rig.zeros(256), _increment(rig)
    rig.device.queue.execute_batch([(commands, (buffer,))] * 5)
    rig.run(commands, buffer)
    rig.device.queue.execute_batch([(commands, (buffer,)), (commands, (other,)), (commands, (buffer,))])
    rig.computed(buffer, np.full(64, 8, np.uint32))
    rig.computed(other, np.full(64, 1, np.uint32))


@case.needing("dispatch")
def states_that_swap(rig: Rig) -> None:
    """A loop: what one recording wrote the next one reads, in two buffers that change places."""
    a, b, step = rig.zeros(256), rig.zeros(256), _next(rig)
    for _ in range(3):
        rig.device.queue.execute_batch([(step, (a, b)), (step, (b, a))] * 10)
    rig.computed(a, np.full(64, 60, np.uint32))
    rig.computed(b, np.full(64, 59, np.uint32))


@case.needing("dispatch")
def many_tables(rig: Rig) -> None:
    """More tables in one submission than a driver may want to keep prepared."""
    buffers, commands = [rig.zeros(256) for _ in range(40)], _increment(rig)
    for _ in range(2):
        rig.device.queue.execute_batch([(commands, (buffer,)) for buffer in buffers])
    rig.run(commands, buffers[0])
    for place, buffer in enumerate(buffers):
        rig.computed(buffer, np.full(64, 3 if place == 0 else 2, np.uint32))


@case
def counted_as_one(rig: Rig) -> None:
    """A batch counts as one submission and one wait; its dispatches and bytes count one by one."""
    buffer, fill, increment = rig.zeros(256), _fill(rig), _increment(rig)
    before = rig.device.statistics.snapshot()
    rig.device.queue.execute_batch([(fill, (buffer,)), (increment, (buffer,)), (increment, (buffer,))])
    counted = rig.device.statistics.since(before)
    assert (counted["submissions"], counted["waits"]) == (1, 1)
    assert (counted["dispatches"], counted["bytes_copied"]) == (2, 256)


@case.needing("dispatch")
def submitted(rig: Rig) -> None:
    """Between fences; the recordings may be submitted again before that is over, and their handles released."""
    buffer, increment, done = rig.zeros(256), _increment(rig), rig.device.create_semaphore()
    gate = rig.device.create_semaphore()
    queue = rig.device.queue
    queue.submit_batch([(increment, (buffer,))] * 3, Fence([(gate, 1)]), Fence([(done, 1)]))
    queue.submit_batch([(increment, (buffer,)), (increment, (buffer,))], None, Fence([(done, 2)]))
    assert done.value == 0
    assert rig.device.statistics.submissions == 2
    increment.release()
    gate.signal(1)
    done.wait(2, 10.0)
    rig.computed(buffer, np.full(64, 5, np.uint32))


@case
def refused_as_a_whole(rig: Rig) -> None:
    """When one of a batch cannot be, none is run."""
    buffer, fill = rig.zeros(256), _fill(rig)
    released = _fill(rig)
    released.release()
    wrong = {
        "0 buffers for a command buffer with 1 slots": (fill, ()),
        "command buffer is recording": (rig.recording(), ()),
        "command buffer is released": (released, ()),
        "buffer of 16 bytes, the recording needs 256": (fill, (rig.zeros(16),)),
    }
    for message, work in wrong.items():
        for act in (rig.device.queue.execute_batch, rig.device.queue.submit_batch):
            try:
                act([(fill, (buffer,)), work])
            except InvalidArgument as refused:
                assert message in str(refused), refused
            else:
                raise AssertionError(f"not refused: {message}")
    rig.holds(buffer, np.zeros(64, np.uint32))
    try:
        rig.device.queue.execute_batch([])
    except InvalidArgument:
        return
    raise AssertionError("an empty batch was executed")


@case
def fills_in_order(rig: Rig) -> None:
    """Of fills of one range by recordings of a batch, the last one stays."""
    buffer = rig.zeros(1 << 16)
    fills = [rig.filling(0, 1 << 16, value) for value in range(1, 8)]
    for order in (range(7), range(6, -1, -1), (3, 0, 6, 2)):
        rig.device.queue.execute_batch([(fills[place], (buffer,)) for place in order])
        rig.holds(buffer, np.full(1 << 16, [*order][-1] + 1, np.uint8))


@case
def copies_in_order(rig: Rig) -> None:
    """Each recording of a batch reads what the one before wrote: a value goes through eight buffers."""
    data = rig.random(1 << 12)
    chain = [rig.buffer(data), *(rig.zeros(1 << 14) for _ in range(8))]
    commands = rig.copying(1 << 14)
    rig.device.queue.execute_batch([(commands, pair) for pair in zip(chain, chain[1:], strict=False)])
    rig.holds(chain[-1], data)


@case
def read_before_it_is_overwritten(rig: Rig) -> None:
    """A recording of a batch overwrites a range only after the one before read it."""
    data = rig.random(1 << 14)
    for _ in range(4):
        source, target = rig.buffer(data), rig.zeros(1 << 16)
        copy, fill = rig.copying(1 << 16), rig.filling(0, 1 << 16, 1)
        rig.device.queue.execute_batch([(copy, (source, target)), (fill, (source,))])
        rig.holds(target, data)
        rig.holds(source, np.full(1 << 16, 1, np.uint8))


@case.needing("dispatch")
def dispatches_and_transfers(rig: Rig) -> None:
    """A batch of a fill, a dispatch and a copy, each in its own recording, is ordered as if barriers stood between."""
    a, b = rig.zeros(1 << 16), rig.zeros(1 << 16)
    fill, copy = rig.recording(1), rig.copying(1 << 16)
    fill.fill(0, 0, 1 << 16, b"\5\0\0\0")
    fill.finish()
    add = rig.recording(1)
    rig.dispatch(add, INCREMENT, [(0, 0, 1 << 16)], 1 << 14, 2)
    add.finish()
    batch = [(fill, (a,)), (add, (a,)), (copy, (a, b)), (fill, (a,)), (add, (b,))]
    for act in (rig.device.queue.execute_batch, rig.device.queue.submit_batch):
        act(batch)
        rig.device.queue.wait_idle()
        rig.computed(b, np.full(1 << 14, 9, np.uint32))
        rig.holds(a, np.full(1 << 14, 5, np.uint32))


@case
def long_batch(rig: Rig) -> None:
    """300 recordings in one submission."""
    buffer = rig.zeros(300)
    made = []
    for place in range(300):
        commands = rig.recording(1)
        commands.fill(0, place, 1, bytes([place % 250 + 1]))
        commands.finish()
        made.append((commands, (buffer,)))
    rig.device.queue.execute_batch(made)
    rig.holds(buffer, (np.arange(300) % 250 + 1).astype(np.uint8))


@case
def empty_recordings_between(rig: Rig) -> None:
    """A recording of nothing may stand anywhere in a batch, also alone."""
    nothing, buffer = rig.recording(), rig.zeros(64)
    nothing.finish()
    fill = rig.filling(0, 64, 3)
    rig.device.queue.execute_batch([(nothing, ())])
    rig.device.queue.execute_batch([(nothing, ()), (fill, (buffer,)), (nothing, ())])
    rig.holds(buffer, np.full(64, 3, np.uint8))


@case
def direct_and_slots(rig: Rig) -> None:
    """Recordings of a batch that refer to buffers directly and through slots meet in one buffer."""
    buffer, other = rig.zeros(64), rig.zeros(64)
    direct = rig.recording(1)
    direct.copy(buffer, 0, 0, 0, 64)
    direct.finish()
    fill = rig.filling(0, 64, 4)
    rig.device.queue.execute_batch([(fill, (buffer,)), (direct, (other,)), (rig.filling(buffer, 32, 5), ())])
    rig.holds(other, np.full(64, 4, np.uint8))
    rig.holds(buffer, np.repeat(np.array([5, 4], np.uint8), 32))


@case
def waits_and_signals_as_a_whole(rig: Rig) -> None:
    """Nothing of a batch runs before its fence is reached, and its signal comes behind all of it."""
    gate, done = rig.device.create_semaphore(), rig.device.create_semaphore()
    buffers = [rig.zeros(1 << 16) for _ in range(4)]
    fill = rig.filling(0, 1 << 16, 6)
    rig.device.queue.submit_batch([(fill, (one,)) for one in buffers], Fence([(gate, 1)]), Fence([(done, 1)]))
    time.sleep(MOMENT)
    assert done.value == 0
    gate.signal(1)
    done.wait(1, rig.patience)
    for buffer in buffers:
        rig.holds(buffer, np.full(1 << 16, 6, np.uint8))


@case
def released_while_in_flight(rig: Rig) -> None:
    """What a submitted batch uses lives until it is over."""
    gate, done, data = rig.device.create_semaphore(), rig.device.create_semaphore(), rig.random(64)
    source, middle, target = rig.buffer(data), rig.zeros(256), rig.zeros(256)
    commands = rig.copying(256)
    batch = [(commands, (source, middle)), (commands, (middle, target))]
    rig.device.queue.submit_batch(batch, Fence([(gate, 1)]), Fence([(done, 1)]))
    for handle in (source, middle, commands):
        handle.release()
    others = [rig.fresh(256) for _ in range(6)]
    gate.signal(1)
    done.wait(1, rig.patience)
    rig.holds(target, data)
    for other in others:
        rig.holds(other, np.zeros(64, np.uint32))
