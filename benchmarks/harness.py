"""Shared timing code of the benchmarks.

`measure` runs in one process. Each round times every candidate once, a block of calls each, in an order that rotates
from round to round, so that changes in the machine's speed affect all candidates alike. A ratio is the median over the
rounds of the candidate's time divided by the base's time in the same round.
"""

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
EXAMPLES = ROOT / "examples"

#: distribution on PyPI -> module to import, for the peers that a script may need
PEERS = {
    "jax": "jax",
    "onnx": "onnx",
    "onnxruntime": "onnxruntime",
    "iree-base-compiler": "iree.compiler",
    "iree-base-runtime": "iree.runtime",
}


def need(*distributions: str) -> None:
    """Install those of the distributions that this environment lacks, with pip."""
    from importlib.util import find_spec

    def there(module: str) -> bool:
        try:
            return find_spec(module) is not None
        except ModuleNotFoundError:
            return False

    missing = [name for name in distributions if not there(PEERS[name])]
    if missing:
        print(f"installing {', '.join(missing)}", flush=True)
        subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", *missing], check=True)


@dataclass(frozen=True)
class Timing:
    """The measured times of one candidate: seconds per call, one number per round."""

    name: str
    rounds: tuple[float, ...]

    @property
    def median(self) -> float:
        return statistics.median(self.rounds)


def measure(
    candidates: dict[str, Callable[[], object]],
    calls: int,
    rounds: int = 30,
    warm_up: int = 3,
    pause: float = 0,
    clock: Callable[[], float] = time.perf_counter,
) -> dict[str, Timing]:
    """Times each candidate `rounds` times, `calls` calls at a time, after `warm_up` untimed calls of each.

    `pause`: seconds to wait before each block of calls, again and again until threads of the candidate before have come
    to rest. One more untimed call follows. `clock`: `time.process_time` counts the seconds of processors instead, on a
    busy machine.
    """
    names = list(candidates)
    for name in names:
        for _ in range(warm_up):
            candidates[name]()
    seen: dict[str, list[float]] = {name: [] for name in names}
    for number in range(rounds):
        for name in names[number % len(names) :] + names[: number % len(names)]:
            function = candidates[name]
            if pause:
                _rest(pause)
                function()
            start = clock()
            for _ in range(calls):
                function()
            seen[name].append((clock() - start) / calls)
    return {name: Timing(name, tuple(values)) for name, values in seen.items()}


def _rest(pause: float, most: float = 1.0) -> None:
    """Sleeps for `pause` seconds until this process has used less than half of them, for `most` seconds altogether.
    Threads of ONNX Runtime look for work for 60 ms after a call, on a core that the next candidate needs.
    """
    end = time.perf_counter() + most
    busy = True
    while busy and time.perf_counter() < end:
        used = time.process_time()
        time.sleep(pause)
        busy = time.process_time() - used > pause / 2


def ratio(timings: dict[str, Timing], name: str, base: str) -> float:
    """The median over the rounds of `name`'s time divided by `base`'s time in the same round."""
    pairs = zip(timings[name].rounds, timings[base].rounds, strict=True)
    return statistics.median(a / b for a, b in pairs)


def table(title: str, timings: dict[str, Timing], base: str, notes: Sequence[str] = ()) -> None:
    """Prints the median of each candidate, and how many times as long as `base` it takes."""
    print(f"\n{title}")
    for note in notes:
        print(f"  {note}")
    width = max(map(len, timings))
    for name, timing in timings.items():
        spread = f"min {unit(min(timing.rounds))}, max {unit(max(timing.rounds))}"
        print(f"  {name:<{width}}  median {unit(timing.median):>9}  {ratio(timings, name, base):6.2f}x  ({spread})")


def unit(seconds: float) -> str:
    for factor, name in ((1, "s"), (1e3, "ms"), (1e6, "us")):
        if seconds * factor >= 1:
            return f"{seconds * factor:.2f} {name}"
    return f"{seconds * 1e9:.1f} ns"


def machine() -> str:
    model = platform.processor() or platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        lines = (line for line in cpuinfo.read_text().splitlines() if line.startswith("model name"))
        model = next(lines, f": {model}").split(":", 1)[1].strip()
    return f"{model}, {os.cpu_count()} cores, Python {platform.python_version()}, {platform.system()}"


def versions(*distributions: str) -> str:
    from importlib.metadata import version

    return ", ".join(f"{name} {version(name)}" for name in distributions)


def arguments(description: str, **more: str) -> argparse.Namespace:
    """The options of a benchmark. `more`: further options with their defaults, lists with commas."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--rounds", type=int, default=30, help="how often each candidate is timed")
    parser.add_argument("--json", metavar="FILE", help="also write the medians, in seconds")
    for name, default in more.items():
        parser.add_argument(f"--{name}", default=default, help=f"separated by commas; default: {default}")
    options = parser.parse_args()
    print(f"{description}\n{machine()}")
    return options


def save(path: str | None, timings: dict[str, Timing]) -> None:
    if path:
        Path(path).write_text(json.dumps({name: timing.median for name, timing in timings.items()}, indent=2) + "\n")
