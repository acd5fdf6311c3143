"""One line on a terminal that says what goes on: it is written over, and gone at the end.

It is there only where the stream is a terminal that can erase a line. Whoever writes something else to the stream
meanwhile calls `erase` before.
"""

import os
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from time import monotonic
from typing import TextIO

#: seconds between two lines for parts of one step
_INTERVAL = 0.1
_ERASE = "\r\x1b[K"


class Line:
    """Of one stream. Any thread may call it."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._next_part = 0.0
        self._lock = threading.Lock()
        self._is_shown = False

    def show(self, text: str, is_part: bool = False) -> None:
        """Write over what is there, cut to the width of the terminal. Parts of a step are shown ten times a second."""
        with self._lock:
            now = monotonic()
            if is_part and now < self._next_part:
                return
            self._next_part = now + _INTERVAL
            self._is_shown = True
            self._stream.write(_ERASE + text[: shutil.get_terminal_size().columns - 1])
            self._stream.flush()

    def erase(self) -> None:
        """Nothing is there until the next `show`."""
        with self._lock:
            if self._is_shown:
                self._is_shown = False
                self._stream.write(_ERASE)
                self._stream.flush()


_current: Line | None = None


@contextmanager
def line(stream: TextIO) -> Iterator[Line | None]:
    """The line of a terminal while the body runs; None where the stream is no terminal, or cannot erase."""
    global _current
    if not stream.isatty() or os.environ.get("TERM", "dumb") == "dumb":
        yield None
        return
    _current = made = Line(stream)
    try:
        yield made
    finally:
        _current = None
        made.erase()


def erase() -> None:
    """Erase the line that is shown now, if there is one."""
    if _current is not None:
        _current.erase()
