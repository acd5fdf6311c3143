"""The page `docs/zoo.md`: the measurements of the programs, and the refusals with workarounds."""

from __future__ import annotations

import datetime
import re
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from harness import machine

Row = dict[str, Any]
TABLE = Path(__file__).resolve().parents[2] / "docs" / "zoo.md"
PACKAGES = ("jax", "flax", "equinox", "optax", "keras", "diffrax", "jaxopt", "optimistix", "blackjax", "distrax")
#: the part of a path that says where somebody keeps installed packages, or this checkout
_FOLDERS = re.compile(rf"/\S*/site-packages/|{re.escape(str(TABLE.parents[1]))}/")
HEADING = """# The zoo: programs of other libraries

`make zoo` writes this page. It compiles and runs each program as a user of its library would write it, on three
devices, and compares each result with `jax.jit` on the CPU. A program is right if the largest error of an element,
relative to the largest magnitude of its array, is within the tolerance of [its row](../benchmarks/zoo/). Times are
milliseconds. `first` is the first call after loading; for `jax.jit` it includes tracing and compilation. `warm` is the
median of up to 200 calls with NumPy arrays in and out. The caches of the drivers keep their content from earlier runs.
"""


def verdict(row: Row) -> str:
    """`ok`, `refused: …` or `wrong: …`."""
    if "refused" in row:
        return f"refused: {row['refused'].splitlines()[0]}"
    bad = []
    for device, found in row["devices"].items():
        reason = found.get("refused") or found.get("wrong")
        if reason or not found["error"] <= row["tolerance"]:
            bad.append(f"{device}: {reason or format(found['error'], '.2g')}")
    return f"wrong: {'; '.join(bad)}" if bad else "ok"


def milliseconds(seconds: float) -> str:
    value = seconds * 1000
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _line(row: Row, devices: Sequence[str]) -> str:
    note = f" ({row['note']})" if row["note"] else ""
    if "refused" in row:
        return f"| {row['name']}{note} | refused |" + " |" * (2 + len(devices))
    cells = [
        row["name"] + note,
        milliseconds(row["compile"]),
        f"{row['bytes'] / 1024:,.0f}",
        f"{milliseconds(row['jax']['first'])} / {milliseconds(row['jax']['warm'])}",
    ]
    for device in devices:
        found = row["devices"][device]
        if "error" not in found:
            cells.append(found.get("refused") or found["wrong"])
            continue
        times = " / ".join(milliseconds(found[part]) for part in ("load", "first", "warm"))
        cells.append(times if found["error"] <= row["tolerance"] else f"{times}, error {found['error']:.1g}")
    return "| " + " | ".join(cells) + " |"


def _refusals(rows: Sequence[Row]) -> list[str]:
    lines = ["## Refused", ""]
    for row in rows:
        lines += [
            f"`{row['library']}`, {row['name']}:",
            "",
            "```text",
            _FOLDERS.sub("", row["refused"].strip()),
            "```",
            "",
        ]
    return lines


def _installed() -> str:
    found = []
    for name in PACKAGES:
        try:
            found.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            found.append(f"{name} is not installed")
    return ", ".join(found)


def page(rows: Sequence[Row], devices: Sequence[str]) -> str:
    """The whole text of `docs/zoo.md`."""
    right = sum(verdict(row) == "ok" for row in rows)
    refused = [row for row in rows if "refused" in row]
    lines = [HEADING]
    lines += [f"{datetime.date.today()}, {machine()}: {len(rows)} programs, {right} right on {', '.join(devices)},"]
    lines.append(f"{len(refused)} refused. Versions: {_installed()}.")
    lines.append("")
    for library in dict.fromkeys(row["library"] for row in rows):
        heads = ["program", "compile", "KB", "jax.jit first / warm", *(f"{d} load / first / warm" for d in devices)]
        lines += [f"## {library}", "", "| " + " | ".join(heads) + " |", "| --- |" + " ---: |" * (len(heads) - 1)]
        lines += [_line(row, devices) for row in rows if row["library"] == library] + [""]
    return "\n".join(lines + (_refusals(refused) if refused else [])).rstrip() + "\n"
