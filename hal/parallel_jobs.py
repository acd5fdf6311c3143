"""Runs jobs in this process while helpers do most of their work in advance, from the other end of the list.

A driver keeps compiled code on disk, so code that another process or another device object compiled costs this process
little. This thread works from the front of the list, the helpers from its end. Jobs that a helper did are then run in
this process as well.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import TypeVar

_Job = TypeVar("_Job")
#: called with the number of finished jobs and the number of all jobs
Progress = Callable[[int, int], None]
#: returns a context manager that serialises use of a driver's queue
Using = Callable[[], AbstractContextManager[None]]

_log = logging.getLogger("orchestrion.hal")


class HelperFailed(Exception):
    """A helper cannot do a job. This process does it, and raises its own error if it fails, too."""


def no_progress(done: int, count: int) -> None:
    """Reports nothing."""


def run_jobs(
    jobs: Sequence[_Job],
    here: Callable[[_Job], None],
    helpers: Sequence[Callable[[_Job], None]],
    progress: Progress = no_progress,
) -> None:
    """Call `here` for each job. Each helper is called in a thread of its own, for jobs that this thread has not
    reached, before `here` is called for them. A helper that raises HelperFailed is not called again, and the reason is
    logged.

    Raises what `here` raises, after all helpers have ended.
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
    """Counts finished jobs. Each count is a single step of Python, so threads need no lock."""

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
            _log.warning("a helper process failed to build device code, this process builds it: %s", error)
            return
        total.add()
