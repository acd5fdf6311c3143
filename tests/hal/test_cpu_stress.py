"""The pool of the CPU driver under load: small submissions from several threads, interrupts, fork, exit.

`ORCHESTRION_CPU_SUBMISSIONS` is the number of submissions, and `ORCHESTRION_CPU_INTERRUPTS` that of interrupted calls
(`make stress`: a million, and 200).
"""

import os
import random
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator

import numpy as np
import pytest
from alarms import Alarm
from cpu_devices import open_cpu

from orchestrion.hal.command_buffer import CommandBuffer
from orchestrion.hal.cts.kernels import INCREMENT
from orchestrion.hal.cts.rig import Rig

SUBMISSIONS = int(os.environ.get("ORCHESTRION_CPU_SUBMISSIONS", "100000"))
INTERRUPTS = int(os.environ.get("ORCHESTRION_CPU_INTERRUPTS", "40"))
CALLERS = 4
#: elements: one workgroup has 64
SIZES = (1, 64, 65, 500, 1000, 2000, 5000, 20000)


@pytest.fixture
def rig() -> Iterator[Rig]:
    with open_cpu() as device:
        yield Rig(device, computes=True)


class Counters:
    """Buffers of several sizes, and recordings that add to all of their elements."""

    def __init__(self, rig: Rig, seed: int) -> None:
        self.rig = rig
        self.chance = random.Random(seed)
        self.buffers = [rig.zeros(4 * size) for size in SIZES]
        self.totals = [0] * len(SIZES)
        self.recordings: list[tuple[CommandBuffer, int]] = []
        for size in SIZES:
            value = self.chance.randrange(1, 100)
            commands = rig.recording(1)
            times = self.chance.randrange(1, 4)
            for _ in range(times):
                rig.dispatch(commands, INCREMENT, [(0, 0, 4 * size)], size, value)
            commands.finish()
            self.recordings.append((commands, times * value))

    def step(self) -> None:
        """One submission, blocking or not."""
        number = self.chance.randrange(len(SIZES))
        commands, value = self.recordings[number]
        if self.chance.random() < 0.1:
            self.rig.device.queue.submit(commands, [self.buffers[number]])
        else:
            self.rig.run(commands, self.buffers[number])
        self.totals[number] += value

    def check(self) -> None:
        for size, buffer, total in zip(SIZES, self.buffers, self.totals, strict=True):
            self.rig.computed(buffer, np.full(size, total % 2**32, np.uint32))


def in_threads(count: int, work: Callable[[int], None]) -> None:
    """Call `work(number)` in this many threads. Raises the first error."""
    errors: list[BaseException] = []

    def run(number: int) -> None:
        try:
            work(number)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


@pytest.mark.parametrize("threads", [1, 2, 7], ids="{} threads".format)
def test_small_submissions(threads: int) -> None:
    """Callers with a device each share the pool; every element has every addition."""

    def work(number: int) -> None:
        with open_cpu(threads) as device:
            counters = Counters(Rig(device, computes=True), number)
            for turn in range(SUBMISSIONS // CALLERS):
                counters.step()
                if turn % 5000 == 0:
                    counters.check()
            counters.check()

    in_threads(CALLERS, work)


def test_callers_of_one_device() -> None:
    """Threads that call one device take turns, and its pool is that of another device, which works at the same time."""
    with open_cpu() as device:
        rig = Rig(device, computes=True)
        counters = [Counters(rig, number) for number in range(CALLERS)]

        def work(number: int) -> None:
            for _ in range(SUBMISSIONS // CALLERS // 10):
                counters[number].step()

        in_threads(CALLERS, work)
        for one in counters:
            one.check()


def test_busy_machine() -> None:
    """Busy processes on all cores cost time, not results."""
    code = "while True: pass"
    busy = [subprocess.Popen([sys.executable, "-c", code]) for _ in range(2 * (os.cpu_count() or 1))]
    try:
        with open_cpu() as device:
            counters = Counters(Rig(device, computes=True), 7)
            for _ in range(SUBMISSIONS // 50):
                counters.step()
            counters.check()
    finally:
        for process in busy:
            process.kill()
        for process in busy:
            process.wait()


def endless(rig: Rig, size: int) -> CommandBuffer:
    """A loop without end over slot 1: its predicate is the byte in slot 0."""
    commands = rig.recording(2)
    commands.begin_loop(0, 0)
    rig.dispatch(commands, INCREMENT, [(1, 0, 4 * size)], size, 1)
    commands.end()
    commands.finish()
    return commands


@pytest.mark.parametrize("size", [1, 100_000])
def test_interrupted_calls(size: int) -> None:
    """Ctrl-C ends a call within its time slice. The next call is right, and closing ends."""
    chance = random.Random(size)
    for _ in range(INTERRUPTS // 2):
        with open_cpu() as device:
            rig = Rig(device, computes=True)
            one, data, counted = rig.buffer(rig.words(1)), rig.zeros(4 * size), rig.zeros(4 * size)
            loop, finite = endless(rig, size), rig.recording(1)
            rig.dispatch(finite, INCREMENT, [(0, 0, 4 * size)], size, 3)
            finite.finish()
            start, delay = time.monotonic(), chance.uniform(0.0005, 0.06)
            with pytest.raises(KeyboardInterrupt), Alarm(delay):
                rig.run(loop, one, data)
            assert time.monotonic() - start < delay + 5
            rig.run(finite, counted)
            rig.computed(counted, np.full(size, 3, np.uint32))


def test_fork(rig: Rig) -> None:
    """A forked process opens the device anew, with a pool of its own; the parent's goes on."""
    Counters(rig, 1).step()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            with open_cpu() as device:
                counters = Counters(Rig(device, computes=True), 2)
                for _ in range(500):
                    counters.step()
                counters.check()
            code = 0
        finally:
            os._exit(code)
    counters = Counters(rig, 3)
    for _ in range(500):
        counters.step()
    counters.check()
    assert os.waitpid(child, 0)[1] == 0


EXIT = """
import sys, threading, time
from contextlib import suppress
from orchestrion.hal.errors import HalError
from test_cpu_stress import endless
from cpu_devices import open_cpu
from orchestrion.hal.cts.rig import Rig
rig = Rig(open_cpu(), computes=True)
size = int(sys.argv[1])
loop, one, data = endless(rig, size), rig.buffer(rig.words(1)), rig.zeros(4 * size)
def work():
    with suppress(HalError):
        rig.run(loop, one, data)
if sys.argv[2] == "submitted":
    rig.device.queue.submit(loop, [one, data])
else:
    threading.Thread(target=work, daemon=True).start()
time.sleep(float(sys.argv[3]))
"""


@pytest.mark.sampled
@pytest.mark.parametrize("how", ["called", "submitted"])
@pytest.mark.parametrize("size", [1, 1_000_000])
@pytest.mark.parametrize("pause", [0.0, 0.1])
def test_exit_while_a_call_runs(how: str, size: int, pause: float) -> None:
    """The process ends although a call of a daemon thread, or submitted work, never would."""
    path = os.pathsep.join([os.path.dirname(__file__), *sys.path])
    arguments = [sys.executable, "-c", EXIT, str(size), how, str(pause)]
    done = subprocess.run(arguments, capture_output=True, text=True, timeout=60, env={**os.environ, "PYTHONPATH": path})
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
