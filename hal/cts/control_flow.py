"""Loops and branches in recordings: which commands run, how often, and what is refused.

Loops count down: `INCREMENT` by 2**32 - 1 subtracts one from a word, whose lowest byte is the predicate.
"""

from orchestrion.hal.command_buffer import CommandBuffer, Source
from orchestrion.hal.errors import DeadlineExceeded, InvalidArgument, Unsupported

from .case import Group
from .expect import raises
from .kernels import INCREMENT
from .rig import Rig

case = Group("control_flow", __doc__)

MINUS_ONE = 2**32 - 1


#: declares a case for devices that record and execute loops and branches
able = case.needing("control-flow", "dispatch")


def add(rig: Rig, commands: CommandBuffer, word: Source, value: int) -> None:
    """Record the addition of a value to the word at the start of a buffer."""
    rig.dispatch(commands, INCREMENT, [(word, 0, 4)], 1, value)


def counting(rig: Rig) -> CommandBuffer:
    """A loop that adds 3 to slot 1 for each that it takes off slot 0, and 100 behind the loop."""
    commands = rig.recording(2)
    commands.begin_loop(0, 0)
    add(rig, commands, 1, 3)
    add(rig, commands, 0, MINUS_ONE)
    commands.end()
    add(rig, commands, 1, 100)
    commands.finish()
    return commands


@able
def loop(rig: Rig) -> None:
    """A loop runs its body as long as its predicate, which the body changes, is not 0."""
    counter, total = rig.buffer(rig.words(5)), rig.buffer(rig.words(1))
    rig.run(counting(rig), counter, total)
    rig.computed(total, rig.words(1 + 5 * 3 + 100))
    rig.computed(counter, rig.words(0))


@able
def loop_without_iterations(rig: Rig) -> None:
    """A loop whose predicate is 0 at first does not run its body; what follows it runs."""
    total = rig.zeros(4)
    rig.run(counting(rig), rig.zeros(4), total)
    rig.computed(total, rig.words(100))


@able
def loop_of_another_table(rig: Rig) -> None:
    """The number of iterations is what the buffers of each submission say."""
    commands = counting(rig)
    for count in (2, 7, 1):
        total = rig.zeros(4)
        rig.run(commands, rig.buffer(rig.words(count)), total)
        rig.computed(total, rig.words(count * 3 + 100))


@able
def loop_in_a_loop(rig: Rig) -> None:
    """The inner counter is copied anew in each iteration of the outer loop."""
    outer, inner, start, total = (rig.buffer(rig.words(value)) for value in (3, 0, 4, 0))
    commands = rig.recording()
    commands.begin_loop(outer, 0)
    commands.copy(start, 0, inner, 0, 4)
    commands.begin_loop(inner, 0)
    add(rig, commands, total, 1)
    add(rig, commands, inner, MINUS_ONE)
    commands.end()
    add(rig, commands, total, 100)
    add(rig, commands, outer, MINUS_ONE)
    commands.end()
    commands.finish()
    rig.run(commands)
    rig.computed(total, rig.words(3 * (4 + 100)))


@able
def branch_by_predicate(rig: Rig) -> None:
    """A branch runs its first arm if the lowest byte of the predicate is not 0, else the second."""
    commands = rig.recording(2)
    commands.begin_branch(0, 0)
    add(rig, commands, 1, 10)
    commands.next_arm()
    add(rig, commands, 1, 20)
    commands.end()
    add(rig, commands, 1, 1)
    commands.finish()
    for value, want in ((1, 11), (0, 21), (255, 11), (256, 21)):  # of 256 the lowest byte is 0
        total = rig.zeros(4)
        rig.run(commands, rig.buffer(rig.words(value)), total)
        rig.computed(total, rig.words(want))


@able
def branch_by_index(rig: Rig) -> None:
    """An index without an arm selects the last one; an arm may be empty."""
    commands = rig.recording(2)
    commands.begin_branch(0, 4, 3, indexed=True)
    add(rig, commands, 1, 10)
    commands.next_arm()
    commands.next_arm()
    add(rig, commands, 1, 30)
    commands.end()
    commands.finish()
    for index, want in ((0, 10), (1, 0), (2, 30), (3, 30), (256, 30), (MINUS_ONE, 30)):
        total = rig.zeros(4)
        rig.run(commands, rig.buffer(rig.words(0, index)), total)
        rig.computed(total, rig.words(want))


@able
def branch_in_a_loop(rig: Rig) -> None:
    """The branch reads what the loop changes: its second word is 1 in the first iteration only."""
    state, total = rig.buffer(rig.words(3, 1)), rig.zeros(4)
    commands = rig.recording()
    commands.begin_loop(state, 0)
    commands.begin_branch(state, 4)
    add(rig, commands, total, 1000)
    commands.fill(state, 4, 4, b"\0")
    commands.next_arm()
    add(rig, commands, total, 1)
    commands.end()
    add(rig, commands, state, MINUS_ONE)
    commands.end()
    commands.finish()
    rig.run(commands)
    rig.computed(total, rig.words(1002))


class _Patience:
    """A watcher that raises at its hundredth call."""

    def __init__(self) -> None:
        self.asked = 0

    def check(self) -> None:
        self.asked += 1
        if self.asked == 100:
            raise DeadlineExceeded("asked a hundred times")


@able
def endless_loop(rig: Rig) -> None:
    """A loop that never ends is ended by whoever waits for it."""
    always, total = rig.buffer(rig.words(1)), rig.zeros(4)
    commands = rig.recording()
    commands.begin_loop(always, 0)
    add(rig, commands, total, 1)
    commands.end()
    commands.finish()
    with raises(DeadlineExceeded, match="a hundred times"):
        rig.device.queue.execute(commands, (), _Patience())


@able
def wrong_nesting(rig: Rig) -> None:
    """Loops and branches that are not nested, or read what is not there, are refused by name."""
    word = rig.zeros(8)
    commands = rig.recording()
    for wrong in (commands.next_arm, commands.end):
        with raises(InvalidArgument):
            wrong()
    commands.begin_branch(word, 0)
    with raises(InvalidArgument, match="1 arms are missing"):
        commands.end()
    with raises(InvalidArgument, match="inside 1 loops and branches"):
        commands.finish()
    commands.next_arm()
    with raises(InvalidArgument, match="behind its last arm"):
        commands.next_arm()
    for arms, indexed, words in ((3, False, "2 expected"), (0, True, "at least 1")):
        with raises(InvalidArgument, match=words):
            commands.begin_branch(word, 0, arms, indexed)
    with raises(InvalidArgument, match="not a multiple of 4"):
        commands.begin_branch(word, 2, 2, indexed=True)
    with raises(InvalidArgument, match="bytes 8 to 9"):
        commands.begin_loop(word, 8)
    commands.end()
    commands.finish()


@case.needing("no-control-flow")
def refused(rig: Rig) -> None:
    """A device that records no loops and branches refuses them by the name of the capability."""
    with raises(Unsupported, match="control_flow"):
        rig.recording(1).begin_loop(0, 0)
    with raises(Unsupported, match="control_flow"):
        rig.recording(1).begin_branch(0, 0)
