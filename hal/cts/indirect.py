"""Indirect dispatches: workgroup counts, parameters and copy lengths that each instance of a recording supplies.

On a device without them, the cases check that it refuses such a recording.
"""

import struct

import numpy as np

from orchestrion.hal.command_buffer import Argument, CommandBuffer
from orchestrion.hal.errors import InvalidArgument, Unsupported
from orchestrion.hal.semaphore import Fence

from .case import Group
from .expect import raises
from .kernels import ADD, INCREMENT, IOTA
from .rig import Rig

case = Group("indirect", __doc__)


#: declares a case for devices that execute indirect dispatches
of_capable = case.needing("indirect-dispatch", "dispatch")


def words(n: int, value: int) -> bytes:
    return struct.pack("<II", n, value)


def template(rig: Rig, entry: int, slots: int, length: int) -> CommandBuffer:
    """A recording of one indirect dispatch over `slots` slots of `length` bytes."""
    executable = rig.executable()
    commands = rig.device.create_command_buffer(slots, indirect=True)
    commands.dispatch_indirect(executable, entry, [(slot, 0, length) for slot in range(slots)])
    commands.finish()
    executable.release()
    return commands


@of_capable
def sizes_of_each_instance(rig: Rig) -> None:
    """One recording for 4096 elements serves fewer, in buffers that are shorter; what is behind stays."""
    commands = template(rig, ADD, 3, 4 * 4096)
    for n in (4096, 1, 64, 65, 0, 1000, 4096):
        a, b = rig.random(max(n, 1), 1), rig.random(max(n, 1), 2)
        target = rig.buffer(np.full(n + 4, 7, np.uint32))
        instance = commands.instance([((n, 1, 1), words(n, 5))], [], [4 * n] * 3)
        rig.run(instance, rig.buffer(a), rig.buffer(b), target)
        want = np.full(n + 4, 7, np.uint32)
        want[:n] = a[:n] + b[:n] + np.uint32(5)
        rig.computed(target, want)


@of_capable
def dispatches_that_do_not_run(rig: Rig) -> None:
    """Of two recorded dispatches an instance takes one, the other, both or none."""
    executable = rig.executable()
    commands = rig.device.create_command_buffer(1, indirect=True)
    for _ in range(2):
        commands.dispatch_indirect(executable, INCREMENT, [(0, 0, 400)])
        commands.barrier()
    commands.finish()
    one, two = ((100, 1, 1), words(100, 1)), ((100, 1, 1), words(100, 10))
    data = rig.random(100)
    for arguments, added in (([one, None], 1), ([None, two], 10), ([one, two], 11), ([None, None], 0)):
        buffer = rig.buffer(data)
        rig.run(commands.instance(arguments, [], [400]), buffer)
        rig.computed(buffer, data + np.uint32(added))
    executable.release()


@of_capable
def instances_in_flight(rig: Rig) -> None:
    """Instances of one recording are submitted before any of them is over, also in one batch; each keeps its own."""
    commands = template(rig, IOTA, 1, 4 * 1000)
    works = []
    for number in range(12):
        n = 1000 - 80 * number
        works.append((commands.instance([((n, 1, 1), words(n, number))], [], [4 * n]), [rig.zeros(4 * n)]))
    fence = Fence([(rig.device.create_semaphore(), 1)])
    for instance, buffers in works[:6]:
        rig.device.queue.submit(instance, buffers)
    rig.device.queue.submit_batch(works[6:], None, fence)
    fence.wait(None)
    for number, (_, buffers) in enumerate(works):
        n = 1000 - 80 * number
        rig.computed(buffers[0], np.arange(n, dtype=np.uint32) + np.uint32(number))


@of_capable
def more_workgroups_than_a_dimension_has(rig: Rig) -> None:
    """Counts above the device's limit are folded into more dimensions; IOTA has a workgroup per element."""
    limit = min(rig.device.info.limits.max_workgroup_count[0], 70_000)
    n = limit + 3
    commands = template(rig, IOTA, 1, 4 * n)
    buffer = rig.zeros(4 * n)
    rig.run(commands.instance([((n, 1, 1), words(n, 1))], [], [4 * n]), buffer)
    rig.computed(buffer, np.arange(n, dtype=np.uint32) + np.uint32(1))


@of_capable
def lengths_of_copies_and_fills(rig: Rig) -> None:
    """As many bytes as each instance says; what is behind them stays."""
    commands = rig.device.create_command_buffer(2, indirect=True)
    commands.copy(0, 0, 1, 0, 256)
    commands.fill(1, 256, 256, b"\5\0\0\0")
    commands.finish()
    data = rig.random(64)
    for copied, filled in ((256, 256), (4, 8), (100, 0), (0, 12), (256, 4)):
        target = rig.zeros(512)
        rig.run(commands.instance([], [copied, filled], [copied, 256 + filled]), rig.buffer(data), target)
        want = np.zeros(128, np.uint32)
        want[: copied // 4] = data[: copied // 4]
        want[64 : 64 + filled // 4] = 5
        rig.holds(target, want)


@of_capable
def wrong_instances_are_refused(rig: Rig) -> None:
    """Too many arguments, parameters of another size, lengths above what was recorded; a template is not submitted."""
    commands = template(rig, IOTA, 1, 64)
    good = ((16, 1, 1), words(16, 0))
    wrong: tuple[tuple[list[Argument | None], list[int], list[int]], ...] = (
        ([], [], [64]),
        ([good, good], [], [64]),
        ([((16, 1, 1), b"\0\0\0\0")], [], [64]),
        ([((-1, 1, 1), words(16, 0))], [], [64]),
        ([good], [4], [64]),
        ([good], [], [68]),
        ([good], [], []),
    )
    for arguments, transfers, lengths in wrong:
        with raises(InvalidArgument):
            commands.instance(arguments, transfers, lengths)
    with raises(InvalidArgument):
        rig.run(commands, rig.zeros(64))
    with raises(InvalidArgument):
        rig.run(commands.instance([good], [], [64]), rig.zeros(32))
    with raises(InvalidArgument):
        rig.recording(1).dispatch_indirect(rig.executable(), IOTA, [(0, 0, 64)])
    buffer = rig.zeros(64)
    rig.run(commands.instance([good], [], [64]), buffer)
    rig.computed(buffer, np.arange(16, dtype=np.uint32))


@case.needing("no-indirect-dispatch")
def refused(rig: Rig) -> None:
    """A device without indirect dispatch refuses a recording for it."""
    with raises(Unsupported):
        rig.device.create_command_buffer(1, indirect=True)
