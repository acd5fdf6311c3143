"""Levels: instruction sets that images are made for, a row each, best first per architecture.

A level is a feature of the devices that run it (`schema.profiles.INSTRUCTION_SETS`).
"""

import platform
from dataclasses import dataclass
from typing import Final

from orchestrion.compiler.errors import ArgumentValueError


@dataclass(frozen=True, slots=True)
class Level:
    """An instruction set. `triple`, `cpu`, `features`: its names in LLVM."""

    name: str
    architecture: str
    triple: str
    cpu: str
    features: str
    #: 32-bit values of a vector
    lanes: int
    #: loads and stores of some lanes of a vector are instructions
    masks: bool = False
    #: an instruction adds a product to a number and rounds once
    fused: bool = True
    #: an instruction multiplies by a power of two and rounds once
    scales: bool = False
    #: passes over rows, and strips of blocks, prefetch the memory that is needed next
    prefetches: bool = False
    #: an instruction tells whether a condition holds in all lanes, and branches on it save more than they cost
    asks: bool = False
    #: vectors that the processor holds
    registers: int = 32
    #: iterations of a loop that adds products in vectors that LLVM joins; 1 for none
    unrolled: int = 1
    #: iterations of a short loop over the vectors of a workgroup that are written out
    copies: int = 1
    #: instructions convert between f16 and f32
    halves: bool = True
    #: how bytes are multiplied (`byte_products.py`)
    byte_products: str = ""
    #: an instruction adds two products of bf16 to an f32
    pair_products: bool = False
    #: columns of a product of few rows are copied to a panel (`kernel/panels/lines.py`)
    prefers_panels: bool = False
    #: the level that has the same instructions but those that multiply bytes, or bf16
    base: str = ""

    @property
    def versions(self) -> bool:
        """Whether branches that some lanes take have a version for all lanes, instead of masks. It needs registers."""
        return not self.masks and self.registers * self.lanes >= 128

    @property
    def decides(self) -> bool:
        """Whether branches and loads by places have code for all lanes and code with masks, which loads few vectors."""
        return self.versions and self.asks


_X86, _ARM = "x86_64-unknown-linux-gnu", "aarch64-unknown-linux-gnu"

LEVELS: Final[dict[str, Level]] = {
    row.name: row
    for row in (
        Level("x86-64-v4-bf16", "x86-64", _X86, "x86-64-v4", "+avx512vnni,+avx512bf16", 16, masks=True, scales=True,
              byte_products="vnni", pair_products=True, base="x86-64-v4-vnni"),
        Level("x86-64-v4-vnni", "x86-64", _X86, "x86-64-v4", "+avx512vnni", 16, masks=True, scales=True,
              byte_products="vnni", base="x86-64-v4"),
        Level("x86-64-v4", "x86-64", _X86, "x86-64-v4", "", 16, masks=True, scales=True, byte_products="pairs"),
        Level("x86-64-v3", "x86-64", _X86, "x86-64-v3", "", 8, registers=16, unrolled=4, copies=4, asks=True,
              prefetches=True, prefers_panels=True, byte_products="pairs"),
        Level("x86-64-v2", "x86-64", _X86, "x86-64-v2", "", 4, fused=False, registers=16, copies=4, asks=True,
              prefetches=True, prefers_panels=True, halves=False, byte_products="pairs"),
        Level("aarch64-dotprod", "aarch64", _ARM, "generic", "+neon,+dotprod", 4, byte_products="dotprod",
              base="aarch64"),
        Level("aarch64", "aarch64", _ARM, "generic", "+neon", 4),
    )
}  # fmt: skip
#: machine as Python names it -> architecture
_MACHINES: Final[dict[str, str]] = {"x86_64": "x86-64", "amd64": "x86-64", "aarch64": "aarch64", "arm64": "aarch64"}
#: words for several levels -> their meaning
GROUPS: Final[dict[str, str]] = {"host": "the levels of this machine's architecture", "all": "every level"}


def host_levels() -> tuple[str, ...]:
    """The levels of the architecture of this machine, best first; all levels if it has none."""
    architecture = _MACHINES.get(platform.machine().lower())
    own = tuple(name for name, row in LEVELS.items() if row.architecture == architecture)
    return own or tuple(LEVELS)


def levels_named(names: tuple[str, ...]) -> tuple[Level, ...]:
    """The levels of these names, which may be `host` or `all`, best first; without names those of the host.

    Raises ArgumentValueError for an unknown name.
    """
    wanted: set[str] = set()
    for name in names or ("host",):
        if name not in LEVELS and name not in GROUPS:
            raise ArgumentValueError(f"no processor is called {name!r}; there are {', '.join([*LEVELS, *GROUPS])}")
        wanted.update({"host": host_levels(), "all": tuple(LEVELS)}.get(name, (name,)))
    return tuple(row for name, row in LEVELS.items() if name in wanted)
