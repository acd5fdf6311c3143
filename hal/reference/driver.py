"""The reference driver: one device, always available, that runs tensor bytecode with NumPy on the host.

It defines what a program means, independently of every code generator: every other device is compared with it, and it
is compared with XLA. Kernels are slow and obvious on purpose; only the overhead of a call is optimised.
"""

import os

import numpy as np

from orchestrion.hal.backend import BackendDevice, BackendDriver, DeviceInfo, Limits
from orchestrion.schema.profiles import FEATURES, INSTRUCTION_SETS
from orchestrion.schema.tensor_bytecode import FORMAT

from .device import ReferenceDevice

NO_LIMIT = 2**63 - 1


class ReferenceDriver(BackendDriver):
    name = "reference"
    forks = True

    def devices(self) -> list[DeviceInfo]:
        return [
            DeviceInfo(
                driver=self.name,
                index=0,
                name="NumPy",
                vendor="Orchestrion",
                version=np.__version__,
                formats=(FORMAT,),
                features=frozenset(FEATURES).difference(("gpu",), INSTRUCTION_SETS),
                limits=Limits(
                    max_workgroup_count=(NO_LIMIT, NO_LIMIT, NO_LIMIT),
                    max_workgroup_size=1024,
                    max_binding_length=NO_LIMIT,
                    max_bindings=1024,
                    max_parameter_bytes=128,
                    shared_memory_bytes=0,
                    min_binding_alignment=1,
                    host_import_alignment=1,
                ),
                memory_bytes=_memory_bytes(),
                timestamps=True,
                verified_formats=frozenset({FORMAT}),
                control_flow=True,
            )
        ]

    def open(self, info: DeviceInfo) -> BackendDevice:
        return ReferenceDevice(info)

    def open_profiled(self, info: DeviceInfo) -> BackendDevice:
        from .profiling import ProfiledDevice

        return ProfiledDevice(info)


def _memory_bytes() -> int:
    """Bytes of the machine's memory, if the system reports them."""
    if not hasattr(os, "sysconf"):
        return NO_LIMIT
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
