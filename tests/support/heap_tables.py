"""Memory heaps and types of devices, as drivers list them, and this machine's device with the heaps of another.

The numbers are those that `vulkaninfo` prints on such machines (reports on GitHub and vulkan.gpuinfo.org).
"""

import dataclasses
from typing import NamedTuple

from orchestrion.hal.vulkan.heaps import (
    DEVICE_LOCAL,
    HOST_CACHED,
    HOST_COHERENT,
    HOST_VISIBLE,
    MAPPABLE,
    Heap,
    Machine,
    MemoryType,
)
from orchestrion.hal.vulkan.physical import PhysicalDevice

MIB, GIB = 1 << 20, 1 << 30
L, V, C, K = DEVICE_LOCAL, HOST_VISIBLE, HOST_COHERENT, HOST_CACHED
LAZY, PROTECTED, AMD_COHERENT, AMD_UNCACHED = 0x10, 0x20, 0x40, 0x80
INTEGRATED, DISCRETE, VIRTUAL, CPU = 1, 2, 3, 4


class Table(NamedTuple):
    """`heaps`: bytes, and whether device-local. `types`: property flags, and the heap's index."""

    machine: Machine
    device_type: int
    heaps: tuple[tuple[int, bool], ...]
    types: tuple[tuple[int, int], ...]

    def memory_types(self) -> tuple[MemoryType, ...]:
        heaps = [Heap(index, size, local) for index, (size, local) in enumerate(self.heaps)]
        return tuple(MemoryType(index, flags, heaps[heap]) for index, (flags, heap) in enumerate(self.types))


TABLES: dict[str, Table] = {
    "NVIDIA, 246 MiB of BAR": Table(
        Machine.SMALL_BAR,
        DISCRETE,
        ((8 * GIB, True), (16 * GIB, False), (246 * MIB, True)),
        ((0, 1), (L, 0), (V | C, 1), (V | C | K, 1), (L | V | C, 2)),
    ),
    "NVIDIA, resizable BAR": Table(
        Machine.LARGE_BAR,
        DISCRETE,
        ((24 * GIB, True), (64 * GIB, False)),
        ((0, 1), (L, 0), (V | C, 1), (V | C | K, 1), (L | V | C, 0)),
    ),
    "AMD, 256 MiB of BAR": Table(
        Machine.SMALL_BAR,
        DISCRETE,
        ((7936 * MIB, True), (8176 * MIB, False), (256 * MIB, True)),
        (
            (L, 0),
            (V | C, 1),
            (L | V | C, 2),
            (V | C | K, 1),
            (L | AMD_COHERENT | AMD_UNCACHED, 0),
            (V | C | AMD_COHERENT | AMD_UNCACHED, 1),
            (L | V | C | AMD_COHERENT | AMD_UNCACHED, 2),
            (V | C | K | AMD_COHERENT | AMD_UNCACHED, 1),
        ),
    ),
    "AMD, resizable BAR": Table(
        Machine.LARGE_BAR,
        DISCRETE,
        ((15974 * MIB, False), (8192 * MIB, True)),
        ((L, 1), (V | C, 0), (L | V | C, 1), (V | C | K, 0), (L | AMD_COHERENT | AMD_UNCACHED, 1)),
    ),
    "AMD, RADV, all but 16 MiB visible": Table(
        Machine.LARGE_BAR,
        DISCRETE,
        ((16 * MIB, True), (8176 * MIB, True), (8176 * MIB, False)),
        ((L, 0), (V | C, 2), (L | V | C, 1), (V | C | K, 2)),
    ),
    "AMD, APU with a carve-out": Table(
        Machine.UNIFIED,
        INTEGRATED,
        ((1792 * MIB, True), (6881 * MIB, False), (256 * MIB, True)),
        ((L, 0), (V | C, 1), (L | V | C, 2), (V | C | K, 1)),
    ),
    "Intel, integrated": Table(Machine.UNIFIED, INTEGRATED, ((12 * GIB, True),), ((L | V | C, 0), (L | V | C | K, 0))),
    "Intel, integrated, unmapped memory too": Table(
        Machine.UNIFIED, INTEGRATED, ((12 * GIB, True),), ((L, 0), (L | V | C, 0), (L | V | C | K, 0))
    ),
    "Mali": Table(
        Machine.UNIFIED,
        INTEGRATED,
        ((5588 * MIB, True),),
        ((L | V | C, 0), (L | V | C | K, 0), (L | LAZY, 0), (L | PROTECTED, 0)),
    ),
    "Mali, cached memory is not coherent": Table(
        Machine.UNIFIED, INTEGRATED, ((3726 * MIB, True),), ((L | V | C, 0), (L | V | K, 0), (L | LAZY, 0))
    ),
    "Apple, MoltenVK": Table(
        Machine.UNIFIED, INTEGRATED, ((16 * GIB, True),), ((L, 0), (L | V | C | K, 0), (L | V | K, 0), (L | LAZY, 0))
    ),
    "lavapipe": Table(Machine.UNIFIED, CPU, ((2 * GIB, True),), ((L | V | C | K, 0),)),
    "SwiftShader": Table(Machine.UNIFIED, CPU, ((2 * GIB, True),), ((L | V | C | K, 0),)),
}


def with_heaps(row: PhysicalDevice, machine: Machine, local: int = 8 * GIB, shared: int = 8 * GIB) -> PhysicalDevice:
    """This machine's device as if it were a card: the first mapped, cached type of the device stands for all of its
    types, and what is not mapped there cannot be seen by the host. `local` and `shared` are the sizes of the heaps.
    """
    real = next(kind for kind in row.memory_types if kind.flags & (MAPPABLE | K) == MAPPABLE | K)
    own, host = Heap(0, local, True), Heap(1, shared, False)
    window = own if machine is Machine.LARGE_BAR else Heap(2, min(local // 4, 256 * MIB), True)
    types = (
        MemoryType(real.index, L, own),
        MemoryType(real.index, MAPPABLE | L, window),
        MemoryType(real.index, MAPPABLE, host),
        MemoryType(real.index, MAPPABLE | K, host),
    )
    found = dataclasses.replace(row, device_type=DISCRETE, memory_types=types)
    assert found.machine is machine
    return found
