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
class Quirks:
    """What drivers for a machine do that has nothing to do with its hardware. A row touches no other target.

    `loop_turns`: turns of all loops of an invocation, outer ones counted, after which the driver ends them without an
    error. `typical_row`: length that rows of dynamic length are taken for, if it is chosen how many invocations share
    one; short ones pay for each loop. `functions`: long expansions of scalar ops are functions that the kernels of an
    executable share, since the driver's compiler takes long for them.
    """

    loop_turns: int = UNLIMITED_TURNS
    typical_row: int = TYPICAL
    functions: bool = False


@dataclass(frozen=True, slots=True)
class Machine:
    """Facts of a kind of device, as kernels of a target meet it. Schedules are chosen by them (`choose.py`).

    `simd`: f32 values that one instruction computes, and neighbours in memory that one access serves. `accumulators`:
    f32 values that an invocation keeps in registers. `explicit_vectors`: the driver's compiler makes no vectors of
    scalar code, so kernels write them out. `wide_loads`: a load of four neighbours costs as much as one of an element.
    `cached`: memory is read through caches, by the line, so that its order pays. `staging`: shared memory is faster
    than the caches, and a barrier costs little. `subgroup`: invocations that run in lockstep. `barrier`: elements that
    an invocation reduces in the time of a barrier. `units`: invocations that run at the same time. `quick_builds`: a
    driver builds a kernel in less time than a few calls save by it.
    """

    simd: int = 8
    accumulators: int = 64
    explicit_vectors: bool = False
    wide_loads: bool = False
    cached: bool = True
    staging: bool = False
    subgroup: int = 8
    barrier: int = 0
    units: int = 1 << 14
    quick_builds: bool = False
    quirks: Quirks = Quirks()

    @property
    def tile(self) -> tuple[int, int]:
        """Rows and columns of the largest tile of a dot: a row of it is a vector, all of it stays in registers."""
        return max(self.accumulators // self.simd, 1), self.simd

    @property
    def staged_tile(self) -> tuple[int, int] | None:
        """The largest tile of an invocation whose operands lie in shared memory: half of the registers hold what it
        multiplies. None if staging does not pay.
        """
        return (self.simd, max(self.accumulators // 2 // self.simd, 1)) if self.staging else None

    @property
    def packs(self) -> bool:
        """Whether operands of dots are put in tiles in memory."""
        return self.cached and not self.staging

    @property
    def vector_lanes(self) -> int:
        """Lanes of the vectors that kernels write out, 1 for none."""
        return self.simd if self.explicit_vectors else 1


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
