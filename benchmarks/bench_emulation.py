"""The price of integers that a Vulkan device lacks: each program with its own types, with emulated ones, and as i32.

    python benchmarks/bench_emulation.py [--elements=N] [--calls=N]

Every Vulkan device runs it. A device with all types runs native and emulated code in turns; one that lacks them runs
emulated code only. Arguments and results stay on the device. The table has milliseconds per call, the least of CALLS.
"""

import argparse
import dataclasses
import time
from typing import Any

import numpy as np

from orchestrion import compiler, vm
from orchestrion.hal.device import Device
from orchestrion.hal.vulkan import instance
from orchestrion.hal.vulkan.device import VulkanDevice
from orchestrion.hal.vulkan.driver import VulkanDriver

EMULATED = frozenset({"int8", "int16", "int64"})
#: name -> (op, element type, elements beyond N, of which one more than a multiple of four keeps words from being whole)
PROGRAMS = {
    "i8 add": ("add", "i8", 0),
    "i8 add, odd rows": ("add", "i8", 1),
    "i1 and": ("and", "i1", 0),
    "i1 and, odd rows": ("and", "i1", 1),
    "i16 add": ("add", "i16", 0),
    "f16 multiply": ("multiply", "f16", 0),
    "i64 add": ("add", "i64", 0),
    "i64 multiply": ("multiply", "i64", 0),
    "i64 divide": ("divide", "i64", 0),
}


def compiled(op: str, dtype: str, size: int) -> bytes:
    type = f"tensor<{size}x{dtype}>"
    body = f"%z = stablehlo.{op} %x, %y : {type}\nreturn %z : {type}"
    return compiler.compile(f"func.func @main(%x: {type}, %y: {type}) -> {type} {{\n{body}\n}}", targets="spirv")


class Call:
    """One program on one device, with its arguments there."""

    def __init__(self, module: bytes, device: Device, dtype: str, size: int) -> None:
        self.program = vm.load(module, device=device)
        kind = {"i1": "bool", "f16": "float16"}.get(dtype, dtype.replace("i", "int"))
        words = np.random.default_rng(0).integers(1, 100, (2, size))
        self.arguments = [self.program.put(row.astype(kind)) for row in words]
        self.out: Any = self.program.empty((size,), np.dtype(kind))
        self.best = float("inf")
        self.run()

    def run(self) -> float:
        start = time.perf_counter()
        self.program.main(*self.arguments, out=self.out)
        return 1e3 * (time.perf_counter() - start)

    def measure(self) -> None:
        self.best = min(self.best, self.run())


def opened(row: Any, lacks: frozenset[str]) -> Device:
    info = dataclasses.replace(row.info, features=row.info.features - lacks)
    return Device.of(VulkanDevice(instance.open_instance().api, dataclasses.replace(row, info=info)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--elements", type=int, default=1 << 20)
    parser.add_argument("--calls", type=int, default=30)
    options = parser.parse_args()
    for row in VulkanDriver()._scan():
        full = row.info.features >= EMULATED
        devices = [opened(row, frozenset())] if full else []
        devices.append(opened(row, EMULATED))
        print(f"\n{row.info.name}\n\n| program | native | emulated | as i32 |\n| --- | --- | --- | --- |")
        for name, (op, dtype, more) in PROGRAMS.items():
            size = options.elements + more
            calls = [Call(compiled(op, dtype, size), device, dtype, size) for device in devices]
            calls.append(Call(compiled(op, "i32", size), devices[-1], "i32", size))
            for _ in range(options.calls):
                for call in calls:
                    call.measure()
            times = [f"{call.best:.2f}" for call in calls]
            print(f"| {name} | {' | '.join(times if full else ['-', *times])} |", flush=True)
            for call in calls:
                call.program.close()
        for device in devices:
            device.close()


if __name__ == "__main__":
    main()
