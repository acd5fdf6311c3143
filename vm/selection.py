"""Selects the parts of a module for a device: the first program that can run on it, and the first variant of each
executable that can run.

A program cannot run if it has another profile or a later version, if the device lacks a feature, if one of its entries
binds more or longer buffers than the device does, if one of its constants was taken out of the file, or if one of its
executables has no variant that can run. Each function gives the reasons.
"""

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from orchestrion.hal.backend import DeviceInfo, Entry
from orchestrion.schema.errors import PluginError
from orchestrion.schema.module import Module
from orchestrion.schema.profiles import FEATURES, Profile, feature_names, find_profile
from orchestrion.schema.rows import ACCESSES, Executable, Program, Variant
from orchestrion.schema.versions import BYTECODE_MINOR, FORMAT_MINORS, needs

from .build_failures import failures_of
from .errors import NoProgram, shorten

#: feature that the compiler does not emulate -> what a user can do
WAYS_ON: dict[str, str] = {
    "float64": "doubles are not emulated: name a device that has them, for example --device=reference, or convert to "
    "f32 before the program is compiled",
}


#: what a user can do about code that the driver does not build
UPDATE: Final = "; update the driver, or name another device (--device=NAME)"
#: the default of `failed`
_NOTHING: Final[Mapping[int, str]] = {}


def choose_program(module: Module, info: DeviceInfo, failed: Mapping[int, str] = _NOTHING) -> int:
    """The ordinal of the first program that can run. `NoProgram` lists all programs with the reasons why
    they cannot. `failed`: ordinals of programs that the driver does not build, and why.
    """
    reasons = []
    failed = {**failures_of(module, info).programs, **failed}
    for ordinal, row in enumerate(module.programs):
        reason = failed.get(ordinal) or _program_refusal(module, row, info)
        if not reason:
            return ordinal
        reasons.append(f"{shorten(module.strings[row.name])} ({reason})")
    if not reasons:
        raise NoProgram("the module holds no program")
    said = "; ".join(reasons)
    raise NoProgram(f"no program of the module runs on device {info.id} ({info.name}): {said}{ways_on(said)}")


def ways_on(reasons: str) -> str:
    """What a user can do about features that no variant does without; empty without such a feature."""
    return "".join(f" ({way})" for feature, way in WAYS_ON.items() if feature in reasons)


def explain_programs(module: Module, info: DeviceInfo) -> list[tuple[str, str]]:
    """The name of each program, in order, and the reason why it cannot run; empty if it can."""
    failed = failures_of(module, info).programs
    return [
        (module.strings[row.name], failed.get(ordinal) or _program_refusal(module, row, info))
        for ordinal, row in enumerate(module.programs)
    ]


def skipped_programs(module: Module, ordinal: int, info: DeviceInfo) -> list[tuple[str, str]]:
    """The programs before `ordinal` whose format and features the device has, and the reason why each cannot run."""
    found, failed = [], failures_of(module, info).programs
    for at, row in enumerate(module.programs[:ordinal]):
        profile = _profile(module.strings[row.profile])
        if isinstance(profile, str) or _missing_profile_features(profile, info) or profile.format not in info.formats:
            continue
        if not _missing_features(row.features, info):
            found.append((module.strings[row.name], failed.get(at) or _program_refusal(module, row, info)))
    return found


def explain_variants(module: Module, row: Executable, info: DeviceInfo) -> list[tuple[Variant, str]]:
    """Each variant of an executable, in order, and the reason why it cannot run; empty if it can."""
    failed = failures_of(module, info).variants
    return [
        (module.variants[at], failed.get(at) or _variant_refusal(module, module.variants[at], info))
        for at in range(row.variants_start, row.variants_end)
    ]


def _program_refusal(module: Module, row: Program, info: DeviceInfo) -> str:
    """The reason why a program cannot run; empty if it can."""
    name = module.strings[row.profile]
    profile = _profile(name)
    if isinstance(profile, str):
        return profile
    if profile.format not in info.formats:
        return f"wants {profile.format}, the device runs {', '.join(info.formats) or 'nothing'}"
    if profile.features and (reason := _missing_profile_features(profile, info)):
        return reason
    if row.bytecode_minor > BYTECODE_MINOR:
        return needs("bytecode", row.bytecode_minor, BYTECODE_MINOR)
    if row.devices != 1:
        return f"wants {row.devices} devices, this version runs on 1"
    if row.features:
        reason = _missing_features(row.features, info)
        if reason:
            return reason
    return (
        _unusable_executable(module, row, info)
        or _exceeded_limit(module, row, info)
        or ("" if module.container.complete else _missing_constant(module, row))
    )


def _profile(name: str) -> Profile | str:
    """The profile of that name, or the reason why there is none."""
    try:
        return find_profile(name) or f"its profile {shorten(name)} is unknown to this version"
    except PluginError as error:
        return f"its profile {shorten(name)} cannot be used: {error}"


def _missing_profile_features(profile: Profile, info: DeviceInfo) -> str:
    """The reason why the device lacks features of another package's profile; empty if it has them."""
    missing = sorted(profile.features - info.features)
    return f"wants {', '.join(missing)}, which the device lacks" if missing else ""


def _missing_features(bits: int, info: DeviceInfo) -> str:
    """The reason why the device lacks features; empty if it has them. `bits`: the features, as the file has them."""
    unknown = bits >> len(FEATURES) << len(FEATURES)
    if unknown:
        return f"wants features {unknown:#x}, which this version does not know"
    missing = [feature for feature in feature_names(bits) if feature not in info.features]
    return f"wants {', '.join(missing)}, which the device lacks{info.why_withheld(missing)}" if missing else ""


def _missing_constant(module: Module, row: Program) -> str:
    """The reason if a constant of the program was taken out of the file; empty if not."""
    constants = module.constants[row.constants_start : row.constants_end]
    missing = next((constant.segment for constant in constants if module.missing(constant.segment)), None)
    return "" if missing is None else f"its segment {missing} was taken out of this file"


def _exceeded_limit(module: Module, row: Program, info: DeviceInfo) -> str:
    """The reason why the device cannot bind the buffers of an entry; empty if it can bind those of each."""
    limits, bindings = info.limits, module.bindings
    for executable in module.executables[row.executables_start : row.executables_end]:
        for entry in module.executable_entries[executable.entries_start : executable.entries_end]:
            name, start, end, _ = entry
            if end - start > limits.max_bindings:
                return f"{_entry(module, name)}: {end - start} bindings, the device's limit is {limits.max_bindings}"
            longest = max([length for length, _ in bindings[start:end]], default=0)
            if longest > limits.max_binding_length:
                return (
                    f"{_entry(module, name)}: {longest} bytes in one binding, "
                    f"the device's limit is {limits.max_binding_length}"
                )
    return ""


def _entry(module: Module, name: int) -> str:
    return f"entry {shorten(module.strings[name])}"


def _unusable_executable(module: Module, row: Program, info: DeviceInfo) -> str:
    """The reason why an executable has no variant that can run; empty if each has one."""
    executables = module.executables[row.executables_start : row.executables_end]
    if module.container.complete and _first_variants_run(module, executables, info):
        return ""
    for executable in executables:
        reason = no_variant(module, executable, info)
        if reason:
            return reason
    return ""


def _first_variants_run(module: Module, executables: Sequence[Executable], info: DeviceInfo) -> bool:
    """Whether the first variant of each executable can run, the usual case. Equal requirements are compared once."""
    most, variants, kinds = 0, module.variants, set()
    for _, start, end, _, _ in executables:
        if start == end:
            return False
        features, format, _, _, _, shared, minor = variants[start]
        kinds.add((features, format, minor))
        most = max(most, shared)
    return not any([_requirements_refusal(module, kind, most, info) for kind in kinds])


def _requirements_refusal(module: Module, kind: tuple[int, int, int], shared: int, info: DeviceInfo) -> str:
    """The reason why a variant cannot run on the device; empty if it can. `kind`: its features, format and the format's
    minor version. `shared`: its bytes of shared memory.
    """
    features, format, minor = kind
    name = module.strings[format]
    if name not in info.formats:
        return f"{shorten(name)}: the device runs {', '.join(info.formats) or 'nothing'}"
    known = FORMAT_MINORS.get(name)
    if known is not None and minor > known:
        return needs(name, minor, known)
    if shared > info.limits.shared_memory_bytes:
        return f"{name}: wants {shared} bytes of shared memory, the device has {info.limits.shared_memory_bytes}"
    lacking = _missing_features(features, info) if features else ""
    return lacking and f"{name}: {lacking}"


def _variant_refusal(module: Module, row: Variant, info: DeviceInfo) -> str:
    if not module.container.complete and module.missing(row.payload):
        return f"its segment {row.payload} was taken out of this file"
    return _requirements_refusal(module, (row.features, row.format, row.format_minor), row.shared_memory_bytes, info)


def no_variant(module: Module, row: Executable, info: DeviceInfo) -> str:
    """The reason why no variant of an executable can run; empty if one can."""
    reasons = []
    for variant in module.variants[row.variants_start : row.variants_end]:
        reason = _variant_refusal(module, variant, info)
        if not reason:
            return ""
        reasons.append(reason)
    name, listed = shorten(module.strings[row.name]), "; ".join(dict.fromkeys(reasons)) or "it has none"
    return f"no variant of executable {name} runs on device {info.id}: {shorten(listed, 2000)}"


class Choice(NamedTuple):
    """The variant of an executable for devices with `info`. `variant`: its index in `Module.variants`. `cost`: about
    the bytes that its creation reads.
    """

    info: DeviceInfo
    variant: int
    format: str
    payload: int
    entries: tuple[Entry, ...]
    cost: int


_ACCESS: dict[int, str] = {code: name for name, code in ACCESSES.items()}
#: bytes of `Choice.cost` for an entry, and for each of its bindings
_BINDING_BYTES = 256


def choose_variant(
    module: Module, row: Executable, info: DeviceInfo, failed: Mapping[int, str] = _NOTHING
) -> Choice | None:
    """The first variant of an executable that can run on the device, and that its driver has not failed to build; None
    if there is none. `failed`: further indices of variants that the driver does not build, and why.
    """
    failed = {**failures_of(module, info).variants, **failed}
    for at in range(row.variants_start, row.variants_end):
        variant = module.variants[at]
        if at in failed or _variant_refusal(module, variant, info):
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
        return Choice(info, at, module.strings[variant.format], variant.payload, tuple(entries), cost)
    return None


def no_variant_builds(module: Module, row: Executable, info: DeviceInfo, failed: Mapping[int, str]) -> str:
    """The message about an executable of which the driver builds no variant that can run. `failed`: the messages of the
    driver, by variant.
    """
    reasons = []
    for number, (variant, reason) in enumerate(explain_variants(module, row, info)):
        wants = ", ".join(feature_names(variant.features)) or "no features"
        reasons.append(
            f"variant {number} ({wants}): {failed.get(row.variants_start + number) or reason or 'not tried'}"
        )
    listed = shorten("; ".join(reasons), 4000)
    return (
        f"the driver of device {info.id} ({info.name}) builds no variant of executable "
        f"{shorten(module.strings[row.name])}: {listed}{UPDATE}"
    )
