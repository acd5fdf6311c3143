"""The statistics of calls, for `--print-statistics` and `Program.statistics`.

The HAL's front counts operations of the driver. A call logs the counters at its start and at its end; their differences
are computed when the statistics are read. The last `HISTORY` calls are kept.
"""

from collections import deque
from collections.abc import Callable
from operator import attrgetter
from typing import Any, Protocol

from orchestrion.hal.statistics import Statistics

HISTORY = 1000

#: the counters in the row of a call
_COUNTERS = (
    "submissions",
    "dispatches",
    "waits",
    "allocations",
    "host_to_device_bytes",
    "device_to_host_bytes",
    "executables_created",
)
#: the current values of these counters
totals: Callable[[Statistics], tuple[int, ...]] = attrgetter(*_COUNTERS)

#: name, start and end in seconds of the clock, totals before and after, bytes of constants copied
Row = tuple[str, float, float, tuple[int, ...], tuple[int, ...], int]


class Log(Protocol):
    """Receives a row for each call that has ended."""

    @property
    def add(self) -> Callable[[Row], None]:
        """A function that adds a row."""


class CallLog:
    """The log of the calls of all contexts of one program."""

    __slots__ = ("_rows", "add")

    def __init__(self) -> None:
        self._rows: deque[Row] = deque(maxlen=HISTORY)
        self.add: Callable[[Row], None] = self._rows.append

    def rows(self) -> list[dict[str, Any]]:
        """The rows of `calls` in `Program.statistics`."""
        return [_row(*row) for row in list(self._rows)]


def _row(
    name: str, started: float, ended: float, before: tuple[int, ...], after: tuple[int, ...], constants: int
) -> dict[str, Any]:
    spent = dict(zip(_COUNTERS, (new - old for new, old in zip(after, before, strict=True)), strict=True))
    created = spent.pop("executables_created")
    return {
        "function": name,
        "seconds": ended - started,
        **spent,
        "constant_bytes": constants,
        "executables_created": created,
    }
