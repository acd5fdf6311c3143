"""Runs every program of the zoo, each in a process of its own, and writes `docs/zoo.md`.

    python benchmarks/zoo                       all of it (some 20 minutes), and the table
    python benchmarks/zoo --library=flax        one library, no table
    python benchmarks/zoo --jobs=2              faster, with less exact timings

The exit status is 1 if a program is wrong on a device, or if more than a tenth of all are refused.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parent
if not __package__:  # started as a folder: the package is found by its name
    sys.path.insert(0, str(FOLDER.parent))

from zoo.programs import LIBRARIES  # noqa: E402
from zoo.report import TABLE, page, verdict  # noqa: E402

Row = dict[str, Any]
#: time limit of a program on all devices together, in seconds
LIMIT = 1800


def child(arguments: Sequence[str], environment: Sequence[Sequence[str]] = ()) -> Any:
    """The last line of a `zoo.measure` process, as JSON. Raises RuntimeError with the end of its output."""
    command = [sys.executable, "-m", "zoo.measure", *arguments]
    variables = os.environ | {name: value for name, value in environment}
    done = subprocess.run(command, cwd=FOLDER.parent, env=variables, capture_output=True, text=True, timeout=LIMIT)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)} ended with status {done.returncode}:\n{done.stderr[-2000:]}")
    return json.loads(done.stdout.splitlines()[-1])


def rows(libraries: Sequence[str], wanted: str, devices: Sequence[str], jobs: int) -> Iterator[Row]:
    """The measurements of all programs whose name contains `wanted`, in the order of the lists."""
    listed = [(library, row) for library in libraries for row in child([library]) if wanted in row["name"]]
    flags = [f"--device={device}" for device in devices]

    def measured(entry: tuple[str, Row]) -> Row:
        library, row = entry
        found: Row = child([library, row["name"], *flags], row["environment"])
        found["library"] = library
        print(f"{library:10} {row['name']:44} {verdict(found)}", file=sys.stderr, flush=True)
        return found

    with ThreadPoolExecutor(jobs) as pool:
        yield from pool.map(measured, listed)


def main() -> int:
    made = argparse.ArgumentParser(prog="zoo", description="Runs programs of third-party libraries on devices.")
    made.add_argument("--library", action="append", choices=LIBRARIES, help="only this library; no table is written")
    made.add_argument("--name", default="", help="only programs whose name holds this; no table is written")
    made.add_argument("--device", action="append", help="default: reference, opencl and vulkan")
    made.add_argument("--jobs", type=int, default=1, help="processes at once (default 1, for honest timings)")
    options = made.parse_args()
    devices = options.device or ["reference", "opencl", "vulkan"]
    found = list(rows(options.library or list(LIBRARIES), options.name, devices, options.jobs))
    if not (options.library or options.name or options.device):
        TABLE.write_text(page(found, devices))
    refused = [row for row in found if "refused" in row]
    wrong = [row for row in found if verdict(row).startswith("wrong")]
    print(f"{len(found)} programs, {len(refused)} refused, {len(wrong)} wrong on a device")
    return 1 if wrong or len(refused) * 10 > len(found) else 0


if __name__ == "__main__":
    sys.exit(main())
