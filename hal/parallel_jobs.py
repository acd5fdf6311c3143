"""Jobs that this process has to do, most of whose work a helper can do before: two ends of one list.

A driver compiles what it keeps on disk, so what another process, or another device object, compiled costs this one
little. This thread works from the front of the list, helpers from its end. What a helper did is done here after that.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import TypeVar

_Job = TypeVar("_Job")
#: called with how many jobs are done, and how many there are
Progress = Callable[[int, int], None]
#: gives a context in which one thread at a time uses a driver's queue
Using = Callable[[], AbstractContextManager[None]]

_log = logging.getLogger("orchestrion.hal")


class HelperFailed(Exception):
    """A helper cannot do a job. This process does it, with whatever error that gives."""


def no_progress(done: int, count: int) -> None:
    """Tell nobody."""


def run_jobs(
    jobs: Sequence[_Job],
    here: Callable[[_Job], None],
    helpers: Sequence[Callable[[_Job], None]],
    progress: Progress = no_progress,
) -> None:
    """Call `here` for each job. `helpers`: each is called in a thread of its own for jobs that this thread has not
    reached, ahead of `here`; one that raises `HelperFailed` is not called again, and the reason is logged.

    Raises what `here` raises, once no helper is at work.
    """
    left, helped = deque(jobs), deque[_Job]()
    total = _ProgressCounter(progress, len(jobs))
    threads = [threading.Thread(target=_help, args=(helper, left, helped, total), daemon=True) for helper in helpers]
    for thread in threads:
        thread.start()
    try:
        while left:
            here(left.popleft())
            total.add()
    except IndexError:  # a helper took the last one
        pass
    finally:
        left.clear()
        for thread in threads:
            thread.join()
    for job in helped:
        here(job)


class _ProgressCounter:
    """How many jobs are done. One step of Python each, so that threads may count."""

    def __init__(self, progress: Progress, count: int) -> None:
        self._progress = progress
        self._count = count
        self._done = deque[None]()

    def add(self) -> None:
        self._done.append(None)
        self._progress(len(self._done), self._count)


def _help(helper: Callable[[_Job], None], left: deque[_Job], helped: deque[_Job], total: _ProgressCounter) -> None:
    while left:
        try:
            job = left.pop()
        except IndexError:
            return
        helped.append(job)  # whether the helper succeeds or not: `here` comes after it
        try:
            helper(job)
        except HelperFailed as error:
            _log.warning("a helper that builds device code failed, this process builds instead: %s", error)
            return
        total.add()
