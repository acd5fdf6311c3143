"""Calls whose constants are streamed, compared with the same call with memory for all of them.

The program is a chain of products of one row with weights of 1 MiB each, `--mib` of them. A call reads each weight
once, so arithmetic cannot hide the copies. Each row of the table gives the program a part of the memory that it needs,
and shows what a call copies and submits, its time, and its time over that of the unlimited call. `--shares` are the
parts of the memory that a window takes (`hal.stream_plan.WINDOW_SHARE`). The driver imports no host memory, as on a
graphics card.
"""

import argparse
import os
import time
import warnings
from typing import Any

os.environ["ORCHESTRION_CACHE"] = "off"

import jax
import numpy as np
from harness import machine

from orchestrion import compiler, vm
from orchestrion.hal import stream_plan
from orchestrion.hal.opencl.device import OpenCLDevice
from orchestrion.hal.reference.device import ReferenceDevice
from orchestrion.hal.vulkan.device import VulkanDevice

WIDTH, ROUNDS = 512, 15
MIB = 1 << 20


def median(program: Any, x: Any) -> float:
    taken = []
    for turn in range(ROUNDS + 2):
        start = time.perf_counter()
        program.main(x)
        if turn >= 2:
            taken.append(time.perf_counter() - start)
    return sorted(taken)[ROUNDS // 2]


def main() -> None:
    made = argparse.ArgumentParser(description=__doc__)
    made.add_argument("--device", default="vulkan")
    made.add_argument("--mib", type=int, default=48)
    made.add_argument("--memory", default="0.9,0.5,0.25", help="parts of the memory that everything takes")
    made.add_argument("--shares", default="4,16,64")
    options = made.parse_args()
    for kind in (ReferenceDevice, OpenCLDevice, VulkanDevice):
        kind.import_host = lambda self, memory: None  # type: ignore[method-assign]
    warnings.simplefilter("ignore", vm.StreamingWarning)
    random = np.random.default_rng(0)
    weights = [random.standard_normal((WIDTH, WIDTH), np.float32) / WIDTH for _ in range(options.mib)]

    def chain(x: Any) -> Any:
        for weight in weights:
            x = x @ weight
        return x

    x = random.standard_normal((1, WIDTH), np.float32)
    module = compiler.compile(jax.jit(chain).lower(x))
    program = vm.load(module, options.device, allow_native_code=True)
    want, whole = program.main(x), median(program, x)
    peak = program.device.allocator.peak_bytes
    program.close()
    print(machine())
    weights_text = f"{options.mib} MiB of weights, {peak / MIB:.1f} MiB in all"
    print(f"{options.device}: {weights_text}, {whole * 1e3:.2f} ms unlimited")
    print("| memory given | window | copied | submissions | ms | over unlimited |")
    print("| --- | --- | --- | --- | --- | --- |")
    for part in map(float, options.memory.split(",")):
        for share in map(int, options.shares.split(",")):
            stream_plan.WINDOW_SHARE = share
            program = vm.load(module, options.device, allow_native_code=True, device_memory=int(part * peak))
            assert np.array_equal(program.main(x), want)
            taken = median(program, x)
            call = program.statistics()["calls"][-1]
            copied = call["host_to_device_bytes"] / MIB
            print(
                f"| {part:.0%} | 1/{share} | {copied:.1f} MiB | {call['submissions']} | {taken * 1e3:.2f} | "
                f"{taken / whole:.2f} |"
            )
            program.close()


if __name__ == "__main__":
    main()
