"""The price of the second level of SPIR-V: networks compiled for the first level only, and for both.

    python benchmarks/bench_levels.py [--rounds=N]

Per network and kind of segment: bytes for one level, for both, and their ratio; then the processor time of compilation,
in turns, as the median of ROUNDS. Fails if the file grows to more than 1.05 times, code to more than 2.1 times, the
constants at all, or the time to more than 1.5 times.
"""

import argparse
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

import jax
import numpy as np
from harness import EXAMPLES, machine

from orchestrion import compiler
from orchestrion.schema.decoder import read_module
from orchestrion.schema.rows import SegmentKind

sys.path.insert(0, str(EXAMPLES))

import networks

#: what both levels may be of one, at most
LIMITS = {"file": 1.05, "Executable": 2.1, "Constant": 1.0, "seconds": 1.5}


def resnet() -> tuple[Callable[..., Any], Any]:
    """ResNet-18, with 47 MB of weights."""
    weights = networks.resnet18(np.random.default_rng(0))
    return lambda x: networks.apply_resnet18(weights, x), np.zeros((1, 224, 224, 3), np.float32)


def transformer() -> tuple[Callable[..., Any], Any]:
    """Two layers of width 256, for 64 tokens."""
    weights = networks.encoder(np.random.default_rng(0), layers=2, width=256, vocabulary=1000, longest=64)
    return lambda x: networks.apply_encoder(weights, x, heads=4), np.zeros((1, 64), np.int32)


def sizes(module: bytes) -> dict[str, int]:
    """Bytes of the file, and of its segments by kind."""
    found = {"file": len(module)}
    for row in read_module(module).segments:
        name = SegmentKind(row.kind).name
        found[name] = found.get(name, 0) + row.size
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    print(machine())
    print("\n| network | what | one level | both | ratio |\n| --- | --- | --- | --- | --- |")
    failed = []
    for network in (resnet, transformer):
        function, example = network()
        text = jax.jit(function).lower(example).as_text()
        modules: dict[str, bytes] = {}
        seconds: dict[str, list[float]] = {"first": [], "all": []}
        for number in range(options.rounds + 1):
            for levels in ("first", "all") if number % 2 else ("all", "first"):
                start = time.process_time()
                modules[levels] = compiler.compile(text, targets="spirv", levels=levels)
                seconds[levels].append(time.process_time() - start)
        one, both = (dict[str, float](sizes(modules[levels])) for levels in ("first", "all"))
        one["seconds"], both["seconds"] = (statistics.median(times[1:]) for times in seconds.values())
        for name in both:
            ratio = both[name] / one[name]
            print(f"| {network.__name__} | {name} | {one[name]:,.10g} | {both[name]:,.10g} | {ratio:.2f} |", flush=True)
            failed += [f"{network.__name__} {name}"] if ratio > LIMITS.get(name, ratio) else []
    sys.exit(f"more than {LIMITS}: {', '.join(failed)}" if failed else 0)


if __name__ == "__main__":
    main()
