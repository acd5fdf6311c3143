"""The modules and names that a package with a driver may import: the driver interface, version `backend.API_VERSION`.

Within a major version these names stay, and code written for them keeps working. Everything else may change at any
time. `PROVISIONAL` lists what a compiler target needs; it changes with the version of the target interface
(`compiler.targets.target.API_VERSION`), which is not stable yet.
"""

from typing import Final

PUBLIC: Final[dict[str, tuple[str, ...]]] = {
    "orchestrion.hal.backend": (
        "API_VERSION", "BackendBuffer", "BackendCommandBuffer", "BackendDevice", "BackendDriver", "BackendExecutable",
        "BackendInstance", "BackendQueue", "BackendSemaphore", "BackendWork", "Binding", "Bytes", "Conformance",
        "DeviceInfo", "Entry", "IndirectArgument", "Limits", "MemoryUse", "NOT_MADE", "NO_LIMIT", "NativeRange",
        "Point", "Span", "Watcher",
    ),
    "orchestrion.hal.errors": (
        "DeadlineExceeded", "BuildFailed", "DeviceLost", "DriverUnavailable", "HalError", "InvalidArgument",
        "DeviceOutOfMemory", "OutOfMemory", "Unsupported",
    ),
    "orchestrion.hal.cache": ("Cache",),
    "orchestrion.hal.timeline": ("SoftSemaphore", "Worker"),
    "orchestrion.hal.timing": ("HostClock", "Timing", "Timings", "now"),
    "orchestrion.hal.waiting": ("Changed", "attempt", "start_thread", "to_its_end"),
    "orchestrion.hal.cts.kernels": ("ADD", "ENTRIES", "INCREMENT", "IOTA", "Kernel", "WORKGROUPS"),
    "orchestrion.schema.child_process": (
        "Child", "ChildDied", "ChildFailed", "ChildLate", "ChildRaised", "ChildUnavailable", "Message",
    ),
    "orchestrion.schema.dtypes": (
        "BOOL", "BY_CODE", "BY_NAME", "BY_NUMPY", "COMPLEX", "DType", "FLOAT", "SIGNED", "UNSIGNED",
    ),
    "orchestrion.schema.errors": ("ModuleError",),
    "orchestrion.schema.profiles": ("FEATURES", "FORMATS", "Format", "PROFILES", "Profile"),
    "orchestrion.schema.scalars": ("BY_NAME", "SCALARS", "ScalarOp", "evaluate"),
    "orchestrion.vm.native": ("NativeModule", "native"),
}  # fmt: skip

PROVISIONAL: Final[tuple[str, ...]] = (
    "orchestrion.compiler.errors",
    "orchestrion.compiler.ir",
    "orchestrion.compiler.kernel",
    "orchestrion.compiler.sequencer.ll_seq",
    "orchestrion.compiler.targets.target",
)
