"""A long run of shaders that pass the SPIR-V checker: each in the interpreter with hostile values.

`python tests/fuzz/shader_run.py --count=1000000 --jobs=2` proposes shaders from `--seed` on until so many were
accepted, and prints how many were proposed and accepted, how often accepted shaders hold each part of the subset, and
each finding, shrunk. A finding ends it with status 1. `--show` prints the shader of `--seed` and runs nothing.

`--device=vulkan` runs accepted shaders on a device instead, with guards around every object, in worker processes: a
shader that ends its worker is named.
"""

import argparse
import json
import multiprocessing
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tests" / "support"))

from guarded_shaders import Bench, case  # noqa: E402
from random_shaders import generate  # noqa: E402
from shader_trials import Report, shrink, text, trials  # noqa: E402

from orchestrion.schema.spirv import EXT_INSTS, OPS  # noqa: E402

#: seeds of a worker's turn
CHUNK = 500


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=20_000, help="accepted shaders")
    parser.add_argument("--seed", type=int, default=0, help="the first one")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--minutes", type=float, default=1e9, help="end after these")
    parser.add_argument("--device", help="run on this one, with guards")
    parser.add_argument("--worker", help=argparse.SUPPRESS, action="store_true")
    parser.add_argument("--show", action="store_true", help="print the shader of the seed")
    given = parser.parse_args()
    if given.show:
        made = generate(given.seed)
        print(text(made.payload), *made.proposals, sep="\n")
        return 0
    if given.worker:
        work(given.device, given.seed, given.count)
        return 0
    if given.device:
        return 1 if on_device(given.device, given.seed, given.count, given.jobs) else 0
    began = time.monotonic()
    report = propose(given.seed, given.count, given.jobs, began + 60 * given.minutes)
    show(report, time.monotonic() - began)
    return 1 if report.findings else 0


def propose(first: int, wanted: int, jobs: int, end: float) -> Report:
    """Trials of seeds from `first` on until so many shaders were accepted, or until the time `end`."""
    report = Report()
    chunks = (range(start, start + CHUNK) for start in count(first, CHUNK))
    with multiprocessing.get_context("spawn").Pool(jobs) as pool:
        waiting = [pool.apply_async(trials, (next(chunks),)) for _ in range(2 * jobs)]
        while waiting:
            report.merge(waiting.pop(0).get())
            if report.accepted + 0.5 * CHUNK * len(waiting) < wanted and time.monotonic() < end:
                waiting.append(pool.apply_async(trials, (next(chunks),)))
    return report


def show(report: Report, seconds: float) -> None:
    rate = report.accepted / max(1, report.proposed)
    print(f"{report.proposed} shaders proposed, {report.accepted} accepted ({rate:.1%}), {seconds:.0f} s")
    for name in (*(row.name for row in OPS), *(row.name for row in EXT_INSTS)):
        print(f"{name:28} in {report.uses.pop(name, 0) / max(1, report.accepted):7.2%} of accepted shaders")
    for name, number in sorted(report.uses.items()):
        print(f"{name:36} in {number / max(1, report.accepted):7.2%} of accepted shaders")
    for name in sorted(report.refused | report.passed):
        print(f"{name:48} refused in {report.refused[name]} shaders, in {report.passed[name]} accepted ones")
    print(f"{len(report.findings)} findings")
    for seed, finding in list(report.findings.items())[:20]:
        print(f"seed {seed}: {finding}\n{text(shrink(generate(seed), seed).payload)}")


# on devices


def work(device: str, first: int, wanted: int) -> None:
    """In a worker: says each seed before it runs, and then a line of JSON."""
    bench = Bench(device)
    for seed in range(first, first + wanted):
        print("doing", seed, flush=True)
        before = bench.compared
        wrong = bench.check(case(seed, bench.features))
        print(json.dumps({"seed": seed, "wrong": wrong, "compared": bench.compared - before}), flush=True)
    bench.close()


def on_device(device: str, first: int, wanted: int, jobs: int) -> int:
    """Runs the seeds in workers; gives how many went wrong, and prints them."""
    starts = range(first, first + wanted, CHUNK)
    sizes = [min(CHUNK, first + wanted - start) for start in starts]
    with ThreadPoolExecutor(jobs) as pool:
        rows = [row for chunk in pool.map(partial(chunk_on_device, device), starts, sizes) for row in chunk]
    wrong = [row for row in rows if row["wrong"]]
    comparable = sum(row["compared"] > 0 for row in rows)
    print(f"{device}: {len(rows)} shaders, {len(wrong)} wrong; {sum(row['compared'] for row in rows)} bytes compared "
          f"in {comparable} of them")  # fmt: skip
    for row in wrong:
        print(f"  seed {row['seed']}: {row['wrong']}")
    return len(wrong)


def chunk_on_device(device: str, first: int, wanted: int) -> list[dict[str, Any]]:
    """The rows of these seeds, by as many workers as die."""
    rows: list[dict[str, Any]] = []
    end = first + wanted
    while first < end:
        command = [
            sys.executable,
            __file__,
            "--worker",
            f"--device={device}",
            f"--seed={first}",
            f"--count={end - first}",
        ]
        process = subprocess.Popen(
            command, env=os.environ | {"ORCHESTRION_CACHE": "off"}, stdout=subprocess.PIPE, text=True
        )
        assert process.stdout is not None
        doing = first
        for line in process.stdout:
            if line.startswith("doing"):
                doing = int(line.split()[1])
            elif line.startswith("{"):
                rows.append(json.loads(line))
        status = process.wait()
        if status:
            rows.append({"seed": doing, "wrong": f"ended the process ({status})", "compared": 0})
        first = doing + 1
    return rows


if __name__ == "__main__":
    sys.exit(main())
