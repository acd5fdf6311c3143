"""The suite's report: `conformance.json` for programs, and `conformance.html`, a self-contained page.

A `Report` is assembled from rows of one or several processes, so a row is JSON data. The page has a table per file of
cases, with a row per case and a column per device.
"""

from __future__ import annotations

import json
import platform
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from html import escape
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from orchestrion.hal.errors import HalError
from orchestrion.schema.files import write_whole

from . import SCOPE, VERSION
from .catalogue import CASES, GROUPS, Outcome, Result, device_tags, find
from .tags import TAGS

JSON_FILE, PAGE_FILE = "conformance.json", "conformance.html"

Row = Mapping[str, Any]


def row_of(result: Result) -> dict[str, Any]:
    """A result as data: `case`, `device`, `outcome`, `reason`, `seconds`."""
    return {
        "case": result.case.name,
        "device": result.device,
        "outcome": result.outcome.value,
        "reason": result.reason,
        "seconds": round(result.seconds, 6),
    }


def device_of(name: str) -> dict[str, Any]:
    """A device as data: its description and tags. If it cannot be used, `reason` says why."""
    try:
        driver, info = find(name)
        tags = sorted(device_tags(name))
    except HalError as error:
        return {"id": name, "reason": str(error)}
    lists = driver.conformance
    return {
        **{name: sorted(value) if isinstance(value, frozenset) else value for name, value in asdict(info).items()},
        "id": info.id,
        "tags": tags,
        "unsupported": dict(lists.unsupported),
        "expected_failures": dict(lists.expected_failures),
        "reason": "",
    }


def assemble(rows: Iterable[Row], devices: Iterable[str]) -> dict[str, Any]:
    """The report as data. A case without a row on a device was not run there."""
    results: dict[str, dict[str, Row]] = {}
    for row in rows:
        results.setdefault(row["case"], {})[row["device"]] = {key: row[key] for key in ("outcome", "reason", "seconds")}
    described = [device_of(name) for name in dict.fromkeys(devices)]
    for device in described:
        _sum_up(device, [found[device["id"]] for found in results.values() if device["id"] in found])
    return {
        "suite": "orchestrion.hal.cts",
        "version": VERSION,
        "scope": SCOPE,
        "package": _package_version(),
        "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M:%S UTC"),
        "host": f"{platform.platform()}, Python {platform.python_version()}",
        "tags": {name: tag.doc for name, tag in TAGS.items()},
        "devices": described,
        "files": {group.name: group.doc for group in GROUPS},
        "cases": [
            {"name": name, "needs": list(case.needs), "doc": case.doc, "results": results.get(name, {})}
            for name, case in CASES.items()
        ],
    }


def write(folder: Path, rows: Iterable[Row], devices: Iterable[str]) -> dict[str, Any]:
    """Write both files into a folder, which is created. Returns the report as data. Raises OSError if that fails."""
    report = assemble(rows, devices)
    folder.mkdir(parents=True, exist_ok=True)
    text = json.dumps(report, indent=1, ensure_ascii=False) + "\n"
    write_whole(folder / JSON_FILE, [text.encode()], "the report cannot be written")
    write_whole(folder / PAGE_FILE, [page(report).encode()], "the report cannot be written")
    return report


def verdict(device: Row) -> str:
    """One line about a device: whether it conforms, or why that is unknown."""
    if device["reason"]:
        return f"not tested: {device['reason']}"
    counts = ", ".join(f"{count} {outcome}" for outcome, count in device["counts"].items() if count)
    if not device["complete"]:
        return f"{device['run']} of {len(CASES)} cases: {counts or 'none'}"
    return f"{'conforms' if device['conforms'] else 'does not conform'}: {counts}"


def page(report: Mapping[str, Any]) -> str:
    """The report as one page of HTML."""
    parts = [_HEAD, f"<h1>HAL conformance suite {escape(report['version'])}</h1>", f"<p>{escape(report['scope'])}</p>"]
    parts.append(f"<p>orchestrion {escape(report['package'])}, {escape(report['host'])}, {escape(report['date'])}.</p>")
    parts += _devices(report)
    for group, doc in report["files"].items():
        cases = [case for case in report["cases"] if case["name"].partition(".")[0] == group]
        parts += _group(group, doc, cases, [device["id"] for device in report["devices"] if not device["reason"]])
    parts.append("<h2>Tags</h2><table><tr><th>tag</th><th>the device</th></tr>")
    parts += [
        f"<tr><td><code>{escape(name)}</code></td><td>{_text(doc)}</td></tr>" for name, doc in report["tags"].items()
    ]
    return "\n".join([*parts, "</table></body></html>", ""])


def _sum_up(device: dict[str, Any], rows: list[Row]) -> None:
    counted = Counter(row["outcome"] for row in rows)
    device["counts"] = {outcome.value: counted[outcome.value] for outcome in Outcome}
    device["run"] = len(rows)
    device["seconds"] = round(sum(row["seconds"] for row in rows), 3)
    device["complete"] = len(rows) == len(CASES)
    device["conforms"] = device["complete"] and not any(counted[outcome.value] for outcome in Outcome if outcome.bad)


def _devices(report: Mapping[str, Any]) -> list[str]:
    lines = ["<h2>Devices</h2><table><tr><th>device</th><th>name</th><th>tags</th><th>result</th><th>seconds</th></tr>"]
    for device in report["devices"]:
        name = " ".join(str(device.get(key, "")) for key in ("name", "version"))
        lines.append(
            f"<tr><td><code>{escape(device['id'])}</code></td><td>{escape(name)}</td>"
            f"<td>{escape(', '.join(device.get('tags', ())))}</td>"
            f"<td>{escape(verdict(device))}</td><td>{device['seconds']:.1f}</td></tr>"
        )
    return [*lines, "</table>"]


def _group(group: str, doc: str, cases: list[Row], devices: list[str]) -> list[str]:
    heads = "".join(f"<th>{escape(device)}</th>" for device in devices)
    lines = [f'<h2 id="{group}">{group}</h2><p>{_text(doc)}</p>']
    lines.append(f"<table><tr><th>case</th><th>needs</th><th>what must hold</th>{heads}</tr>")
    for case in cases:
        cells = "".join(_cell(case["results"].get(device)) for device in devices)
        name = case["name"].partition(".")[2]
        lines.append(
            f"<tr><td><code>{escape(name)}</code></td><td>{escape(', '.join(case['needs']))}</td>"
            f"<td>{_text(case['doc'])}</td>{cells}</tr>"
        )
    return [*lines, "</table>"]


def _cell(row: Row | None) -> str:
    if row is None:
        return '<td class="none">not run</td>'
    kind, reason = row["outcome"].replace(" ", "-"), escape(row["reason"])
    shown = f"<details><summary>{row['outcome']}</summary>{reason}</details>" if reason else row["outcome"]
    return f'<td class="{kind}">{shown}</td>'


def _text(doc: str) -> str:
    """Escaped text, with the parts between backticks as code."""
    parts = escape(doc).split("`")
    return "".join(f"<code>{part}</code>" if place % 2 else part for place, part in enumerate(parts))


def _package_version() -> str:
    try:
        return version("orchestrion")
    except PackageNotFoundError:  # runs from a copy of the folders
        return "of unknown version"


_HEAD = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>HAL conformance</title>
<style>
body { font: 14px/1.45 system-ui, sans-serif; margin: 2em auto; max-width: 90em; padding: 0 1em; color: #1a1a1a; }
table { border-collapse: collapse; margin-bottom: 1.5em; }
th, td { border: 1px solid #ccc; padding: 3px 8px; text-align: left; vertical-align: top; }
th { background: #f2f2f2; }
.passed { background: #e3f5e3; }
.failed, .unexpected-pass { background: #f9d2d2; font-weight: bold; }
.unsupported, .expected-failure { background: #fdf0cf; }
.not-applicable, .none { color: #777; }
</style></head><body>"""
