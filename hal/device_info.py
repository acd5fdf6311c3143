"""A driver's description of a device: identity, formats, features, limits. Part of the driver interface
(`backend.py`).
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

#: the value of a limit that the device does not have
NO_LIMIT = 2**63 - 1
#: greatest alignment in bytes of imports on a device that works on the host's memory; for others, drivers map memory
HOST_ALIGNMENT = 16


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits that a device states; `NO_LIMIT` where the device itself has none."""

    max_workgroup_count: tuple[int, int, int]
    max_workgroup_size: int
    max_binding_length: int
    max_bindings: int
    max_parameter_bytes: int
    shared_memory_bytes: int
    min_binding_alignment: int
    host_import_alignment: int

    @property
    def uses_host_addresses(self) -> bool:
        """Whether an import is an address, which costs nothing, and not memory that the driver maps."""
        return 0 < self.host_import_alignment <= HOST_ALIGNMENT


@dataclass(frozen=True, slots=True)
class DeviceInfo:
    """A device as `--list-devices` shows it, and the profile that programs are matched against.

    `formats` are the executable formats it runs, best first: "tensor-bytecode", "spirv", "opencl-c", or one that a
    package declares. `verified_formats` are those whose code `create_executable` verifies, so that the code cannot
    reach outside of its bindings. Untrusted code runs only in these formats, and only if the format is declared to be
    confined. `features` are names from `schema.profiles.FEATURES`, or `vendor.feature` of a package. `timestamps`: a
    device opened with profiling times its commands. `control_flow`: recordings may hold loops and branches. `withheld`:
    each feature that the device reports, but that counts as absent, and the name of the quirk (`schema/quirks.py`).
    """

    driver: str
    index: int
    name: str
    vendor: str
    version: str
    formats: tuple[str, ...]
    features: frozenset[str]
    limits: Limits
    memory_bytes: int
    notes: tuple[str, ...] = field(default=())
    timestamps: bool = False
    verified_formats: frozenset[str] = frozenset()
    control_flow: bool = False
    withheld: tuple[tuple[str, str], ...] = ()

    @property
    def id(self) -> str:
        """`vulkan` for a driver's first device, `vulkan:1` for the next."""
        return self.driver if self.index == 0 else f"{self.driver}:{self.index}"

    def why_withheld(self, features: Iterable[str]) -> str:
        """Which of these features a quirk withholds, as a part of a message; empty if none."""
        wanted = set(features)
        names = [f"quirk {quirk} withholds {feature}" for feature, quirk in self.withheld if feature in wanted]
        return f" ({', '.join(names)}; ORCHESTRION_QUIRKS=off uses it)" if names else ""
