"""What the tests of vm-batch share: modules, workers in this process, and what must be in a folder of results."""

import os
import pickle
import signal
from collections import deque
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

import numpy as np

from orchestrion import compiler
from orchestrion.tools.batching.pool import Done, Event, Lost, Refused, Started
from orchestrion.tools.batching.worker import Setup, Task, Worker, WorkerRefused

F32 = np.float32
COLUMNS = 3


def layer(x: Any) -> Any:
    return {"y": x * 2 + 1, "sum": x.sum(1)}


def compile_modules(folder: Path) -> None:
    """`dynamic.fb`, `four.fb` and `one.fb`: any number of rows, four, one."""
    import jax

    (b,) = jax.export.symbolic_shape("b", constraints=["b <= 256"])
    sources = {
        "dynamic": (layer, jax.ShapeDtypeStruct((b, COLUMNS), F32)),
        "four": (layer, np.zeros((4, COLUMNS), F32)),
        "one": (lambda x: layer(x[None]), np.zeros(COLUMNS, F32)),
    }
    for name, (function, example) in sources.items():
        (folder / f"{name}.fb").write_bytes(compiler.compile(function, example, targets=["reference"]))


def rows(count: int) -> np.ndarray:
    return np.random.default_rng(count).integers(-99, 99, (count, COLUMNS)).astype(F32)


def check(output: Path, x: np.ndarray, without: Collection[int] = ()) -> None:
    """Every input has its results once, and they are right."""
    wanted = [f"{index:06d}.npz" for index in range(len(x)) if index not in without]
    others = {"run.json", "failed.json"} if without else {"run.json"}
    assert sorted(path.name for path in output.iterdir() if path.name not in others) == wanted
    for index in range(len(x)):
        if index not in without:
            with np.load(output / f"{index:06d}.npz") as found:
                np.testing.assert_array_equal(found["y"].reshape(COLUMNS), x[index] * 2 + 1)
                assert found["sum"].reshape(()) == x[index].sum()


class InlineWorkers:
    """`Workers` in this process. `dies`: whether the worker ends while it does this task, before it does anything."""

    default = 2

    def __init__(self, setup: Setup, dies: Callable[[Task], bool] = lambda task: False, starts: int = 10**6) -> None:
        self.setup: Setup = pickle.loads(pickle.dumps(setup))
        assert self.setup == setup
        self.dies = dies
        self.starts = starts  #: workers that start before others end while they do
        self.workers: list[Worker | None] = []
        self.events: deque[Event] = deque()
        self.tasks: list[Task] = []

    def start(self) -> int:
        number = len(self.workers)
        self.workers.append(None)
        if number >= self.starts:
            self.events.append(Lost(number, "ended with status 7"))
            return number
        try:
            worker = self.workers[number] = Worker(self.setup)
            self.events.append(Started(number, worker.ready))
        except WorkerRefused as error:
            self.events.append(Refused(number, str(error)))
        return number

    def submit(self, worker: int, task: Task) -> None:
        self.tasks.append(task)
        if self.dies(task):
            self.events.append(Lost(worker, "was ended by SIGSEGV"))
            return
        found = self.workers[worker]
        assert found is not None
        try:
            self.events.append(Done(worker, found.run(task)))
        except WorkerRefused as error:
            self.events.append(Refused(worker, str(error)))

    def wait(self) -> list[Event]:
        return [self.events.popleft()]

    def close(self) -> None:
        self.events.clear()


class KillsOne:
    """Put before a class of workers: kills one of these processes as soon as the third task is given."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.submitted = 0
        self.pids: dict[int, int] = {}

    def wait(self) -> list[Event]:
        found: list[Event] = super().wait()  # type: ignore[misc]
        self.pids |= {event.worker: event.ready.pid for event in found if isinstance(event, Started)}
        return found

    def submit(self, worker: int, task: Task) -> None:
        super().submit(worker, task)  # type: ignore[misc]
        self.submitted += 1
        if self.submitted == 3:
            os.kill(self.pids[worker], signal.SIGKILL)
