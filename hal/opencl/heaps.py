"""Chooses the kind of OpenCL memory of a buffer, by its use and by how the device shares memory with the host.

The choice is a pure function of what the device reports. OpenCL has no heaps; kinds differ in who owns the memory. Host
memory (`CL_MEM_ALLOC_HOST_PTR`, `CL_MEM_USE_HOST_PTR`, shared virtual memory) is used only if the device has no other,
because kernels of a discrete GPU would read it over the bus.
"""

from enum import Enum

from orchestrion.hal.backend import MemoryUse


class Kind(Enum):
    """The kinds of buffers; see `buffer.py`."""

    SHARED = "fine-grain shared virtual memory, mapped for good"
    HOST = "memory that the driver shares with the host (CL_MEM_ALLOC_HOST_PTR)"
    DEVICE = "memory of the device"


class Machine(Enum):
    """How the host accesses the device's memory. The values are texts for users."""

    SHARED = "unified memory: the host shares it"
    UNIFIED = "unified memory without fine-grain shared buffers: copied to and from"
    DISCRETE = "discrete memory: copied to and from"


_OF_MACHINE = {Machine.SHARED: Kind.SHARED, Machine.UNIFIED: Kind.HOST, Machine.DISCRETE: Kind.DEVICE}
#: An OpenCL buffer must not be mapped while kernels use it. So without shared memory no use is mapped, not even
#: STAGING: the queue copies through its own pinned memory (`staging.py`).
KINDS: dict[Machine, dict[MemoryUse, Kind]] = {
    machine: dict.fromkeys(MemoryUse, kind) for machine, kind in _OF_MACHINE.items()
}


def machine_of(host_unified: bool, fine_grain: bool) -> Machine:
    """Returns the kind of machine. `host_unified`: CL_DEVICE_HOST_UNIFIED_MEMORY. `fine_grain`: the device has
    fine-grain buffers of shared virtual memory.

    A discrete GPU may have fine-grain buffers, too, in host memory; they are not used.
    """
    if not host_unified:
        return Machine.DISCRETE
    return Machine.SHARED if fine_grain else Machine.UNIFIED
