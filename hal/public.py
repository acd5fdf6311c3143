"""What other packages may import to write drivers and to use devices: modules and their names.

`PUBLIC` belongs to the driver interface, version `hal.backend.API_VERSION`. `DEVICE_INTERFACE` lists what code that
uses devices needs besides, such as the code that `vm-codegen --style=hal` writes; it has the same version. Within a
major version these names stay, and code written for them keeps working. `compiler.public` has the names for compiler
targets. Everything else may change at any time.
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
        "DeadlineExceeded", "BuildFailed", "CodeRefused", "DeviceLost", "DriverUnavailable", "HalError",
        "InvalidArgument", "DeviceOutOfMemory", "OutOfMemory", "Unsupported",
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

DEVICE_INTERFACE: Final[dict[str, tuple[str, ...]]] = {
    "orchestrion.hal": ("host_control_flow",),
    "orchestrion.hal.buffer": ("Buffer", "BufferView"),
    "orchestrion.hal.command_buffer": ("CommandBuffer",),
    "orchestrion.hal.device": ("Device",),
    "orchestrion.hal.executable": ("Executable",),
    "orchestrion.hal.host_control_flow": ("HostControlFlow", "run"),
    "orchestrion.hal.policy": ("Policy",),
    "orchestrion.hal.registry": ("list_devices", "open_device"),
    "orchestrion.hal.semaphore": ("Fence", "Semaphore"),
}
