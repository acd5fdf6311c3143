"""Machines: facts about the kinds of device that kernels are made for, a row per target and kind of device.

The rows are results of measurements (docs/decisions/dots.md).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from orchestrion.compiler.ir.dims import TYPICAL
from orchestrion.schema.dtypes import BOOL, DType

#: iterations of loops on a machine without such a limit
UNLIMITED_ITERATIONS: Final = 1 << 62
#: most parameters of a dispatch on every Vulkan device, in 32-bit words
MAX_PARAMETER_WORDS: Final = 32
#: bytes of shared memory of a workgroup on every Vulkan device
MAX_SHARED_BYTES: Final = 16 << 10
#: bytes of an i1 in shared memory for the limit; targets may store it in fewer
SHARED_BOOL_BYTES: Final = 4


def shared_bytes(dtype: DType) -> int:
    """Bytes of an element of a shared array, at most."""
    return SHARED_BOOL_BYTES if dtype.kind == BOOL else dtype.itemsize


@dataclass(frozen=True, slots=True)
class Quirks:
    """Behaviour of the drivers of a machine that does not follow from its hardware. A row affects no other target.
    Numbers that are defects of known drivers come from `schema/quirks.py`.
    """

    #: iterations of all loops of an invocation together, outer ones counted, after which the driver ends them without
    #: an error
    max_loop_iterations: int = UNLIMITED_ITERATIONS
    #: row length that is assumed for rows of dynamic length when the number of invocations per row is chosen; short
    #: rows pay for each loop
    typical_row: int = TYPICAL
    #: the kernels of an executable share functions for long expansions of scalar ops, which the driver compiles slowly
    functions: bool = False
    #: ops fused behind a dot in vectors are computed in vectors, because the driver does not vectorize them
    packs_lanes: bool = False


@dataclass(frozen=True, slots=True)
class Machine:
    """Facts about a kind of device. Schedules are chosen by them (`choose.py`)."""

    #: f32 values per instruction, and neighbours in memory per access
    simd: int = 8
    #: f32 values that an invocation keeps in registers
    accumulators: int = 64
    #: kernels contain vectors, because the compiler of the driver does not vectorize scalar code
    explicit_vectors: bool = False
    #: the target runs the invocations of a workgroup as the lanes of vectors, so many vectors side by side; 0 if not
    lanes: int = 0
    #: a load of four neighbours costs as much as a load of one element
    wide_loads: bool = False
    #: caches serve memory by the line, so the order of elements matters
    cached: bool = True
    #: shared memory is faster than the caches, and a barrier is cheap
    staging: bool = False
    #: invocations that run in lockstep
    subgroup: int = 8
    #: elements that an invocation reduces in the time of a barrier
    barrier: int = 0
    #: invocations that run at the same time
    units: int = 1 << 14
    #: a driver builds a specialized kernel in less time than a few calls save by it
    quick_builds: bool = False
    #: neighbours that an invocation computes in bodies without a reduction
    element_tile: int = 1
    #: the same along another axis, if an operand is read across; 0 if that does not pay
    transposed_tile: int = 0
    #: elements that an iteration takes of a reduction that only loads
    reduction_run: int = 4
    #: greatest number of primitives, about, for the part of a row that an invocation keeps in registers
    register_code: int = 1200
    #: rows and columns, of f32, of the tile of a dot with panels
    panel_tile: tuple[int, int] = (0, 0)
    #: bytes of the panels of a workgroup, which caches hold; 0 if panels do not pay
    panel_bytes: int = 0
    #: the same for the transformed operands and the sums of a convolution
    winograd_bytes: int = 0
    #: the same for the scores and the panels of an attention
    attention_bytes: int = 0
    #: dots add products by one op
    multiply_add: bool = False
    #: dots of bytes add four products by one op, in panels
    byte_products: bool = False
    #: dots of bf16 add two products by one op, in panels, where the instruction set can
    pair_products: bool = False
    #: a comparison and a select of its operands are one instruction
    chooses_extrema: bool = False
    #: f32 sums integers at least as fast as i32
    float_sums: bool = True
    #: bytes for constants and code, which are then computed at compile time; 0 if there is no limit to be checked
    flash: int = 0
    #: bytes for variables; 0 if there is no limit to be checked
    ram: int = 0
    #: most ops of an iteration of a loop that becomes one kernel of one invocation; 0 if none does
    loop_ops: int = 0
    #: most ops of a command of a loop in batches that one invocation runs together with others; 0 if no loop becomes a
    #: kernel or runs in batches
    merged_ops: int = 0
    quirks: Quirks = Quirks()

    @property
    def tile(self) -> tuple[int, int]:
        """Rows and columns of the largest tile of a dot. A row is a vector, and the whole tile stays in registers."""
        return max(self.accumulators // self.simd, 1), self.simd

    @property
    def staged_tile(self) -> tuple[int, int] | None:
        """The largest tile of an invocation with operands in shared memory, as (rows, columns). Half of the registers
        hold factors. None if staging does not pay.
        """
        return (self.simd, max(self.accumulators // 2 // self.simd, 1)) if self.staging else None

    @property
    def shared_run(self) -> int:
        """Elements that an iteration takes of the part of a reduction that invocations share."""
        return self.reduction_run if self.staging else 1

    @property
    def packs(self) -> bool:
        """Whether the operands of dots are packed into tiles in memory."""
        return self.cached and not self.staging

    @property
    def vector_lanes(self) -> int:
        """Lanes of explicit vectors; 1 for none."""
        return self.simd if self.explicit_vectors else 1


#: a machine whose kernels load and compute element by element
PLAIN = Machine()


#: a graphics processor, as measured (docs/decisions/dots.md#measured-on-a-gpu); targets add facts about their code
GPU: Final = Machine(
    staging=True, subgroup=32, element_tile=4, reduction_run=16, register_code=2400, multiply_add=True, merged_ops=256
)


@dataclass(frozen=True, slots=True)
class MachineKind:
    """A kind of device that another package declares. `doc`: a description; `rows`: target -> facts of the machine.

    No feature tells its devices from others, so a module for it has no program for another machine.
    """

    doc: str
    rows: Mapping[str, Machine]


def find_machine(name: str) -> MachineKind | None:
    """The kind of device of that name that another package declares; None if there is none.

    Raises PluginError if the package cannot be used.
    """
    from orchestrion.schema.plugins import find

    return find("orchestrion.machines", name, MachineKind)
