"""Two versions of this project side by side: warm calls of the same programs, in turn, and the ratio of new over old.

Each version runs in a process of its own, which compiles the program's StableHLO text, loads it and times a block of
calls when it is told to. The parent tells them by turns, so that drift of the machine's speed falls on both alike. Two
processes of one version differ too, by where memory and threads happen to lie, so each row has several pairs of
processes. A row's ratio is the geometric mean over pairs of the median over rounds of new over old; beside it stand its
95 % interval (bootstrap over pairs, and rounds within each) and the ratio of the least times.

    compare_versions.py OLD [--new NEW] [--device vulkan] [--pairs N] [--rounds N] [row ...]

OLD and NEW are wheels, or folders that hold `orchestrion/`; NEW is this working tree by default. Rows are those of
`bench_heroes.py` (device-resident, `out=`), `simple_mul` and `ResNet-18` (NumPy in and out), by a part of their title.
"""

import argparse
import itertools
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
from bench_heroes import ROWS
from harness import EXAMPLES, ROOT, machine, need, unit, versions

PROFILES = {"vulkan": "spirv", "opencl": "opencl", "reference": "reference"}
#: seconds that a block of calls should take
BLOCK = 0.02

WORKER = """
import json, sys, time
import numpy as np
from orchestrion import compiler, vm

source, target, device, resident, *inputs = sys.argv[1:]
blob = compiler.compile(open(source, "rb").read(), targets=[target])
program = vm.load(blob, device=device, allow_native_code=True)
(function,) = program.functions.values()
arguments = [np.load(path) for path in inputs]
out = {}
if resident == "yes":
    result = function(*arguments)
    arguments, out = [program.put(array) for array in arguments], {"out": program.put(np.zeros_like(result))}
for _ in range(3):
    function(*arguments, **out)
print(json.dumps("ready"), flush=True)
for line in sys.stdin:
    calls = int(line)
    start = time.perf_counter()
    for _ in range(calls):
        function(*arguments, **out)
    print(json.dumps((time.perf_counter() - start) / calls), flush=True)
"""


class Version:
    """A process that times calls of one program by one version."""

    def __init__(self, folder: Path, work: Path, source: Path, device: str, resident: bool, inputs: list[Path]) -> None:
        script = work / "worker.py"
        script.write_text(WORKER)
        command = [sys.executable, str(script), str(source), PROFILES[device], device, "yes" if resident else "no"]
        environment = {**os.environ, "PYTHONPATH": str(folder), "ORCHESTRION_HOME": str(work / "home")}
        self._process = subprocess.Popen(
            [*command, *map(str, inputs)], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self._answer()

    def seconds(self, calls: int) -> float:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{calls}\n")
        self._process.stdin.flush()
        return float(self._answer())

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()

    def _answer(self) -> Any:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise SystemExit(f"a version ended with {self._process.wait()}")
        return json.loads(line)


def unpacked(version: str, folder: Path) -> Path:
    """What to put on PYTHONPATH for a wheel or a folder."""
    path = Path(version)
    if path.suffix != ".whl":
        return path.resolve()
    with zipfile.ZipFile(path) as wheel:
        wheel.extractall(folder)
    return folder


def programs(work: Path) -> dict[str, tuple[Path, bool, list[Path]]]:
    """title -> its source, whether arguments stay on the device, and the files of its arguments."""
    import jax

    sys.path.insert(0, str(ROOT / "examples"))
    import networks

    four = np.arange(4, dtype=np.float32)
    found: dict[str, tuple[Path, bool, list[Path]]] = {}
    found["simple_mul"] = (EXAMPLES / "simple_mul.mlir", False, _saved(work, "simple_mul", [four, four]))
    generator = np.random.default_rng(0)
    weights = networks.resnet18(generator)
    image = generator.standard_normal((1, 224, 224, 3), np.float32)
    source = work / "resnet18.mlir"
    source.write_text(jax.jit(lambda x: networks.apply_resnet18(weights, x)).lower(image).as_text())
    found["ResNet-18"] = (source, False, _saved(work, "resnet18", [image]))
    for number, row in enumerate(ROWS):
        source, arguments = work / f"hero{number}.mlir", row.arguments()
        source.write_text(jax.jit(row.function).lower(*arguments).as_text())
        found[row.title] = (source, True, _saved(work, f"hero{number}", arguments))
    return found


def _saved(work: Path, name: str, arrays: list[Any]) -> list[Path]:
    paths = [work / f"{name}.{number}.npy" for number in range(len(arrays))]
    for path, array in zip(paths, arrays, strict=True):
        np.save(path, array)
    return paths


Seen = tuple[list[float], list[float]]


def ratio(pairs: list[list[float]]) -> float:
    """The geometric mean over pairs of processes of the median over rounds."""
    return statistics.geometric_mean([statistics.median(rounds) for rounds in pairs])


def interval(pairs: list[list[float]]) -> tuple[float, float]:
    """The 95 % interval of `ratio`, by resampling the pairs and the rounds of each."""
    generator = random.Random(0)
    found = sorted(
        ratio([generator.choices(rounds, k=len(rounds)) for rounds in generator.choices(pairs, k=len(pairs))])
        for _ in range(1000)
    )
    return found[25], found[975]


def compare(old: Version, new: Version, rounds: int) -> Seen:
    calls = max(1, int(BLOCK / max(old.seconds(1), new.seconds(1))))
    seen: Seen = ([], [])
    for turn in range(rounds):
        for side in (0, 1) if turn % 2 else (1, 0):
            seen[side].append((old, new)[side].seconds(calls))
    return seen


def main() -> None:
    parser = argparse.ArgumentParser(description="warm calls of two versions, in turn")
    parser.add_argument("old", help="a wheel, or a folder that holds orchestrion/")
    parser.add_argument("rows", nargs="*", help="rows, by a part of their title; all by default")
    parser.add_argument("--new", default=str(ROOT / ".types"), help="the same; this working tree by default")
    parser.add_argument("--device", default="vulkan", choices=PROFILES)
    parser.add_argument("--pairs", type=int, default=6, help="pairs of processes")
    parser.add_argument("--rounds", type=int, default=15, help="blocks of calls per pair")
    options = parser.parse_intermixed_args()
    need("jax")
    print(f"{parser.description} on {options.device}\n{machine()}\n{versions('jax', 'pyopencl', 'vulkan')}")
    with tempfile.TemporaryDirectory() as name:
        work = Path(name)
        sides = [unpacked(options.old, work / "old"), unpacked(options.new, work / "new")]
        for title, (source, resident, inputs) in programs(work).items():
            if options.rows and not any(part in title for part in options.rows):
                continue
            seen = []
            for _ in range(options.pairs):
                pair = [Version(side, work, source, options.device, resident, inputs) for side in sides]
                seen.append(compare(pair[0], pair[1], options.rounds))
                for version in pair:
                    version.close()
            old, new = (list(itertools.chain.from_iterable(times)) for times in zip(*seen, strict=True))
            ratios = [[b / a for a, b in zip(*times, strict=True)] for times in seen]
            low, high = interval(ratios)
            print(
                f"{title:<48} old {unit(statistics.median(old)):>9}  new {unit(statistics.median(new)):>9}  "
                f"new/old {ratio(ratios):5.3f} [{low:5.3f}, {high:5.3f}]  of the least "
                f"{min(new) / min(old):5.3f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
