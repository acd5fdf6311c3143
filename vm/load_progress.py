"""What a load tells of itself while it goes on: `vm.load(..., progress=tell)`.

`tell(stage, done, count)` is called at the start of each stage (`load_times.STAGES`) with 0 and 0, then for each part
of it that is done, where parts are counted: executables in stage `build`, kernels that the driver compiles in
`warm_up`.

- One thread at a time calls it, with counts that do not fall. Threads that build take part, so it must not use the
  device.
- What it raises ends the load, and nothing is told after that. In a thread that builds, the exception waits until the
  loading thread comes to the next report.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial

from orchestrion.hal.fork import new_lock

#: called with the stage, the parts of it that are done, and all its parts; 0 and 0 where they are not counted yet
Progress = Callable[[str, int, int], object]


class LoadProgress:
    """Of one load, made by the thread that loads."""

    def __init__(self, callback: Progress) -> None:
        self.callback = callback
        self._thread = threading.get_ident()
        self._lock = new_lock()
        self._error: BaseException | None = None
        self._last = "", 0, 0

    def tell(self, stage: str, done: int = 0, count: int = 0) -> None:
        """Call the callback. Raises what it raised before, or raises now, in the thread that loads."""
        with self._lock:
            told = stage, done, count
            late = (stage, count) == (self._last[0], self._last[2]) and done < self._last[1]
            if self._error is None and not late:
                self._last = told
                try:
                    self.callback(*told)
                except BaseException as error:
                    self._error = error
        if threading.get_ident() == self._thread:
            self.check()

    def check(self) -> None:
        """Raise what the callback raised."""
        if self._error is not None:
            raise self._error

    def parts_of(self, stage: str) -> Callable[[int, int], None]:
        """`tell` for the parts of a stage."""
        return partial(self.tell, stage)


class BuildProgress:
    """Counts executables as they are built, by any thread."""

    def __init__(self, progress: LoadProgress, count: int) -> None:
        self._progress = progress
        self._count = count
        self._built = set[int]()
        if count:
            progress.tell("build", 0, count)

    def built(self, ordinal: int) -> None:
        """The executable of that number was built; whether for the first time or not."""
        self._built.add(ordinal)
        self._progress.tell("build", len(self._built), self._count)
