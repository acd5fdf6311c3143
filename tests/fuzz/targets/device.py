"""A damaged module is refused, or runs within limits, on OpenCL, every Vulkan device, the CPU and the null device,
without permission for native code: the property of `mutants.run`.

Code that counts up to a number which the module gives may take hours, and nobody can end it on a processor: the process
ends then, and another one goes on.

An input is a byte that chooses the device, and a file. Files whose SPIR-V is not one of the seeds' are left out: what
its checker accepts may run for ever (`spirv` is the checker's target).
"""

import random
from functools import cache
from hashlib import sha256

import fuzzing
import module_corpus
import mutants
import mutate_file
from fuzzing import ROOT, check

from orchestrion.hal.backend import BackendDriver
from orchestrion.hal.errors import HalError
from orchestrion.hal.registry import load_driver
from orchestrion.schema.decoder import read_module
from orchestrion.schema.errors import ModuleError
from orchestrion.schema.writer import write

MAX_BYTES = 16384
SECONDS = 20.0
#: drivers map as much as they like
MEMORY = 0
_CHANGES = (
    *(mutate_file.row_fields, mutate_file.row_order, mutate_file.counts, mutate_file.offsets, mutate_file.strings),
    *(mutate_file.directory, fuzzing.load("module").mutate),
)


@cache
def _devices() -> list[tuple[BackendDriver, int]]:
    """(driver, ordinal) of what is there."""
    found = []
    for name in ("null", "opencl", "vulkan", "cpu"):
        driver = load_driver(name)
        try:
            found += [(driver, ordinal) for ordinal in range(len(driver.devices()))]
        except HalError:
            continue
    return found


@cache
def _files() -> list[bytes]:
    """Modules for every target."""
    from orchestrion import compiler

    made = [compiler.compile((ROOT / "examples" / "simple_mul.generic.mlir").read_bytes())]
    adapted = [write(module) for profile in ("spirv", "opencl") for module in module_corpus.for_device(profile)]
    found = [*module_corpus.written(), *made, *adapted]
    return [data for data in found if len(data) < MAX_BYTES]


@cache
def _known() -> set[bytes]:
    """Digests of the seeds' SPIR-V."""
    return {digest for data in _files() for digest in _spirv(data)}


def _spirv(data: bytes) -> list[bytes]:
    """Digests of the SPIR-V of a module."""
    module = read_module(data)
    rows = [row for row in module.variants if module.strings[row.format] == "spirv"]
    return [sha256(module.segment(row.payload, verify=False)).digest() for row in rows]


def seeds():
    """Each file once on a device that it is for, as far as can be told, and some on others."""
    profiles = {"spirv": "vulkan", "opencl": "opencl", "cpu": "cpu", "reference": "null"}
    found = []
    for at, data in enumerate(_files()):
        module = read_module(data)
        wanted = {profiles[module.strings[row.profile]] for row in module.programs}
        for device, (driver, _) in enumerate(_devices()):
            if driver.name in wanted or at % 5 == device % 5:
                found.append(bytes([device]) + data)
    return found


def mutate(choose: random.Random, data: bytes) -> bytes:
    device = data[:1] if choose.random() < 0.8 else bytes([choose.randrange(len(_devices()))])
    return device + choose.choice(_CHANGES)(choose, data[1:])


def repair(data: bytes) -> bytes:
    return data[:1] + mutate_file.sealed(data[1:])


def one_input(data: bytes) -> None:
    try:
        if not _known().issuperset(_spirv(data[1:])):
            return
    except ModuleError:
        pass  # refused by the load, too
    driver, ordinal = _devices()[data[0] % len(_devices()) if data else 0]
    if mutants.run(data[1:], driver=driver, ordinal=ordinal)[mutants.NOT_OVER]:
        raise fuzzing.Unended("the device works on and on")
    check(not mutants.in_threads, f"in a thread: {mutants.in_threads}")
