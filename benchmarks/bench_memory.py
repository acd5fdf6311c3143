"""Bandwidth of a device's memory: a kernel that reads and writes it, copies within it, uploads and downloads.

The rows: a kernel that negates f32 numbers (one read and one write per element), a copy command over the same bytes,
the transfers between NumPy arrays and the device for each use of memory, and NumPy's own copy on the host. On a
graphics card the first two show the bandwidth of its own memory, tens of times that of the bus; uploads and downloads
show the bus. If the kernel is as slow as an upload, the memory is in the wrong heap.

`--device=vulkan:1` chooses a device, `--mib=64` the size, `--json=FILE` writes GB/s. The first line names the machine.
"""

import argparse
import json
import statistics
import time
from collections.abc import Callable
from datetime import date
from pathlib import Path

import numpy as np
from harness import machine

from orchestrion import vm
from orchestrion.compiler.driver import compile
from orchestrion.hal.backend import MemoryUse
from orchestrion.hal.device import Device
from orchestrion.hal.policy import Policy
from orchestrion.hal.registry import open_device

MIB = 1 << 20
NEGATE = """
func.func @main(%x: tensor<{n}xf32>) -> tensor<{n}xf32> {{
  %y = stablehlo.negate %x : tensor<{n}xf32>
  return %y : tensor<{n}xf32>
}}
"""


def seconds(call: Callable[[], object], rounds: int) -> float:
    """The median of `rounds` calls, after two calls that are not counted."""
    taken = []
    for turn in range(rounds + 2):
        start = time.perf_counter()
        call()
        if turn >= 2:
            taken.append(time.perf_counter() - start)
    return statistics.median(taken)


def kernel(device: Device, size: int) -> Callable[[], object]:
    """A call whose argument and result are on the device. It moves `2 * size` bytes."""
    program = vm.load(compile(NEGATE.format(n=size // 4)), device=device)
    given, out = program.put(np.zeros(size // 4, np.float32)), program.empty((size // 4,), np.float32)
    return lambda: program.main(given, out=out)


def copy(device: Device, size: int) -> Callable[[], object]:
    """A copy command within memory for arenas. It moves `2 * size` bytes."""
    source, target = (device.allocator.allocate(size, MemoryUse.ARENA) for _ in range(2))
    commands = device.create_command_buffer()
    commands.copy(source, 0, target, 0, size)
    commands.finish()
    return lambda: device.queue.execute(commands)


def upload(device: Device, size: int, use: MemoryUse) -> Callable[[], object]:
    buffer, data = device.allocator.allocate(size, use), np.ones(size, np.uint8)

    def call() -> None:
        buffer.write(data)
        device.queue.wait_idle()

    return call


def download(device: Device, size: int, use: MemoryUse) -> Callable[[], object]:
    buffer, out = device.allocator.allocate(size, use), np.empty(size, np.uint8)
    return lambda: buffer.read(out)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="vulkan")
    parser.add_argument("--mib", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--json", metavar="FILE")
    options = parser.parse_args()
    size = options.mib * MIB
    with open_device(options.device, policy=Policy(allow_native_code=True)) as device:
        print(f"{date.today()}, {machine()}\n{device.info.id}: {device.info.name}, {device.info.version}")
        print("\n".join(f"  {note}" for note in device.info.notes))
        print(f"{options.mib} MiB, median of {options.rounds}")
        found = measure(device, size, options.rounds)
    base = found["NumPy copy on the host"]
    for name, speed in found.items():
        print(f"  {name:<28} {speed:8.2f} GB/s  {speed / base:6.2f}x")
    if options.json:
        Path(options.json).write_text(json.dumps(found, indent=2) + "\n")


def measure(device: Device, size: int, rounds: int) -> dict[str, float]:
    """GB/s of each row. What a row allocates is freed before the next row."""
    source, target = np.ones(size, np.uint8), np.empty(size, np.uint8)
    rows: list[tuple[str, int, Callable[[], Callable[[], object]]]] = [
        ("kernel, reads and writes", 2 * size, lambda: kernel(device, size)),
        ("copy command, device memory", 2 * size, lambda: copy(device, size)),
        ("upload, constant", size, lambda: upload(device, size, MemoryUse.CONSTANT)),
        ("upload, input", size, lambda: upload(device, size, MemoryUse.INPUT)),
        ("download, output", size, lambda: download(device, size, MemoryUse.OUTPUT)),
        ("download, arena", size, lambda: download(device, size, MemoryUse.ARENA)),
        ("NumPy copy on the host", 2 * size, lambda: lambda: np.copyto(target, source)),
    ]
    return {name: moved / seconds(make(), rounds) / 1e9 for name, moved, make in rows}


if __name__ == "__main__":
    main()
