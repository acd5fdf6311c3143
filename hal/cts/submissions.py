"""Submissions: each sees the results of earlier ones, blocking or not; the host waits for those that use a buffer."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import numpy as np

from orchestrion.hal.errors import DeadlineExceeded
from orchestrion.hal.semaphore import Fence

from .case import Group
from .expect import raises
from .kernels import INCREMENT
from .rig import Rig

case = Group("submissions", __doc__)

#: bytes; large enough that work is in flight for a while
SIZE = 1 << 18
#: seconds in which nothing may happen
MOMENT = 0.02


@case
def read_after_write(rig: Rig) -> None:
    """A submission reads what those before it wrote, without fences between them."""
    data = rig.random(SIZE // 4)
    chain = [rig.buffer(data), *(rig.zeros(SIZE) for _ in range(6))]
    commands = rig.copying(SIZE)
    for pair in zip(chain, chain[1:], strict=False):
        rig.device.queue.submit(commands, pair)
    rig.device.queue.wait_idle()
    rig.holds(chain[-1], data)


@case
def write_after_read(rig: Rig) -> None:
    """A submission overwrites a buffer only after those before it read it."""
    source, targets, copy = rig.zeros(SIZE), [rig.zeros(SIZE) for _ in range(6)], rig.copying(SIZE)
    for value, target in enumerate(targets, 1):
        rig.device.queue.submit(rig.filling(0, SIZE, value), (source,))
        rig.device.queue.submit(copy, (source, target))
    rig.device.queue.wait_idle()
    for value, target in enumerate(targets, 1):
        rig.holds(target, np.full(SIZE, value, np.uint8))


@case
def write_after_write(rig: Rig) -> None:
    """Of submissions that write one buffer, the last stays."""
    buffer = rig.zeros(SIZE)
    for value in range(1, 9):
        rig.device.queue.submit(rig.filling(0, SIZE, value), (buffer,))
    rig.device.queue.wait_idle()
    rig.holds(buffer, np.full(SIZE, 8, np.uint8))


@case.needing("dispatch")
def dispatches_and_transfers(rig: Rig) -> None:
    """Submissions of dispatches, fills and copies on one buffer, in turn, blocking and not."""
    a, b, n = rig.zeros(SIZE), rig.zeros(SIZE), SIZE // 4
    add = rig.recording(1)
    rig.dispatch(add, INCREMENT, [(0, 0, SIZE)], n, 5)
    add.finish()
    fill, copy = rig.filling(0, SIZE, 0), rig.copying(SIZE)
    queue = rig.device.queue
    for _ in range(3):
        queue.submit(fill, (a,))
        queue.submit(add, (a,))
        queue.execute(add, (a,))
        queue.submit(copy, (a, b))
        queue.submit(add, (a,))
        queue.execute(add, (b,))
        rig.computed(a, np.full(n, 15, np.uint32))
        rig.computed(b, np.full(n, 15, np.uint32))


@case
def hundreds_without_a_wait(rig: Rig) -> None:
    """400 submissions, none of which is waited for before the last."""
    buffer, done = rig.zeros(400), rig.device.create_semaphore()
    for place in range(400):
        commands = rig.recording(1)
        commands.fill(0, place, 1, bytes([place % 250 + 1]))
        commands.finish()
        rig.device.queue.submit(commands, (buffer,), None, Fence([(done, place + 1)]))
    done.wait(400, rig.patience)
    rig.holds(buffer, (np.arange(400) % 250 + 1).astype(np.uint8))


@case
def one_recording_again_and_again(rig: Rig) -> None:
    """One recording is submitted 100 times with two tables in turn; every submission runs."""
    data, commands = rig.random(64), rig.copying(256)
    a, b, log = rig.buffer(data), rig.zeros(256), [rig.zeros(256) for _ in range(100)]
    for place, target in enumerate(log):
        rig.device.queue.submit(commands, (a, target))
        if place % 2:
            rig.device.queue.submit(commands, (log[place - 1], b))
    rig.device.queue.wait_idle()
    for target in (*log, b):
        rig.holds(target, data)


@case
def second_of_two_equal_ones(rig: Rig) -> None:
    """A recording that is submitted a second time with the same table runs a second time."""
    source, target, commands = rig.zeros(64), rig.zeros(64), rig.copying(64)
    for value in range(1, 5):
        source.write(np.full(64, value, np.uint8))
        rig.device.queue.submit(commands, (source, target))
        rig.device.queue.wait_idle()
        rig.holds(target, np.full(64, value, np.uint8))


@case
def thousand_calls(rig: Rig) -> None:
    """1000 blocking calls, each of which did its work when it returns, leave no trace."""
    buffer, fills = rig.zeros(16), [rig.filling(0, 16, value) for value in range(4)]
    live = rig.device.allocator.live_bytes
    for number in range(1000):
        rig.run(fills[number % 4], buffer)
        if number % 50 == 49:
            rig.holds(buffer, np.full(16, number % 4, np.uint8))
    rig.soon(lambda: rig.device.allocator.live_bytes, live)
    assert rig.device.statistics.submissions == 1000


@case
def idle_without_work(rig: Rig) -> None:
    """`wait_idle` returns at once when nothing was submitted, and when all is over."""
    rig.device.queue.wait_idle()
    rig.device.queue.submit(rig.filling(0, 16, 1), (rig.zeros(16),))
    for _ in range(3):
        rig.device.queue.wait_idle()


@case
def blocking_call_behind_a_gate(rig: Rig) -> None:
    """A blocking call waits for submissions before it, which wait for the host."""
    gate, target = rig.device.create_semaphore(), rig.zeros(SIZE)
    rig.device.queue.submit(rig.filling(0, SIZE, 1), (target,), Fence([(gate, 1)]))
    timer = threading.Timer(MOMENT, gate.signal, (1,))
    timer.start()
    rig.run(rig.filling(0, 16, 2), target)
    timer.join()
    want = np.full(SIZE, 1, np.uint8)
    want[:16] = 2
    rig.holds(target, want)


def _waits(rig: Rig, act: Callable[[], object], gate: Callable[[int], None]) -> None:
    """Check that the action does not end before the gate is opened, and ends then."""
    ended = threading.Event()
    failures: list[BaseException] = []

    def work() -> None:
        try:
            act()
        except BaseException as failure:
            failures.append(failure)
        ended.set()

    thread = threading.Thread(target=work)
    thread.start()
    early = ended.wait(MOMENT)
    gate(1)
    thread.join(rig.patience)
    if failures:
        raise failures[0]
    assert not early, "the host did not wait for work that uses the buffer"
    assert ended.is_set(), f"the host still waits {rig.patience} s after the work could go on"


@case
def host_read_waits_for_a_writer(rig: Rig) -> None:
    """A read of the host waits for submitted work that writes the buffer."""
    gate, target, out = rig.device.create_semaphore(), rig.zeros(SIZE), np.zeros(SIZE, np.uint8)
    rig.device.queue.submit(rig.filling(0, SIZE, 5), (target,), Fence([(gate, 1)]))
    _waits(rig, lambda: target.read(out), gate.signal)
    assert (out == 5).all()


@case
def host_read_waits_for_a_writer_of_a_direct_binding(rig: Rig) -> None:
    """A read of the host waits for submitted work that refers to the buffer without a slot."""
    gate, target, out = rig.device.create_semaphore(), rig.zeros(SIZE), np.zeros(SIZE, np.uint8)
    rig.device.queue.submit(rig.filling(target, SIZE, 5), (), Fence([(gate, 1)]))
    _waits(rig, lambda: target.read(out), gate.signal)
    assert (out == 5).all()


@case
def host_write_is_not_seen_by_earlier_work(rig: Rig) -> None:
    """What the host writes behind a submission is not read by it, whether the write waits or is put behind it."""
    gate, data = rig.device.create_semaphore(), rig.random(SIZE // 4)
    source, target = rig.buffer(data), rig.zeros(SIZE)
    rig.device.queue.submit(rig.copying(SIZE), (source, target), Fence([(gate, 1)]))
    timer = threading.Timer(MOMENT, gate.signal, (1,))
    timer.start()
    source.write(np.zeros(SIZE, np.uint8))
    timer.join()
    rig.holds(target, data)
    rig.holds(source, np.zeros(SIZE, np.uint8))


@case
def other_buffers_are_free(rig: Rig) -> None:
    """Where memory is mapped, the host uses buffers that no work uses while work waits; elsewhere it is in order."""
    gate, busy, free = rig.device.create_semaphore(), rig.zeros(64), rig.buffer(rig.words(1, 2))
    rig.device.queue.submit(rig.filling(0, 64, 5), (busy,), Fence([(gate, 1)]))
    if free.host is None:
        gate.signal(1)
    rig.holds(free, rig.words(1, 2))
    free.write(rig.words(3))
    rig.holds(free, rig.words(3, 2))
    if free.host is not None:
        gate.signal(1)
    rig.device.queue.wait_idle()
    rig.holds(busy, np.full(64, 5, np.uint8))


@case
def pending_submissions(rig: Rig) -> None:
    """`wait_pending` returns when few enough submissions are under way, and not before."""
    gate, buffer, queue = rig.device.create_semaphore(), rig.zeros(16), rig.device.queue
    for number in range(3):
        queue.submit(rig.filling(0, 16, number), (buffer,), Fence([(gate, number + 1)]))
    queue.wait_pending(3, 0.0)
    with raises(DeadlineExceeded, match="more than 2 submissions"):
        queue.wait_pending(2, MOMENT)
    gate.signal(1)
    queue.wait_pending(2, rig.patience)
    gate.signal(3)
    queue.wait_pending(0, rig.patience)
    rig.holds(buffer, np.full(16, 2, np.uint8))


@case
def shares_are_in_one_order(rig: Rig) -> None:
    """Submissions of two shares of one device run in the order in which they were made."""
    buffer, gate = rig.zeros(SIZE), rig.device.create_semaphore()
    rig.device.queue.submit(None, (), Fence([(gate, 1)]))
    with rig.device.share() as device:
        share = rig.on(device)
        for value in range(6):
            user = share if value % 2 else rig
            user.device.queue.submit(user.filling(0, SIZE, value), (buffer,))
        gate.signal(1)
        rig.device.queue.wait_idle()
        device.queue.wait_idle()
        rig.holds(buffer, np.full(SIZE, 5, np.uint8))


@case
def not_before_it_is_submitted(rig: Rig) -> None:
    """A finished recording does nothing until it is submitted."""
    buffer = rig.zeros(64)
    commands = rig.filling(buffer, 64, 1)
    rig.run(rig.filling(0, 64, 2), rig.zeros(64))
    time.sleep(MOMENT)
    rig.holds(buffer, np.zeros(64, np.uint8))
    rig.run(commands)
    rig.holds(buffer, np.full(64, 1, np.uint8))
