"""Compares two versions of this project: alternating warm calls of the same programs, and the ratio of new over old.

Each version runs in a process of its own, which compiles the program's StableHLO text, loads it, and times a block of
calls when the parent asks. The parent alternates between the two, so that changes in the machine's speed affect both
alike. Two processes of the same version also differ, by the addresses of their memory and the placement of their
threads, and the process that starts second is slower (by a tenth or two in short calls). So each row has several pairs
of processes, and each version starts first in half of them. A row's ratio is the geometric mean over pairs of the
median over rounds of new over old. It is printed with its 95 % interval (bootstrap over pairs, and over rounds within
each), the ratio of the least times, and the ratio of processor time, which counts all threads of the process and
depends less on other work on the machine.

    compare_versions.py OLD [--new NEW] [--device vulkan] [--pairs N] [--rounds N] [row ...]

OLD and NEW are wheels, or folders that hold `orchestrion/`; NEW is this working tree by default. Rows are those of
`bench_heroes.py` (arrays on the device, `out=`), `simple_mul` and `ResNet-18` (NumPy arguments and results), selected
by a part of their title.
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
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
from bench_heroes import ROWS
from harness import EXAMPLES, ROOT, machine, need, unit, versions

PROFILES = {"vulkan": "spirv", "opencl": "opencl", "reference": "reference"}
#: the intended duration of a block of calls, in seconds
BLOCK = 0.02

WORKER = """
import json, os, sys, time
import numpy as np
from orchestrion import vm

source, module, target, device, resident, *inputs = sys.argv[1:]
if not os.path.exists(module):
    from orchestrion import compiler
    compiler.compile_to_file(open(source, "rb").read(), module, targets=[target])
program = vm.load(module, device=device, allow_native_code=True)
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
    start, processor = time.perf_counter(), time.process_time()
    for _ in range(calls):
        function(*arguments, **out)
    spent = time.perf_counter() - start, time.process_time() - processor
    print(json.dumps([seconds / calls for seconds in spent]), flush=True)
"""


class Version:
    """A process in which one version times calls of one program."""

    def __init__(self, folder: Path, work: Path, source: Path, device: str, resident: bool, inputs: list[Path]) -> None:
        script = work / "worker.py"
        script.write_text(WORKER)
        version = sha256(os.fsencode(folder.resolve())).hexdigest()[:8]
        module = work / f"{source.stem}.{version}.fb"
        names = [str(source), str(module), PROFILES[device], device, "yes" if resident else "no"]
        environment = {**os.environ, "PYTHONPATH": str(folder), "ORCHESTRION_HOME": str(work / "home")}
        self._process = subprocess.Popen(
            [sys.executable, str(script), *names, *map(str, inputs)],
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._answer()

    def seconds(self, calls: int) -> tuple[float, float]:
        """The seconds of a call in a block of `calls`: elapsed time and processor time."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{calls}\n")
        self._process.stdin.flush()
        wall, processor = self._answer()
        return wall, processor

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
    """The folder to put on PYTHONPATH for a wheel or a folder."""
    path = Path(version)
    if path.suffix != ".whl":
        return path.resolve()
    with zipfile.ZipFile(path) as wheel:
        wheel.extractall(folder)
    return folder


def programs(work: Path) -> dict[str, tuple[Path, bool, list[Path]]]:
    """Title -> the program's source, whether its arguments stay on the device, and the files of its arguments."""
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


Measured = tuple[list[tuple[float, float]], list[tuple[float, float]]]


def ratio(pairs: list[list[float]]) -> float:
    """The geometric mean over pairs of processes of the median over rounds."""
    return statistics.geometric_mean([statistics.median(rounds) for rounds in pairs])


def interval(pairs: list[list[float]]) -> tuple[float, float]:
    """The 95 % interval of `ratio`, from resampling the pairs and the rounds of each."""
    generator = random.Random(0)
    found = sorted(
        ratio([generator.choices(rounds, k=len(rounds)) for rounds in generator.choices(pairs, k=len(pairs))])
        for _ in range(1000)
    )
    return found[25], found[975]


def compare(old: Version, new: Version, rounds: int) -> Measured:
    calls = max(1, int(BLOCK / max(old.seconds(1)[0], new.seconds(1)[0])))
    seen: Measured = ([], [])
    for turn in range(rounds):
        for side in (0, 1) if turn % 2 else (1, 0):
            seen[side].append((old, new)[side].seconds(calls))
    return seen


def line(seen: list[Measured]) -> str:
    """The printed line of a row."""
    old, new = (list(itertools.chain.from_iterable(times)) for times in zip(*seen, strict=True))
    ratios = [[b[0] / a[0] for a, b in zip(*times, strict=True)] for times in seen]
    processor = ratio([[b[1] / a[1] for a, b in zip(*times, strict=True)] for times in seen])
    (old_median, _), (new_median, _) = (map(statistics.median, zip(*times, strict=True)) for times in (old, new))
    low, high = interval(ratios)
    return (
        f"old {unit(old_median):>9}  new {unit(new_median):>9}  new/old {ratio(ratios):5.3f} [{low:5.3f}, {high:5.3f}]"
        f"  of the least {min(new)[0] / min(old)[0]:5.3f}  of the processor {processor:5.3f}"
    )


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
            for number in range(options.pairs):
                pair: dict[int, Version] = {}
                for side in (1, 0) if number % 2 else (0, 1):
                    pair[side] = Version(sides[side], work, source, options.device, resident, inputs)
                seen.append(compare(pair[0], pair[1], options.rounds))
                for version in pair.values():
                    version.close()
            print(f"{title:<48} {line(seen)}", flush=True)


if __name__ == "__main__":
    main()
