"""Chooses the memory of a buffer: the memory types of a device in the order in which they are tried, by use and
machine.

The choice is a pure function of what the device reports. `machine_of` distinguishes unified memory from that of a
discrete GPU, `CHOICES` is the table of requirements, and `choose` turns it into memory types. Types for special
purposes are never chosen, nor are mapped types that are not coherent: the driver flushes no caches.

A mapping that the processor does not cache is fast to write and slow to read (tens of MB/s over PCI Express), so it is
only written: reads go through cached staging memory, if the device has any.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from orchestrion.hal.backend import MemoryUse

DEVICE_LOCAL, HOST_VISIBLE, HOST_COHERENT, HOST_CACHED = 1, 2, 4, 8
MAPPABLE = HOST_VISIBLE | HOST_COHERENT
#: all other flags are for special purposes: lazily allocated, protected, AMD's device coherent and uncached, and
#: NVIDIA's RDMA
ORDINARY = DEVICE_LOCAL | HOST_VISIBLE | HOST_COHERENT | HOST_CACHED

#: VkPhysicalDeviceType: an integrated GPU, and a driver that runs on the processor
TYPE_INTEGRATED, TYPE_CPU = 1, 4


@dataclass(frozen=True, slots=True)
class Heap:
    """A memory heap: its index, its size in bytes, and whether it is device-local."""

    index: int
    size: int
    local: bool


@dataclass(frozen=True, slots=True)
class MemoryType:
    """A memory type: its index, its property flags, its heap."""

    index: int
    flags: int
    heap: Heap


class Machine(Enum):
    """How the host accesses the memory of a device. The values are texts for users."""

    UNIFIED = "unified memory: the host shares it"
    SMALL_BAR = "discrete memory without resizable BAR: inputs and results are copied"
    LARGE_BAR = "discrete memory with resizable BAR: inputs are written directly, results are copied"


@dataclass(frozen=True, slots=True)
class TypeRequirement:
    """Flags that a memory type must have (`flags`), and must not have (`without`). `mapped`: its blocks are permanently
    mapped.

    `slow`: the device accesses it only over the bus; using it causes a warning.
    """

    flags: int
    without: int = 0
    mapped: bool = False
    slow: bool = False


@dataclass(frozen=True, slots=True)
class MemoryChoice:
    """A memory type chosen for a use. `cached`: the host may read its mapping; otherwise it reads through staging
    memory.
    """

    type: MemoryType
    mapped: bool
    cached: bool
    slow: bool


_SHARED = (
    TypeRequirement(DEVICE_LOCAL | MAPPABLE, mapped=True),
    TypeRequirement(MAPPABLE | HOST_CACHED, mapped=True),
    TypeRequirement(MAPPABLE, mapped=True),
    TypeRequirement(DEVICE_LOCAL),
)
_OWN = (
    TypeRequirement(DEVICE_LOCAL, without=HOST_VISIBLE),
    TypeRequirement(DEVICE_LOCAL),
    TypeRequirement(MAPPABLE, without=DEVICE_LOCAL, slow=True),
)
_STAGING = (
    TypeRequirement(MAPPABLE | HOST_CACHED, without=DEVICE_LOCAL, mapped=True),
    TypeRequirement(MAPPABLE, without=DEVICE_LOCAL, mapped=True),
    TypeRequirement(MAPPABLE | HOST_CACHED, mapped=True),
    TypeRequirement(MAPPABLE, mapped=True),
)

#: machine -> use -> requirements in the order in which they are tried; the driver's order decides between types that
#: meet a requirement
CHOICES: dict[Machine, dict[MemoryUse, tuple[TypeRequirement, ...]]] = {
    Machine.UNIFIED: {
        MemoryUse.CONSTANT: _SHARED,
        MemoryUse.ARENA: _SHARED,
        MemoryUse.INPUT: _SHARED,
        MemoryUse.OUTPUT: (TypeRequirement(DEVICE_LOCAL | MAPPABLE | HOST_CACHED, mapped=True), *_SHARED),
        MemoryUse.STAGING: (
            TypeRequirement(MAPPABLE | HOST_CACHED, mapped=True),
            TypeRequirement(MAPPABLE, mapped=True),
        ),
    },
    Machine.SMALL_BAR: {
        MemoryUse.CONSTANT: _OWN,
        MemoryUse.ARENA: _OWN,
        MemoryUse.INPUT: _OWN,
        MemoryUse.OUTPUT: _OWN,
        MemoryUse.STAGING: _STAGING,
    },
    Machine.LARGE_BAR: {
        MemoryUse.CONSTANT: _OWN,
        MemoryUse.ARENA: _OWN,
        MemoryUse.INPUT: (TypeRequirement(DEVICE_LOCAL | MAPPABLE, mapped=True), *_OWN),
        MemoryUse.OUTPUT: _OWN,
        MemoryUse.STAGING: _STAGING,
    },
}


def machine_of(types: Sequence[MemoryType], device_type: int) -> Machine:
    """Returns the kind of machine. `device_type` is the VkPhysicalDeviceType.

    An integrated GPU shares the host's memory even if the driver reports a part of it as not device-local. A discrete
    GPU has a large BAR if the host can map at least half of the largest heap. A smaller window (214 to 256 MiB) is
    shared with the driver and other programs.
    """
    usable = [row for row in types if not row.flags & ~ORDINARY]
    if device_type in (TYPE_INTEGRATED, TYPE_CPU) or all(row.heap.local for row in usable):
        return Machine.UNIFIED
    largest = max((row.heap.size for row in usable if row.flags & DEVICE_LOCAL), default=0)
    window = DEVICE_LOCAL | MAPPABLE
    seen = max((row.heap.size for row in usable if row.flags & window == window), default=0)
    return Machine.LARGE_BAR if 0 < largest <= 2 * seen else Machine.SMALL_BAR


def choose(types: Sequence[MemoryType], device_type: int) -> dict[MemoryUse, tuple[MemoryChoice, ...]]:
    """Returns the choices for each use, best first. A type occurs once per use, at the first requirement
    that it meets.
    """
    usable = [row for row in types if not row.flags & ~ORDINARY]
    staged = any(row.flags & (MAPPABLE | HOST_CACHED) == MAPPABLE | HOST_CACHED for row in usable)
    table = CHOICES[machine_of(types, device_type)]
    chosen: dict[MemoryUse, tuple[MemoryChoice, ...]] = {}
    for use, wishes in table.items():
        found: dict[int, MemoryChoice] = {}
        for requirement in wishes:
            for position, row in enumerate(usable):
                if (
                    position not in found
                    and row.flags & requirement.flags == requirement.flags
                    and not row.flags & requirement.without
                ):
                    cached = requirement.mapped and (bool(row.flags & HOST_CACHED) or not staged)
                    found[position] = MemoryChoice(row, requirement.mapped, cached, requirement.slow)
        chosen[use] = tuple(found.values())
    return chosen
