"""What a target is: how the bodies of entries become code for one executable format.

Other packages declare targets by entry points of the group `orchestrion.targets`, each named like its profile, for an
instance of `Target`. `API_VERSION` is the version of this interface: of this file and of the names in
`hal.public.TARGET_INTERFACE`. A target runs if the major version that it states is the same and the minor one is no
later. Methods that are added within a major version have a default body.

The `hl_seq` phase calls `choose` for every entry, the `executables` phase `lower` on every `ll_seq.entry` of a program,
the `bytecode` phase `serialize` on every `ll_seq.executable`. Nothing passes between them but the IR: its text, read
back, serializes to the same bytes.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import ClassVar

from orchestrion.compiler.errors import CompileError
from orchestrion.compiler.flow.layout import ROLES, Encoding, Layout
from orchestrion.compiler.ir.core import Operation
from orchestrion.compiler.kernel.body import Body
from orchestrion.compiler.kernel.choose import Choice
from orchestrion.compiler.kernel.machine import DEFAULT, MACHINES, Machine, find_machine
from orchestrion.schema.errors import PluginError
from orchestrion.schema.plugins import check_version, declared, load

#: version of this interface, major and minor
API_VERSION = (1, 0)


@dataclass(frozen=True, slots=True)
class Payload:
    """An executable as the module file holds it: its bytes, the features (`schema.profiles.FEATURES`) that its device
    must have beside those of the profile, the shared memory that a workgroup of its most demanding entry takes.
    """

    data: bytes
    features: frozenset[str]
    shared_memory_bytes: int


class Target(ABC):
    """One executable format. `name` is its profile's; `api_version`: the version of this interface that the
    target was written for; `tiles`: how many rows of the left operand of a dot, and columns of the right one, lie side
    by side when they lie in tiles; `most_entries`: how many entries an executable may have, since drivers build it as a
    whole; `machines`: the rows of `kernel.machine.MACHINES`, of a target whose code is shaped for a kind of device.
    """

    name: str
    api_version: ClassVar[tuple[int, int]] = (1, 0)
    tiles: tuple[int, int] = (1, 1)
    most_entries: int = 1
    machines: Mapping[str, Machine] = {}

    def machine(self, name: str) -> Machine | None:
        """The target's row for a kind of device, also one that another package declares; None where it has none.

        `CompileError`: the package cannot be used.
        """
        row = self.machines.get(name)
        if row is not None or name in MACHINES or not self.machines:
            return row
        try:
            kind = find_machine(name)
        except PluginError as error:
            raise CompileError(str(error)) from error
        return None if kind is None else kind.rows.get(self.name)

    def row(self, machine: str) -> Machine:
        """The row for a kind of device that the target is known to be shaped for."""
        found = self.machine(machine)
        assert found is not None, f"target {self.name} has no row for machine {machine}"
        return found

    @abstractmethod
    def lower(self, entry: Operation, machine: str = DEFAULT) -> None:
        """Replace the tensor body of an `ll_seq.entry` by one that this target serializes.

        Sets the entry's `workgroup_size` and, where a result takes several invocations, its `workload`.
        `CompileError` names what cannot be lowered.
        """

    def choose(self, body: Body, machine: str = DEFAULT) -> Choice | None:
        """The schedules of a body, which `lower` finds on its entry; None if the target has no schedules.

        `CompileError`: no schedule takes the body.
        """
        return None

    def layout(self, encoding: Encoding, shape: tuple[int, ...]) -> Layout | None:
        """How an operand of that shape is to lie in memory for a dot to be faster, though it is put so in every call;
        None for row-major order, and `row_major_because` says why.
        """
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


GROUP = "orchestrion.targets"

#: profile -> the module whose `TARGET` it is
TARGETS: dict[str, str] = {
    "reference": "orchestrion.compiler.targets.reference.target",
    "spirv": "orchestrion.compiler.targets.spirv.target",
    "opencl": "orchestrion.compiler.targets.opencl.target",
}


@cache
def target(name: str) -> Target:
    """The target of a profile. `CompileError`: no package declares one, it cannot be loaded, or it was written for
    another version of this interface.
    """
    if name in TARGETS:
        found: Target = import_module(TARGETS[name]).TARGET
        return found
    try:
        return _declared(name)
    except PluginError as error:
        raise CompileError(str(error)) from error


def _declared(name: str) -> Target:
    plugin = declared(GROUP).get(name)
    if plugin is None:
        raise PluginError(f"no installed package declares the compiler target of profile {name}")
    found = load(plugin)
    if not isinstance(found, Target):
        raise PluginError(f"{plugin} is a {type(found).__name__}, not a Target")
    if found.name != name:
        raise PluginError(f"{plugin} calls itself {found.name!r}: entry point and target must have one name")
    check_version(plugin, found.api_version, API_VERSION, "target interface")
    return found
