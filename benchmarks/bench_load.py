"""From a file to ready-to-call on the reference device, beside IREE's mapping, HAL module and context.

Both have their device open. Ours maps, verifies root, directory and functions, picks the program and runs its
initializers (executables verified, constants imported, the recording made). Then the same with a gigabyte of
constants: time and page faults show that they are not read.

Expected before measuring: 100 us, against 90 to 120 us seen for IREE; no more with the gigabyte.
"""

import resource
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from harness import EXAMPLES, arguments, measure, need, save, table, versions

GIB = 1 << 30


def ours(path: Path) -> Callable[[], Any]:
    from orchestrion import vm
    from orchestrion.hal.registry import open_device

    device = open_device("reference")
    return lambda: vm.load(path, device=device).close()


def iree(path: Path) -> Callable[[], Any]:
    import iree.runtime as rt

    config = rt.Config("local-sync")
    instance, device = config.vm_instance, config.device

    def load() -> Any:
        module = rt.VmModule.mmap(instance, str(path))
        return rt.VmContext(instance, modules=[rt.create_hal_module(instance, device), module])

    return load


def compile_iree(path: Path) -> None:
    import iree.compiler

    blob = iree.compiler.compile_file(
        str(EXAMPLES / "simple_mul.generic.mlir"),
        input_type="stablehlo",
        target_backends=["llvm-cpu"],
        extra_args=["--iree-llvmcpu-target-cpu=host"],
    )
    path.write_bytes(blob)


def faults(function: Callable[[], Any]) -> int:
    """Page faults, minor and major, of one call."""
    before = resource.getrusage(resource.RUSAGE_SELF)
    function()
    after = resource.getrusage(resource.RUSAGE_SELF)
    return after.ru_minflt + after.ru_majflt - before.ru_minflt - before.ru_majflt
