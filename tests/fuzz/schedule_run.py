"""A long run of random schedules: legal ones compute what others do, on every device that is here.

`python tests/fuzz/schedule_run.py --count=5000 --jobs=2` (`make schedules`) draws pairs of a body and a schedule until
there are so many, and ends with counts: pairs per kind of body, how often each step was drawn, how many well-typed
draws were legal, and why others were not. `--targets=cpu` runs native code. `--seed=n --show` prints the entry of a
seed. Status 1 with findings.
"""

import argparse
import os
import random
import sys
import time
from multiprocessing import get_context
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tests" / "support"))

from random_entries import draw  # noqa: E402
from schedule_reasons import reasons  # noqa: E402
from schedule_runs import ALL_DRIVERS, DRIVERS, Judge  # noqa: E402
from schedule_trials import PER_CASE, Outcome, trial  # noqa: E402

from orchestrion.compiler.kernel.schedule import STEPS  # noqa: E402
from orchestrion.hal.errors import DriverUnavailable  # noqa: E402

#: seeds of one worker, whose memory grows with what drivers keep
LIFETIME = 40


def chunk(given: tuple[int, int, float, str]) -> Outcome:
    """What became of the pairs of some seeds; no more are begun after that time."""
    first, last, end, names = given
    judge, found = Judge(), Outcome()
    targets = tuple(name for name in names.split(",") if _is_here(judge, name))
    for seed in range(first, last):
        if time.time() >= end:
            break
        try:
            found += trial(judge, seed, targets)
        except Exception as error:
            found.findings.append(f"seed {seed}: {type(error).__name__}: {error}"[:600])
    judge.close()
    return found


def _is_here(judge: Judge, name: str) -> bool:
    try:
        judge.device(name)
    except DriverUnavailable:
        return False
    return True


def report(found: Outcome, seconds: float) -> None:
    total = found.pairs.total()
    print(f"{total} pairs in {seconds:.0f} s: {found.judged} legal, run and compared, {len(found.findings)} findings")
    rate = 100 * found.accepted / max(found.well_typed, 1)
    print(f"  well-typed: {found.well_typed}, of which legal {found.accepted} ({rate:.0f} %)")
    for name, count in sorted(found.pairs.items()):
        print(f"  {count:6} {name}")
    print("  steps, drawn and in legal schedules:")
    for name in STEPS:
        print(f"  {found.steps[name]:6} {found.taken[name]:6} {name}")
    print("  reasons of refusal:")
    for text in sorted(reasons(), key=lambda one: -found.reasons[one]):
        print(f"  {found.reasons[text]:6} {text}")
    for finding in found.findings[:40]:
        print(finding)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=10_000, help="pairs of a body and a schedule")
    parser.add_argument("--seed", type=int, default=0, help="the first one")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--targets", default=",".join(DRIVERS), help=f"some of {', '.join(ALL_DRIVERS)}")
    parser.add_argument("--minutes", type=float, default=1e9, help="begin no further bodies after these")
    parser.add_argument("--show", action="store_true", help="print the entry of the seed, and nothing else")
    given = parser.parse_args()
    if given.show:
        print(draw(random.Random(given.seed)).text)
        return
    os.environ["ORCHESTRION_CACHE"] = "off"
    started, end = time.monotonic(), time.time() + 60 * given.minutes
    last = given.seed + -(-given.count // PER_CASE)
    work = [(first, min(first + LIFETIME, last), end, given.targets) for first in range(given.seed, last, LIFETIME)]
    found = Outcome()
    with get_context("spawn").Pool(given.jobs, maxtasksperchild=1) as pool:
        for one in pool.imap(chunk, work):
            found += one
            for finding in one.findings:
                print(finding, flush=True)
            print(f"{found.pairs.total()} pairs, {found.judged} compared", flush=True)
    report(found, time.monotonic() - started)
    sys.exit(1 if found.findings else 0)


if __name__ == "__main__":
    main()
