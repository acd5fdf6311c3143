"""What a device gets of a module: the first program whose format and features it has, and of each executable the first
variant."""

from typing import NamedTuple

from orchestrion.hal.backend import DeviceInfo, Entry
from orchestrion.schema.module import Module
from orchestrion.schema.profiles import FEATURES, PROFILES, feature_names
from orchestrion.schema.rows import ACCESSES, Executable, Program, Variant

from .errors import DeviceError, NoProgram, shorten


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


def explain_programs(module: Module, info: DeviceInfo) -> list[tuple[str, str]]:
    """Each program's name, in order, and why it does not run on the device from this file; empty when it does."""
    return [(module.strings[row.name], _lacking(module, row, info)) for row in module.programs]


def explain_variants(module: Module, row: Executable, info: DeviceInfo) -> list[tuple[Variant, str]]:
    """Each variant of an executable, in order, and why it does not run on the device; empty when it does."""
    variants = module.variants[row.variants_start : row.variants_end]
    return [(variant, _variant_refusal(module, variant, info)) for variant in variants]


def _variant_refusal(module: Module, row: Variant, info: DeviceInfo) -> str:
    """Why a variant does not run on the device; empty when it does."""
    format, shared = module.strings[row.format], row.shared_memory_bytes
    if format not in info.formats:
        return f"{shorten(format)}: the device runs {', '.join(info.formats) or 'nothing'}"
    if shared > info.limits.shared_memory_bytes:
        return f"{format}: wants {shared} bytes of shared memory, the device has {info.limits.shared_memory_bytes}"
    missing = [name for name in feature_names(row.features) if name not in info.features] if row.features else ()
    return f"{format}: wants {', '.join(missing)}, which the device lacks" if missing else ""


def _lacking(module: Module, row: Program, info: DeviceInfo) -> str:
    """Why a program cannot run on the device; empty when it can."""
    name = module.strings[row.profile]
    profile = PROFILES.get(name)
    if profile is None:
        return f"its profile {shorten(name)} is unknown to this version"
    if profile.format not in info.formats:
        return f"wants {profile.format}, the device runs {', '.join(info.formats) or 'nothing'}"
    if not row.features:
        return ""
    missing = [feature for feature in feature_names(row.features) if feature not in info.features]
    unknown = row.features >> len(FEATURES) << len(FEATURES)
    if unknown:
        return f"wants features {unknown:#x}, which this version does not know"
    return f"wants {', '.join(missing)}, which the device lacks" if missing else ""


class Choice(NamedTuple):
    """The variant of an executable for devices with `info`; `cost` is about how many bytes creating it looks at."""

    info: DeviceInfo
    format: str
    payload: int
    entries: tuple[Entry, ...]
    cost: int


_ACCESS: dict[int, str] = {code: name for name, code in ACCESSES.items()}
#: looked at for an entry, and for each of its bindings
_BINDING_BYTES = 256


def choose_variant(module: Module, row: Executable, info: DeviceInfo) -> Choice:
    """The first variant of an executable that runs on the device. `DeviceError` when there is none."""
    for variant in module.variants[row.variants_start : row.variants_end]:
        if _variant_refusal(module, variant, info):
            continue
        sizes = module.workgroup_sizes[variant.workgroup_sizes_start : variant.workgroup_sizes_end]
        rows = module.executable_entries[row.entries_start : row.entries_end]
        entries = []
        cost = module.segments[variant.payload].size
        for entry, (x, y, z) in zip(rows, sizes, strict=True):
            bindings = module.bindings[entry.bindings_start : entry.bindings_end]
            taken = tuple([(_ACCESS[access], length) for length, access in bindings])
            entries.append(Entry(module.strings[entry.name], taken, entry.parameter_words, (x, y, z)))
            cost += _BINDING_BYTES * (1 + len(taken))
        return Choice(info, module.strings[variant.format], variant.payload, tuple(entries), cost)
    raise DeviceError(f"no variant of executable {shorten(module.strings[row.name])} runs on device {info.id}")
