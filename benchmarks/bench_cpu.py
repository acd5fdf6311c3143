"""The device `cpu` beside JAX (XLA), ONNX Runtime, OpenVINO, IREE and NumPy: operations, networks, loops and calls.

Every candidate gets and gives NumPy arrays, with one and with two threads: each row and number of threads is a process
that may use as many cores. Times are the least of rounds in which the candidates take turns. `ahead` is the time of the
best peer divided by ours: below 1, `cpu` is behind. `limit` is the time that the measured peak of multiply-adds and the
measured bandwidth of memory allow, divided by ours; rows whose arrays stay in caches may be faster than memory. Peers
that are not installed, or do not run a row, are named.

    bench_cpu.py [--rounds N] [--threads 1,2] [--cpu-time] [--json FILE] [a part of a row's kind or name ...]
    bench_cpu.py --costs | --compile [--cpu-time] [--json FILE] [a part of a name ...]

`--cpu-time` counts the seconds of processors, of all threads, instead of those that pass: on a busy machine.
`--costs` times compilation and load of networks instead, and reports sizes of modules and peaks of memory.
`--compile` times the compilation of every network for one level of instructions, ours and IREE's, by processor time and
by elapsed time, and compares the size of our images of native code with the weights.
"""

import argparse
import compileall
import importlib
import json
import math
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent / "cpu"))

#: seconds that a row may take in its process
PATIENCE = 900
#: seconds of a candidate's block of calls, and of all its blocks
BLOCK, ALL = 0.005, 1.5
#: seconds to wait between blocks, until threads of the candidate before are at rest
PAUSE = 0.01


def become(threads: int) -> None:
    """Prepare this process for a number of threads, before a library is imported that asks for it."""
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:threads])
    os.environ |= {"JAX_PLATFORMS": "cpu", "OPENBLAS_NUM_THREADS": str(threads), "OMP_NUM_THREADS": str(threads)}


def run_row(name: str, threads: int, rounds: int, peers: Sequence[str], cpu_time: bool) -> dict[str, Any]:
    """In a process for this row: seconds of each candidate, or why it has none; and the limit."""
    clock = time.process_time if cpu_time else time.perf_counter
    from c_code import EVERY
    from harness import measure
    from peers import OF_ONNX, results

    row = row_of(name)
    program = row.make()
    calls, failed, want = {}, {}, None
    for peer in peers:
        try:
            call = EVERY[peer][1](program, threads)
            if call is None:
                continue
            found = results(call())
            found = [program.of_onnx(x) for x in found] if peer in OF_ONNX else found
            want = found if want is None else want
            error = difference(found, want)
            if not error <= row.tolerance:  # also for NaN
                failed[peer] = f"differs by {error:.1e}"
                continue
            calls[peer] = call
        except Exception as error:
            failed[peer] = f"{type(error).__name__}: {str(error).strip().splitlines()[0] if str(error) else ''}"[:200]
    if not calls:
        return {"seconds": {}, "failed": failed}
    least = {peer: _seconds(call) for peer, call in calls.items()}
    slowest, fastest = max(least.values()), min(least.values())
    repeated = max(1, min(1000, int(BLOCK / fastest)))
    rounds = max(3, min(rounds, int(ALL / (slowest * repeated))))
    timings = measure(calls, repeated, rounds, warm_up=1, pause=PAUSE, clock=clock)
    work = {"flops": flops_of(row, program), "bytes": bytes_of(program, want)}
    return {"seconds": {peer: min(timing.rounds) for peer, timing in timings.items()}, "failed": failed, **work}


def difference(found: Sequence[Any], want: Sequence[Any]) -> float:
    """The largest difference of results, relative to the largest magnitude of a result."""
    import numpy as np

    pairs = [(np.asarray(a, np.float64), np.asarray(b, np.float64)) for a, b in zip(found, want, strict=True)]
    return max(float(abs(a - b).max() / (abs(b).max() + 1e-30)) for a, b in pairs)


def flops_of(row: Any, program: Any) -> float:
    """Operations of a row, as XLA counts them in what JAX lowered."""
    import jax

    if row.flops is not None:
        return float(row.flops)
    counted = jax.jit(program.jax).lower(program.weights, *program.inputs).cost_analysis()
    return float(counted["flops"])


def bytes_of(program: Any, found: Any) -> float:
    """Bytes that a row reads or writes at least once: weights, inputs and results."""
    import jax

    return float(sum(x.nbytes for x in jax.tree.leaves([program.weights, list(program.inputs), list(found)])))


def _seconds(call: Any) -> float:
    """The least of three calls."""
    found = []
    for _ in range(3):
        start = time.perf_counter()
        call()
        found.append(time.perf_counter() - start)
    return min(found)


def run_limits(threads: int) -> dict[str, float]:
    """In a process: the peak and the bandwidth."""
    from peers import best_level
    from roofline import measured

    limits = measured(*best_level())
    return {"flops": limits.flops, "bandwidth": limits.bandwidth}


def child(*arguments: str) -> dict[str, Any]:
    """What this script prints last in a process with these arguments; empty, with the reason, if it fails."""
    command = [sys.executable, __file__, *arguments]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)
    except subprocess.TimeoutExpired:
        return {"seconds": {}, "failed": {"all": f"not done in {PATIENCE} s"}}
    if done.returncode:
        lines = done.stderr.strip().splitlines() or [""]
        return {"seconds": {}, "failed": {"all": f"status {done.returncode}: {lines[-1][:200]}"}}
    found: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return found


def line(row: Any, found: dict[str, Any], limits: dict[str, float], peers: Sequence[str], one: float | None) -> str:
    """A row of the table. `one`: our seconds with one thread, for the last column of several threads."""
    from harness import unit

    seconds = found["seconds"]
    cells = [row.name, *(unit(seconds[peer]) if peer in seconds else "" for peer in peers)]
    if "cpu" not in seconds:
        return "| " + " | ".join([*cells, "", "", ""]) + " |"
    own, best = seconds["cpu"], best_of(seconds)
    least = max(found["flops"] / limits["flops"], found["bytes"] / limits["bandwidth"])
    cells += [f"{best / own:.2f}" if best else "", f"{least / own:.0%}" if row.kind != "call" else ""]
    cells += [f"{one / own:.2f}" if one else ""]
    return "| " + " | ".join(cells) + " |"


def best_of(seconds: dict[str, float]) -> float | None:
    """The seconds of the best peer."""
    return min((value for peer, value in seconds.items() if peer != "cpu"), default=None)


def compare(
    rows: Sequence[Any], thread_counts: Sequence[int], rounds: int, peers: Sequence[str], more: Sequence[str] = ()
) -> Any:
    """Runs the rows and prints a table for each number of threads, as text of Markdown. `more`: options of a row."""
    every: dict[str, Any] = {}
    for threads in thread_counts:
        limits = child("--limits", f"--threads={threads}")
        every[f"limits {threads}"] = limits
        print(f"\n{threads} threads: {limits['flops'] / 1e9:.0f} GFLOP/s, {limits['bandwidth'] / 1e9:.1f} GB/s\n")
        print(
            "| "
            + " | ".join(["", *peers, "ahead", "limit", "1 thread / this"])
            + " |\n"
            + "| --- " * (len(peers) + 4)
            + "|"
        )
        ratios: dict[str, list[float]] = {}
        for row in rows:
            named = [f"--peer={peer}" for peer in peers]
            found = child(f"--row={row.name}", f"--threads={threads}", f"--rounds={rounds}", *named, *more)
            every[f"{row.name}, {threads}"] = found
            one = every.get(f"{row.name}, 1", {}).get("seconds", {}).get("cpu") if threads > 1 else None
            print(line(row, found, limits, peers, one), flush=True)
            for peer, why in found["failed"].items():
                print(f"{row.name}: {peer}: {why}", file=sys.stderr, flush=True)
            best = best_of(found["seconds"])
            if "cpu" in found["seconds"] and best is not None:
                ratios.setdefault(row.kind, []).append(best / found["seconds"]["cpu"])
        for kind, values in ratios.items():
            mean = math.exp(sum(map(math.log, values)) / len(values))
            print(f"{kind}: ahead {mean:.2f} (geometric mean of {len(values)} rows, the least {min(values):.2f})")
    return every


def run_cost(step: str, name: str, peer: str, path: Path, cpu_time: bool) -> dict[str, float]:
    """In a process: one step of `costs.py`."""
    import costs

    if step == "compile":
        return costs.compile_only(peer, row_of(name).make(), path)
    if step == "prepare":
        return costs.prepare(
            peer, row_of(name).make(), path, costs.processor_seconds if cpu_time else time.perf_counter
        )
    cache = path.with_suffix(".cache" if step == "again" else f".{os.getpid()}")
    return costs.load(peer, path, time.process_time if cpu_time else time.perf_counter, cache)


def row_of(name: str) -> Any:
    from rows import ROWS

    (row,) = [row for row in ROWS if row.name == name]
    return row


def compare_costs(peers: Sequence[str], parts: Sequence[str], more: Sequence[str] = ()) -> dict[str, Any]:
    """Prints what networks cost, as text of Markdown. Loads are the least of three processes; ours have an
    empty cache, and "again" is the load and the first call of later processes. `more`: options of a process.
    """
    from costs import COSTS, NETWORKS, TWO_TARGETS
    from harness import unit

    every: dict[str, Any] = {}
    print("\n| | compile | module | load | first call | again | memory |\n| --- | --- | --- | --- | --- | --- | --- |")
    for name in [name for name in NETWORKS if not parts or any(part in name for part in parts)]:
        for peer in [peer for peer in COSTS if peer in peers or (peer == TWO_TARGETS and "cpu" in peers)]:
            with tempfile.TemporaryDirectory() as folder:
                path = Path(folder) / "network"
                common = (f"--row={name}", f"--peer={peer}", f"--path={path}", *more)
                made = child("--cost=prepare", *common)
                loads = [child("--cost=load", *common) for _ in range(3)]
                later = [child("--cost=again", *common) for _ in range(4)][1:] if peer in ("cpu", TWO_TARGETS) else []
            failed = [one["failed"]["all"] for one in (made, *loads, *later) if "failed" in one]
            every[f"{name}, {peer}"] = {"prepared": made, "loads": loads, "again": later}
            if failed:
                print(f"| {name}, {peer} | {failed[0]} |", flush=True)
                continue
            load, first, memory = (min(one[key] for one in loads) for key in ("load", "first", "memory"))
            compiled = unit(made["compile"]) if made["compile"] else ""
            again = " + ".join(unit(min(one[key] for one in later)) for key in ("load", "first") if later)
            sizes = (f"{made['size'] / 1e6:.1f} MB", unit(load), unit(first), again, f"{memory / 1e6:.0f} MB")
            print(f"| {name}, {peer} | {compiled} | " + " | ".join(sizes) + " |", flush=True)
    return every


def write_bytecode() -> None:
    """Writes the bytecode of our modules, which every installation has. A checkout lacks that of changed files, so each
    process would compile them anew.
    """
    for name in ("compiler", "hal", "schema", "tools", "vm"):
        for folder in importlib.import_module(f"orchestrion.{name}").__path__:
            compileall.compile_dir(folder, quiet=1)


def compare_compilations(parts: Sequence[str]) -> dict[str, Any]:
    """Prints what compilations of networks take, ours and IREE's, as text of Markdown."""
    every: dict[str, Any] = {}
    write_bytecode()
    print("\n| | cpu | IREE | cpu / IREE | elapsed, cpu | elapsed, IREE | images | weights | images / weights |")
    print("| --- " * 9 + "|")
    for row in [row for row in selected(parts) if row.kind == "network"]:
        found = {}
        for peer in ("cpu", "IREE"):
            with tempfile.TemporaryDirectory() as folder:
                common = (f"--row={row.name}", f"--peer={peer}", f"--path={Path(folder) / 'network'}")
                found[peer] = every[f"{row.name}, {peer}"] = child("--cost=compile", *common)
        if failed := [one["failed"]["all"] for one in found.values() if "failed" in one]:
            print(f"| {row.name} | {failed[0]} |", flush=True)
            continue
        own, other = found["cpu"], found["IREE"]
        cells = [f"{one['processor']:.2f} s" for one in (own, other)] + [f"{own['processor'] / other['processor']:.2f}"]
        cells += [f"{one['elapsed']:.2f} s" for one in (own, other)]
        cells += [f"{own['images'] / 1e3:.0f} kB", f"{own['weights'] / 1e6:.1f} MB"]
        cells += [f"{own['images'] / own['weights']:.2%}"]
        print(f"| {row.name} | " + " | ".join(cells) + " |", flush=True)
    return every


def selected(parts: Sequence[str]) -> list[Any]:
    from rows import ROWS

    rows = [row for row in ROWS if not parts or any(part in (row.kind, row.name) or part in row.name for part in parts)]
    if not rows:
        raise SystemExit(f"no row has {' or '.join(parts)} in its name")
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("rows", nargs="*", help="kinds, or parts of names; all by default")
    parser.add_argument("--rounds", type=int, default=15, help="the most rounds in which each candidate is timed")
    parser.add_argument("--threads", default="1,2", help="numbers of threads")
    parser.add_argument("--cpu-time", action="store_true", help="seconds of processors, for a busy machine")
    parser.add_argument("--json", metavar="FILE", help="also write all seconds")
    parser.add_argument("--costs", action="store_true", help="compilation, load, sizes and memory instead")
    parser.add_argument("--compile", action="store_true", help="compilation of networks alone, beside IREE's")
    parser.add_argument("--peer", action="append", help="only these candidates; repeatable")
    for name in ("--row", "--limits", "--cost", "--path"):
        parser.add_argument(name, nargs="?", const="yes", help=argparse.SUPPRESS)
    options = parser.parse_args()
    counts = [int(text) for text in options.threads.split(",")]
    if options.limits or options.row:
        become(counts[0])
    if options.limits:
        print(json.dumps(run_limits(counts[0])))
        return
    if options.cost:
        print(json.dumps(run_cost(options.cost, options.row, options.peer[0], Path(options.path), options.cpu_time)))
        return
    if options.row:
        print(json.dumps(run_row(options.row, counts[0], options.rounds, options.peer, options.cpu_time)))
        return
    from harness import machine
    from peers import PEERS, missing

    print(machine())
    for peer in PEERS:
        if missing(peer):
            print(f"{peer} is not installed (no {', '.join(missing(peer))}): left out")
    peers = [peer for peer in options.peer or PEERS if not missing(peer)]
    more = ["--cpu-time"] if options.cpu_time else []
    if options.compile:
        every = compare_compilations(options.rows)
    elif options.costs:
        every = compare_costs(peers, options.rows, more)
    else:
        every = compare(selected(options.rows), counts, options.rounds, peers, more)
    if options.json:
        Path(options.json).write_text(json.dumps(every, indent=2) + "\n")


if __name__ == "__main__":
    main()
