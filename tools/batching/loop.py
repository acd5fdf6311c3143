"""Assigns tasks to workers until all inputs are done, and replaces workers that end.

A task whose worker ended is repeated. If that happens twice, each of its inputs becomes a separate task. An input whose
worker ends twice more is a failure. So an input that crashes its process costs four workers, and nothing else.
"""

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from orchestrion.tools.cli import InputError

from .outputs import Failure
from .pool import Done, Event, Lost, Refused, Started, Workers
from .worker import Outcome, Ready, Task

#: the most consecutive workers that end before they are ready, and the most workers that end during one task
MAX_FAILED_STARTS, MAX_DEATHS = 3, 2


@dataclass
class Totals:
    """The results of a run. `replaced`: the number of workers that ended and were replaced."""

    done: int = 0
    replaced: int = 0
    failures: list[Failure] = field(default_factory=list)
    devices: set[str] = field(default_factory=set)


class Loop:
    """One run. `started` is called when a worker is ready, `progressed` after each task."""

    def __init__(
        self,
        workers: Workers,
        wanted: int,
        tasks: Iterable[Task],
        label: Callable[[int], str | None],
        started: Callable[[Ready], None],
        progressed: Callable[[Totals], None],
    ) -> None:
        """`wanted`: the number of workers. `label`: returns the file name of an input."""
        self._workers = workers
        self._wanted = wanted
        self._pending = deque(tasks)
        self._label = label
        self._started = started
        self._progressed = progressed
        self._starting: set[int] = set()
        self._idle: list[int] = []
        self._busy: dict[int, Task] = {}
        self._failed_starts = 0
        self.totals = Totals()

    def run(self) -> Totals:
        """Runs all tasks. Raises InputError if a worker cannot take part, or workers end while they start."""
        self._start()
        while self._pending or self._busy:
            for event in self._workers.wait():
                self._take(event)
            self._submit()
            self._start()
        return self.totals

    def _start(self) -> None:
        """Starts the missing workers."""
        alive = len(self._starting) + len(self._idle) + len(self._busy)
        for _ in range(min(self._wanted - alive, len(self._pending) - len(self._starting) - len(self._idle))):
            self._starting.add(self._workers.start())

    def _submit(self) -> None:
        while self._pending and self._idle:
            worker = self._idle.pop()
            self._busy[worker] = self._pending.popleft()
            self._workers.submit(worker, self._busy[worker])

    def _take(self, event: Event) -> None:
        match event:
            case Started(worker, ready):
                self._starting.discard(worker)
                self._idle.append(worker)
                self._failed_starts = 0
                self.totals.devices.add(ready.device)
                self._started(ready)
            case Done(worker, outcome):
                del self._busy[worker]
                self._idle.append(worker)
                self._submit()
                self._record(outcome)
            case Lost(worker, how):
                self._replace(worker, how)
            case Refused(_, reason):
                raise InputError(reason)

    def _record(self, outcome: Outcome) -> None:
        self.totals.done += outcome.done
        self.totals.failures += outcome.failures
        self._progressed(self.totals)

    def _replace(self, worker: int, how: str) -> None:
        """Handles the end of a worker: its task is repeated."""
        if worker in self._starting:
            self._starting.discard(worker)
            self._failed_starts += 1
            if self._failed_starts >= MAX_FAILED_STARTS:
                raise InputError(f"{self._failed_starts} workers ended while they started; the last {how}")
            return
        self.totals.replaced += 1
        if worker in self._idle:
            self._idle.remove(worker)
            return
        task = self._busy.pop(worker)
        if task.deaths + 1 < MAX_DEATHS:
            self._pending.appendleft(Task(task.inputs, task.deaths + 1))
        elif len(task.inputs) > 1:
            self._pending.extend([Task((index,)) for index in task.inputs])
        else:
            (index,) = task.inputs
            reason = f"{task.deaths + 1} workers ended while they did it; the last {how}"
            self._record(Outcome(0, (Failure(index, self._label(index), reason),)))
