"""What a tuning found: a table for people, and the same as data."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from orchestrion.compiler.kernel.schedule import Schedule

#: version of the data; it grows by fields, another version has another meaning
VERSION = 1
#: refused schedules of one entry that the text names
_MAX_REFUSED = 3


@dataclass(frozen=True)
class EntryRow:
    """A kernel of the call. `share`: its part of the call's time on the device before the search. `before`, `after`:
    seconds of one launch by both schedules, by itself. `why`: why it has no search; empty if it has one.
    """

    entry: str
    op: str
    share: float
    before: float
    after: float
    chosen: str
    found: str
    trials: int = 0
    refused: tuple[tuple[str, str], ...] = ()
    why: str = ""

    @property
    def is_tuned(self) -> bool:
        return self.found != self.chosen


@dataclass
class Tuning:
    """`before`, `after`: seconds of a call as its caller sees it. `notes`: what was not taken, and why."""

    device: str
    device_name: str
    target: str
    machine: str
    function: str
    rows: list[EntryRow] = field(default_factory=list)
    before: float = 0.0
    after: float = 0.0
    exact: bool = True
    notes: list[str] = field(default_factory=list)

    def data(self) -> dict[str, Any]:
        """As JSON has it; times are in seconds."""
        about = ("device", "device_name", "target", "machine", "function")
        call = {"before": self.before, "after": self.after, "exact": self.exact}
        rows = [
            asdict(row) | {"refused": [{"schedule": schedule, "reason": reason} for schedule, reason in row.refused]}
            for row in self.rows
        ]
        known = {name: getattr(self, name) for name in about}
        return {"version": VERSION, **known, "call": call, "entries": rows, "notes": self.notes}

    def text(self) -> str:
        """For people; ends with a line break."""
        return "".join(f"{line}\n" for line in self._lines())

    def _lines(self) -> Iterator[str]:
        yield f"{self.function} on {self.device} ({self.device_name}), machine {self.machine}"
        yield from table([("entry", "op", "share", "before", "after", "trials", "schedule"), *map(_cells, self.rows)])
        same = "equal bit for bit" if self.exact else "equal within the tolerance of reordered reductions"
        if self.after:
            ratio = f"{self.before / self.after:.2f} times as fast"
            yield f"the call: {_time(self.before)} before, {_time(self.after)} after, {ratio}; results are {same}"
        for row in self.rows:
            for schedule, reason in row.refused[:_MAX_REFUSED]:
                yield f"not taken for {row.entry}: {schedule}: {reason}"
            if len(row.refused) > _MAX_REFUSED:
                yield f"not taken for {row.entry}: {len(row.refused) - _MAX_REFUSED} more"
        yield from self.notes


def table(rows: Sequence[tuple[str, ...]]) -> list[str]:
    """Rows with aligned columns, numbers to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            cell.rjust(width) if number in (2, 3, 4, 5) else cell.ljust(width)
            for number, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def _cells(row: EntryRow) -> tuple[str, ...]:
    what = row.found if row.is_tuned else row.why or f"as before: {row.chosen}"
    times = (_time(row.before), _time(row.after)) if row.before else ("", "")
    return (row.entry, row.op, f"{row.share:.1%}", *times, str(row.trials) if not row.why else "", what)


def _time(seconds: float) -> str:
    return f"{1e6 * seconds:,.1f} us"


def steps_text(schedule: Schedule) -> str:
    """The steps of a schedule as files of schedules have them."""
    return schedule.attribute.body
