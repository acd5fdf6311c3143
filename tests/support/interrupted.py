"""Interrupt, call, close: run as a script, in a process of its own, that must come to its end without a crash.

    python interrupted.py MODULE DEVICE ROUNDS SEED

Each round loads the module and calls it over and over until an alarm, at a random moment, raises what SIGINT does,
calls again, and closes, every third time with an alarm in the middle of that. A wrong result ends the process with an
error. The last line printed is the number of rounds.
"""

import faulthandler
import random
import signal
import sys
import time
from collections.abc import Callable

import numpy as np

#: seconds until a signal comes, at most
LONGEST = 0.03
came: list[int] = []


def handle(number: int, frame: object) -> None:
    """What Python does for SIGINT, and a note."""
    came.append(number)
    raise KeyboardInterrupt


def interrupt(action: Callable[[], object], seconds: float) -> None:
    """Run an action, and return once the signal has come, during the action or behind it. The exception may not arrive
    here: if a finalizer runs at that moment, Python prints it and goes on.
    """
    came.clear()
    try:
        signal.setitimer(signal.ITIMER_REAL, max(seconds, 1e-6))
        action()
        while not came:
            time.sleep(0.001)
    except KeyboardInterrupt:
        pass


def rounds(path: str, device: str, count: int, seed: int) -> None:
    from orchestrion import vm

    chance = random.Random(seed)
    x = np.random.default_rng(seed).standard_normal((192, 192)).astype(np.float32) / 16
    wanted: list[object] = [None, None]
    for number in range(count):
        program = vm.load(path, device, allow_native_code=True)
        wanted[0] = program.small(x) if wanted[0] is None else wanted[0]
        wanted[1] = program.large(x) if wanted[1] is None else wanted[1]
        functions = [program.small, program.large]

        def calls(functions: list[Callable[..., object]] = functions) -> None:
            for _ in range(20):
                for function, want in zip(functions, wanted, strict=True):
                    np.testing.assert_array_equal(function(x), want)

        interrupt(calls, chance.uniform(0, LONGEST))
        for function, want in zip(functions, wanted, strict=True):
            if chance.random() < 0.5:
                np.testing.assert_array_equal(function(x), want)
        if number % 3 == 2:
            interrupt(calls, chance.uniform(0, LONGEST))
            interrupt(program.close, chance.uniform(0, LONGEST / 20))
        program.close()


if __name__ == "__main__":
    faulthandler.dump_traceback_later(100, exit=True)
    sys.unraisablehook = lambda row: (
        None if isinstance(row.exc_value, KeyboardInterrupt) else sys.__unraisablehook__(row)
    )
    signal.signal(signal.SIGALRM, handle)
    rounds(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
    print(sys.argv[3])
