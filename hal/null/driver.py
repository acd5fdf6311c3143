"""The null driver: everything except execution.

Memory, copies, fills, recordings and semaphores are real. A dispatch is accepted and does nothing, so the results of a
program on this device are the previous contents of its buffers. It measures the cost of a call without its work. All
drivers of this package use the same file names for the same nouns; authors of other drivers copy
`examples/hal-template`.
"""

import numpy as np

from orchestrion.hal.backend import NO_LIMIT, BackendDevice, BackendDriver, Conformance, DeviceInfo, Limits
from orchestrion.schema.profiles import FEATURES, PROFILES

from .device import NullDevice

INFO = DeviceInfo(
    driver="null",
    index=0,
    name="null device",
    vendor="Orchestrion",
    version=np.__version__,
    formats=tuple(dict.fromkeys(profile.format for profile in PROFILES.values())),
    features=frozenset(FEATURES),
    limits=Limits(
        max_workgroup_count=(65535, 65535, 65535),
        max_workgroup_size=1024,
        max_binding_length=NO_LIMIT,
        max_bindings=64,
        max_parameter_bytes=128,
        shared_memory_bytes=32768,
        min_binding_alignment=16,
        host_import_alignment=1,
    ),
    memory_bytes=NO_LIMIT,
    timestamps=True,
    verified_formats=frozenset(profile.format for profile in PROFILES.values()),  # it runs none of them
    notes=("accepts every dispatch and executes none: results are not computed",),
)


class NullDriver(BackendDriver):
    name = "null"
    forks = True
    conformance = Conformance(computes=False)

    def devices(self) -> list[DeviceInfo]:
        return [INFO]

    def open(self, info: DeviceInfo) -> BackendDevice:
        return NullDevice(info)

    def open_profiled(self, info: DeviceInfo) -> BackendDevice:
        from .profiling import ProfiledDevice

        return ProfiledDevice(info)
