"""Capability tags: what a case may need of a device. A case is not applicable if the device lacks one of its tags.

A row says how a tag is derived: from the driver, from `DeviceInfo`, or from the open device. Tags are no list of
exceptions: a driver cannot remove one from a device that has the capability.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from orchestrion.hal.backend import BackendDevice, BackendDriver, DeviceInfo, MemoryUse
from orchestrion.schema.profiles import is_confined

from . import kernels

#: the largest grid that is tested; limits above it are not tested
LARGEST_GRID = 1 << 21


@dataclass(frozen=True, slots=True)
class Tag:
    """A capability. `has` returns whether the open device of a driver has it."""

    name: str
    doc: str
    has: Callable[[BackendDriver, BackendDevice], bool]


def is_native(info: DeviceInfo, format: str) -> bool:
    """Whether code in the format is native code on the device."""
    return format not in info.verified_formats or not is_confined(format)


def _maps(driver: BackendDriver, device: BackendDevice) -> bool:
    buffer = device.allocate(64, MemoryUse.STAGING)
    mapped = buffer.host is not None
    buffer.release()
    return mapped


def _imports(driver: BackendDriver, device: BackendDevice) -> bool:
    alignment = max(1, device.info.limits.host_import_alignment)
    memory = np.zeros(3 * alignment + 64, np.uint8)
    start = -memory.ctypes.data % alignment
    size = -(-64 // alignment) * alignment
    buffer = device.import_host(memory[start : start + size])
    if buffer is not None:
        buffer.release()
    return buffer is not None


def _has_parameters(driver: BackendDriver, device: BackendDevice) -> bool:
    for format in device.info.formats:
        made = kernels.find_kernels(format)
        if made is not None:
            return any(entry.parameter_words for entry in made(16, 0).entries)
    return False


ROWS = (
    Tag("dispatch", "executes dispatches: what a kernel computes is checked", lambda r, d: r.conformance.computes),
    Tag("parameters", "runs a format whose entries take parameter words", _has_parameters),
    Tag("host-mapping", "maps staging memory for the host as long as a buffer lives", _maps),
    Tag("import-host", "takes aligned memory of the host as a buffer, without a copy", _imports),
    Tag("timestamps", "times commands by a clock of its own (`DeviceInfo.timestamps`)", lambda r, d: d.info.timestamps),
    Tag("no-timestamps", "does not time commands", lambda r, d: not d.info.timestamps),
    Tag("robust", "has the feature `robust`", lambda r, d: "robust" in d.info.features),
    Tag(
        "binding-alignment",
        "aligns bindings to more than 4 bytes",
        lambda r, d: d.info.limits.min_binding_alignment > 4,
    ),
    Tag(
        "native-code",
        "runs a format that no verification confines",
        lambda r, d: any(is_native(d.info, format) for format in d.info.formats),
    ),
    Tag("control-flow", "records loops and branches (`DeviceInfo.control_flow`)", lambda r, d: d.info.control_flow),
    Tag("no-control-flow", "does not record loops and branches", lambda r, d: not d.info.control_flow),
    Tag(
        "indirect-dispatch",
        "takes workgroup counts and parameters from memory (`BackendDevice.indirect_dispatch`)",
        lambda r, d: d.indirect_dispatch,
    ),
    Tag(
        "no-indirect-dispatch",
        "takes workgroup counts and parameters from recordings only",
        lambda r, d: not d.indirect_dispatch,
    ),
    Tag(
        "small-grids",
        f"takes less than {LARGEST_GRID} workgroups in its first dimension",
        lambda r, d: d.info.limits.max_workgroup_count[0] < LARGEST_GRID,
    ),
)  # fmt: skip

#: name -> tag
TAGS: dict[str, Tag] = {row.name: row for row in ROWS}


def tags_of(driver: BackendDriver, device: BackendDevice) -> frozenset[str]:
    """The tags of an open device. Leaves the device unchanged."""
    return frozenset(row.name for row in ROWS if row.has(driver, device))
