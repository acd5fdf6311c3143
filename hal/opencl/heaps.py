"""Which kind of OpenCL memory a buffer gets, by its use and by how the device shares memory with the host.

A pure function of what the device states. OpenCL has no heaps to choose from: what differs is who owns the memory.
Memory of the host (`CL_MEM_ALLOC_HOST_PTR`, `CL_MEM_USE_HOST_PTR`, shared virtual memory) is asked for only where the
device has no other, since kernels of a card would read it over the bus.
"""

from enum import Enum

from orchestrion.hal.backend import MemoryUse


class Kind(Enum):
    """Kinds of buffers, see `buffer.py`."""

    SHARED = "fine-grain shared virtual memory, mapped for good"
    HOST = "memory that the driver shares with the host (CL_MEM_ALLOC_HOST_PTR)"
    DEVICE = "memory of the device"


class Machine(Enum):
    """How the host reaches the device's memory, in words for people."""

    SHARED = "unified memory: the host shares it"
    UNIFIED = "unified memory without fine-grain shared buffers: copied to and from"
    DISCRETE = "discrete memory: copied to and from"


_OF_MACHINE = {Machine.SHARED: Kind.SHARED, Machine.UNIFIED: Kind.HOST, Machine.DISCRETE: Kind.DEVICE}
#: A buffer of OpenCL must not be mapped while kernels use it, so where memory is not shared no use is mapped, STAGING
#: neither: the queue copies through pinned memory of its own (`staging.py`).
KINDS: dict[Machine, dict[MemoryUse, Kind]] = {
    machine: dict.fromkeys(MemoryUse, kind) for machine, kind in _OF_MACHINE.items()
}


def machine_of(host_unified: bool, fine_grain: bool) -> Machine:
    """`host_unified`: CL_DEVICE_HOST_UNIFIED_MEMORY. `fine_grain`: it has fine-grain buffers of shared memory.

    A card may have those, too, in host memory: they are not used.
    """
    if not host_unified:
        return Machine.DISCRETE
    return Machine.SHARED if fine_grain else Machine.UNIFIED
