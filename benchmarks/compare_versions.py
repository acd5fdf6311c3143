"""Compares two versions of this project: alternating warm calls or compilations of the same programs, and the ratio of
new over old.

Each version runs in a process of its own, which loads what the version's `vm-compile` made of the program's StableHLO
text, and times a block of calls when the parent asks. The parent alternates between the two, so that changes in the
machine's speed affect both alike. Two processes of the same version also differ, by the addresses of their memory and
the placement of their threads, and the process that starts second is slower (by a tenth or two in short calls). So each
row has several pairs of processes, and each version starts first in half of them. A row's ratio is the geometric mean
over pairs of the median over rounds of new over old, with its 95 % interval (bootstrap over pairs, and over rounds
within each). It is printed for elapsed time and for processor time, which counts all threads of the process and depends
less on other work on the machine; `least` is the ratio of the least elapsed times. A row *fails* if the interval of its
speed, old over new, lies below 0.95.

    compare_versions.py OLD [--new NEW] [--device vulkan] [--group G] [--pairs N] [--rounds N] [--cpu-time] [row ...]
    compare_versions.py OLD --compile [--new NEW] [--device vulkan] [--pairs N] [--cpu-time] [network ...]

OLD and NEW are wheels, or folders that hold `orchestrion/`; NEW is this working tree by default. Groups of rows are in
`comparison/programs.py`: `examples` (`simple_mul` and `ResNet-18`), and those of `bench_heroes.py`, `bench_dynamic.py`
(symbolic sizes), `bench_fft.py`, `bench_factors.py` and `bench_packed_dot.py`. Heroes and packed products have arrays
on the device and `out=`, the others NumPy arguments and results.

`--compile` alternates whole processes of `vm-compile` for the networks of `bench_compile_networks.py`. A row fails if
the interval of new over old lies above 1.02, or if the new module is larger than 1.02 times the old one.
`--old-flag` and `--new-flag` give a version's `vm-compile` a flag that the other lacks.
`--cpu-time` judges by processor time. The exit status is 1 if a row fails.
"""

import argparse
import multiprocessing
import statistics
import tempfile
import zipfile
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from bench_compile_networks import Process, artifacts
from comparison.processes import TARGETS, Compiled, Version, Worker
from comparison.programs import GROUPS, Program
from comparison.ratios import Pairs, interval, ratio, shown
from harness import ROOT, machine, need, unit, versions

#: the intended duration of a block of calls, and of all blocks of a pair of processes for one row, in seconds
BLOCK, ALL = 0.02, 4.0
#: the least speed of new over old, and the largest ratios of compilations and sizes of modules
SPEED, COMPILE, SIZE = 0.95, 1.02, 1.02

#: per round, elapsed seconds and processor seconds of each version
Rounds = list[tuple[tuple[float, float], tuple[float, float]]]


def unpacked(version: str, folder: Path) -> Version:
    """A wheel or a folder, with `folder` as the one to work in."""
    path, work = Path(version), folder / "work"
    work.mkdir(parents=True)
    if path.suffix != ".whl":
        return Version(path.resolve(), work)
    with zipfile.ZipFile(path) as wheel:
        wheel.extractall(folder)
    return Version(folder, work)


def timed(old: Worker, new: Worker, case: int, rounds: int) -> Rounds:
    slower = max(old.seconds(case, 1)[0], new.seconds(case, 1)[0])
    calls = max(1, int(BLOCK / slower))
    seen: Rounds = []
    for turn in range(max(3, min(rounds, int(ALL / 2 / (calls * slower))))):
        if turn % 2:
            before, after = old.seconds(case, calls), new.seconds(case, calls)
        else:
            after, before = new.seconds(case, calls), old.seconds(case, calls)
        seen.append((before, after))
    return seen


def pairs_of(compiled: Compiled, cases: int, pairs: int, rounds: int) -> list[list[Rounds]]:
    """For each case, the rounds of each pair of processes."""
    seen: list[list[Rounds]] = [[] for _ in range(cases)]
    for number in range(pairs):
        workers: dict[int, Worker] = {}
        for side in (1, 0) if number % 2 else (0, 1):
            workers[side] = compiled.worker(side)
        for case in range(cases):
            seen[case].append(timed(workers[0], workers[1], case, rounds))
        for worker in workers.values():
            worker.close()
    return seen


def report(title: str, seen: list[Rounds], cpu_time: bool) -> Pairs:
    """Print the row. Returns the ratios by which it is judged."""
    both = [[[new[clock] / old[clock] for old, new in rounds] for rounds in seen] for clock in (0, 1)]
    old, new = zip(*(pair for rounds in seen for pair in rounds), strict=True)
    medians = [unit(statistics.median(wall for wall, _ in side)) for side in (old, new)]
    judged = both[cpu_time]
    print(
        f"{title:<52} old {medians[0]:>9}  new {medians[1]:>9}  new/old {shown(both[0])}"
        f"  least {min(new)[0] / min(old)[0]:5.3f}  processor {shown(both[1])}"
        f"{'  fails' if interval(judged)[0] > 1 / SPEED else ''}",
        flush=True,
    )
    return judged


def selected(program: Program, group: str, parts: list[str]) -> Program:
    """The program with the rows whose titles have one of the parts, with the group's name in the titles."""
    cases = {f"{group} {title}": arrays for title, arrays in program.cases.items()}
    kept = {title: arrays for title, arrays in cases.items() if not parts or any(part in title for part in parts)}
    return Program(program.text, kept, program.resident, program.flags)


def compare_calls(options: argparse.Namespace, sides: list[Version], work: Path) -> bool:
    """Whether no row fails."""
    found: dict[str, Pairs] = {}
    for group in options.group or GROUPS:
        for every in GROUPS[group]():
            program = selected(every, group, options.rows)
            if not program.cases:
                continue
            compiled = Compiled(sides, program, options.device, work)
            seen = pairs_of(compiled, len(program.cases), options.pairs, options.rounds)
            for title, rounds in zip(program.cases, seen, strict=True):
                found[title] = report(title, rounds, options.cpu_time)
    if not found:
        raise SystemExit("no row has such a title")
    failed = [title for title, pairs in found.items() if interval(pairs)[0] > 1 / SPEED]
    mean = statistics.geometric_mean([ratio(pairs) for pairs in found.values()])
    print(f"{len(found)} rows, geometric mean of new/old {mean:.3f}, {len(failed)} fail: {'; '.join(failed) or '-'}")
    return not failed


def compare_compilations(options: argparse.Namespace, sides: list[Version], work: Path) -> bool:
    """Whether no row fails."""
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as other:
        networks = other.submit(artifacts, work).result()
    failed = False
    for name, (source, _) in networks.items():
        if options.rows and not any(part in name for part in options.rows):
            continue
        outs = [version.work / f"{name}.fb" for version in sides]
        processes = [
            Process(
                *version.compile_command(source, TARGETS[options.device], out, tuple(flags)),
                environment=version.environment(),
            )
            for version, out, flags in zip(sides, outs, (options.old_flag, options.new_flag), strict=True)
        ]
        for process in processes:
            process()
        seen: list[Rounds] = []
        for number in range(options.pairs):
            spent: dict[int, tuple[float, float]] = {}
            for side in (1, 0) if number % 2 else (0, 1):
                processes[side]()
                spent[side] = processes[side].elapsed, processes[side].seconds
            seen.append([(spent[0], spent[1])])
        judged = report(f"vm-compile {name}", seen, options.cpu_time)
        before, after = (out.stat().st_size for out in outs)
        print(f"{'':<52} module {before:,} bytes, {after:,}, {after / before:.4f}")
        failed |= interval(judged)[0] > COMPILE or after > SIZE * before
    print("a row fails" if failed else "no row fails")
    return not failed


def main() -> None:
    parser = argparse.ArgumentParser(description="two versions in turn")
    parser.add_argument("old", help="a wheel, or a folder that holds orchestrion/")
    parser.add_argument("rows", nargs="*", help="rows, by a part of their title; all by default")
    parser.add_argument("--new", default=str(ROOT / ".types"), help="the same; this working tree by default")
    parser.add_argument("--device", default="vulkan", choices=TARGETS)
    parser.add_argument("--group", action="append", choices=GROUPS, help="a group of rows; all by default")
    parser.add_argument("--pairs", type=int, default=6, help="pairs of processes")
    parser.add_argument("--rounds", type=int, default=15, help="blocks of calls per pair, for short calls")
    parser.add_argument("--cpu-time", action="store_true", help="judge by processor time, on a busy machine")
    parser.add_argument("--compile", action="store_true", help="compilations instead of calls")
    parser.add_argument("--old-flag", action="append", default=[], help="of the old version's vm-compile")
    parser.add_argument("--new-flag", action="append", default=[], help="of the new version's vm-compile")
    options = parser.parse_intermixed_args()
    need("jax")
    print(f"{parser.description} on {options.device}\n{machine()}\n{versions('jax', 'pyopencl', 'vulkan')}", flush=True)
    with tempfile.TemporaryDirectory() as name:
        work = Path(name)
        sides = [unpacked(options.old, work / "old"), unpacked(options.new, work / "new")]
        compare = compare_compilations if options.compile else compare_calls
        if not compare(options, sides, work):
            raise SystemExit(1)


if __name__ == "__main__":
    main()
