"""Machines: facts about the kinds of device that kernels are made for, a row per target and kind of device.

The rows of `cpu` were measured. Those of `gpu` follow from how GPUs are built (docs/decisions/dots.md).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from orchestrion.compiler.ir.dims import TYPICAL

#: iterations of loops on a machine without such a limit
UNLIMITED_ITERATIONS: Final = 1 << 62


@dataclass(frozen=True, slots=True)
class Quirks:
    """Behaviour of the drivers of a machine that does not follow from its hardware. A row affects no other target.
    Numbers that are defects of known drivers come from `schema/quirks.py`.

    `max_loop_iterations`: iterations of all loops of an invocation together, outer ones counted, after which the driver
    ends them without an error. `typical_row`: row length that is assumed for rows of dynamic length when the number of
    invocations per row is chosen; short rows pay for each loop. `functions`: the kernels of an executable share
    functions for long expansions of scalar ops, because the driver compiles such code slowly. `packs_lanes`: what is
    fused behind a dot in vectors is computed in vectors, because the driver does not vectorize it.
    """

    max_loop_iterations: int = UNLIMITED_ITERATIONS
    typical_row: int = TYPICAL
    functions: bool = False
    packs_lanes: bool = False


@dataclass(frozen=True, slots=True)
class Machine:
    """Facts about a kind of device. Schedules are chosen by them (`choose.py`).

    `simd`: f32 values per instruction, and neighbours in memory per access. `accumulators`: f32 values that an
    invocation keeps in registers. `explicit_vectors`: kernels contain vectors, because the compiler of the driver does
    not vectorize scalar code. `lanes`: the target runs the invocations of a workgroup as the lanes of vectors, so many
    vectors side by side; 0 if it does not. `wide_loads`: a load of four neighbours costs as much as a load of one
    element. `cached`: caches serve memory by the line, so the order of elements matters. `staging`: shared memory is
    faster than the caches, and a barrier is cheap. `subgroup`: invocations that run in lockstep. `barrier`: elements
    that an invocation reduces in the time of a barrier. `units`: invocations that run at the same time. `quick_builds`:
    a driver builds a specialized kernel in less time than a few calls save by it. `element_tile`: neighbours that an
    invocation computes in bodies without a reduction. `transposed_tile`: the same along another axis, if an operand is
    read across; 0 if that does not pay. `reduction_run`: elements that an iteration takes of a reduction that only
    loads. `register_code`: greatest number of primitives, about, for the part of a row that an invocation keeps in
    registers. `panel_tile`: rows and columns, of f32, of the tile of a dot with panels; `panel_bytes`: bytes of the
    panels of a workgroup, which caches hold; 0 if panels do not pay. `winograd_bytes`: the same for the transformed
    operands and the sums of a convolution. `attention_bytes`: the same for the scores and the panels of an attention.
    `multiply_add`: dots add products by one op. `byte_products`: dots of bytes add four products by one op, in panels.
    `pair_products`: dots of bf16 add two products by one op, in panels, where the instruction set can.
    `chooses_extrema`: a comparison and a select of its operands are one
    instruction. `float_sums`: f32 sums integers at least as fast as i32. `flash`, `ram`: bytes for constants and code,
    and for variables; 0 if there is no limit to be checked. A machine with flash gets constants that are computed at
    compile time. `loop_ops`: most ops of an iteration of a loop that becomes one kernel of one invocation; 0 if none
    does. `merged_ops`: most ops of a command of a loop in batches that one invocation runs together with others; 0 if
    no loop becomes a kernel or runs in batches.
    """

    simd: int = 8
    accumulators: int = 64
    explicit_vectors: bool = False
    lanes: int = 0
    wide_loads: bool = False
    cached: bool = True
    staging: bool = False
    subgroup: int = 8
    barrier: int = 0
    units: int = 1 << 14
    quick_builds: bool = False
    element_tile: int = 1
    transposed_tile: int = 0
    reduction_run: int = 4
    register_code: int = 1200
    panel_tile: tuple[int, int] = (0, 0)
    panel_bytes: int = 0
    winograd_bytes: int = 0
    attention_bytes: int = 0
    multiply_add: bool = False
    byte_products: bool = False
    pair_products: bool = False
    chooses_extrema: bool = False
    float_sums: bool = True
    flash: int = 0
    ram: int = 0
    loop_ops: int = 0
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
    staging=True,
    subgroup=32,
    element_tile=4,
    reduction_run=16,
    register_code=2400,
    multiply_add=True,
    merged_ops=256,
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
