"""Two contexts of one device on two threads: both have work under way at one time, and nothing of it is freed early.

A gate on the device's queue, which the test opens, keeps what is submitted behind it from running. So what the driver
was given before the gate opens it was given before any of it was over, however long anything takes.
"""

import functools
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from watchdog import watched

from orchestrion import compiler, vm
from orchestrion.hal.device import Device
from orchestrion.hal.errors import DeadlineExceeded
from orchestrion.hal.registry import open_device
from orchestrion.hal.semaphore import Fence

PATIENCE = 30.0
SIZE = 4096
X = np.array([1, 2, 3, 4], np.float32)
TEXT = """
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.multiply %x, %x : tensor<4xf32>
  return %0 : tensor<4xf32>
}
"""


@functools.cache
def module() -> bytes:
    return compiler.compile(TEXT)


class Gate:
    """Behind it nothing runs until it is opened."""

    def __init__(self, device: Device) -> None:
        self.device = device
        if device.info.driver == "opencl":
            import pyopencl as cl

            native = device.native
            self.event = cl.UserEvent(native.context)
            with device.lock:
                cl.enqueue_barrier(native.queue, wait_for=[self.event])
            self.open: Callable[[], None] = lambda: self.event.set_status(0)
        else:
            self.semaphore = device.create_semaphore()
            device.queue.submit(None, (), Fence([(self.semaphore, 1)]))
            self.open = lambda: self.semaphore.signal(1)

    def close(self) -> None:
        if self.device.info.driver == "vulkan":
            self.semaphore.release()


class Watched:
    """What the driver was given and what it said to be over, in order; for shares that are made from here on."""

    def __init__(self, device: Device, monkeypatch: pytest.MonkeyPatch) -> None:
        queue, self.seen = device.device_state.backend.queue, list[str]()
        for name in ("launch", "launch_batch", "wait"):
            monkeypatch.setattr(queue, name, functools.partial(self._note, getattr(queue, name), name))

    def _note(self, function: Callable[..., None], name: str, *arguments: Any) -> None:
        function(*arguments)
        self.seen.append(name)

    def has(self, count: int) -> bool:
        """Whether so many things happened, soon."""
        return soon(lambda: len(self.seen) >= count)


def soon(happened: Callable[[], object]) -> bool:
    end = time.monotonic() + PATIENCE
    while not happened() and time.monotonic() < end:
        time.sleep(0.002)
    return bool(happened())


def start(*actions: Callable[[], Any]) -> list[threading.Thread]:
    threads = [threading.Thread(target=action, daemon=True) for action in actions]
    for thread in threads:
        thread.start()
    return threads


def join(threads: list[threading.Thread]) -> None:
    for thread in threads:
        thread.join(PATIENCE)
        assert not thread.is_alive()


@pytest.fixture(params=["opencl", "vulkan"])
def program(request: pytest.FixtureRequest, load_on: Callable[[bytes, str], Any]) -> Iterator[vm.Program]:
    with watched(4 * PATIENCE):
        loaded = load_on(module(), request.param)
        yield loaded
        loaded.close()


@pytest.fixture
def device(program: vm.Program) -> Device:
    return program.device


def filled(device: Device, value: int) -> tuple[Any, Any]:
    """A recording that fills a buffer, and the buffer."""
    buffer, commands = device.allocator.allocate(SIZE), device.create_command_buffer(1)
    commands.fill(0, 0, SIZE, bytes([value]))
    commands.finish()
    return commands, buffer


def test_two_contexts_on_two_threads(program: vm.Program, monkeypatch: pytest.MonkeyPatch) -> None:
    """The driver has taken the second submission before it said that the first is over."""
    seen, contexts = Watched(program.device, monkeypatch), [program.create_context() for _ in range(2)]
    for context in contexts:
        np.testing.assert_array_equal(context.main(X), X * X)
    seen.seen.clear()
    results: dict[int, Any] = {}
    gate = Gate(program.device)
    threads = start(*[lambda i=i: results.update({i: contexts[i].main(X + i)}) for i in range(2)])  # type: ignore[misc]
    assert seen.has(2)
    assert seen.seen == ["launch"] * 2 and not results
    assert program.device.device_state.unfinished >= 2
    gate.open()
    join(threads)
    gate.close()
    assert sorted(seen.seen) == ["launch"] * 2 + ["wait"] * 2
    for i in range(2):
        np.testing.assert_array_equal(results[i], (X + i) ** 2)
    for context in contexts:
        context.close()


def test_batches_on_two_threads(device: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    seen, shares = Watched(device, monkeypatch), [device.share() for _ in range(2)]
    works = [filled(share, i + 1) for i, share in enumerate(shares)]
    gate = Gate(device)
    threads = start(
        *[
            lambda share=share, c=c, b=b: share.queue.execute_batch([(c, (b,)), (c, (b,))])  # type: ignore[misc]
            for share, (c, b) in zip(shares, works, strict=True)
        ]
    )
    assert seen.has(2) and seen.seen == ["launch_batch"] * 2
    gate.open()
    join(threads)
    gate.close()
    for i, (share, (commands, buffer)) in enumerate(zip(shares, works, strict=True)):
        out = np.empty(SIZE, np.uint8)
        buffer.read(out)
        assert (out == i + 1).all()
        commands.release()
        buffer.release()
        share.close()


def test_what_is_released_meanwhile_stays(device: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    """Handles that another thread releases while a call runs: the driver keeps the objects until the call is over."""
    seen, share, state = Watched(device, monkeypatch), device.share(), device.device_state
    commands, buffer = filled(share, 1)
    later = share.allocator.allocate(SIZE)
    objects = {id(commands.backend), id(buffer.backend)}
    gate = Gate(device)
    threads = start(lambda: share.queue.execute(commands, (buffer,)))
    assert seen.has(1)
    buffer.release()
    commands.release()
    later.release()
    state.collect()
    assert objects <= state.owned and len(state.deferred_garbage) == 3
    gate.open()
    join(threads)
    gate.close()
    assert soon(lambda: not state.deferred_garbage) and not objects & state.owned
    share.close()


def test_recordings_under_way_are_not_encoded_anew(device: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tables without end on one recording, while a call with the first of them is under way."""
    seen, share = Watched(device, monkeypatch), device.share()
    commands, first = filled(share, 1)
    others = [share.allocator.allocate(SIZE) for _ in range(40)]
    gate = Gate(device)
    threads = start(lambda: share.queue.execute(commands, (first,)))
    assert seen.has(1)
    for other in others:
        share.queue.submit(commands, (other,))
    gate.open()
    join(threads)
    gate.close()
    share.queue.wait_idle()
    for buffer in (first, *others):
        out = np.empty(SIZE, np.uint8)
        buffer.read(out)
        assert (out == 1).all()
        buffer.release()
    commands.release()
    share.close()


class Impatient:
    """Ends the wait at its first look."""

    def check(self) -> None:
        raise DeadlineExceeded("no patience")


def test_a_call_that_is_broken_off_disturbs_no_other(device: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    """One of two calls under way ends by its watcher: the other one goes on, and the host waits for both buffers."""
    if device.info.driver == "opencl":
        pytest.skip("a wait of OpenCL asks no watcher")
    seen, shares = Watched(device, monkeypatch), [device.share() for _ in range(2)]
    works = [filled(share, i + 1) for i, share in enumerate(shares)]
    ended: list[str] = []

    def give_up() -> None:
        with pytest.raises(DeadlineExceeded, match="no patience"):
            shares[0].queue.execute(works[0][0], (works[0][1],), Impatient())
        ended.append("first")

    gate = Gate(device)
    threads = start(give_up)
    assert seen.has(1)
    threads += start(lambda: shares[1].queue.execute(works[1][0], (works[1][1],)))
    assert seen.has(2) and soon(lambda: ended)
    assert works[0][1].submitted and not works[1][1].submitted
    gate.open()
    join(threads)
    gate.close()
    for i, (share, (commands, buffer)) in enumerate(zip(shares, works, strict=True)):
        out = np.empty(SIZE, np.uint8)
        buffer.read(out)
        assert (out == i + 1).all()
        share.queue.execute(commands, (buffer,))
        commands.release()
        buffer.release()
        share.close()


def test_close_waits_for_calls_of_other_threads(program: vm.Program) -> None:
    """The last share is closed while another thread is in a call: the driver's device is closed behind it."""
    device = open_device(program.device.info.id)
    state = device.device_state
    commands, buffer = filled(device, 7)
    device.queue.execute(commands, (buffer,))
    gate = Gate(device)
    threads = start(lambda: device.queue.execute(commands, (buffer,)))
    assert soon(lambda: state.unfinished >= (2 if device.info.driver == "vulkan" else 1))
    timer = threading.Timer(0.05, gate.open)
    timer.start()
    device.close_seconds = PATIENCE
    with pytest.warns(ResourceWarning, match="not released"):
        device.close()
    assert not state.unfinished
    join([*threads, timer])
    buffer.release()
    commands.release()
    gate.close()
    assert soon(lambda: state.abandoned) and not state.owned
