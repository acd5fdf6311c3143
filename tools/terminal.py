"""A status line on a terminal: it is overwritten, and removed at the end.

It exists only if the stream is a terminal that can erase a line. Code that writes something else to the stream
meanwhile calls `erase` first.
"""

import os
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from time import monotonic
from typing import TextIO

#: least seconds between two updates for parts of one step
_INTERVAL = 0.1
_ERASE = "\r\x1b[K"


class Line:
    """The status line of one stream. Thread-safe."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._next_part = 0.0
        self._lock = threading.Lock()
        self._is_shown = False

    def show(self, text: str, is_part: bool = False) -> None:
        """Overwrites the line with a text, cut to the width of the terminal. Parts of a step are shown at most ten
        times a second.
        """
        with self._lock:
            now = monotonic()
            if is_part and now < self._next_part:
                return
            self._next_part = now + _INTERVAL
            self._is_shown = True
            self._stream.write(_ERASE + text[: shutil.get_terminal_size().columns - 1])
            self._stream.flush()

    def erase(self) -> None:
        """Removes the line until the next `show`."""
        with self._lock:
            if self._is_shown:
                self._is_shown = False
                self._stream.write(_ERASE)
                self._stream.flush()


_current: Line | None = None


@contextmanager
def line(stream: TextIO) -> Iterator[Line | None]:
    """A context manager for the status line; yields None if the stream is no terminal, or cannot erase a line."""
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
    """Erases the current status line, if any."""
    if _current is not None:
        _current.erase()
