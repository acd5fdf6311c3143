"""The rows of `bench_heroes.py` compiled for each kind of machine (`vm-compile --machine`), on the devices of this
computer.

Each row is compiled once per machine and called on every device, with all arrays on the device; results are compared
with XLA's first. The machine with the least time suits the device best. The last column is the time of each machine's
code as a multiple of the first machine's. This is the one command to run on a GPU:

    bench_machines.py [--device vulkan:1,opencl] [--rounds N] [--json FILE] [group or row ...]
"""

import argparse
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from bench_heroes import DEVICES, Row, close, selected
from harness import machine, measure, need, unit, versions

from orchestrion.compiler.profiles import MACHINES

#: groups whose kernels depend on the machine
GROUPS = ("matmul", "convolution", "attention", "layer norm")
TARGETS = {device: target for target, device in DEVICES.items()}


def call_of(row: Row, text: str, device: str, made_for: str, want: np.ndarray) -> Callable[[], Any]:
    """A call of the row on a device, whose result was checked."""
    from orchestrion import compiler, vm

    blob = compiler.compile(text, targets=[TARGETS[device.partition(":")[0]]], machines=(made_for,))
    program = vm.load(blob, device=device, allow_native_code=True)
    given, out = [program.put(array) for array in row.arguments()], program.put(np.zeros_like(want))
    if not close(np.asarray(program.main(*given, out=out)), want):
        raise SystemExit(f"{row.title}: {device}, made for {made_for}, and XLA disagree")
    return lambda: program.main(*given, out=out)


def run(row: Row, devices: Sequence[str], rounds: int) -> dict[str, dict[str, float]]:
    """The least seconds of a call, by device and machine."""
    import jax

    compiled = jax.jit(row.function)
    text, want = compiled.lower(*row.arguments()).as_text(), np.asarray(compiled(*row.arguments()))
    found = {}
    for device in devices:
        calls = {name: call_of(row, text, device, name, want) for name in MACHINES}
        found[device] = {name: min(t.rounds) for name, t in measure(calls, calls=1, rounds=rounds).items()}
    return found


def report(row: Row, device: str, least: dict[str, float]) -> None:
    base = least[next(iter(MACHINES))]
    times = "  ".join(f"{name} {unit(seconds):>9} {seconds / base:6.2f}x" for name, seconds in least.items())
    print(f"{row.title:<48} {device:<10} {times}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description="heroes made for each machine, f32, device-resident")
    parser.add_argument(
        "rows", nargs="*", help=f"groups or rows, by a part of their title; default {', '.join(GROUPS)}"
    )
    parser.add_argument("--device", default=",".join(TARGETS), help="devices, separated by commas: vulkan:1, opencl")
    parser.add_argument("--rounds", type=int, default=15, help="how often each candidate is timed")
    parser.add_argument("--json", metavar="FILE", help="also write the least times, in seconds")
    options = parser.parse_args()
    need("jax")
    devices = options.device.split(",")
    unknown = [name for name in devices if name.partition(":")[0] not in TARGETS]
    if unknown:
        raise SystemExit(f"no kernels are made for {', '.join(unknown)}: drivers are {', '.join(TARGETS)}")
    print(f"{parser.description}\n{machine()}\n{versions('jax', 'pyopencl', 'vulkan')}")
    print_names(devices)
    every = {}
    for row in selected(options.rows or GROUPS):
        every[row.title] = run(row, devices, options.rounds)
        for device, least in every[row.title].items():
            report(row, device, least)
    if options.json:
        Path(options.json).write_text(json.dumps(every, indent=2) + "\n")


def print_names(devices: Sequence[str]) -> None:
    from orchestrion.hal.registry import find_device

    for name in devices:
        print(f"{name}: {find_device(name)[1].name}")


if __name__ == "__main__":
    main()
