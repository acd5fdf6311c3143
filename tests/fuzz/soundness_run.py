"""A long run of programs that pass the checks: modules of bytecode, payloads of tensor code, each run by its judge.

`python tests/fuzz/soundness_run.py --count=20000 --jobs=2` runs as many of each kind, or of one (`--kind=modules`).
It reports how many passed their checker, how often each row is in those that passed, how they ended, and findings: by
seed, and for modules the lines of the functions that are left when all that can go is gone. Status 1 with findings.
"""

import argparse
import os
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tests" / "support"))

import judge_modules  # noqa: E402
from mutate_numbers import Impossible  # noqa: E402
from passing_edits import without  # noqa: E402
from passing_modules import Made  # noqa: E402
from soundness import Outcome, functions_of, run_module, run_tensors  # noqa: E402

from orchestrion.schema.errors import ModuleError  # noqa: E402
from orchestrion.schema.isa import INSTRUCTIONS  # noqa: E402
from orchestrion.schema.tensor_bytecode import ROWS  # noqa: E402
from orchestrion.schema.writer import write  # noqa: E402

KINDS: dict[str, tuple[Callable[[int], Outcome], Sequence[Any]]] = {
    "modules": (run_module, INSTRUCTIONS),
    "tensors": (run_tensors, ROWS),
}
#: programs of one task of a worker
CHUNK = 50

Results = list[tuple[int, Outcome | str]]


def chunk(kind: str, first: int, last: int) -> Results:
    """What became of the programs of these seeds: an outcome, or what is wrong."""
    run, _ = KINDS[kind]
    found: Results = []
    for seed in range(first, last):
        try:
            found.append((seed, run(seed)))
        except Exception as error:
            found.append((seed, f"{type(error).__name__}: {error}"[:400]))
    return found


def shrunk(seed: int) -> str:
    """The lines that are needed for the finding of a module's seed."""
    site, functions = functions_of(seed)
    state = site.choose.getstate()

    def breaks(some: list[Made]) -> bool:
        site.choose.setstate(state)
        try:
            judge_modules.judge(write(site.module(some)), seed)
        except (Impossible, ModuleError):
            return False
        except Exception:
            return True
        return False

    if not breaks(functions):
        return "(it does not show again)"
    for at in range(1, len(functions)):
        line = len(functions[at].lines) - 1
        while line >= 0:
            fewer = [*functions]
            fewer[at] = without(replace(functions[at], lines=[*functions[at].lines]), line)
            if breaks(fewer):
                functions = fewer
            line -= 1
    lines = [(one.name, row.name, operands) for one in functions[1:] for row, operands in one.lines]
    return "\n".join(f"    {name}: {row} {operands}" for name, row, operands in lines if row != "return")


def report(kind: str, results: Results, seconds: float) -> int:
    """Prints; gives the number of findings."""
    ends: Counter[str] = Counter()
    rows: Counter[str] = Counter()
    passed = 0
    findings = [(seed, one) for seed, one in results if isinstance(one, str)]
    for _, one in results:
        if isinstance(one, Outcome):
            ends, rows, passed = ends + one.ends, rows + one.rows, passed + one.passed
    missing = [row.name for row in KINDS[kind][1] if not rows[row.name]]
    print(f"{kind}: {len(results)} programs in {seconds:.0f} s, {passed} passed the checker, {len(findings)} findings")
    print(f"  ends: {', '.join(f'{name} {count}' for name, count in ends.most_common())}")
    covered = len(KINDS[kind][1]) - len(missing)
    print(f"  rows in those that passed: {covered} of {len(KINDS[kind][1])}; not there: {', '.join(missing) or 'none'}")
    for name, count in sorted(rows.items(), key=lambda pair: pair[1])[:5]:
        print(f"  least: {name} {count}")
    for seed, problem in findings[:20]:
        print(f"  seed {seed}: {problem}")
        if kind == "modules":
            print(shrunk(seed))
    return len(findings)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=0, help="the first one")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--minutes", type=float, default=1e9, help="begin no further programs after these, per kind")
    parser.add_argument("--kind", choices=[*KINDS])
    given = parser.parse_args()
    os.environ["ORCHESTRION_CACHE"] = "off"
    findings = 0
    for kind in [given.kind] if given.kind else KINDS:
        started = time.monotonic()
        firsts = range(given.seed, given.seed + given.count, CHUNK)
        lasts = [min(first + CHUNK, given.seed + given.count) for first in firsts]
        results: Results = []
        end = time.time() + 60 * given.minutes
        with get_context("spawn").Pool(given.jobs, maxtasksperchild=8) as pool:
            for found in pool.imap(partial(chunk_until, kind, end), zip(firsts, lasts, strict=True)):
                results += found
                wrong = sum(isinstance(one, str) for _, one in found)
                print(f"{kind}: {len(results)} done, {wrong} findings among the last {len(found)}", flush=True)
        findings += report(kind, results, time.monotonic() - started)
    sys.exit(1 if findings else 0)


def chunk_until(kind: str, end: float, seeds: tuple[int, int]) -> Results:
    return chunk(kind, *seeds) if time.time() < end else []


if __name__ == "__main__":
    main()
