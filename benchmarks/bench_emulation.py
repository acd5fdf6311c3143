"""The price of types that a Vulkan device lacks: programs with native types, with emulated ones, and with 32-bit ones.

    python benchmarks/bench_emulation.py [--elements=N] [--calls=N]

Every Vulkan device runs it. A device with all types runs native and emulated code in turns; one that lacks them runs
emulated code only. Arguments and results stay on the device. The table has milliseconds per call, the least of CALLS.
"""

import argparse
import dataclasses
import math
import re
import time
from typing import Any

import numpy as np

from orchestrion import compiler, vm
from orchestrion.hal.device import Device
from orchestrion.hal.vulkan import instance
from orchestrion.hal.vulkan.device import VulkanDevice
from orchestrion.hal.vulkan.driver import VulkanDriver

EMULATED = frozenset({"int8", "int16", "int64"})
#: name -> (element type, elements beyond N, body); x and y have T = tensor<?xTYPE> of N elements, m is a mask. One
#: element more than a multiple of four keeps the last word from being whole
PROGRAMS = {
    "add": ("i8", 0, "%z = stablehlo.add %x, %y : T"),
    "add, odd size": ("i8", 1, "%z = stablehlo.add %x, %y : T"),
    "and": ("i1", 0, "%z = stablehlo.and %x, %y : T"),
    "select": ("i8", 0, "%z = stablehlo.select %m, %x, %y : (M, T, T) -> T"),
    "concatenate": ("i8", 0, """
        %a = stablehlo.slice %x [1:HALF] : (T) -> U
        %b = stablehlo.slice %y [HALF:N] : (T) -> V
        %z = stablehlo.concatenate %b, %a, dim = 0 : (V, U) -> W"""),
    "pad": ("i8", 0, """
        %c = stablehlo.constant dense<1> : tensor<TYPE>
        %z = stablehlo.pad %x, %c, low = [2], high = [2], interior = [0] : (T, tensor<TYPE>) -> P"""),
    "dot": ("i8", 0, """
        %a = stablehlo.reshape %x : (T) -> tensor<SIDExSIDExTYPE>
        %b = stablehlo.reshape %y : (T) -> tensor<SIDExSIDExTYPE>
        %d = stablehlo.dot %a, %b : (tensor<SIDExSIDExTYPE>, tensor<SIDExSIDExTYPE>) -> tensor<SIDExSIDExTYPE>
        %z = stablehlo.reshape %d : (tensor<SIDExSIDExTYPE>) -> T"""),
    "add ": ("i16", 0, "%z = stablehlo.add %x, %y : T"),
    "multiply": ("f16", 0, "%z = stablehlo.multiply %x, %y : T"),
    "x * y + tanh(x) - y": ("f16", 0, """
        %a = stablehlo.multiply %x, %y : T
        %b = stablehlo.tanh %x : T
        %c = stablehlo.add %a, %b : T
        %z = stablehlo.subtract %c, %y : T"""),
    "add  ": ("i64", 0, "%z = stablehlo.add %x, %y : T"),
    "multiply ": ("i64", 0, "%z = stablehlo.multiply %x, %y : T"),
    "divide": ("i64", 0, "%z = stablehlo.divide %x, %y : T"),
}  # fmt: skip


def compiled(body: str, dtype: str, size: int) -> bytes:
    """The program of a body, with one result."""
    names = {
        "SIDE": math.isqrt(size), "HALF": size // 2, "N": size, "T": f"tensor<{size}x{dtype}>",
        "M": f"tensor<{size}xi1>", "U": f"tensor<{size // 2 - 1}x{dtype}>", "V": f"tensor<{size - size // 2}x{dtype}>",
        "W": f"tensor<{size - 1}x{dtype}>", "P": f"tensor<{size + 4}x{dtype}>", "TYPE": dtype,
    }  # fmt: skip
    text = re.sub("SIDE|HALF|TYPE|\\b[A-Z]\\b", lambda found: str(names[found[0]]), body)
    type = text.split(":")[-1].split("->")[-1].strip()
    given = f"%x: {names['T']}, %y: {names['T']}, %m: {names['M']}"
    return compiler.compile(f"func.func @main({given}) -> {type} {{\n{text}\nreturn %z : {type}\n}}", targets="spirv")


class Call:
    """One program on one device, with its arguments there."""

    def __init__(self, module: bytes, device: Device, dtype: str, size: int) -> None:
        self.program = vm.load(module, device=device)
        kind = {"i1": "bool", "f16": "float16", "f32": "float32"}.get(dtype, dtype.replace("i", "int"))
        words = np.random.default_rng(0).integers(1, 100, (3, size))
        given = [words[0].astype(kind), words[1].astype(kind), words[2] % 2 == 0]
        self.arguments = [self.program.put(row) for row in given]
        self.out: Any = self.program.main(*self.arguments)
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
        print(f"\n{row.info.name}\n\n| type | program | native | emulated | as 32 bits |\n" + "| --- " * 5 + "|")
        for name, (dtype, more, body) in PROGRAMS.items():
            size, wide = options.elements + more, "f32" if dtype == "f16" else "i32"
            calls = [Call(compiled(body, dtype, size), device, dtype, size) for device in devices]
            calls.append(Call(compiled(body, wide, size), devices[-1], wide, size))
            for _ in range(options.calls):
                for call in calls:
                    call.measure()
            times = [f"{call.best:.2f}" for call in calls]
            print(f"| {dtype} | {name.strip()} | {' | '.join(times if full else ['-', *times])} |", flush=True)
            for call in calls:
                call.program.close()
        for device in devices:
            device.close()


if __name__ == "__main__":
    main()
