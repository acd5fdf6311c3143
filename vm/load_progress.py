"""Reports the progress of a load to a callback: `vm.load(..., progress=report)`.

`report(stage, done, count)` is called with 0 and 0 at the start of each stage (`load_times.STAGES`). Two stages count
their parts, and it is called for each part that is done: executables in stage `build`, and kernels that the driver
compiles in stage `warm_up`.

- One thread at a time calls it. Counts do not decrease. Threads that build call it too, so it must not use the device.
- An exception that it raises ends the load, and it is not called again. An exception in a thread that builds is raised
  when the loading thread makes its next report.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial

from orchestrion.hal.fork import new_lock

#: called with the stage, the number of its parts that are done, and the number of all its parts; 0 and 0 at its start
Progress = Callable[[str, int, int], object]


class LoadProgress:
    """The progress of one load. Made by the thread that loads."""

    def __init__(self, callback: Progress) -> None:
        self.callback = callback
        self._thread = threading.get_ident()
        self._lock = new_lock()
        self._error: BaseException | None = None
        self._last = "", 0, 0

    def report(self, stage: str, done: int = 0, count: int = 0) -> None:
        """Report progress. In the thread that loads, raises the exception of this or of an earlier report."""
        with self._lock:
            reported = stage, done, count
            late = (stage, count) == (self._last[0], self._last[2]) and done < self._last[1]
            if self._error is None and not late:
                self._last = reported
                try:
                    self.callback(*reported)
                except BaseException as error:
                    self._error = error
        if threading.get_ident() == self._thread:
            self.check()

    def check(self) -> None:
        """Raise the exception that the callback raised, if any."""
        if self._error is not None:
            raise self._error

    def parts_of(self, stage: str) -> Callable[[int, int], None]:
        """A function that reports (done, count) for a stage."""
        return partial(self.report, stage)


class BuildProgress:
    """Counts and reports the executables that are built. From any thread."""

    def __init__(self, progress: LoadProgress, count: int) -> None:
        self._progress = progress
        self._count = count
        self._built = set[int]()
        if count:
            progress.report("build", 0, count)

    def built(self, ordinal: int) -> None:
        """Note that an executable was built. May be called several times for one executable."""
        self._built.add(ordinal)
        self._progress.report("build", len(self._built), self._count)
