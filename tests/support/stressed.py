"""Run by `test_stress.py`: eight threads call three contexts of one program, the driver fails at random, and the
garbage collector runs at each lock, before it is taken and while it is held.

`stressed.py MODULE DEVICE CALLS SEED` prints how many calls were right and how many failed as planned.
"""

import faulthandler
import gc
import random
import sys
import threading
import time
import warnings
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from orchestrion.schema import fork

THREADS, CONTEXTS = 8, 3
#: of calls of the driver that fail
PART = 0.01
PATIENCE = 60.0
_chance = random.Random(0)


def collect() -> None:
    """Mostly of young objects: what was there at the start is frozen."""
    if collecting:
        gc.collect(2 if _chance.random() < 0.05 else 0)


collecting: list[bool] = []


class CollectingLock:
    """A lock at which the collector runs."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.release = self._lock.release
        self.locked = self._lock.locked
        self._at_fork_reinit = self._lock._at_fork_reinit  # type: ignore[attr-defined]

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        collect()
        taken = self._lock.acquire(blocking, timeout)
        if taken:
            collect()
        return taken

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()


fork.threading = SimpleNamespace(Lock=CollectingLock, RLock=threading.RLock)  # type: ignore[attr-defined]

import numpy as np  # noqa: E402
from faults import ENDS, Faults, faulty_device  # noqa: E402

from orchestrion import vm  # noqa: E402
from orchestrion.hal.device import Device  # noqa: E402
from orchestrion.hal.errors import DeviceOutOfMemory, HalError, InternalError  # noqa: E402
from orchestrion.hal.policy import Policy  # noqa: E402
from orchestrion.hal.registry import load_driver  # noqa: E402
from orchestrion.vm.errors import VmError  # noqa: E402

X = np.array([1, 2, 3, 4], np.float32)
W = np.array([5, 6, 7, 8], np.float32)


class RandomFaults(Faults):
    """Any call may fail while `armed`."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        self.armed = False
        self._chance = random.Random(seed)

    def run(self, call: str, work: Callable[[], Any], submission: tuple[Any, ...] = ()) -> Any:
        if not self.armed or self._chance.random() >= PART:
            return work()
        self.failed[call] += 1
        if call in ENDS:
            work()
        raise (DeviceOutOfMemory if call == "BackendDevice.allocate" else InternalError)(f"{call} fails on purpose")


def planned(error: BaseException | None) -> bool:
    """Whether an error, or what it came from, is one of ours."""
    while error is not None:
        if "on purpose" in str(error):
            return True
        error = error.__cause__ or error.__context__
    return False


class User:
    """A thread."""

    def __init__(self, program: Any, contexts: list[Any], seed: int, calls: int) -> None:
        self.program, self.contexts, self.calls = program, contexts, calls
        self.chance = random.Random(seed)
        self.right = self.failed = 0
        self.errors: list[BaseException] = []

    def run(self) -> None:
        try:
            for count in range(self.calls):
                try:
                    self.call(np.float32(count % 13))
                    self.right += 1
                except (VmError, HalError) as error:
                    if not planned(error):
                        raise
                    self.failed += 1
        except BaseException as error:
            self.errors.append(error)

    def call(self, n: np.float32) -> None:
        main = self.chance.choice(self.contexts).main
        way = self.chance.randrange(4)
        if way == 0:
            results = main.submit(X + n).result(PATIENCE)
        elif way == 1:
            results = main(self.litter(n))
        else:
            results = main(X + n)
        np.testing.assert_array_equal(results[0], (X + n) * W)
        np.testing.assert_array_equal(results[1], ((X + n) * W) @ ((X + n) * W))

    def litter(self, n: np.float32) -> Any:
        """An argument on the device, which nobody but the collector lets go of."""
        array = self.program.put(X + n)
        cycle: list[Any] = [array, array.view.buffer.map()]
        cycle.append(cycle)
        return array


def main(path: str, name: str, calls: int, seed: int) -> None:
    faulthandler.dump_traceback_later(10 * PATIENCE, exit=True)
    warnings.filterwarnings("ignore", "device .* was not released: .* on purpose", RuntimeWarning)
    driver, faults = load_driver(name), RandomFaults(seed)
    device = Device.of(faulty_device(driver.open(driver.devices()[0]), faults), policy=Policy(allow_native_code=True))
    state = device.device_state
    program = vm.load(path, device)
    contexts = [program.create_context() for _ in range(CONTEXTS)]
    for context in contexts:
        context.main(X), context.main.submit(X).result(PATIENCE)
    users = [User(program, contexts, seed * THREADS + i, calls) for i in range(THREADS)]
    gc.collect()
    gc.freeze()
    collecting.append(True)
    faults.armed = True
    threads = [threading.Thread(target=user.run, daemon=True) for user in users]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(8 * PATIENCE)
        if thread.is_alive():
            faulthandler.dump_traceback(all_threads=True)
            sys.exit("threads hang")
    faults.armed = False
    collecting.clear()
    for user in users:
        for error in user.errors:
            raise error
    right, failed = sum(user.right for user in users), sum(user.failed for user in users)
    for context in contexts:
        check = context.main(X)
        np.testing.assert_array_equal(check[0], X * W)
    del users, threads, user, context, check
    finish(program, contexts, device)
    end = time.monotonic() + PATIENCE
    while not state.abandoned and time.monotonic() < end:
        gc.collect()
        state.collect()
        time.sleep(0.01)
    assert not faults.wrong, faults.wrong
    assert state.abandoned and not state.owned and not faults.live, (state.owned, len(faults.live))
    print(right, failed)


def finish(program: Any, contexts: list[Any], device: Device) -> None:
    """Close everything. Errors of work that nobody waited for are told here."""
    for thing in (*contexts, program, device):
        try:
            thing.close()
        except (VmError, HalError) as error:
            if not planned(error):
                raise
    contexts.clear()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
