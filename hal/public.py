"""What other packages may import: the modules and names of three interfaces.

`PUBLIC` belongs to the driver interface, version `hal.backend.API_VERSION`. `DEVICE_INTERFACE` lists what code that
uses devices needs besides, such as the code that `vm-codegen --style=hal` writes; it has the same version.
`TARGET_INTERFACE` lists what a compiler target needs besides, version `compiler.targets.target.API_VERSION`. Within a
major version these names stay, and code written for them keeps working. Everything else may change at any time.
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

TARGET_INTERFACE: Final[dict[str, tuple[str, ...]]] = {
    "orchestrion.compiler.errors": ("CompileError", "Diagnostic"),
    "orchestrion.compiler.flow.layout": ("Encoding", "Layout"),
    "orchestrion.compiler.ir.core": ("Block", "Operation", "Region", "Value"),
    "orchestrion.compiler.kernel": ("dialect",),
    "orchestrion.compiler.kernel.body": ("Body",),
    "orchestrion.compiler.kernel.choose": ("Choice", "choose"),
    "orchestrion.compiler.kernel.machine": ("Machine", "MachineKind"),
    "orchestrion.compiler.kernel.schedule": ("Schedule", "Step"),
    "orchestrion.compiler.kernel.signature": ("signature_of",),
    "orchestrion.compiler.profiles": ("DEFAULT",),
    "orchestrion.compiler.sequencer.ll_seq": ("Entry", "Executable"),
    "orchestrion.compiler.targets.kernel_target": ("KernelTarget",),
    "orchestrion.compiler.targets.target": ("API_VERSION", "Payload", "Target"),
}
