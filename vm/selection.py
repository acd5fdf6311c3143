"""Which program of a module a device gets: the first whose format and features it has."""

from orchestrion.hal.backend import DeviceInfo
from orchestrion.schema.module import Module
from orchestrion.schema.profiles import FEATURES, PROFILES, feature_names
from orchestrion.schema.rows import Program

from .errors import NoProgram, shorten


def choose_program(module: Module, info: DeviceInfo) -> int:
    """The ordinal of the program. `NoProgram` lists all of them and what the device lacks for each."""
    reasons = []
    for ordinal, row in enumerate(module.programs):
        reason = _lacking(module, row, info)
        if not reason:
            return ordinal
        reasons.append(f"{shorten(module.strings[row.name])} ({reason})")
    if not reasons:
        raise NoProgram("the module holds no program")
    raise NoProgram(f"no program of the module runs on device {info.id} ({info.name}): {'; '.join(reasons)}")


def _lacking(module: Module, row: Program, info: DeviceInfo) -> str:
    """Why a program cannot run on the device; empty when it can."""
    name = module.strings[row.profile]
    profile = PROFILES.get(name)
    if profile is None:
        return f"its profile {shorten(name)} is unknown to this version"
    if profile.format not in info.formats:
        return f"wants {profile.format}, the device runs {', '.join(info.formats) or 'nothing'}"
    missing = [feature for feature in feature_names(row.features) if feature not in info.features]
    unknown = row.features >> len(FEATURES) << len(FEATURES)
    if unknown:
        return f"wants features {unknown:#x}, which this version does not know"
    return f"wants {', '.join(missing)}, which the device lacks" if missing else ""
