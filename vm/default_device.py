"""Chooses the device of a load that names none: `cpu` if the module's program for it may run, else `reference`.

The program may run if the processor has what it needs and the policy permits its machine code. If it may not,
`reference` runs the module, many times slower, and a `DeviceWarning` gives the reason and what to do. Modules for
`reference` alone run there without a warning (docs/decisions/default-device.md).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from orchestrion.hal.errors import DriverUnavailable
from orchestrion.hal.policy import Policy
from orchestrion.hal.registry import find_device

from .selection import explain_programs

if TYPE_CHECKING:
    from orchestrion.hal.backend import DeviceInfo
    from orchestrion.schema.module import Module

    from .admission import Admission

PREFERRED, OTHERWISE = "cpu", "reference"


def default_device(module: Module, allow_native_code: bool, admission: Admission | None) -> tuple[str, str]:
    """The name of the device, and the text of the warning once the module is loaded; empty if there is none. Raises
    what `Admission.check` raises.
    """
    profiles = {module.strings[row.profile] for row in module.programs}
    if profiles == {OTHERWISE}:
        return OTHERWISE, ""
    reason = _refusal(module, allow_native_code, admission)
    if not reason:
        return PREFERRED, ""
    return OTHERWISE, f"{OTHERWISE} runs the module with NumPy, slower than {PREFERRED}: {reason}"


def _refusal(module: Module, allow_native_code: bool, admission: Admission | None) -> str:
    """The reason why `cpu` does not run the module, with what to do about it; empty if it does."""
    profiles = {module.strings[row.profile] for row in module.programs}
    if PREFERRED not in profiles:
        from orchestrion.schema.hints import install

        return f"it has no program for {PREFERRED}; compile it for {PREFERRED} ({install('cpu')}), or name a device"
    try:
        info = find_device(PREFERRED)[1]
    except DriverUnavailable as error:
        return f"{error}; name a device to choose it without this warning"
    explained = explain_programs(module, info)
    chosen = next((ordinal for ordinal, (_, refusal) in enumerate(explained) if not refusal), None)
    if chosen is None:
        reasons = [
            refusal
            for (_, refusal), row in zip(explained, module.programs, strict=True)
            if module.strings[row.profile] == PREFERRED
        ]
        return f"{'; '.join(reasons)}; compile it for this processor (vm-compile --target-cpu), or name a device"
    row = module.programs[chosen]
    if row.executables_start == row.executables_end:
        return ""
    return _policy_refusal(module, info, allow_native_code, admission)


def _policy_refusal(module: Module, info: DeviceInfo, allow_native_code: bool, admission: Admission | None) -> str:
    if admission is not None:
        admission.check(module)
        if "native" in admission.trust.scopes and not admission.trust.refusal:
            return ""
    return Policy(allow_native_code).refusal(info.formats[0], module.container.digest, info)
