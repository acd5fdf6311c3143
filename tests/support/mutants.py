"""Runs mutants, one after the other, in a process of its own, whose parent finds the mutant that kills or hangs it.

    python mutants.py CORPUS PROGRESS NAMES FIRST COUNT SECONDS

CORPUS is a pickled dict of `writer.Module`. Each of the names, which commas part, has a fork of this process, which
ends after so many seconds. The seed at work stands in PROGRESS. Standard output has a JSON report, by name.
`run` is the property: a file of any bytes is refused with `ModuleError`, or every export of it runs on the reference
device, within limits of fuel, memory and time, to a result or a named error; afterwards nothing is left.
"""

import gc
import json
import mmap
import os
import pickle
import resource
import select
import signal
import sys
import threading
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import mutate
import numpy as np

from orchestrion.hal.backend import BackendDriver
from orchestrion.hal.device import Device
from orchestrion.hal.errors import HalError
from orchestrion.hal.reference.driver import ReferenceDriver
from orchestrion.hal.semaphore import Fence
from orchestrion.schema import writer
from orchestrion.schema.errors import ModuleError
from orchestrion.vm import code
from orchestrion.vm.call import Call
from orchestrion.vm.errors import VmError
from orchestrion.vm.function import Function
from orchestrion.vm.native import NativeModule, native
from orchestrion.vm.program import Program, load

FUEL, DEADLINE, MEMORY, DEPTH = 20_000, 0.25, 64 << 20, 200
#: seconds of work and of waiting that a call or a load may take beyond its deadline, and a mutant in all
SLACK, WAITING, PATIENCE = 1.0, 10.0, 20.0
#: outcome of a program that was closed while the device worked for it, and still does
NOT_OVER = "close: not over"
#: bytes the process may grow by, over all mutants
GROWTH = 1 << 30
#: exports that are run of one mutant
MAX_EXPORTS = 12
#: an argument larger than this is one element, broadcast
MAX_BYTES = 1 << 20
#: of so many mutants one has its calls submitted too
WITH_THREADS = 8
#: calls of an export, and how many the interpreter takes before it translates a straight function
ROUNDS, INTERPRETED = 4, 2

code._RUNS_TO_TRANSLATE = INTERPRETED  # type: ignore[attr-defined]
_DRIVER = ReferenceDriver()
_NUMBERS: dict[str, tuple[Any, ...]] = {
    "i32": (5, -1, 2**31 - 1),
    "i64": (9, -(2**63), 100),
    "f32": (1.5, float("nan"), -3.0),
    "f64": (2.5, float("inf"), 1e300),
}


#: what ended a thread
in_threads: list[str] = []
threading.excepthook = lambda args: in_threads.append(f"{args.exc_type.__name__}: {args.exc_value}")


class Broken(Exception):
    """The property does not hold."""


class Natives(NativeModule):
    """What the text of the corpus imports beside `hal`."""

    name = "test"

    @native("add", "(i32, i64, f32, f64, any) -> (any, f64, f32, i64, i32)", nullable=(4,))
    def add(self, call: Call, a: int, b: int, c: float, d: float, e: object) -> tuple[Any, ...]:
        return e, d, c, b, a

    @native("sum", "(i32*) -> i32")
    def sum(self, call: Call, *values: int) -> int:
        return sum(values) & 0xFFFF

    @native("fence", "(i32) -> hal.fence")
    def fence(self, call: Call, later: int) -> Fence:
        return Fence()

    @native("count", "(any, (i32, any)*) -> i32", nullable=(2,))
    def count(self, call: Call, first: object, *groups: Any) -> int:
        return len(groups) // 2


def run(data: bytes, threads: bool = False, driver: BackendDriver = _DRIVER, ordinal: int = 0) -> Counter[str]:
    """What became of a module: how it was refused, or how each of its exports ended. `Broken` when it must not be.

    `threads`: calls are submitted too, which device threads run. `driver`, `ordinal`: the device.
    """
    found: Counter[str] = Counter()
    device = Device.of(driver.open(driver.devices()[ordinal]))
    clock = _Clock()
    try:
        natives = (Natives(),) if b"test." in data else ()
        program = load(data, device, natives=natives, fuel=FUEL, deadline=DEADLINE, memory=MEMORY, depth=DEPTH)
    except (ModuleError, VmError, HalError) as error:
        found[f"load: {type(error).__name__}"] += 1
        _check_error(error)
        clock.check("load", 2 * DEADLINE)
    else:
        clock.check("load", 2 * DEADLINE)
        for name in list(program.functions)[:MAX_EXPORTS]:
            found[_call(program, name)] += 1
            if threads:
                found[_submit(program, name)] += 1
        if program.device.allocator.peak_bytes > MEMORY:
            raise Broken(f"{program.device.allocator.peak_bytes} bytes of device memory, {MEMORY} allowed")
        if not _closed(program, found):
            return found
        del program
    _check_leaks(device, found, threads)
    return found


def _closed(program: Program, found: Counter[str]) -> bool:
    """Close the program. False: its code counts so far that the device is not done, which nobody can end."""
    program.device.close_seconds = WAITING / 2
    clock = _Clock()
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        try:
            program.close()
        except HalError as error:  # of submitted work that no fence was there to tell of
            found[f"close: {type(error).__name__}"] += 1
    if any("not over after" in str(row.message) for row in said):
        found[NOT_OVER] += 1
        return False
    clock.check("close", DEADLINE)
    return True


def _call(program: Program, name: str) -> str:
    """Some calls: the next meets what the first left behind, the last ones run the translated function."""
    function = program.functions[name]
    outcome = "result"
    for round_ in range(ROUNDS):
        clock = _Clock()
        try:
            if isinstance(function, Function):
                arguments = [_array(value.dtype.numpy, value.shape, round_) for value in function.export.arguments]
            else:
                arguments = [_NUMBERS[t][round_ % 3] if t in _NUMBERS else None for t in _types(program, name)]
            function(*arguments)
        except (ModuleError, VmError, HalError) as error:
            _check_error(error)
            outcome = type(error).__name__
        clock.check(name, DEADLINE)
        if time.monotonic() > clock.wall + DEADLINE / 4:
            break
    return f"run: {outcome}"


def _submit(program: Program, name: str) -> str:
    """Two calls submitted, the second of which waits for the first."""
    function = program.functions[name]
    if not isinstance(function, Function):
        return "submit: no tensors"
    clock = _Clock()
    try:
        arguments = [_array(value.dtype.numpy, value.shape, 0) for value in function.export.arguments]
        first = function.submit(*arguments)
        second = function.submit(*arguments, wait=[first])
        first.exception(PATIENCE)
        second.result(PATIENCE)
    except TimeoutError:
        raise Broken(f"a submitted call of {name} hangs") from None
    except (ModuleError, VmError, HalError) as error:
        _check_error(error)
        return f"submit: {type(error).__name__}"
    finally:
        clock.check(f"submitted {name}", 2 * DEADLINE)
    return "submit: result"


def _types(program: Program, name: str) -> list[str]:
    """The argument types of the function behind an export without tensors."""
    module = program.module
    row = next(row for row in module.programs if module.strings[row.name] == program.name)
    at = [module.strings[export.name] for export in module.exports].index(name)
    function = module.functions[row.functions_start + module.entries[row.entries_start + at]]
    values = module.value_types[function.arguments_start : function.arguments_end]
    return [module.strings[module.types[value]] for value in values]


def _array(dtype: np.dtype[Any], shape: tuple[int, ...], round_: int) -> np.ndarray[Any, Any]:
    """Sizes that come with a call change from call to call."""
    shape = tuple(2 + round_ % 3 if dim < 0 else dim for dim in shape)
    count = 1
    for dim in shape:
        count *= dim
    if count * dtype.itemsize > MAX_BYTES:
        return np.broadcast_to(np.ones((), dtype), shape)
    if round_ % 2:
        return np.ones(shape, dtype)
    with np.errstate(all="ignore"):
        return (np.arange(count) * 37 - 50).astype(dtype).reshape(shape)


def _check_error(error: Exception) -> None:
    """Errors are printable, and memory never runs out before the limit does."""
    text = str(error)
    if not text:
        raise Broken(f"{type(error).__name__} without a message")
    if "no room" in text or "no memory left" in text or "has no more memory" in text:
        raise Broken(f"the machine's memory ran out before the limit: {text}") from error


class _Clock:
    """Started when made. Other processes may have the machine, so waiting has more room than work."""

    def __init__(self) -> None:
        self.wall, self.cpu = time.monotonic(), time.process_time()

    def check(self, what: str, allowed: float) -> None:
        worked, passed = time.process_time() - self.cpu, time.monotonic() - self.wall
        if worked > allowed + SLACK or passed > allowed + WAITING:
            raise Broken(f"{what} worked for {worked:.2f} s in {passed:.2f} s; the deadline was {allowed} s")


def _wait_for_threads(device: Device, seconds: float) -> None:
    """Those that served submitted calls let go of the last one a moment later."""
    end = time.monotonic() + seconds
    state = device.device_state
    state.collect()
    while (state.owned or state.open_shares != 1) and time.monotonic() < end:
        time.sleep(0.001)
        state.collect()


def _check_leaks(device: Device, found: Counter[str], threads: bool) -> None:
    """Everything is released, if need be after the collector broke cycles that the program made."""
    state = device.device_state
    device.executables.clear()
    _wait_for_threads(device, SLACK if threads else 0)
    if state.owned:
        gc.collect()
        found["cycles"] += 1
    _wait_for_threads(device, WAITING if threads else 0)
    if state.open_shares != 1:
        raise Broken(f"{state.open_shares - 1} shares of the device are open")
    if device.leaks or state.owned:
        raise Broken(f"{len(state.owned)} objects are left on the device")
    device.close()
    if not state.abandoned:
        raise Broken("the device is not closed")


def check(corpus: mutate.Corpus, name: str, seed: int, written: dict[str, bytes]) -> tuple[Counter[str], str]:
    """One mutant: what became of it, and why that is wrong, or nothing."""
    made = mutate.mutant(corpus, name, seed, written)
    if made.data is None:
        return Counter({"load: not written": 1}), ""
    started = time.process_time()
    try:
        found = run(made.data, seed % WITH_THREADS == 0)
        if in_threads:
            raise Broken(f"in a thread: {in_threads.pop()}")
    except Exception as error:
        last = traceback.extract_tb(error.__traceback__)[-1]
        where = f"{last.filename.rpartition('/')[2]}:{last.lineno}"
        return Counter(), f"{type(error).__name__} at {where}: {str(error)[:300]} ({', '.join(made.applied)})"
    taken = time.process_time() - started
    if taken > PATIENCE:
        return found, f"{taken:.2f} s of CPU ({', '.join(made.applied)})"
    return found, ""


def limit_memory() -> None:
    """A blow-up ends as MemoryError here, not as another process's end."""
    with open("/proc/self/statm") as file:
        used = int(file.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + 3 * GROWTH, used + 3 * GROWTH))


def main(corpus_file: str, progress_file: str, names: str, first: int, count: int, seconds: float) -> None:
    corpus: dict[str, writer.Module] = pickle.loads(Path(corpus_file).read_bytes())
    written = {key: writer.write(module) for key, module in corpus.items()}
    warnings.simplefilter("ignore", ResourceWarning)
    progress = Path(progress_file)
    reports = {}
    for name in names.split(","):
        progress.write_bytes(bytes(8))
        said, status = forked(lambda name=name: report(corpus, written, progress, name, first, count), seconds)
        seed = int.from_bytes(progress.read_bytes(), "little")
        reports[name] = json.loads(said) if not status else {"outcomes": {}, "failures": {seed: status}}
    json.dump(reports, sys.stdout)


def forked(work: Callable[[], str], seconds: float) -> tuple[str, str]:
    """What `work` returns in a fork of this process, and how the fork ended if it did not return."""
    read, write = os.pipe()
    child = os.fork()
    if not child:
        status = 1
        try:
            os.write(write, work().encode())
            status = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(status)
    os.close(write)
    ended = os.pidfd_open(child)
    late = not select.select([ended], [], [], seconds)[0]
    if late:
        os.kill(child, signal.SIGKILL)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    with os.fdopen(read, "rb") as said:
        text = said.read().decode()
    os.close(ended)
    return text, "hangs" if late else f"exit status {status}" if status else ""


def report(
    corpus: dict[str, writer.Module], written: dict[str, bytes], progress_file: Path, name: str, first: int, count: int
) -> str:
    """What became of the mutants of a module, as JSON, which fits a pipe."""
    run(written[name])
    gc.collect()
    gc.freeze()
    limit_memory()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    totals: Counter[str] = Counter()
    failures: dict[int, str] = {}
    with open(progress_file, "r+b") as file, mmap.mmap(file.fileno(), 8) as progress:
        for seed in range(first, first + count):
            progress[:] = seed.to_bytes(8, "little")
            found, problem = check(corpus, name, seed, written)
            totals += found
            if problem:
                failures[seed] = problem
    growth = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024
    if growth > GROWTH:
        failures[-1] = f"the process grew by {growth} bytes"
    return json.dumps({"outcomes": totals, "failures": failures, "growth": growth})


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]), int(sys.argv[5]), float(sys.argv[6]))
