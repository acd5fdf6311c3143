"""Load and first call of Keras's EfficientNetB0, with empty caches and with filled ones, compared with JAX.

Each load runs in its own process. *Cold*: the caches of Orchestrion, PoCL and Mesa are empty folders. *Warm*: the next
process uses what the first one wrote there. The comparison is `jax.jit` of the same function, up to the first result.
`processor` is the processor time of the process and of its finished children; unlike the elapsed time, it does not
depend on other work on the machine.

Expected before measuring, from 24 s on OpenCL and 16 s on Vulkan without a warm-up, nearly all of it in the first call:
12 s on OpenCL with one child process on two processors; a first call as long as any other.
"""

import argparse
import json
import os
import pickle
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from harness import machine, need, versions

DEVICES = ("opencl", "vulkan")
PROGRAM = "EfficientNetB0, 224 x 224"
#: environment variables that name the folders of caches
FOLDERS = ("ORCHESTRION_CACHE", "POCL_CACHE_DIR", "MESA_SHADER_CACHE_DIR", "JAX_COMPILATION_CACHE_DIR")


def make(folder: Path) -> None:
    """Write the module and its arguments into a folder."""
    os.environ["KERAS_BACKEND"] = "jax"
    import jax
    import numpy as np
    from zoo.programs import program_named

    from orchestrion import compiler

    function, arguments = program_named("keras", PROGRAM).make()
    compiler.compile_to_file(function, folder / "model.fb", *arguments)
    leaves = [np.asarray(leaf) for leaf in jax.tree.leaves(arguments)]
    (folder / "arguments").write_bytes(pickle.dumps(leaves))


def processor() -> float:
    """Processor time so far, in seconds, of this process and its finished children."""
    rows = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(row.ru_utime + row.ru_stime for row in rows)


def load(folder: Path, device: str) -> dict[str, Any]:
    """Load the module and call it twice, in this process."""
    from orchestrion import vm

    arguments = pickle.loads((folder / "arguments").read_bytes())
    started, spent = time.perf_counter(), processor()
    program = vm.load(folder / "model.fb", device=device, allow_native_code=True)
    loaded = time.perf_counter()
    program.main.flat(*arguments)
    first = time.perf_counter()
    program.main.flat(*arguments)
    second = time.perf_counter()
    found = {"load": loaded - started, "first": first - loaded, "second": second - first}
    stages = program.statistics()["load"]["stages"]
    program.close()
    return {**found, "processor": processor() - spent, "stages": stages}


def peer() -> dict[str, Any]:
    """Run `jax.jit` of the same function: the times to the first and to the second result."""
    os.environ["KERAS_BACKEND"] = "jax"
    import jax
    from zoo.programs import program_named

    function, arguments = program_named("keras", PROGRAM).make()
    call = jax.jit(function)
    started, spent = time.perf_counter(), processor()
    compiled = call.lower(*arguments).compile()
    loaded = time.perf_counter()
    jax.block_until_ready(compiled(*arguments))
    first = time.perf_counter()
    jax.block_until_ready(compiled(*arguments))
    found = {"load": loaded - started, "first": first - loaded, "second": time.perf_counter() - first}
    return {**found, "processor": processor() - spent, "stages": {}}


def in_a_process(folder: Path, device: str, caches: Path) -> dict[str, Any]:
    """Run `load` or `peer` in a new process whose caches are in the folder `caches`."""
    environment = dict(os.environ, XDG_CACHE_HOME=str(caches))
    for name in FOLDERS:
        (caches / name).mkdir(exist_ok=True)
        environment[name] = str(caches / name)
    command = [sys.executable, __file__, "--run", device, "--folder", str(folder)]
    done = subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE, text=True)
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def report(folder: Path, rounds: int) -> dict[str, dict[str, Any]]:
    """For each device, the fastest of `rounds` cold processes and of the warm ones that follow them."""
    best: dict[str, dict[str, Any]] = {}
    for _ in range(rounds):
        for device in (*DEVICES, "jax"):
            with tempfile.TemporaryDirectory() as caches:
                for state in ("cold", "warm"):
                    found, name = in_a_process(folder, device, Path(caches)), f"{device}, {state}"
                    if name not in best or found["load"] + found["first"] < best[name]["load"] + best[name]["first"]:
                        best[name] = found
    return best


def main() -> None:
    made = argparse.ArgumentParser(description="Cold and warm loads of EfficientNetB0, beside jax.jit.")
    made.add_argument("--rounds", type=int, default=2)
    made.add_argument("--json", metavar="FILE.json")
    made.add_argument("--run", help=argparse.SUPPRESS)
    made.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    options = made.parse_args()
    if options.run is not None:
        print(json.dumps(peer() if options.run == "jax" else load(options.folder, options.run)))
        return
    need("jax")
    with tempfile.TemporaryDirectory() as folder:
        make(Path(folder))
        best = report(Path(folder), options.rounds)
    print(f"{machine()}, {versions('jax')}\n")
    print(f"{'seconds':<16}{'load':>8}{'first':>8}{'second':>8}{'processor':>11}  stages above 0.1 s")
    for name, row in best.items():
        stages = ", ".join(f"{stage} {seconds:.1f}" for stage, seconds in row["stages"].items() if seconds > 0.1)
        times = "".join(f"{row[key]:>8.2f}" for key in ("load", "first", "second"))
        print(f"{name:<16}{times}{row['processor']:>11.1f}  {stages}")
    if options.json:
        Path(options.json).write_text(json.dumps(best, indent=2))


if __name__ == "__main__":
    main()
