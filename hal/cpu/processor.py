"""The processor of this machine: its architecture, and the instruction sets that native images may use.

Nothing is executed to find out. x86 processors are read from the flags of `/proc/cpuinfo`, which leave out what the
kernel does not save for a thread. aarch64 has the base of the architecture with NEON; its flags tell whether it has dot
products.
"""

import os
import struct
import sys
from functools import cache

from orchestrion.hal.errors import DriverUnavailable

#: name that the kernel gives a machine -> architecture of an image
ARCHITECTURES = {"x86_64": "x86-64", "aarch64": "aarch64"}

#: level -> the flags of `/proc/cpuinfo` that it adds to the level before
LEVELS: dict[str, str] = {
    "x86-64-v2": "cx16 lahf_lm popcnt pni sse4_1 sse4_2 ssse3",
    "x86-64-v3": "abm avx avx2 bmi1 bmi2 f16c fma movbe xsave",
    "x86-64-v4": "avx512f avx512bw avx512cd avx512dq avx512vl",
    "x86-64-v4-vnni": "avx512_vnni",
    "x86-64-v4-bf16": "avx512_bf16",
}


def architecture() -> str:
    """The architecture of this process. Raises DriverUnavailable if no native image runs in it."""
    if sys.platform != "linux":
        raise DriverUnavailable(f"the driver cpu runs on Linux, this is {sys.platform}")
    machine, bits = os.uname().machine, 8 * struct.calcsize("P")
    if machine not in ARCHITECTURES or bits != 64 or sys.byteorder != "little":
        known = " and ".join(ARCHITECTURES)
        raise DriverUnavailable(
            f"the driver cpu runs on {known} with 64 bits, this is {machine} with {bits} bits ({sys.byteorder} endian)"
        )
    return ARCHITECTURES[machine]


def instruction_sets(architecture: str, description: dict[str, str]) -> frozenset[str]:
    """The features of a processor, as `schema.profiles.INSTRUCTION_SETS` names them.

    Raises DriverUnavailable for a processor that lacks the first level of its architecture.
    """
    flags = set(description.get("flags", description.get("Features", "")).split())
    if architecture == "aarch64":
        return frozenset({"aarch64", "aarch64-dotprod"} if "asimddp" in flags else {"aarch64"})
    found: set[str] = set()
    for level, needed in LEVELS.items():
        missing = [flag for flag in needed.split() if flag not in flags]
        if missing:
            if not found:
                raise DriverUnavailable(f"the processor lacks {', '.join(missing)} of {level}")
            break
        found.add(level)
    return frozenset(found)


@cache
def description() -> dict[str, str]:
    """The rows of the first processor in `/proc/cpuinfo`. Raises DriverUnavailable if it cannot be read."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
            text = file.read()
    except OSError as error:
        raise DriverUnavailable(f"/proc/cpuinfo cannot be read: {error}") from error
    rows = (line.partition(":") for line in text.split("\n\n")[0].splitlines())
    return {name.strip(): value.strip() for name, _, value in rows}
