"""Several threads: shares of one device work concurrently, and none sees another's data."""

from __future__ import annotations

import threading
from collections.abc import Callable

import numpy as np

from orchestrion.hal.buffer import Buffer
from orchestrion.hal.semaphore import Fence

from .case import Group
from .kernels import INCREMENT
from .rig import Rig

case = Group("threads", __doc__)

THREADS = 4


def together(count: int, work: Callable[[int], None]) -> None:
    """Run `work(number)` in `count` threads, which start at the same time. Raises the first error."""
    failures: list[BaseException] = []
    start = threading.Barrier(count)

    def run(number: int) -> None:
        try:
            start.wait()
            work(number)
        except BaseException as failure:
            failures.append(failure)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]


def on_shares(rig: Rig, work: Callable[[Rig, int], None]) -> None:
    """As `together`, each thread with its own share, in which nothing may be left."""

    def run(number: int) -> None:
        with rig.device.share() as device:
            work(rig.on(device), number)
            device.queue.wait_idle()
            assert device.close() == ()

    together(THREADS, run)


@case
def transfers(rig: Rig) -> None:
    """Each thread writes, copies, fills and reads buffers of its own."""

    def work(share: Rig, number: int) -> None:
        copy = share.copying(4096)
        for round in range(15):
            data = share.bytes(4096, 100 * number + round)
            source, target = share.buffer(data), share.zeros(4096)
            share.run(copy, source, target)
            share.run(share.filling(0, 4096, number), source)
            share.holds(target, data)
            share.holds(source, np.full(4096, number, np.uint8))

    on_shares(rig, work)


@case.needing("dispatch")
def dispatches(rig: Rig) -> None:
    """Each thread runs a kernel with other parameters and buffers, of the same executable or its own."""

    def work(share: Rig, number: int) -> None:
        buffer = share.zeros(1024)
        commands = share.recording(1)
        share.dispatch(commands, INCREMENT, [(0, 0, 1024)], 256, number + 1)
        commands.finish()
        for _ in range(30):
            share.run(commands, buffer)
        share.computed(buffer, np.full(256, 30 * (number + 1), np.uint32))

    on_shares(rig, work)


@case
def submissions(rig: Rig) -> None:
    """Each thread submits without waiting, and waits for its own fence."""

    def work(share: Rig, number: int) -> None:
        done, buffer = share.device.create_semaphore(), share.zeros(4096)
        for value in range(1, 31):
            commands = share.filling(0, 4096, (number * 31 + value) % 251)
            share.device.queue.submit(commands, (buffer,), None, Fence([(done, value)]))
        done.wait(30, share.patience)
        share.holds(buffer, np.full(4096, (number * 31 + 30) % 251, np.uint8))

    on_shares(rig, work)


@case
def blocking_and_submitted(rig: Rig) -> None:
    """Half of the threads block, the others submit; each sees its own work done."""

    def work(share: Rig, number: int) -> None:
        data, commands = share.random(1024, number), share.copying(4096)
        source, target = share.buffer(data), share.zeros(4096)
        for _ in range(20):
            if number % 2:
                share.run(commands, source, target)
            else:
                share.device.queue.submit(commands, (source, target))
            share.holds(target, data)
            target.write(np.zeros(1024, np.uint32))

    on_shares(rig, work)


@case
def allocations(rig: Rig) -> None:
    """Threads allocate and release at one time; memory is zero, apart, and all given back."""

    def work(share: Rig, number: int) -> None:
        random = np.random.default_rng(number)
        live: list[Buffer] = []
        for _ in range(60):
            size = int(random.integers(1, 5000))
            buffer = share.device.allocator.allocate(size)
            share.holds(buffer, np.zeros(size, np.uint8))
            buffer.write(np.full(size, number + 1, np.uint8))
            live.append(buffer)
            if len(live) > 5:
                gone = live.pop(int(random.integers(len(live))))
                share.holds(gone, np.full(gone.size, number + 1, np.uint8))
                gone.release()
        for buffer in live:
            share.holds(buffer, np.full(buffer.size, number + 1, np.uint8))
            buffer.release()
        share.device.queue.wait_idle()
        share.soon(lambda: share.device.allocator.live_bytes, 0)

    on_shares(rig, work)


@case
def recordings(rig: Rig) -> None:
    """Threads record at one time; each recording does what was recorded into it."""

    def work(share: Rig, number: int) -> None:
        for round in range(10):
            buffer, want = share.zeros(200), np.zeros(200, np.uint8)
            commands = share.recording(1)
            for place in range(0, 200, 3):
                commands.fill(0, place, 2, bytes([number * 40 + round]))
                want[place : place + 2] = number * 40 + round
            commands.finish()
            share.run(commands, buffer)
            share.holds(buffer, want)

    on_shares(rig, work)


@case
def passed_from_thread_to_thread(rig: Rig) -> None:
    """A buffer goes round among threads, each of which waits for the one before by a semaphore."""
    buffer, turn = rig.zeros(64), rig.device.create_semaphore()

    def work(share: Rig, number: int) -> None:
        for round in range(5):
            value = round * THREADS + number
            turn.wait(value, share.patience)
            share.holds(buffer, np.full(64, value, np.uint8))
            share.run(share.filling(0, 64, value + 1), buffer)
            turn.signal(value + 1)

    on_shares(rig, work)
    rig.holds(buffer, np.full(64, 5 * THREADS, np.uint8))


@case
def one_queue(rig: Rig) -> None:
    """Threads that use one queue at one time are served one after the other."""
    buffers = [rig.zeros(256) for _ in range(THREADS)]
    commands = [rig.filling(0, 256, number + 1) for number in range(THREADS)]

    def work(number: int) -> None:
        for _ in range(25):
            rig.run(commands[number], buffers[number])
            rig.device.queue.submit(commands[number], (buffers[number],))
        rig.device.queue.wait_idle()

    together(THREADS, work)
    for number, buffer in enumerate(buffers):
        rig.holds(buffer, np.full(256, number + 1, np.uint8))


@case
def released_by_another_thread(rig: Rig) -> None:
    """Handles are released by another thread than the one that made them, while the device works."""
    buffer, commands = rig.zeros(1 << 16), rig.filling(0, 1 << 16, 1)
    made = [[rig.buffer(rig.bytes(1000, number)) for number in range(50)] for _ in range(THREADS)]

    def work(number: int) -> None:
        for one in made[number]:
            one.release()
            if number == 0:
                rig.run(commands, buffer)

    together(THREADS, work)
    rig.device.queue.wait_idle()
    assert rig.device.leaks == ("1 buffer", "1 command buffer")
    rig.soon(lambda: rig.device.allocator.live_bytes, 1 << 16)
    rig.holds(buffer, np.full(1 << 16, 1, np.uint8))


@case
def waiting_while_others_work(rig: Rig) -> None:
    """A thread that waits for a semaphore does not keep the others from working."""
    gate, buffer = rig.device.create_semaphore(), rig.zeros(256)
    waiter = threading.Thread(target=lambda: gate.wait(1, rig.patience))
    waiter.start()
    for value in range(1, 21):
        rig.run(rig.filling(0, 256, value), buffer)
    rig.holds(buffer, np.full(256, 20, np.uint8))
    assert waiter.is_alive()
    gate.signal(1)
    waiter.join(rig.patience)
    assert not waiter.is_alive()
