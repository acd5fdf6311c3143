"""Batches: several recordings in one submission, in order, the same one again and again, with any tables."""

import numpy as np

from orchestrion.hal.command_buffer import CommandBuffer
from orchestrion.hal.errors import InvalidArgument
from orchestrion.hal.semaphore import Fence

from .case import Group
from .kernels import ADD, INCREMENT
from .rig import Rig

case = Group("batches", __doc__)


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
