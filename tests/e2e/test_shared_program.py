"""One loaded program, many contexts and threads: no wrong result, nothing that grows, no deadlock.

`make stress` makes 10,000 calls per thread (ORCHESTRION_STRESS), CI some hundred.
"""

import functools
import gc
import os
import queue
import random
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from alarms import Alarm
from watchdog import run_together, watched

from orchestrion import compiler, vm
from orchestrion.schema.assembler import assemble
from orchestrion.schema.profiles import PROFILES
from orchestrion.schema.writer import write
from orchestrion.vm.errors import Cancelled, DeadlineExceeded, FuelExhausted, WaitFailed

CALLS = int(os.environ.get("ORCHESTRION_STRESS", "250"))
THREADS = 8
#: seconds for all threads, far more than they take
PATIENCE = 60.0 + 0.02 * CALLS * THREADS
X = np.arange(24, dtype=np.float32).reshape(4, 6) / 8
TEXT = """
func.func @main(%x: tensor<4x6xf32>, %n: tensor<f32>) -> (tensor<4x6xf32>, tensor<4xf32>) {
  %w = stablehlo.constant dense<[[0.5], [0.25], [-1.0], [2.0], [0.0], [1.5]]> : tensor<6x1xf32>
  %0 = stablehlo.broadcast_in_dim %n, dims = [] : (tensor<f32>) -> tensor<4x6xf32>
  %1 = stablehlo.add %x, %0 : tensor<4x6xf32>
  %2 = stablehlo.multiply %1, %1 : tensor<4x6xf32>
  %3 = stablehlo.dot %2, %w : (tensor<4x6xf32>, tensor<6x1xf32>) -> tensor<4x1xf32>
  %4 = stablehlo.reshape %3 : (tensor<4x1xf32>) -> tensor<4xf32>
  return %2, %4 : tensor<4x6xf32>, tensor<4xf32>
}
"""
SPIN = (Path(__file__).parent / "modules" / "spin.asm").read_text()
V = np.array([1, 2, 3, 4], np.float32)
W = np.array([0.5, 0.25, -1.0, 2.0, 0.0, 1.5], np.float32)


@functools.cache
def module() -> bytes:
    return compiler.compile(TEXT)


@pytest.fixture(params=["reference", "opencl", "vulkan"])
def program(request: pytest.FixtureRequest, load_on: Callable[[bytes, str], Any]) -> Iterator[vm.Program]:
    loaded = load_on(module(), request.param)
    yield loaded
    loaded.close()


@pytest.fixture
def spinning(program: vm.Program) -> Iterator[vm.Program]:
    """A program on the same device with a function that never ends."""
    profile = next(row for row in PROFILES.values() if row.format == program.device.info.formats[0])
    loaded = vm.load(write(assemble(SPIN.replace("{profile}", profile.name))), program.device)
    yield loaded
    loaded.close()


def check(results: Any, n: float) -> None:
    squares, products = (np.asarray(result) for result in results)
    np.testing.assert_array_equal(squares, (X + np.float32(n)) ** 2)
    np.testing.assert_allclose(products, (X + np.float32(n)) ** 2 @ W, rtol=1e-6)


class Signaller:
    """A thread that signals fences and events a little later."""

    def __init__(self) -> None:
        self.signals: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self.events = event_maker()

    def run(self) -> None:
        while (signal := self.signals.get()) is not None:
            if self.signals.qsize() < 4:
                time.sleep(0.0005)
            signal()


def event_maker() -> Callable[[], Any] | None:
    """Makes OpenCL events of a context that is no driver's; None without OpenCL."""
    try:
        import pyopencl as cl

        context = cl.Context([cl.get_platforms()[0].get_devices()[0]])
    except Exception:  # whatever is missing, the rest of the test does without
        return None
    return lambda: cl.UserEvent(context)


class User:
    """One thread: contexts of its own, and the ways to call."""

    def __init__(self, program: vm.Program, spinning: vm.Program, seed: int, signaller: Signaller) -> None:
        self.program = program
        self.chance = random.Random(seed)
        self.signaller = signaller
        self.own = program.create_context()
        self.starved = spinning.create_context(fuel=200)
        self.hurried = program.create_context(deadline=0.0)
        self.resident = program.put(X)
        self.out = (np.empty((4, 6), np.float32), program.empty((4,), np.float32))
        self.pending: list[tuple[vm.Future, float]] = []
        self.ways: list[Callable[[float], None]] = [
            *[self.blocking] * 6,
            *[self.submitted] * 4,
            *[self.reused, self.shared, self.late, self.fuel, self.deadline, self.cancelled, self.failed] * 2,
            self.opened,
            self.native,
        ]

    def run(self) -> None:
        for count in range(CALLS):
            self.chance.choice(self.ways)(float(count % 97))
            while len(self.pending) > 6:
                self.recover()
        while self.pending:
            self.recover()
        for context in (self.own, self.starved, self.hurried):
            context.close()

    def recover(self) -> None:
        future, n = self.pending.pop(0)
        check(future.result(PATIENCE), n)

    def blocking(self, n: float) -> None:
        check(self.own.main(X, n), n)

    def submitted(self, n: float) -> None:
        self.pending.append((self.own.main.submit(X, n), n))

    def reused(self, n: float) -> None:
        check(self.own.main(self.resident, n, out=self.out), n)

    def shared(self, n: float) -> None:
        """The default context, which all threads use."""
        check(self.program.main(X, n), n)
        self.pending.append((self.program.main.submit(self.resident, n), n))

    def late(self, n: float) -> None:
        fence = vm.Fence()
        self.pending.append((self.own.main.submit(X, n, wait=[fence]), n))
        self.signaller.signals.put(fence.signal)

    def native(self, n: float) -> None:
        """An event of the caller's own, which comes later."""
        event = fence = vm.Fence() if self.signaller.events is None else self.signaller.events()
        self.pending.append((self.own.main.submit(X, n, wait=[event]), n))
        self.signaller.signals.put(fence.signal if isinstance(fence, vm.Fence) else lambda: event.set_status(0))

    def fuel(self, n: float) -> None:
        if self.chance.random() < 0.5:
            with pytest.raises(FuelExhausted):
                self.starved.spin(V + n)
        else:
            assert isinstance(self.starved.spin.submit(V + n).exception(PATIENCE), FuelExhausted)
        np.testing.assert_array_equal(self.starved.copy(V - n), V - n)
        future = self.starved.spin.submit(V)
        np.testing.assert_array_equal(self.starved.copy.submit(V * n).result(PATIENCE), V * n)
        assert isinstance(future.exception(), FuelExhausted)

    def deadline(self, n: float) -> None:
        assert isinstance(self.hurried.main.submit(X, n).exception(PATIENCE), DeadlineExceeded)

    def cancelled(self, n: float) -> None:
        fence = vm.Fence()
        future = self.own.main.submit(X, n, wait=[fence])
        running = self.own.main.submit(X, n)
        assert future.cancel() and isinstance(future.exception(), Cancelled)
        if not running.cancel():
            check(running.result(), n)
        fence.signal()

    def failed(self, n: float) -> None:
        fence = vm.Fence()
        future = self.own.main.submit(X, n, wait=[fence])
        fence.settle(ValueError("it went wrong"))
        assert isinstance(future.exception(PATIENCE), WaitFailed)

    def opened(self, n: float) -> None:
        context = self.program.create_context()
        future = context.main.submit(X, n)
        if self.chance.random() < 0.5:
            check(context.main(X, n), n)
        context.close()
        if future.exception(PATIENCE) is None:
            check(future.result(), n)


def quiet(program: vm.Program) -> tuple[int, int]:
    """Bytes of the device in use, and objects of the driver that something refers to, once nothing is under way."""
    state = program.device.device_state

    def count() -> tuple[int, int]:
        return program.device.allocator.live_bytes, len(state.owned) - len(state.unreleased)

    program.device.queue.wait_idle()
    end = time.monotonic() + 5
    while True:
        gc.collect()
        state.collect()
        found = count()
        time.sleep(0.05)
        if found == count() or time.monotonic() > end:
            return found


def warm_up(program: vm.Program, spinning: vm.Program) -> None:
    """What the first calls make and keep."""
    user = User(program, spinning, 0, Signaller())
    user.shared(1.0)
    user.recover()
    for context in (user.own, user.starved, user.hurried):
        context.close()


def test_eight_threads(program: vm.Program, spinning: vm.Program) -> None:
    def use() -> None:
        signaller = Signaller()
        users = [User(program, spinning, seed, signaller) for seed in range(THREADS)]
        thread = threading.Thread(target=signaller.run)
        thread.start()
        try:
            run_together([user.run for user in users], PATIENCE)
        finally:
            signaller.signals.put(None)
            thread.join()

    warm_up(program, spinning)
    before = quiet(program)
    use()
    assert quiet(program) == before
    check(program.main(X, 2.0), 2.0)


class Interrupted:
    """The main thread: calls that an alarm ends at a random moment, and calls that none ends."""

    def __init__(self, program: vm.Program) -> None:
        self.chance = random.Random(7)
        self.own = program.create_context()
        self.program = program
        self.count = 0

    def call(self, n: float) -> None:
        chance = self.chance.random()
        if chance < 0.5:
            check(self.own.main(X, n), n)
        elif chance < 0.7:
            check(self.program.main(X, n), n)
        else:
            check(self.own.main.submit(X, n).result(PATIENCE), n)

    def turn(self, n: float) -> None:
        try:
            with Alarm(self.chance.uniform(0.0001, 0.01)):
                while True:
                    self.call(n)
        except KeyboardInterrupt:
            self.count += 1
        check(self.own.main(X, n + 1), n + 1)


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="the system has no alarms")
def test_eight_threads_beside_an_interrupted_one(program: vm.Program, spinning: vm.Program) -> None:
    """Cancels, deadlines, contexts that are closed, and interrupts: no wrong result, no hang, nothing left."""
    main = Interrupted(program)
    check(main.own.main(X, 1.0), 1.0)
    main.own.main.submit(X, 1.0).result(PATIENCE)
    warm_up(program, spinning)
    before = quiet(program)
    signaller = Signaller()
    users = [User(program, spinning, seed, signaller) for seed in range(THREADS)]
    failures: list[BaseException] = []

    def guarded(work: Callable[[], None]) -> None:
        try:
            work()
        except BaseException as failure:
            failures.append(failure)

    threads = [threading.Thread(target=guarded, args=(user.run,), daemon=True) for user in users]
    signals = threading.Thread(target=signaller.run, daemon=True)
    with watched(2 * PATIENCE):
        end = time.monotonic() + PATIENCE
        for thread in (signals, *threads):
            thread.start()
        while any(thread.is_alive() for thread in threads) and not failures and time.monotonic() < end:
            main.turn(float(main.count % 97))
            time.sleep(0.01)
        signaller.signals.put(None)
        assert not failures, failures
        assert not any(thread.is_alive() for thread in threads), "threads hang"
        signals.join()
    assert main.count > 1
    del users, threads
    assert quiet(program) == before
    main.own.close()
