"""The interface of targets: how the bodies of entries become code of one executable format.

Other packages declare targets by entry points of the group `orchestrion.targets`. The name of an entry point is the
name of the profile, its object an instance of `Target`. `API_VERSION` is the version of this interface, which is this
file and the names in `compiler.public.TARGET_INTERFACE`. A target is usable if it states the same major version and no
later minor version. Methods that a minor version adds have a default body.

The phase `hl_seq` calls `choose` for every entry, the phase `executables` calls `lower` for every `ll_seq.entry` of a
program, and the phase `bytecode` calls `serialize` for every `ll_seq.executable`. These calls share nothing but the IR:
its text, read back, serializes to the same bytes.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import ClassVar

from orchestrion.compiler.errors import CompileError
from orchestrion.compiler.flow.layout import Encoding, Layout
from orchestrion.compiler.ir.core import Operation
from orchestrion.compiler.ir.dims import Shape
from orchestrion.compiler.kernel.body import Body
from orchestrion.compiler.kernel.choose import Choice
from orchestrion.compiler.kernel.machine import Machine, find_machine
from orchestrion.compiler.profiles import DEFAULT, MACHINES
from orchestrion.schema.errors import PluginError
from orchestrion.schema.plugins import check_version, declared, load

#: (major, minor) version of this interface
API_VERSION = (1, 1)


@dataclass(frozen=True, slots=True)
class Payload:
    """An executable as the module file stores it: its bytes, the features (`schema.profiles.FEATURES`) that its device
    needs beside those of the profile, and the greatest number of bytes of shared memory of a workgroup of any entry.
    """

    data: bytes
    features: frozenset[str]
    shared_memory_bytes: int


class Target(ABC):
    """One executable format.

    `name`: the name of its profile. `api_version`: the version of this interface that it was written for. `tiles`: the
    numbers of rows of the left operand of a dot, and of columns of the right one, in a tile of their layouts.
    `packs_constants_only`: layouts do not pay for operands that are no constants.
    `most_entries`: most entries of an executable, which a driver builds as a whole. `machines`: rows for kinds of
    device (`profiles.MACHINES`), if its code is tuned for them.
    """

    name: str
    api_version: ClassVar[tuple[int, int]] = (1, 0)
    tiles: tuple[int, int] = (1, 1)
    packs_constants_only: bool = False
    most_entries: int = 1
    machines: Mapping[str, Machine] = {}

    def machine(self, name: str) -> Machine | None:
        """The row for a kind of device, which another package may declare; None if the target has none.

        Raises CompileError if that package cannot be used.
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
        """The row for a kind of device that the target must have."""
        found = self.machine(machine)
        assert found is not None, f"target {self.name} has no row for machine {machine}"
        return found

    @abstractmethod
    def lower(self, entry: Operation, machine: str = DEFAULT) -> None:
        """Replaces the tensor body of an `ll_seq.entry` by a body that this target serializes.

        Sets `workgroup_size` of the entry and, if its results take several invocations, its `workload`. Raises
        CompileError with a diagnostic per op that cannot be lowered.
        """

    def choose(self, body: Body, machine: str = DEFAULT) -> Choice | None:
        """The schedules of a body, which `lower` finds on its entry; None if the target has no schedules.

        Raises CompileError if no schedule fits the body.
        """
        return None

    def layout(self, encoding: Encoding, shape: Shape) -> Layout | None:
        """The layout with which an operand of that shape makes a dot faster, including the time to encode it in every
        call. None for row-major order; `row_major_because` then gives the reason.
        """
        return None

    def row_major_because(self, encoding: Encoding, shape: Shape) -> str:
        """Why `layout` returns None, for a placement report; empty if it does not."""
        return f"target {self.name} reads the operands of dots in row-major order"

    def tiled(self, encoding: Encoding, shape: Shape) -> Layout | None:
        """The tiled layout of an operand with this encoding; None if the target has no tiles for it."""
        tile = self.tiles[0 if encoding.role == "lhs" else 1]
        return encoding.tiled(shape, tile) if tile > 1 else None

    @abstractmethod
    def serialize(self, executable: Operation) -> Payload:
        """The code of an `ll_seq.executable` whose entries are lowered. Equal IR gives equal bytes."""

    def payloads(self, executable: Operation, processors: Sequence[str] = ()) -> Sequence[Payload]:
        """The variants of the code of an executable, best first, of which a device takes the first that it runs.

        `processors`: the option `target_cpu`; empty without one. Since version 1.1; by default `serialize` alone.
        """
        return [self.serialize(executable)]


GROUP = "orchestrion.targets"

#: profile -> the module that holds its target, as `TARGET` or as the name behind the colon
TARGETS: dict[str, str] = {
    "reference": "orchestrion.compiler.targets.reference.target",
    "spirv": "orchestrion.compiler.targets.spirv.target",
    "spirv_least": "orchestrion.compiler.targets.spirv.target:LEAST",
    "opencl": "orchestrion.compiler.targets.opencl.target",
    "cpu": "orchestrion.compiler.targets.cpu.target",
}


@cache
def target(name: str) -> Target:
    """The target of a profile.

    Raises CompileError if no package declares it, if it cannot be loaded, or if it was written for an incompatible
    version of this interface.
    """
    if name in TARGETS:
        module, _, attribute = TARGETS[name].partition(":")
        found: Target = getattr(import_module(module), attribute or "TARGET")
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
