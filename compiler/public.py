"""What other packages may import to write compiler targets: modules and their names, besides `hal.public.PUBLIC`.

The names belong to version `compiler.targets.target.API_VERSION`. Within a major version they stay, and code written
for them keeps working. Everything else may change at any time.
"""

from typing import Final

TARGET_INTERFACE: Final[dict[str, tuple[str, ...]]] = {
    "orchestrion.compiler.errors": ("CompileError", "Diagnostic"),
    "orchestrion.compiler.flow.layout": ("Encoding", "Layout"),
    "orchestrion.compiler.ir.core": ("Block", "Operation", "Region", "Value"),
    "orchestrion.compiler.ir.dims": ("Dim", "Shape", "Size"),
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
