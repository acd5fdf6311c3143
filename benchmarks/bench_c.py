"""Programs as C (`vm-codegen --style=c`), built by GCC and Clang, beside the device `cpu` and IREE, with one thread.

The rows are those of `bench_cpu.py`; arguments and results are NumPy arrays. Expected before measuring: the times of
the device within 1.3 times, since the kernels and schedules are the same; C ahead on short calls, which cost no more
than their kernels.

    bench_c.py [--rounds N] [--json FILE] [a part of a row's kind or name ...]
"""

import argparse
import json
from pathlib import Path

from bench_cpu import child, selected
from harness import machine, unit

CANDIDATES = ("cpu", "C, GCC", "C, Clang", "IREE")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("rows", nargs="*", help="kinds, or parts of names; all by default")
    parser.add_argument("--rounds", type=int, default=15, help="the most rounds in which each candidate is timed")
    parser.add_argument("--json", metavar="FILE", help="also write all seconds")
    options = parser.parse_args()
    print(machine())
    heads = [*CANDIDATES, *(f"{name} / cpu" for name in CANDIDATES[1:])]
    print(f"| | {' | '.join(heads)} |\n{'| --- ' * (len(heads) + 1)}|")
    every = {}
    for row in selected(options.rows):
        named = [f"--peer={name}" for name in CANDIDATES]
        found = child(f"--row={row.name}", "--threads=1", f"--rounds={options.rounds}", *named)
        every[row.name] = found
        seconds = found["seconds"]
        own = seconds.get("cpu")
        cells = [unit(seconds[name]) if name in seconds else "" for name in CANDIDATES]
        cells += [f"{seconds[name] / own:.2f}" if own and name in seconds else "" for name in CANDIDATES[1:]]
        print(f"| {row.name} | {' | '.join(cells)} |", flush=True)
        for name, why in found["failed"].items():
            print(f"{row.name}: {name}: {why}", flush=True)
    if options.json:
        Path(options.json).write_text(json.dumps(every, indent=1))


if __name__ == "__main__":
    main()
