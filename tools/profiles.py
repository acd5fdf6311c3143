"""Profiles as text, a table with a row for every dispatch, copy and fill, and as data."""

from collections.abc import Iterator
from statistics import median
from typing import TYPE_CHECKING, Any

from orchestrion.schema.printable import printable

if TYPE_CHECKING:
    from orchestrion.vm.profile import Profile, ProfileRow

#: column -> whether it is right-aligned
COLUMNS = {
    "op": False,
    "location": False,
    "entry": False,
    "workload": True,
    "runs": True,
    "median": True,
    "share": True,
    "bytes": True,
    "fused": False,
}
#: the most characters of a cell
WIDEST = 120


def data(profile: "Profile") -> list[dict[str, Any]]:
    """A dict per row."""
    from orchestrion.vm.trace import command_data

    return [
        {
            "function": row.function,
            "kind": row.kind,
            **command_data(row.command),
            "calls": row.calls,
            "launches": row.launches,
            "median_seconds": row.median_seconds,
            "total_seconds": row.total_seconds,
            "share": row.share,
        }
        for row in profile.rows()
    ]


def table(profile: "Profile") -> str:
    """A block of lines for the initializers, and one for each function."""
    groups: dict[tuple[str, str], list[ProfileRow]] = {}
    for row in profile.rows():
        groups.setdefault((row.kind, row.function), []).append(row)
    blocks = [
        "\n".join((_head(profile, kind, name), *_lines([_cells(row) for row in rows])))
        for (kind, name), rows in groups.items()
    ]
    return "\n\n".join(blocks) or "nothing was launched"


def _head(profile: "Profile", kind: str, name: str) -> str:
    calls = [call for call in profile.calls if (call.kind, call.name) == (kind, name)]
    host = median([call.end - call.start for call in calls]) / 1e9
    device = median([sum(launch.end - launch.start for launch in call.launches) for call in calls]) / 1e9
    what = f"{name} initializer" if kind == "initializer" else _plain(name)
    runs = f"{len(calls)} call{'s' * (len(calls) != 1)}"
    return f"{what}: {runs}, median {_time(host)}, of which on the device {_time(device)}"


def _cells(row: "ProfileRow") -> list[str]:
    command = row.command
    cells = [
        command.source_op or command.kind,
        command.location,
        command.entry,
        "" if command.workload is None else "x".join(map(str, command.workload)),
        str(row.launches),
        _time(row.median_seconds),
        f"{row.share:.1%}",
        f"{command.bytes:,}",
        ", ".join(name.rpartition(".")[2] for name in command.fused),
    ]
    return [_plain(cell) for cell in cells]


def _plain(text: str) -> str:
    """A name from the module, which may be untrusted: on one line, without control characters, and shortened."""
    shown = printable(text[:WIDEST])
    return shown if len(text) <= WIDEST else f"{shown[:-3]}..."


def _time(seconds: float) -> str:
    return f"{1e6 * seconds:,.1f} us"


def _lines(rows: list[list[str]]) -> Iterator[str]:
    cells = [list(COLUMNS), *rows]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    for row in cells:
        padded = [
            text.rjust(width) if right else text.ljust(width)
            for text, width, right in zip(row, widths, COLUMNS.values(), strict=True)
        ]
        yield f"  {'  '.join(padded)}".rstrip()
