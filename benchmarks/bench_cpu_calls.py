"""Submissions of the CPU driver, below the virtual machine: what a call costs apart from the work of its kernels, and
how a dispatch divides between threads.

The kernels are those of the conformance suite. The loop of 1,000 turns has one dispatch per turn, and its predicate is
in memory. The peer of the addition is NumPy.
"""

import sys
from collections.abc import Callable

import numpy as np
from harness import measure, table, versions

from orchestrion.hal.command_buffer import CommandBuffer
from orchestrion.hal.cpu.device import CpuDevice
from orchestrion.hal.cts.kernels import ADD, INCREMENT
from orchestrion.hal.cts.rig import Rig
from orchestrion.hal.device import Device
from orchestrion.hal.errors import DriverUnavailable
from orchestrion.hal.policy import Policy
from orchestrion.hal.registry import devices_of, load_driver

LARGE = 1 << 22
MINUS_ONE = 2**32 - 1


def dispatches(rig: Rig, count: int, elements: int) -> Callable[[], None]:
    """A call of `count` dispatches over some elements, 64 a workgroup."""
    commands = rig.recording(1)
    for _ in range(count):
        rig.dispatch(commands, INCREMENT, [(0, 0, 4 * elements)], elements, 1)
    return _call(rig, commands, elements)


def _call(rig: Rig, commands: CommandBuffer, elements: int) -> Callable[[], None]:
    commands.finish()
    run, buffers = rig.device.queue.execute, (rig.zeros(4 * elements),)
    return lambda: run(commands, buffers)


def loop(rig: Rig) -> Callable[[], None]:
    """A call of a loop that counts down from 1,000: the low byte of its counter is copied to the predicate."""
    start, counter, commands = rig.buffer(rig.words(1000)), rig.zeros(4), rig.recording()
    commands.copy(start, 0, counter, 0, 4)
    for _ in range(4):  # the predicate is a byte, so that the loop ends at multiples of 256
        rig.dispatch(commands, INCREMENT, [(counter, 0, 4)], 1, MINUS_ONE)
        commands.begin_loop(counter, 0)
        rig.dispatch(commands, INCREMENT, [(counter, 0, 4)], 1, MINUS_ONE)
        commands.end()
    commands.finish()
    run = rig.device.queue.execute
    return lambda: run(commands, ())


def addition(rig: Rig) -> Callable[[], None]:
    """A call of one dispatch: c = a + b over `LARGE` elements."""
    commands = rig.recording(3)
    rig.dispatch(commands, ADD, [(slot, 0, 4 * LARGE) for slot in range(3)], LARGE, 0)
    commands.finish()
    run, buffers = rig.device.queue.execute, [rig.zeros(4 * LARGE) for _ in range(3)]
    return lambda: run(commands, buffers)


def numpy_addition() -> Callable[[], None]:
    a, b, c = (np.zeros(LARGE, np.uint32) for _ in range(3))

    def run() -> None:
        np.add(a, b, out=c)

    return run


#: case -> function that returns its call, and calls per measurement
CASES: dict[str, tuple[Callable[[Rig], Callable[[], None]], int]] = {
    "no commands": (lambda rig: dispatches(rig, 0, 16), 1000),
    "1 dispatch of 1 workgroup": (lambda rig: dispatches(rig, 1, 64), 1000),
    "100 dispatches of 1 workgroup": (lambda rig: dispatches(rig, 100, 64), 300),
    "100 dispatches of 16 workgroups": (lambda rig: dispatches(rig, 100, 1024), 100),
    "loop of 1,000 turns": (loop, 100),
    "addition of 16 MiB": (addition, 2),
}


def main() -> int:
    try:
        (info,) = devices_of(load_driver("cpu"))
    except DriverUnavailable as error:
        print(error)
        return 0
    print(info.name, *info.notes)
    trusting = Policy(allow_native_code=True)
    for name, (make, calls) in CASES.items():
        with (
            Device.of(CpuDevice(info, 1), policy=trusting) as one,
            Device.of(CpuDevice(info, 2), policy=trusting) as two,
        ):
            candidates = {"1 thread": make(Rig(one, computes=True)), "2 threads": make(Rig(two, computes=True))}
            if make is addition:
                candidates["NumPy"] = numpy_addition()
            table(name, measure(candidates, calls), "1 thread")
    print(versions("numpy"))
    return 0


if __name__ == "__main__":
    sys.exit(main())
