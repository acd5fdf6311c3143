"""Time, peak memory and module size of compiling a ResNet-18 and a 12-layer transformer to SPIR-V, compared with
iree-compile.

Both compilers read the same portable artifact of `jax.export`, which contains the weights (45 and 350 MB), in a process
of their own. IREE compiles for Vulkan with its optimisation levels O2 and O3. Memory is the peak resident set of the
process. The peak of a process that compiles simple_mul is printed too, since a reader of StableHLO takes much of it.

Expected before measuring: 1 s and 2.5 s of processor time in addition to reading; memory of twice the constants, since
jaxlib holds them while ours are made from them. iree-compile was seen at 2 and 5 s of processor time.
"""

import multiprocessing
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from harness import EXAMPLES, ROOT, arguments, measure, need, save, table, versions

BIN = Path(sys.executable).parent
ENVIRONMENT = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
IREE = ("--iree-hal-target-device=vulkan",)


class Process:
    """Runs a command. `peak` is the largest resident set of its runs, in bytes; `seconds` is the processor time of the
    last run, `elapsed` the time that passed.
    """

    def __init__(self, *command: str | Path, environment: Mapping[str, str] = ENVIRONMENT) -> None:
        self.command = [str(part) for part in command]
        self.environment = environment
        self.peak = 0
        self.seconds = self.elapsed = 0.0

    def __call__(self) -> None:
        start = time.perf_counter()
        child = subprocess.Popen(self.command, env=self.environment, stdout=subprocess.DEVNULL)
        _, status, used = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        if child.returncode:
            raise SystemExit(f"{' '.join(self.command)} failed with {child.returncode}")
        self.peak = max(self.peak, used.ru_maxrss * 1024)
        self.elapsed = time.perf_counter() - start
        self.seconds = used.ru_utime + used.ru_stime


def artifacts(folder: Path) -> dict[str, tuple[Path, int]]:
    """Name -> the network's portable artifact and the size of its weights in bytes.

    Runs in a process of its own, because Linux counts a parent's memory in the peak of its children.
    """
    import jax
    import numpy as np
    from jax import export

    sys.path.insert(0, str(ROOT / "examples"))
    import networks

    random = np.random.default_rng(0)
    resnet = networks.resnet18(random)
    encoder = networks.encoder(random, layers=12, width=768, vocabulary=2000, longest=128)
    programs = {
        "resnet18": (resnet, lambda x: networks.apply_resnet18(resnet, x), ((1, 224, 224, 3), np.float32)),
        "transformer": (encoder, lambda tokens: networks.apply_encoder(encoder, tokens, 12), ((1, 128), np.int32)),
    }
    made = {}
    for name, (weights, function, (shape, dtype)) in programs.items():
        path = folder / f"{name}.mlirbc"
        path.write_bytes(export.export(jax.jit(function))(jax.ShapeDtypeStruct(shape, dtype)).mlir_module_serialized)
        made[name] = path, sum(leaf.nbytes for leaf in jax.tree.leaves(weights))
    return made


def main() -> None:
    options = arguments("whole-process compile of two networks with their weights, to SPIR-V")
    need("jax", "iree-base-compiler")
    mega = 1e6
    with tempfile.TemporaryDirectory() as folder:
        small = Process(BIN / "vm-compile", EXAMPLES / "simple_mul.mlir", "--target=spirv", "-o", f"{folder}/small.fb")
        small()
        print(f"vm-compile of simple_mul: peak {small.peak / mega:.0f} MB")
        with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as other:
            made = other.submit(artifacts, Path(folder)).result()
        for name, (source, constants) in made.items():
            out = Path(folder) / f"{name}.out"
            processes = {
                "vm-compile": Process(BIN / "vm-compile", source, "--target=spirv", "-o", out),
                "iree-compile O2": Process(BIN / "iree-compile", *IREE, "--iree-opt-level=O2", source, "-o", out),
                "iree-compile O3": Process(BIN / "iree-compile", *IREE, "--iree-opt-level=O3", source, "-o", out),
            }
            notes = [versions("iree-base-compiler"), f"{constants / mega:.0f} MB of weights"]
            candidates: dict[str, Callable[[], object]] = dict(processes)
            timings = measure(candidates, calls=1, rounds=max(options.rounds // 10, 3), warm_up=1)
            for title, process in processes.items():
                process()
                notes.append(
                    f"{title}: {process.seconds:.2f} s of processor time, peak {process.peak / mega:.0f} MB, "
                    f"{process.peak / constants:.2f} times the weights, "
                    f"{(process.peak - small.peak) / constants:.2f} beside simple_mul's; "
                    f"{out.stat().st_size / mega:.1f} MB of module"
                )
            table(f"{name} to SPIR-V", timings, "vm-compile", notes)
            save(options.json and f"{options.json}.{name}", timings)


if __name__ == "__main__":
    main()
