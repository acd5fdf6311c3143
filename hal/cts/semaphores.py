"""Timeline semaphores and fences: the host, submissions and threads wait for each other, in any order."""

import threading
import time
from contextlib import suppress

import numpy as np

from orchestrion.hal.buffer import Buffer
from orchestrion.hal.command_buffer import CommandBuffer
from orchestrion.hal.errors import DeadlineExceeded, EventFailed, InvalidArgument, LibraryFailed
from orchestrion.hal.semaphore import Fence

from .case import Group
from .expect import raises
from .rig import Rig

case = Group("semaphores", __doc__)

#: seconds for which a wait that must not end is observed
MOMENT = 0.02


def filler(rig: Rig, value: int) -> tuple[CommandBuffer, Buffer]:
    """A recording that fills a new buffer of 16 bytes with a byte."""
    buffer = rig.zeros(16)
    commands = rig.recording()
    commands.fill(buffer, 0, 16, bytes([value]))
    commands.finish()
    return commands, buffer


@case
def host_signal(rig: Rig) -> None:
    """The host sets values; a wait for a value at or below the current one returns at once."""
    semaphore = rig.device.create_semaphore(3)
    assert semaphore.value == 3
    semaphore.wait(0)
    semaphore.wait(3)
    semaphore.signal(7)
    assert semaphore.value == 7
    semaphore.wait(5, rig.patience)
    semaphore.signal(2**40)
    assert semaphore.value == 2**40


@case
def timeout(rig: Rig) -> None:
    """A wait with a timeout ends after it, with `DeadlineExceeded`, and not before."""
    semaphore = rig.device.create_semaphore()
    start = time.monotonic()
    with raises(DeadlineExceeded, match="did not reach 1"):
        semaphore.wait(1, MOMENT)
    assert time.monotonic() - start >= MOMENT * 0.9
    with raises(DeadlineExceeded):
        semaphore.wait(1, 0.0)


@case
def wait_before_signal(rig: Rig) -> None:
    """A thread waits for a value before anybody has promised it."""
    semaphore = rig.device.create_semaphore()
    done: list[int] = []

    def wait() -> None:
        with suppress(DeadlineExceeded):
            semaphore.wait(2, rig.patience)
            done.append(semaphore.value)

    thread = threading.Thread(target=wait)
    thread.start()
    time.sleep(MOMENT)
    semaphore.signal(1)
    time.sleep(MOMENT)
    assert not done
    semaphore.signal(2)
    thread.join(rig.patience)
    assert done == [2]


@case
def submission_signals(rig: Rig) -> None:
    """A submission signals its value, and its work is done then."""
    semaphore = rig.device.create_semaphore()
    commands, buffer = filler(rig, 5)
    rig.device.queue.submit(commands, (), None, Fence([(semaphore, 4)]))
    semaphore.wait(4, rig.patience)
    rig.holds(buffer, np.full(16, 5, np.uint8))


@case
def submission_waits_for_the_host(rig: Rig) -> None:
    """Submitting never blocks; the work starts when the host signals, here from another thread."""
    gate, done = rig.device.create_semaphore(), rig.device.create_semaphore()
    target = rig.zeros(16)
    commands = rig.recording(1)
    commands.fill(0, 0, 16, b"\x05")
    commands.finish()
    rig.device.queue.submit(commands, (target,), Fence([(gate, 1)]), Fence([(done, 1)]))
    time.sleep(MOMENT)
    assert done.value == 0
    timer = threading.Timer(MOMENT, gate.signal, (1,))
    timer.start()
    done.wait(1, rig.patience)
    timer.join()
    rig.holds(target, np.full(16, 5, np.uint8))


@case
def chain(rig: Rig) -> None:
    """Ten submissions, each waiting for the one before, started by the host."""
    semaphore = rig.device.create_semaphore()
    buffers = [rig.zeros(16) for _ in range(11)]
    buffers[0].write(np.arange(16, dtype=np.uint8))
    commands = rig.recording(2)
    commands.copy(0, 0, 1, 0, 16)
    commands.finish()
    for step in range(1, 11):
        wait, signal = Fence([(semaphore, step)]), Fence([(semaphore, step + 1)])
        rig.device.queue.submit(commands, (buffers[step - 1], buffers[step]), wait, signal)
    assert semaphore.value == 0
    semaphore.signal(1)
    semaphore.wait(11, rig.patience)
    rig.holds(buffers[10], np.arange(16, dtype=np.uint8))


@case
def in_order_without_fences(rig: Rig) -> None:
    """Submissions of one queue see what those before them wrote; `wait_idle` waits for all."""
    a, b = rig.zeros(16), rig.zeros(16)
    copy = rig.recording(2)
    copy.copy(0, 0, 1, 0, 16)
    copy.finish()
    fill = rig.recording(1)
    fill.fill(0, 0, 16, b"\x09")
    fill.finish()
    rig.device.queue.submit(fill, (a,))
    rig.device.queue.submit(copy, (a, b))
    rig.device.queue.wait_idle()
    rig.holds(b, np.full(16, 9, np.uint8))


@case
def execute_after_submit(rig: Rig) -> None:
    """A blocking call runs after what was submitted before it."""
    gate = rig.device.create_semaphore()
    a, b = rig.zeros(16), rig.zeros(16)
    fill = rig.recording(1)
    fill.fill(0, 0, 16, b"\x09")
    fill.finish()
    copy = rig.recording(2)
    copy.copy(0, 0, 1, 0, 16)
    copy.finish()
    rig.device.queue.submit(fill, (a,), Fence([(gate, 1)]))
    timer = threading.Timer(MOMENT, gate.signal, (1,))
    timer.start()
    rig.run(copy, a, b)
    timer.join()
    rig.holds(b, np.full(16, 9, np.uint8))


@case
def read_and_write_after_submit(rig: Rig) -> None:
    """Host access waits for submitted work that uses the buffer."""
    gate = rig.device.create_semaphore()
    commands, buffer = filler(rig, 5)
    rig.device.queue.submit(commands, (), Fence([(gate, 1)]))
    timer = threading.Timer(MOMENT, gate.signal, (1,))
    timer.start()
    rig.holds(buffer, np.full(16, 5, np.uint8))
    timer.join()
    rig.device.queue.submit(commands)
    buffer.write(np.full(16, 6, np.uint8))
    rig.holds(buffer, np.full(16, 6, np.uint8))


@case
def fences_without_work(rig: Rig) -> None:
    """A submission may only chain fences: all waits, then all signals."""
    first, second, done = (rig.device.create_semaphore() for _ in range(3))
    rig.device.queue.submit(None, (), Fence([(first, 1), (second, 2)]), Fence([(done, 1)]))
    first.signal(1)
    time.sleep(MOMENT)
    assert done.value == 0
    second.signal(2)
    done.wait(1, rig.patience)


@case
def refused_submission(rig: Rig) -> None:
    """A submission that is refused promises nothing: its fence can be signalled by another."""
    first, second = rig.device.create_semaphore(), rig.device.create_semaphore(2)
    with raises(InvalidArgument):
        rig.device.queue.submit(None, (), None, Fence([(first, 1), (second, 1)]))
    rig.device.queue.submit(None, (), None, Fence([(first, 1), (second, 3)]))
    first.wait(1, rig.patience)
    second.wait(3, rig.patience)


@case
def joined_fences(rig: Rig) -> None:
    """A joined fence holds the highest value of each semaphore, and is reached when all are."""
    first, second = rig.device.create_semaphore(), rig.device.create_semaphore()
    joined = Fence.join(Fence([(first, 1)]), Fence([(second, 1), (first, 2)]), Fence())
    assert set(joined.points) == {(first, 2), (second, 1)}
    first.signal(2)
    assert not joined.reached
    with raises(DeadlineExceeded):
        joined.wait(MOMENT)
    second.signal(1)
    assert joined.reached
    joined.wait(rig.patience)
    Fence().wait(0.0)


@case
def released_while_in_flight(rig: Rig) -> None:
    """Everything a submission touches lives until it is over, whatever becomes of the handles."""
    gate, done = rig.device.create_semaphore(), rig.device.create_semaphore()
    data = rig.random(4)
    source, target = rig.buffer(data), rig.zeros(16)
    commands = rig.recording(1)
    commands.copy(source, 0, 0, 0, 16)
    commands.finish()
    rig.device.queue.submit(commands, (target,), Fence([(gate, 1)]), Fence([(done, 1)]))
    source.release()
    commands.release()
    others = [rig.fresh(16) for _ in range(4)]
    gate.signal(1)
    done.wait(1, rig.patience)
    rig.holds(target, data)
    for other in others:
        rig.holds(other, np.zeros(4, np.uint32))


@case
def values_may_be_skipped(rig: Rig) -> None:
    """Signalling a value wakes who waits for it or for any value below."""
    semaphore, woken = rig.device.create_semaphore(), []

    def wait(value: int) -> None:
        with suppress(DeadlineExceeded):
            semaphore.wait(value, rig.patience)
            woken.append(value)

    threads = [threading.Thread(target=wait, args=(value,)) for value in (1, 5, 10, 11)]
    for thread in threads:
        thread.start()
    time.sleep(MOMENT)
    semaphore.signal(10)
    for thread in threads[:3]:
        thread.join(rig.patience)
    time.sleep(MOMENT)
    assert sorted(woken) == [1, 5, 10]
    semaphore.signal(11)
    threads[3].join(rig.patience)
    assert sorted(woken) == [1, 5, 10, 11]


@case
def many_waiters_of_one_value(rig: Rig) -> None:
    """Eight threads wait for one value; one signal wakes them all."""
    semaphore, woken = rig.device.create_semaphore(), []

    def wait(number: int) -> None:
        with suppress(DeadlineExceeded):
            semaphore.wait(1, rig.patience)
            woken.append(number)

    threads = [threading.Thread(target=wait, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    time.sleep(MOMENT)
    assert not woken
    semaphore.signal(1)
    for thread in threads:
        thread.join(rig.patience)
    assert sorted(woken) == [*range(8)]


@case
def large_values(rig: Rig) -> None:
    """Values go up to 2**63 - 1 where nothing jumps further than the device allows; the initial one may be large."""
    for initial in (0, 2**31 - 1, 2**32, 2**62):
        semaphore = rig.device.create_semaphore(initial)
        assert semaphore.value == initial
        semaphore.signal(initial + 1)
        semaphore.wait(initial + 1, rig.patience)
        assert semaphore.value == initial + 1
    with raises(DeadlineExceeded):
        rig.device.create_semaphore(2**62).wait(2**62 + 1, 0.0)


@case
def never_goes_backwards(rig: Rig) -> None:
    """The value that is read never falls while submissions signal one after the other."""
    semaphore, buffer = rig.device.create_semaphore(), rig.zeros(1 << 16)
    commands = rig.filling(0, 1 << 16, 1)
    seen = [semaphore.value]
    for value in range(1, 41):
        rig.device.queue.submit(commands, (buffer,), None, Fence([(semaphore, value)]))
        seen.append(semaphore.value)
    semaphore.wait(40, rig.patience)
    seen += [semaphore.value, semaphore.value, semaphore.value]
    assert seen == sorted(seen) and seen[-1] == 40, seen


@case
def lower_value_after_a_higher_one(rig: Rig) -> None:
    """A wait for a value that was passed long ago returns at once, also by a submission."""
    semaphore, done = rig.device.create_semaphore(), rig.device.create_semaphore()
    semaphore.signal(100)
    commands, buffer = filler(rig, 4)
    rig.device.queue.submit(commands, (), Fence([(semaphore, 3)]), Fence([(done, 1)]))
    done.wait(1, rig.patience)
    semaphore.wait(99, 0.0)
    rig.holds(buffer, np.full(16, 4, np.uint8))


@case
def several_signals(rig: Rig) -> None:
    """A submission signals several semaphores, each its own value, once its work is over."""
    gate, ends = rig.device.create_semaphore(), [rig.device.create_semaphore() for _ in range(4)]
    commands, buffer = filler(rig, 5)
    signal = Fence([(one, 10 * place + 1) for place, one in enumerate(ends)])
    rig.device.queue.submit(commands, (), Fence([(gate, 1)]), signal)
    time.sleep(MOMENT)
    assert [one.value for one in ends] == [0] * 4
    assert signal.promised and not signal.reached
    gate.signal(1)
    signal.wait(rig.patience)
    assert [one.value for one in ends] == [1, 11, 21, 31]
    rig.holds(buffer, np.full(16, 5, np.uint8))


@case
def several_waits(rig: Rig) -> None:
    """A submission starts when the last of its waits is reached, whatever their order."""
    for order in ((0, 1, 2), (2, 1, 0), (1, 2, 0)):
        gates, done = [rig.device.create_semaphore() for _ in range(3)], rig.device.create_semaphore()
        commands, buffer = filler(rig, 6)
        rig.device.queue.submit(commands, (), Fence([(gate, 1) for gate in gates]), Fence([(done, 1)]))
        for place in order:
            assert done.value == 0
            gates[place].signal(1)
            if place != order[-1]:
                time.sleep(MOMENT / 4)
        done.wait(1, rig.patience)
        rig.holds(buffer, np.full(16, 6, np.uint8))


@case
def fork_and_join(rig: Rig) -> None:
    """Two submissions wait for one value, and a third for both."""
    start, left, right, end = (rig.device.create_semaphore() for _ in range(4))
    source = rig.buffer(rig.words(7, 8))
    first, second, both = rig.zeros(8), rig.zeros(8), rig.zeros(16)
    copy = rig.copying(8)
    rig.device.queue.submit(copy, (source, first), Fence([(start, 1)]), Fence([(left, 1)]))
    rig.device.queue.submit(copy, (source, second), Fence([(start, 1)]), Fence([(right, 1)]))
    commands = rig.recording(3)
    commands.copy(0, 0, 2, 0, 8)
    commands.copy(1, 0, 2, 8, 8)
    commands.finish()
    wait = Fence.join(Fence([(left, 1)]), Fence([(right, 1)]))
    rig.device.queue.submit(commands, (first, second, both), wait, Fence([(end, 1)]))
    time.sleep(MOMENT)
    assert end.value == 0
    start.signal(1)
    end.wait(1, rig.patience)
    rig.holds(both, rig.words(7, 8, 7, 8))


@case
def host_and_device_in_turn(rig: Rig) -> None:
    """One semaphore, on which the host signals odd values and submissions even ones."""
    semaphore, buffer = rig.device.create_semaphore(), rig.zeros(16)
    for step in range(1, 20, 2):
        rig.device.queue.submit(
            rig.filling(0, 16, step), (buffer,), Fence([(semaphore, step)]), Fence([(semaphore, step + 1)])
        )
        assert semaphore.value == step - 1
        semaphore.signal(step)
        semaphore.wait(step + 1, rig.patience)
        rig.holds(buffer, np.full(16, step, np.uint8))


@case
def of_another_share(rig: Rig) -> None:
    """A submission of one share waits for a semaphore that another share's submission signals."""
    with rig.device.share() as device:
        share = rig.on(device)
        gate, passed, done = (
            rig.device.create_semaphore(),
            device.create_semaphore(),
            rig.device.create_semaphore(),
        )
        buffer = rig.zeros(16)
        device.queue.submit(share.filling(0, 16, 1), (buffer,), Fence([(gate, 1)]), Fence([(passed, 1)]))
        rig.device.queue.submit(rig.filling(0, 8, 2), (buffer,), Fence([(passed, 1)]), Fence([(done, 1)]))
        gate.signal(1)
        done.wait(1, rig.patience)
        rig.holds(buffer, np.repeat(np.array([2, 1], np.uint8), 8))
        passed.release()
        device.queue.wait_idle()


@case
def promises(rig: Rig) -> None:
    """A fence is promised once a submission will signal it or the host has, and not before."""
    gate, done = rig.device.create_semaphore(), rig.device.create_semaphore()
    fence = Fence([(done, 2), (gate, 1)])
    assert not fence.promised and not fence.reached
    rig.device.queue.submit(None, (), Fence([(gate, 1)]), Fence([(done, 2)]))
    assert Fence([(done, 2)]).promised and Fence([(done, 1)]).promised
    assert not Fence([(done, 3)]).promised and not fence.promised
    gate.signal(1)
    assert fence.promised
    fence.wait(rig.patience)
    assert fence.reached


@case
def signalled_from_the_host_by_a_fence(rig: Rig) -> None:
    """`Fence.signal` signals every point from the host."""
    first, second = rig.device.create_semaphore(), rig.device.create_semaphore(4)
    fence = Fence([(first, 3), (second, 5)])
    fence.signal()
    assert (first.value, second.value) == (3, 5)
    with raises(InvalidArgument, match="not above the current 3"):
        fence.signal()


@case
def released_before_it_is_signalled(rig: Rig) -> None:
    """A submission signals and waits for semaphores whose handles are gone."""
    gate, first, done = (rig.device.create_semaphore() for _ in range(3))
    commands, buffer = filler(rig, 8)
    rig.device.queue.submit(commands, (), Fence([(gate, 1)]), Fence([(first, 1)]))
    rig.device.queue.submit(None, (), Fence([(first, 1)]), Fence([(done, 1)]))
    first.release()
    others = [rig.device.create_semaphore() for _ in range(4)]
    gate.signal(1)
    done.wait(1, rig.patience)
    assert [one.value for one in others] == [0] * 4
    rig.holds(buffer, np.full(16, 8, np.uint8))


@case
def wait_with_a_watcher(rig: Rig) -> None:
    """A wait asks its watcher, whose error ends it; the semaphore works on."""

    class Impatient:
        asked = 0

        def check(self) -> None:
            self.asked += 1
            raise DeadlineExceeded("enough")

    semaphore, watcher = rig.device.create_semaphore(), Impatient()
    with raises(DeadlineExceeded, match="enough"):
        semaphore.watch(1, watcher, time.monotonic())
    assert watcher.asked == 1
    semaphore.signal(1)
    semaphore.watch(1, watcher)
    Fence([(semaphore, 1)]).watch(watcher)
    assert watcher.asked == 1


@case
def failed_value(rig: Rig) -> None:
    """Who waits for a value that was reached by a failure gets its error, and so does who waits for one between."""
    semaphore = rig.device.create_semaphore(2)
    semaphore.backend.fail(5, LibraryFailed("the work failed"))
    assert semaphore.value == 5
    for value in (3, 4, 5):
        with raises(LibraryFailed, match="the work failed"):
            semaphore.wait(value, rig.patience)
    for value in (1, 2):
        semaphore.wait(value, 0.0)


@case
def values_behind_a_failed_one(rig: Rig) -> None:
    """A semaphore goes on after a failure: later values are reached without an error, and a second failure is kept."""
    semaphore = rig.device.create_semaphore()
    semaphore.backend.fail(1, LibraryFailed("first"))
    semaphore.signal(2)
    semaphore.wait(2, rig.patience)
    semaphore.backend.fail(3, EventFailed("second"))
    with raises(LibraryFailed, match="first"):
        semaphore.wait(1, rig.patience)
    with raises(EventFailed, match="second"):
        semaphore.wait(3, rig.patience)
    semaphore.wait(2, rig.patience)


@case
def failure_wakes_waiters(rig: Rig) -> None:
    """Threads that wait when the failure comes are woken, and get its error."""
    semaphore, failures = rig.device.create_semaphore(), []

    def wait(value: int) -> None:
        try:
            semaphore.wait(value, rig.patience)
        except LibraryFailed as error:
            failures.append(str(error))

    threads = [threading.Thread(target=wait, args=(value,)) for value in (1, 2, 2)]
    for thread in threads:
        thread.start()
    time.sleep(MOMENT)
    semaphore.backend.fail(2, LibraryFailed("gone"))
    for thread in threads:
        thread.join(rig.patience)
    assert failures == ["gone"] * 3


@case
def submission_behind_a_failed_value(rig: Rig) -> None:
    """A submission that waits for a failed value comes to its end, with that error or without; nobody hangs."""
    gate, done = rig.device.create_semaphore(), rig.device.create_semaphore()
    commands, buffer = filler(rig, 3)
    rig.device.queue.submit(commands, (), Fence([(gate, 1)]), Fence([(done, 1)]))
    gate.backend.fail(1, LibraryFailed("the gate failed"))
    try:
        done.wait(1, rig.patience)
    except LibraryFailed as error:
        assert "the gate failed" in str(error)
    assert done.value == 1
    with suppress(LibraryFailed):  # a driver whose submission failed says so once to who uses the buffer
        rig.contents(buffer)
    rig.run(commands)
    rig.holds(buffer, np.full(16, 3, np.uint8))
