"""What a target is: how the bodies of entries become code for one executable format.

The `executables` phase calls `lower` on every `ll_seq.entry` of a program, the `bytecode` phase `serialize` on every
`ll_seq.executable`. Nothing passes between the two but the IR: its text, read back, serializes to the same bytes.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module

from orchestrion.compiler.flow.layout import ROLES, Encoding, Layout
from orchestrion.compiler.ir.core import Operation
from orchestrion.compiler.kernel.machine import DEFAULT, Machine
from orchestrion.compiler.kernel.plan import EntryPlan


@dataclass(frozen=True, slots=True)
class Payload:
    """An executable as the module file holds it: its bytes, the features (`schema.profiles.FEATURES`) that its device
    must have, the shared memory that a workgroup of its most demanding entry takes."""

    data: bytes
    features: frozenset[str]
    shared_memory_bytes: int


class Target(ABC):
    """One executable format. `name` is the profile's in `schema.profiles.PROFILES`; `tiles`: how many rows of the left
    operand of a dot, and columns of the right one, lie side by side when they lie in tiles; `most_entries`: how many
    entries an executable may have, since drivers build it as a whole; `machines`: the rows of
    `kernel.machine.MACHINES`, of a target whose code is shaped for a kind of device."""

    name: str
    tiles: tuple[int, int] = (1, 1)
    most_entries: int = 1
    machines: Mapping[str, Machine] = {}

    @abstractmethod
    def lower(self, entry: Operation, machine: str = DEFAULT) -> None:
        """Replace the tensor body of an `ll_seq.entry` by one that this target serializes.

        Sets the entry's `workgroup_size` and, where a result takes several invocations, its `workload`.
        `CompileError` names what cannot be lowered.
        """

    def plan(self, entry: Operation, machine: str = DEFAULT) -> Sequence[EntryPlan]:
        """The entries that `lower` will make of one, for a placement report; none where there is nothing to choose, or
        `lower` will refuse it."""
        return ()

    def layout(self, encoding: Encoding, shape: tuple[int, ...]) -> Layout | None:
        """How an operand of that shape is to lie in memory for a dot to be faster, though it is put so in every call;
        None for row-major order, and `row_major_because` says why."""
        return None

    def row_major_because(self, encoding: Encoding, shape: tuple[int, ...]) -> str:
        """Why `layout` gives none, for a placement report; empty where it gives one."""
        return f"target {self.name} reads the operands of dots in row-major order"

    def tiled(self, encoding: Encoding, shape: tuple[int, ...]) -> Layout | None:
        """The tiles that it has for what the encoding is to a dot; None where it has none."""
        tile = self.tiles[ROLES.index(encoding.role)]
        return encoding.tiled(shape, tile) if tile > 1 else None

    @abstractmethod
    def serialize(self, executable: Operation) -> Payload:
        """The code of an `ll_seq.executable` whose entries are lowered. Equal IR gives equal bytes."""


#: profile -> the module whose `TARGET` it is
TARGETS: dict[str, str] = {
    "reference": "orchestrion.compiler.targets.reference.target",
    "spirv": "orchestrion.compiler.targets.spirv.target",
    "opencl": "orchestrion.compiler.targets.opencl.target",
}


@cache
def target(name: str) -> Target:
    """The target of a profile; KeyError for a name that has no row."""
    found: Target = import_module(TARGETS[name]).TARGET
    return found
