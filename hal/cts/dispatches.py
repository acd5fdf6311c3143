"""Dispatches: bindings direct and through slots, offsets, parameters, grids of any size."""

import numpy as np

from .case import Group
from .kernels import ADD, INCREMENT, IOTA
from .rig import Rig, whole

case = Group("dispatches", __doc__)

#: more workgroups than most devices take in one dimension, where a device states no limit
MANY = 70_000


@case.needing("dispatch")
def direct_bindings(rig: Rig) -> None:
    """An entry with three bindings computes the right sum at sizes around a workgroup."""
    for n in (1, 63, 64, 65, 1000):
        a, b = rig.random(n, 1), rig.random(n, 2)
        c = rig.zeros(4 * n)
        commands = rig.recording()
        rig.dispatch(commands, ADD, [whole(rig.buffer(a)), whole(rig.buffer(b)), whole(c)], n, 5)
        commands.finish()
        rig.run(commands)
        rig.computed(c, a + b + np.uint32(5))


@case.needing("dispatch")
def slots(rig: Rig) -> None:
    """A slot is bound by its number, whatever the order of the bindings."""
    a, b = rig.random(100, 1), rig.random(100, 2)
    c = rig.zeros(400)
    commands = rig.recording(3)
    rig.dispatch(commands, ADD, [(2, 0, 400), (0, 0, 400), (1, 0, 400)], 100)
    commands.finish()
    rig.run(commands, rig.buffer(b), c, rig.buffer(a))
    rig.computed(c, a + b)


@case.needing("dispatch")
def slots_and_buffers_mixed(rig: Rig) -> None:
    """A buffer that is bound directly beside slots, and one slot bound twice."""
    a, b = rig.random(100, 1), rig.random(100, 2)
    held, c, d = rig.buffer(b), rig.zeros(400), rig.zeros(400)
    commands = rig.recording(2)
    rig.dispatch(commands, ADD, [(0, 0, 400), whole(held), (1, 0, 400)], 100)
    rig.dispatch(commands, ADD, [(0, 0, 400), (0, 0, 400), whole(d)], 100)
    commands.finish()
    rig.run(commands, rig.buffer(a), c)
    rig.computed(c, a + b)
    rig.computed(d, a + a)


@case.needing("dispatch")
def offsets(rig: Rig) -> None:
    """Bindings at offsets, direct and through slots; a binding starts at its offset."""
    step = rig.device.info.limits.min_binding_alignment
    step = -(-step // 4) * 4
    words = step // 4
    data = rig.random(4 * words + 8)
    source, target = rig.buffer(data), rig.zeros(data.nbytes)
    commands = rig.recording(1)
    rig.dispatch(commands, ADD, [(source, step, 32), (0, 2 * step, 32), (target, 3 * step, 32)], 8)
    commands.finish()
    rig.run(commands, source)
    want = np.zeros_like(data)
    want[3 * words : 3 * words + 8] = data[words : words + 8] + data[2 * words : 2 * words + 8]
    rig.computed(target, want)


@case.needing("dispatch")
def parameters(rig: Rig) -> None:
    """Each dispatch of a recording has its own parameters."""
    buffers = [rig.zeros(40) for _ in range(4)]
    commands = rig.recording()
    for value, buffer in enumerate(buffers):
        rig.dispatch(commands, IOTA, [whole(buffer)], 10, 1000 * value + 2**31)
    commands.finish()
    rig.run(commands)
    for value, buffer in enumerate(buffers):
        rig.computed(buffer, np.arange(10, dtype=np.uint32) + np.uint32(1000 * value + 2**31))


@case.needing("dispatch")
def excess_invocations(rig: Rig) -> None:
    """A workload that is no multiple of the workgroup size leaves what is behind it alone."""
    buffer = rig.buffer(np.full(128, 9, np.uint32))
    commands = rig.recording()
    rig.dispatch(commands, INCREMENT, [whole(buffer)], 65, 1)
    commands.finish()
    rig.run(commands)
    rig.computed(buffer, np.array([10] * 65 + [9] * 63, np.uint32))


@case
def zero_workload(rig: Rig) -> None:
    """No invocations: recorded, and nothing happens."""
    buffer = rig.buffer(rig.words(1, 2, 3, 4))
    commands = rig.recording()
    rig.dispatch_grid(commands, INCREMENT, [whole(buffer)], (0, 1, 1), 4)
    commands.finish()
    rig.run(commands)
    rig.holds(buffer, rig.words(1, 2, 3, 4))
    assert rig.device.statistics.dispatches == 0


@case.needing("dispatch")
def read_and_write_in_place(rig: Rig) -> None:
    """Steps on one buffer, each seeing the one before the barrier."""
    buffer = rig.zeros(4000)
    commands = rig.recording()
    rig.dispatch(commands, IOTA, [whole(buffer)], 1000, 3)
    for _ in range(5):
        commands.barrier()
        rig.dispatch(commands, INCREMENT, [whole(buffer)], 1000, 100)
    commands.finish()
    rig.run(commands)
    rig.computed(buffer, np.arange(1000, dtype=np.uint32) + np.uint32(503))


@case.needing("dispatch")
def transfers_between(rig: Rig) -> None:
    """Fills and copies before and after a dispatch are ordered with it by barriers."""
    a, b = rig.zeros(400), rig.zeros(400)
    commands = rig.recording()
    commands.fill(a, 0, 400, b"\x05\0\0\0")
    commands.barrier()
    rig.dispatch(commands, INCREMENT, [whole(a)], 100, 2)
    commands.barrier()
    commands.copy(a, 0, b, 0, 400)
    commands.finish()
    rig.run(commands)
    rig.computed(b, np.full(100, 7, np.uint32))


@case.needing("dispatch")
def workload_in_three_dimensions(rig: Rig) -> None:
    """A kernel sees the linear workgroup index of the grid."""
    buffer = rig.zeros(4 * 60)
    commands = rig.recording()
    rig.dispatch_grid(commands, IOTA, [whole(buffer)], (3, 4, 5), 60)
    commands.finish()
    rig.run(commands)
    rig.computed(buffer, np.arange(60, dtype=np.uint32))


@case.needing("dispatch")
def more_workgroups_than_one_dimension_takes(rig: Rig) -> None:
    """A workload above the grid's first dimension is folded into the others; each invocation runs once."""
    limit = rig.device.info.limits.max_workgroup_count[0]
    n = limit + 1001 if limit < MANY else MANY
    buffer = rig.zeros(4 * n + 16)
    commands = rig.recording()
    rig.dispatch(commands, IOTA, [whole(buffer)], n, 1)
    commands.finish()
    rig.run(commands)
    want = np.concatenate([np.arange(1, n + 1), np.zeros(4)]).astype(np.uint32)
    rig.computed(buffer, want)


@case.needing("dispatch")
def many_dispatches(rig: Rig) -> None:
    """200 dispatches in one recording run in order, and are counted."""
    buffer = rig.zeros(256)
    commands = rig.recording()
    for _ in range(200):
        rig.dispatch(commands, INCREMENT, [whole(buffer)], 64, 1)
        commands.barrier()
    commands.finish()
    rig.run(commands)
    rig.computed(buffer, np.full(64, 200, np.uint32))
    assert rig.device.statistics.dispatches == 200
