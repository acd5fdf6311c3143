"""Software semaphores and the worker thread: order, failures, chains of failures."""

import threading
import time

import pytest

from orchestrion.hal.errors import InternalError, OutOfMemory
from orchestrion.hal.timeline import SoftSemaphore, Worker

PATIENCE = 20.0


def test_values_only_grow() -> None:
    semaphore = SoftSemaphore(5)
    semaphore.signal(3)
    assert semaphore.value() == 5
    assert semaphore.wait(5, 0.0) and not semaphore.wait(6, 0.01)


def test_order_and_deferral() -> None:
    worker, gate, done = Worker("test"), SoftSemaphore(0), SoftSemaphore(0)
    ran: list[int] = []
    worker.submit([(gate, 1)], lambda: ran.append(1), [(done, 1)])
    worker.submit([], lambda: ran.append(2), [(done, 2)])
    assert len(worker.busy) == 2 and ran == []
    gate.signal(1)
    worker.drain()
    assert not worker.busy and ran == [1, 2] and done.value() == 2
    worker.close()


def test_close_finishes_what_was_submitted() -> None:
    worker = Worker("test")
    ran: list[int] = []
    for number in range(100):
        worker.submit([], lambda number=number: ran.append(number), [])  # type: ignore[misc]
    worker.close()
    assert ran == list(range(100))


def test_failure_reaches_who_waits_and_nobody_else() -> None:
    """A failed value counts as reached and waiting for it raises. Later work that does not depend on it succeeds."""
    worker, done = Worker("test"), SoftSemaphore(0)

    def fail() -> None:
        raise OutOfMemory("no room")

    worker.submit([], None, [(done, 1)])
    worker.submit([], fail, [(done, 3)])
    worker.submit([], None, [(done, 4)])
    worker.drain()
    assert done.value() == 4
    assert done.wait(1, 0.0) and done.wait(4, 0.0)
    for value in (2, 3):
        with pytest.raises(OutOfMemory, match="no room"):
            done.wait(value, 0.0)
    worker.close()


def test_failures_go_down_the_chain() -> None:
    """Work whose wait failed does not run."""
    worker, first, second = Worker("test"), SoftSemaphore(0), SoftSemaphore(0)
    ran: list[int] = []
    worker.submit([], lambda: 1 // 0, [(first, 1)])  # type: ignore[arg-type, return-value]
    worker.submit([(first, 1)], lambda: ran.append(1), [(second, 1)])
    worker.drain()
    assert ran == []
    with pytest.raises(InternalError, match="ZeroDivisionError"):
        second.wait(1, PATIENCE)
    worker.close()


def test_failure_without_a_signal_is_raised_once_by_drain() -> None:
    worker = Worker("test")
    worker.submit([], lambda: 1 // 0, [])  # type: ignore[arg-type, return-value]
    with pytest.raises(InternalError, match="ZeroDivisionError"):
        worker.drain()
    worker.drain()
    worker.close()


def test_many_waiters() -> None:
    semaphore = SoftSemaphore(0)
    reached: list[int] = []

    def wait(value: int) -> None:
        assert semaphore.wait(value, PATIENCE)
        reached.append(value)

    threads = [threading.Thread(target=wait, args=(value,)) for value in range(1, 6)]
    for thread in threads:
        thread.start()
    for value in range(1, 6):
        semaphore.signal(value)
        time.sleep(0.002)
    for thread in threads:
        thread.join(PATIENCE)
    assert sorted(reached) == [1, 2, 3, 4, 5]
