"""What loading and calling cost, in the form that `--print-statistics` and `Program.statistics` give.

The numbers are differences of the counters that the HAL's front keeps, at the boundary to the driver. A call only notes
their totals; the differences are taken when somebody asks. The last `HISTORY` calls are kept.
"""

from collections import deque
from collections.abc import Callable
from operator import attrgetter
from typing import Any, Protocol

from orchestrion.hal.statistics import Statistics

HISTORY = 1000

#: of the counters, those that a call's row has
_COUNTERS = (
    "submissions",
    "dispatches",
    "waits",
    "allocations",
    "host_to_device_bytes",
    "device_to_host_bytes",
    "executables_created",
)
#: the counters of a call's row, now
totals: Callable[[Statistics], tuple[int, ...]] = attrgetter(*_COUNTERS)

#: name, start and end in seconds of the clock, totals before and after, bytes of constants copied
Row = tuple[str, float, float, tuple[int, ...], tuple[int, ...], int]


class Log(Protocol):
    """Whoever is told of each call that is over."""

    @property
    def add(self) -> Callable[[Row], None]: ...


class CallLog:
    """The calls of all contexts of one program."""

    __slots__ = ("_rows", "add")

    def __init__(self) -> None:
        self._rows: deque[Row] = deque(maxlen=HISTORY)
        self.add: Callable[[Row], None] = self._rows.append

    def rows(self) -> list[dict[str, Any]]:
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
