"""Dispatches: direct bindings and slots, offsets, parameters, grids of any size."""

import numpy as np

from .case import Group
from .kernels import ADD, INCREMENT, IOTA
from .rig import Bound, Rig, whole

case = Group("dispatches", __doc__)

#: more workgroups than most devices support in one dimension, for devices without a limit
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


#: numbers of elements around a workgroup of 64
AROUND = (1, 2, 31, 32, 33, 63, 64, 65, 127, 128, 129, 1023, 1025)


@case.direct_and_slots("dispatch")
def sums_of_any_size(rig: Rig, bound: type[Bound]) -> None:
    """An entry with three bindings, at sizes around a workgroup, writes its elements and no others."""
    for n in AROUND:
        a, b = rig.random(n, 1), rig.random(n, 2)
        buffers = bound(rig, rig.buffer(a), rig.buffer(b), rig.buffer(np.full(n + 70, 9, np.uint32)))
        x, y, z = buffers.sources
        commands = buffers.recording()
        rig.dispatch(commands, ADD, [(x, 0, 4 * n), (y, 0, 4 * n), (z, 0, 4 * n)], n, 5)
        buffers.run(commands)
        rig.computed(buffers.buffers[2], np.concatenate([a + b + np.uint32(5), np.full(70, 9, np.uint32)]))


@case.direct_and_slots("dispatch")
def counted_at_any_size(rig: Rig, bound: type[Bound]) -> None:
    """An entry with one invocation per workgroup writes its elements and no others."""
    for n in AROUND:
        buffers = bound(rig, rig.buffer(np.full(n + 70, 9, np.uint32)))
        (target,) = buffers.sources
        commands = buffers.recording()
        rig.dispatch(commands, IOTA, [(target, 0, 4 * n)], n, 100)
        buffers.run(commands)
        want = np.full(n + 70, 9, np.uint32)
        want[:n] = np.arange(100, n + 100)
        rig.computed(buffers.buffers[0], want)


@case.direct_and_slots("dispatch")
def changed_in_place_at_any_size(rig: Rig, bound: type[Bound]) -> None:
    """A binding that is read and written is changed once per element, and not behind the last."""
    for n in AROUND:
        data = rig.random(n + 70, n)
        buffers = bound(rig, rig.buffer(data))
        (target,) = buffers.sources
        commands = buffers.recording()
        rig.dispatch(commands, INCREMENT, [(target, 0, 4 * n)], n, 7)
        buffers.run(commands)
        want = data.copy()
        want[:n] += 7
        rig.computed(buffers.buffers[0], want)


@case.direct_and_slots("dispatch")
def bindings_at_multiples_of_the_alignment(rig: Rig, bound: type[Bound]) -> None:
    """Three ranges of one buffer, each at a multiple of the device's binding alignment, are told apart."""
    step = rig.binding_step
    while step < 64:
        step += rig.binding_step
    words = step // 4
    for first, second, third in ((0, 1, 2), (2, 1, 0), (1, 3, 5), (7, 6, 0)):
        data = rig.random(8 * words, first)
        buffers = bound(rig, rig.buffer(data), rig.buffer(data))
        source, target = buffers.sources
        commands = buffers.recording()
        ranges = [(source, first * step, 64), (source, second * step, 64), (target, third * step, 64)]
        rig.dispatch(commands, ADD, ranges, 16, 1)
        buffers.run(commands)
        want = data.copy()
        sums = data[first * words :][:16] + data[second * words :][:16] + np.uint32(1)
        want[third * words :][:16] = sums
        rig.computed(buffers.buffers[1], want)


@case.direct_and_slots("dispatch")
def bindings_at_the_least_alignment(rig: Rig, bound: type[Bound]) -> None:
    """A binding may start at each multiple of the alignment that the device states, be it a byte."""
    step = rig.device.info.limits.min_binding_alignment
    for place in (1, 2, 3, 5):
        data = rig.bytes(place * step + 64)
        buffers = bound(rig, rig.buffer(data))
        (target,) = buffers.sources
        commands = buffers.recording()
        rig.dispatch(commands, INCREMENT, [(target, place * step, 64)], 16, 3)
        buffers.run(commands)
        want = data.copy()
        want[place * step :] = (data[place * step :].view(np.uint32) + np.uint32(3)).view(np.uint8)
        rig.holds(buffers.buffers[0], want)


@case.direct_and_slots("dispatch")
def ranges_of_one_buffer(rig: Rig, bound: type[Bound]) -> None:
    """One dispatch reads two ranges of a buffer and writes a third."""
    step = max(256, rig.binding_step)
    words = step // 4
    data = rig.random(3 * words)
    buffers = bound(rig, rig.buffer(data))
    (source,) = buffers.sources
    commands = buffers.recording()
    rig.dispatch(commands, ADD, [(source, 0, step), (source, step, step), (source, 2 * step, step)], words, 2)
    buffers.run(commands)
    want = data.copy()
    want[2 * words :] = data[:words] + data[words : 2 * words] + np.uint32(2)
    rig.computed(buffers.buffers[0], want)


@case.direct_and_slots("dispatch")
def binding_at_the_end(rig: Rig, bound: type[Bound]) -> None:
    """A binding may end with its buffer, whose size is no multiple of anything."""
    step = max(256, rig.binding_step)
    data = rig.random(step // 4 + 7)
    buffers = bound(rig, rig.buffer(data))
    (target,) = buffers.sources
    commands = buffers.recording()
    rig.dispatch(commands, INCREMENT, [(target, step, 28)], 7, 3)
    buffers.run(commands)
    want = data.copy()
    want[-7:] += 3
    rig.computed(buffers.buffers[0], want)


@case.direct_and_slots("dispatch")
def longer_bindings_than_needed(rig: Rig, bound: type[Bound]) -> None:
    """A binding may be longer than the elements that are computed."""
    buffers = bound(rig, rig.buffer(np.full(100, 4, np.uint32)))
    (target,) = buffers.sources
    commands = buffers.recording()
    rig.dispatch(commands, INCREMENT, [(target, 0, 400)], 10, 1)
    buffers.run(commands)
    rig.computed(buffers.buffers[0], np.array([5] * 10 + [4] * 90, np.uint32))


@case.direct_and_slots("dispatch", "robust", "parameters")
def nothing_behind_a_binding(rig: Rig, bound: type[Bound]) -> None:
    """Where the device is robust, a kernel that goes on behind its bindings neither changes nor reads what is there."""
    step = max(256, rig.binding_step)
    words = step // 4
    data = rig.random(3 * words)
    secret = np.full(3 * words, 0xDEAD, np.uint32)
    secret[words : words + 16] = 1
    buffers = bound(rig, rig.buffer(data), rig.buffer(secret), rig.zeros(step))
    target, source, out = buffers.sources
    commands = buffers.recording()
    rig.dispatch(commands, INCREMENT, [(target, step, 64)], words, 1)
    rig.dispatch(commands, ADD, [(source, step, 64), (source, step, 64), (out, 0, step)], words)
    buffers.run(commands)
    got = rig.contents(buffers.buffers[0]).view(np.uint32)
    np.testing.assert_array_equal(got[:words], data[:words])
    np.testing.assert_array_equal(got[words + 16 :], data[words + 16 :])
    np.testing.assert_array_equal(got[words : words + 15], data[words : words + 15] + np.uint32(1))
    read = rig.contents(buffers.buffers[2]).view(np.uint32)
    assert (read[:16] == 2).all() and (read[16:] <= 2).all(), read


@case.direct_and_slots("dispatch", "parameters")
def binding_of_no_bytes(rig: Rig, bound: type[Bound]) -> None:
    """A binding may have no bytes where the entry needs none; the other bindings are right."""
    kernel = rig.kernel(0, 5)
    entries = tuple(row._replace(bindings=tuple((access, 0) for access, _ in row.bindings)) for row in kernel.entries)
    executable = rig.device.create_executable(kernel.format, memoryview(kernel.payload), entries)
    buffers = bound(rig, rig.zeros(0), rig.buffer(rig.words(1, 2, 3, 4)))
    empty, held = buffers.sources
    commands = buffers.recording()
    for target in ((empty, 0, 0), (held, 0, 0), (held, 0, 16)):
        commands.dispatch(executable, ADD, (64, 1, 1), [(empty, 0, 0), (held, 0, 16), target], kernel.parameters)
        commands.barrier()
    buffers.run(commands)
    rig.computed(buffers.buffers[1], rig.words(1, 2, 3, 4))


def _grid(rig: Rig, *workload: int) -> None:
    """Each invocation of a grid runs once, found by its linear index."""
    x, y, z = workload
    n = x * y * z
    buffer = rig.zeros(4 * n + 16)
    commands = rig.recording()
    rig.dispatch_grid(commands, IOTA, [whole(buffer)], (x, y, z), n, 1)
    commands.finish()
    rig.run(commands)
    rig.computed(buffer, np.concatenate([np.arange(1, n + 1), np.zeros(4)]).astype(np.uint32))


@case.needing("dispatch")
def grids_of_every_shape(rig: Rig) -> None:
    """Workloads along each dimension, along two and along three, count through the linear index."""
    for workload in ((7, 1, 1), (1, 7, 1), (1, 1, 7), (5, 3, 1), (5, 1, 3), (1, 5, 3), (2, 3, 4), (4, 3, 2)):
        _grid(rig, *workload)


@case.needing("dispatch")
def more_workgroups_than_the_second_dimension_takes(rig: Rig) -> None:
    """A workload above the grid's second dimension is folded, where that is small; each invocation runs once."""
    _grid(rig, 1, min(MANY, rig.device.info.limits.max_workgroup_count[1] + 77), 1)


@case.needing("dispatch")
def more_workgroups_than_the_third_dimension_takes(rig: Rig) -> None:
    """A workload above the grid's third dimension is folded, where that is small; each invocation runs once."""
    _grid(rig, 1, 1, min(MANY, rig.device.info.limits.max_workgroup_count[2] + 77))


@case.needing("dispatch", "small-grids")
def exactly_as_many_workgroups_as_a_dimension_takes(rig: Rig) -> None:
    """The largest grid along one dimension, and one workgroup more, are both right."""
    limit = rig.device.info.limits.max_workgroup_count[0]
    _grid(rig, limit, 1, 1)
    _grid(rig, limit + 1, 1, 1)


@case.needing("dispatch")
def one_buffer_bound_twice_to_read(rig: Rig) -> None:
    """Two bindings that are read may be one range, or two that overlap."""
    step = rig.binding_step
    data = rig.random(64 + step // 4)
    source, same, shifted = rig.buffer(data), rig.zeros(256), rig.zeros(256)
    commands = rig.recording()
    rig.dispatch(commands, ADD, [(source, 0, 256), (source, 0, 256), whole(same)], 64)
    rig.dispatch(commands, ADD, [(source, 0, 256), (source, step, 256), whole(shifted)], 64)
    commands.finish()
    rig.run(commands)
    rig.computed(same, data[:64] + data[:64])
    rig.computed(shifted, data[:64] + data[step // 4 :][:64])


@case.needing("dispatch")
def independent_dispatches(rig: Rig) -> None:
    """Dispatches without a barrier between them, on buffers of their own, are all done at the end."""
    buffers = [rig.zeros(4000) for _ in range(30)]
    commands = rig.recording()
    for value, buffer in enumerate(buffers):
        rig.dispatch(commands, IOTA, [whole(buffer)], 1000, value)
    commands.finish()
    rig.run(commands)
    for value, buffer in enumerate(buffers):
        rig.computed(buffer, np.arange(value, value + 1000, dtype=np.uint32))


@case.needing("dispatch")
def large_dispatch(rig: Rig) -> None:
    """A million elements, each of which is right."""
    n = 1_000_003
    a, b = rig.random(n, 1), rig.random(n, 2)
    c = rig.zeros(4 * n)
    commands = rig.recording()
    rig.dispatch(commands, ADD, [whole(rig.buffer(a)), whole(rig.buffer(b)), whole(c)], n, 1)
    commands.finish()
    rig.run(commands)
    rig.computed(c, a + b + np.uint32(1))
