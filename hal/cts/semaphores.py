"""Timeline semaphores and fences: the host, submissions and threads wait for each other, in any order."""

import threading
import time

import numpy as np

from orchestrion.hal.buffer import Buffer
from orchestrion.hal.command_buffer import CommandBuffer
from orchestrion.hal.errors import DeadlineExceeded, InvalidArgument
from orchestrion.hal.semaphore import Fence

from .case import Group
from .expect import raises
from .rig import Rig

case = Group("semaphores", __doc__)

#: seconds in which a wait that must not end is watched
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
    others = [rig.zeros(16) for _ in range(4)]
    gate.signal(1)
    done.wait(1, rig.patience)
    rig.holds(target, data)
    for other in others:
        rig.holds(other, np.zeros(4, np.uint32))
