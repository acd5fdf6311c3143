"""Devices opened with profiling: a span per command, in order, between submission and end; the same results."""

import numpy as np

from orchestrion.hal import profiling
from orchestrion.hal.buffer import Buffer
from orchestrion.hal.command_buffer import CommandBuffer
from orchestrion.hal.errors import InvalidArgument, Unsupported
from orchestrion.hal.profiling import Submission
from orchestrion.hal.semaphore import Fence
from orchestrion.hal.timing import now

from .case import Function, Group
from .expect import raises
from .kernels import ADD, INCREMENT
from .rig import Rig, Words
from .threads import on_shares

case = Group("profiles", __doc__)

COMMANDS = [("fill", "fill", (256,)), ("dispatch", "increment", (256,)), ("copy", "copy", (256, 256))]


def mixed(rig: Rig, value: int) -> CommandBuffer:
    """Fills slot 0 with ones, adds `value`, copies to slot 1."""
    commands = rig.recording(2)
    commands.fill(0, 0, 256, b"\1\0\0\0")
    commands.barrier()
    rig.dispatch(commands, INCREMENT, [(0, 0, 256)], 64, value)
    commands.barrier()
    commands.copy(0, 0, 1, 0, 256)
    commands.finish()
    return commands


def check(found: Submission, begin: int, end: int) -> None:
    """All commands were timed, one after the other, between two moments of the host."""
    assert [(command.kind, command.name, command.bytes) for command in found.commands] == COMMANDS
    moments = [begin, found.submitted, *(moment for span in found.spans for moment in span), end]
    assert len(found.spans) == len(COMMANDS) and moments == sorted(moments), moments


@case.needing("no-timestamps")
def refused_without_timestamps(rig: Rig) -> None:
    """A device without timestamps refuses to be opened with profiling."""
    with raises(Unsupported):
        assert rig.driver is not None
        rig.driver.open_profiled(rig.device.info)


@case
def off_by_default(rig: Rig) -> None:
    """A device that was not opened with profiling refuses to give times."""
    with raises(InvalidArgument, match="not opened with profiling"):
        profiling.take(rig.device)


def computed(rig: Rig, buffer: Buffer, want: Words) -> None:
    """As `Rig.computed`, if dispatches are executed. Dispatches that are not executed are timed as well."""
    if rig.computes:
        rig.computed(buffer, want)


def timed(function: Function) -> Function:
    """Declares a case that runs on the profiled device, if it has timestamps."""

    def run(rig: Rig) -> None:
        rig.profiled(function)

    case.add(function.__name__, run, function.__doc__, "timestamps")
    return run


@timed
def executed(rig: Rig) -> None:
    """A blocking call has a span per command, between its submission and its end."""
    source, target = rig.zeros(256), rig.zeros(256)
    commands = mixed(rig, 6)
    for _ in range(3):
        begin = now()
        rig.run(commands, source, target)
        (found,) = profiling.take(rig.device)
        check(found, begin, now())
    computed(rig, target, np.full(64, 7, np.uint32))
    rig.holds(source, rig.contents(target))
    assert profiling.take(rig.device) == []


@timed
def submitted(rig: Rig) -> None:
    """Several submissions of one recording at once, the first of which waits for the host."""
    pairs = [(rig.zeros(256), rig.zeros(256)) for _ in range(3)]
    commands = mixed(rig, 1)
    gate, done = rig.device.create_semaphore(), rig.device.create_semaphore()
    begin = now()
    for number, pair in enumerate(pairs, 1):
        rig.device.queue.submit(commands, pair, Fence([(gate, 1)]), Fence([(done, number)]))
    assert profiling.take(rig.device) == []
    gate.signal(1)
    done.wait(3, rig.patience)
    rig.device.queue.wait_idle()
    found = profiling.take(rig.device)
    assert len(found) == 3
    for one in found:
        check(one, begin, now())
    starts = [one.spans[0][0] for one in found]
    assert starts == sorted(starts)
    for _, target in pairs:
        computed(rig, target, np.full(64, 2, np.uint32))


@timed
def batches(rig: Rig) -> None:
    """One recording twice in a batch, with other tables, and another after it; blocking and not."""
    pairs = [(rig.zeros(256), rig.zeros(256)) for _ in range(3)]
    first, second = mixed(rig, 1), mixed(rig, 2)
    batch = [(first, pairs[0]), (first, pairs[1]), (second, pairs[2])]
    begin = now()
    rig.device.queue.execute_batch(batch)
    rig.device.queue.submit_batch(batch)
    rig.device.queue.submit(None)
    rig.device.queue.wait_idle()
    found = profiling.take(rig.device)
    assert [len(one.spans) for one in found] == [9, 9]
    for submitted, noted, spans in found:
        for part in range(0, 9, 3):
            check(Submission(submitted, noted[part : part + 3], spans[part : part + 3]), begin, now())
        moments = [moment for span in spans for moment in span]
        assert moments == sorted(moments)
    for value, (_, target) in zip((2, 2, 3), pairs, strict=True):
        computed(rig, target, np.full(64, value, np.uint32))


@timed
def copies_that_are_none(rig: Rig) -> None:
    """A copy that a table makes one of a range onto itself has a span all the same."""
    commands = rig.recording(2)
    commands.copy(0, 0, 1, 0, 64)
    commands.fill(0, 128, 64, b"\1")
    commands.copy(0, 64, 1, 64, 64)
    commands.finish()
    same, other = rig.zeros(256), rig.zeros(256)
    for table in ((same, other), (same, same)):
        begin = now()
        rig.run(commands, *table)
        ((_, noted, spans),) = profiling.take(rig.device)
        assert [command.kind for command in noted] == ["copy", "fill", "copy"]
        moments = [begin, *(moment for span in spans for moment in span), now()]
        assert len(spans) == 3 and moments == sorted(moments)


@timed
def owners_take_their_own(rig: Rig) -> None:
    """Shares in threads of their own, whose recordings have owners."""
    on_shares(rig, _ten_times)
    assert profiling.take(rig.device) == []


class _Owner:
    pass


def _ten_times(rig: Rig, value: int) -> None:
    owner, commands = _Owner(), mixed(rig, value)
    profiling.recorder(commands).owner = owner
    table = rig.zeros(256), rig.zeros(256)
    begin = now()
    for _ in range(10):
        rig.run(commands, *table)
    found = profiling.take(rig.device, owner)
    assert len(found) == 10
    for one in found:
        check(one, begin, now())
    computed(rig, table[1], np.full(64, value + 1, np.uint32))


@timed
def tagged(rig: Rig) -> None:
    """A tag holds for what is recorded after it; what does nothing is neither recorded nor timed."""
    commands = rig.recording(3)
    profiling.recorder(commands).tag = "first"
    rig.dispatch(commands, ADD, [(0, 0, 256), (1, 0, 256), (2, 0, 256)], 64)
    rig.dispatch_grid(commands, ADD, [(0, 0, 256), (1, 0, 256), (2, 0, 256)], (0, 1, 1), 64)
    profiling.recorder(commands).tag = "second"
    commands.copy(0, 0, 1, 0, 0)
    commands.fill(0, 0, 256, b"\0")
    commands.finish()
    rig.run(commands, *(rig.zeros(256) for _ in range(3)))
    ((_, noted, spans),) = profiling.take(rig.device)
    assert len(spans) == 2
    assert [(command.name, command.bytes, command.tag) for command in noted] == [
        ("add", (256, 256, 256), "first"),
        ("fill", (256,), "second"),
    ]
