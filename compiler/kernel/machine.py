"""What the kernels of a target may use, and which shapes of work it likes: a row per target and kind of device.

The rows of `cpu` were measured; those of `gpu` follow from how GPUs are made (docs/decisions/dots.md).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from orchestrion.compiler.ir.dims import TYPICAL

#: kinds of device that kernels may be shaped for, and are right on any; one that drivers tell apart is a feature of the
#: same name (`schema.profiles.FEATURES`)
MACHINES: Final[dict[str, str]] = {
    "cpu": "processors, as behind PoCL and lavapipe: work for each invocation, vectors, no barriers",
    "gpu": "graphics processors: blocks of work in shared memory, neighbours read neighbours",
}
#: turns of all loops of an invocation after which Mesa's llvmpipe leaves them, without an error
LLVMPIPE_TURNS: Final = 65_535
#: turns of loops on a machine that has no such limit
UNLIMITED_TURNS: Final = 1 << 62
#: what is compiled for where nothing else is asked for: any device runs it
DEFAULT: Final = "cpu"


def program_name(profile: str, machine: str) -> str:
    """What the program of a target is called that is made for a machine."""
    return profile if machine == DEFAULT else f"{profile}_{machine}"


def profile_of(name: str, machine: str) -> str:
    """The target of a program of that name that is made for a machine."""
    return name if machine == DEFAULT else name.removesuffix(f"_{machine}")


@dataclass(frozen=True, slots=True)
class Machine:
    """`tile`: the most rows and columns of a dot's result that one invocation computes. `vectors`: four neighbours in
    memory are loaded together where it is seen that they are aligned. `width`: neighbouring results are computed in
    vectors of so many lanes at most, 0 for none. `row`: where there are many rows to reduce, an invocation takes
    one of up to so many elements by itself, without barriers; 0 where only the shortest are taken so. `block`: the most
    rows and columns of a dot's result that an invocation computes of a workgroup's block, staged in shared memory; None
    where invocations load for themselves. `packs`: operands of dots are put in tiles where the target gains by it.
    `holders`: the fewest invocations that hold a row of more than 16 elements among them. `short_row`: what a row is
    taken for of which a call brings the length, where it is chosen how many share it. `few`: calls that bring few
    rows of a dot, or elements of a fold, have code of their own, where that is faster. `long_tiles`: a long dot of few
    results is tiled, too, in place of a workgroup for each result: what shares loads wins over what has many
    invocations. `calls`: long expansions of scalar ops are functions that the kernels of an executable share.
    `loop_turns`: turns of all loops of an invocation, outer ones counted, that drivers of the target finish.
    """

    tile: tuple[int, int] = (8, 8)
    vectors: bool = False
    width: int = 0
    row: int = 0
    block: tuple[int, int] | None = None
    packs: bool = True
    holders: int = 8
    short_row: int = TYPICAL
    few: bool = False
    long_tiles: bool = False
    calls: bool = False
    loop_turns: int = UNLIMITED_TURNS


#: one that loads and computes element by element
PLAIN = Machine()


@dataclass(frozen=True, slots=True)
class MachineKind:
    """A kind of device that another package declares: what it is, and a row for each target that is shaped for it.

    No feature tells devices of it from others, so a module has no other machine beside it.
    """

    doc: str
    rows: Mapping[str, Machine]


def find_machine(name: str) -> MachineKind | None:
    """The kind of device of that name that another package declares; None if none does.

    `PluginError`: its package cannot be used.
    """
    from orchestrion.schema.plugins import find

    return find("orchestrion.machines", name, MachineKind)
