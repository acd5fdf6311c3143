"""Which memory a buffer goes to: the memory types of a device in the order they are tried, by use and kind of machine.

A pure function of what the device states: `machine_of` tells unified memory from a card's own, `CHOICES` is the table of
wishes, `choose` turns it into memory types. Types for special purposes are never chosen, nor are mapped types that are
not coherent: the driver flushes no caches.

A mapping that the processor does not cache is fast to write and slow to read (tens of MB/s over PCI Express), so it is
used for writing only: reads go through staging memory that is cached, if the device has any.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from orchestrion.hal.backend import MemoryUse

DEVICE_LOCAL, HOST_VISIBLE, HOST_COHERENT, HOST_CACHED = 1, 2, 4, 8
MAPPABLE = HOST_VISIBLE | HOST_COHERENT
#: all others are for special purposes: lazily allocated, protected, AMD's device coherent and uncached, NVIDIA's RDMA
ORDINARY = DEVICE_LOCAL | HOST_VISIBLE | HOST_COHERENT | HOST_CACHED

#: VkPhysicalDeviceType: an integrated GPU, and a driver that runs on the processor
TYPE_INTEGRATED, TYPE_CPU = 1, 4


@dataclass(frozen=True, slots=True)
class Heap:
    """A memory heap: its index, its bytes, whether it is the device's own."""

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
    """How the host reaches the memory of a device, in words for people."""

    UNIFIED = "unified memory: the host shares it"
    SMALL_BAR = "discrete memory without resizable BAR: inputs and results are copied"
    LARGE_BAR = "discrete memory with resizable BAR: inputs are written directly, results are copied"


@dataclass(frozen=True, slots=True)
class TypeRequirement:
    """Flags that a memory type must have, and must not have. `mapped`: its blocks are mapped for good.

    `slow`: the device reaches it over the bus only; what is put there causes a warning.
    """

    flags: int
    without: int = 0
    mapped: bool = False
    slow: bool = False


@dataclass(frozen=True, slots=True)
class MemoryChoice:
    """A memory type chosen for a use. `cached`: the host may read its mapping; else it reads through staging."""

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

#: machine -> use -> wishes in the order they are tried; of the types that fit a requirement the driver's order decides
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
    """The kind of machine. `device_type` is the VkPhysicalDeviceType.

    An integrated GPU shares the host's memory even if the driver calls a part of it not device-local. The BAR of a
    discrete GPU is large if the host sees at least half of the largest heap: windows of 214 to 256 MiB are shared with
    the driver and with other programs.
    """
    usable = [row for row in types if not row.flags & ~ORDINARY]
    if device_type in (TYPE_INTEGRATED, TYPE_CPU) or all(row.heap.local for row in usable):
        return Machine.UNIFIED
    largest = max((row.heap.size for row in usable if row.flags & DEVICE_LOCAL), default=0)
    window = DEVICE_LOCAL | MAPPABLE
    seen = max((row.heap.size for row in usable if row.flags & window == window), default=0)
    return Machine.LARGE_BAR if 0 < largest <= 2 * seen else Machine.SMALL_BAR


def choose(types: Sequence[MemoryType], device_type: int) -> dict[MemoryUse, tuple[MemoryChoice, ...]]:
    """The places for each use, best first. A type stands once per use, where it fits first."""
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
