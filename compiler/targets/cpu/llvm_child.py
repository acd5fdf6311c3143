"""LLVM in child processes, because its assertions end the process: turns a text of LLVM IR into an object file.

`llvm_answer.py` runs in the child. `object_file` asks it. `ObjectFiles` asks several children, one per processor that
this process may use. They serve all its compilations.
"""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Mapping
from concurrent.futures import Future
from contextlib import suppress
from functools import cache
from queue import Empty, SimpleQueue
from threading import Thread
from typing import TYPE_CHECKING, NamedTuple, Self

from orchestrion.compiler.errors import CompileError
from orchestrion.schema import hints
from orchestrion.schema.child_process import Child, ChildDied, ChildFailed, ChildLate

if TYPE_CHECKING:
    from .levels import Level

#: seconds after which a text counts as one that LLVM never finishes
DEADLINE = 600.0
#: the attribute of functions whose frames LLVM reports
REPORTS_FRAME = '"warn-stack-size"="0"'


class ObjectFile(NamedTuple):
    """An object file. `frames`: bytes of the stack that functions with the attribute `REPORTS_FRAME` use, if any."""

    data: bytes
    frames: Mapping[str, int]


def check_installed() -> None:
    """Raises CompileError if llvmlite is not installed."""
    if importlib.util.find_spec("llvmlite") is None:
        raise CompileError(f"target cpu needs the package llvmlite, which is not installed: {hints.install('cpu')}")


def object_file(text: str, level: Level, entries: str, text_only: bool = False, child: int = 0) -> ObjectFile:
    """The object file of a text of LLVM IR. `entries`: what the text holds, for messages; `child`: the number of the
    child process.

    Raises CompileError if LLVM ends, does not end, or refuses the text.
    """
    check_installed()
    fields = {"triple": level.triple, "cpu": level.cpu, "features": level.features, "text": text_only}
    try:
        made = _child(child).request(fields, text.encode(), deadline=DEADLINE)
        return ObjectFile(made.data, made.fields)
    except ChildDied as error:
        raise CompileError(f"LLVM failed on {entries} for {level.name}: the process {error.how}") from error
    except ChildLate as error:
        raise CompileError(f"LLVM did not finish {entries} for {level.name} in {DEADLINE:g} s") from error
    except ChildFailed as error:
        raise CompileError(f"LLVM refused {entries} for {level.name}: {error}") from error


class _Job(NamedTuple):
    future: Future[ObjectFile]
    text: str
    level: Level
    entries: str


class ObjectFiles:
    """Turns texts into object files side by side, while the caller makes more texts.

    Threads that an interrupt leaves behind end with the answers of their children, and keep no process from its exit.
    """

    def __init__(self) -> None:
        self._jobs: SimpleQueue[_Job | None] = SimpleQueue()
        self._threads = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        if error[0] is not None:
            with suppress(Empty):  # threads take jobs meanwhile
                while True:
                    self._jobs.get_nowait()
        for _ in range(self._threads):
            self._jobs.put(None)

    def add(self, text: str, level: Level, entries: str) -> Future[ObjectFile]:
        """The object file of a text, or the CompileError that `object_file` raises."""
        job = _Job(Future(), text, level, entries)
        self._jobs.put(job)
        if self._threads < _processors():
            Thread(target=self._work, args=(self._threads,), daemon=True).start()
            self._threads += 1
        return job.future

    def _work(self, child: int) -> None:
        while (job := self._jobs.get()) is not None:
            try:
                job.future.set_result(object_file(job.text, job.level, job.entries, child=child))
            except BaseException as error:
                job.future.set_exception(error)


def _processors() -> int:
    """The number of processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@cache
def _child(number: int) -> Child:
    return Child(f"{__package__}.llvm_answer:answer")
