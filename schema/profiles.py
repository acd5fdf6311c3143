"""Target profiles: what a program is compiled for, the formats of its code, and the features of devices.

A program in a module names one profile; a variant of an executable may need more features. The loader takes the first
program, in the order of the module, whose format and features the chosen device has.

Other packages add formats, profiles and features by entry points (`schema/plugins.py`). `find_format`, `find_profile`
and `find_feature` include those; they scan for them only if no table here has the name.
"""

import re
from dataclasses import dataclass

from .errors import PluginError

#: feature -> its meaning for every driver; its position is the feature's bit in a module, so only append
FEATURES: dict[str, str] = {
    "int8": "8-bit integers in arithmetic and in storage buffers",
    "int16": "16-bit integers in arithmetic and in storage buffers",
    "int64": "64-bit integers in arithmetic and in storage buffers",
    "float64": "64-bit floats in arithmetic and in storage buffers",
    "robust": "an access past the end of a binding touches nothing outside of it, except the rest of its last word",
    "gpu": "a graphics processor: neighbouring invocations run and load together, a workgroup has memory of its own",
    "x86-64-v2": "the processor runs x86-64-v2: SSE4.2, POPCNT",
    "x86-64-v3": "the processor runs x86-64-v3: AVX2, FMA, BMI2, F16C",
    "x86-64-v4": "the processor runs x86-64-v4: AVX-512 F, BW, CD, DQ and VL",
    "aarch64": "the processor runs ARMv8.0-A with NEON, in 64-bit state, little-endian",
    "x86-64-v4-vnni": "the processor runs x86-64-v4, and AVX-512 VNNI: products of bytes",
    "aarch64-dotprod": "the processor runs aarch64, and the dot products of ARMv8.4-A: products of bytes",
    "x86-64-v4-bf16": "the processor runs x86-64-v4-vnni, and AVX-512 BF16: products of bf16",
}

#: features that are instruction sets of native code; only a driver that runs such code has them
INSTRUCTION_SETS: tuple[str, ...] = (
    "x86-64-v2",
    "x86-64-v3",
    "x86-64-v4",
    "x86-64-v4-vnni",
    "x86-64-v4-bf16",
    "aarch64",
    "aarch64-dotprod",
)


def feature_bits(names: frozenset[str]) -> int:
    return sum(1 << bit for bit, name in enumerate(FEATURES) if name in names)


def feature_names(bits: int) -> tuple[str, ...]:
    return tuple(name for bit, name in enumerate(FEATURES) if bits >> bit & 1)


#: the form of features of other packages; names of `FEATURES` have no dot, so the two never collide
_FOREIGN_FEATURE = re.compile(r"[a-z0-9_-]+(\.[a-z0-9_-]+)+", re.ASCII)


@dataclass(frozen=True, slots=True)
class Format:
    """An executable format. `confined`: verified code of it cannot reach outside of its bindings. Any other format is
    native code, which only runs if the policy allows it. `text`: its payloads are UTF-8 text.
    """

    name: str
    confined: bool
    doc: str
    text: bool = False


FORMATS: dict[str, Format] = {
    row.name: row
    for row in (
        Format("tensor-bytecode", True, "instructions over whole tensors, which NumPy interprets"),
        Format("spirv", True, "SPIR-V 1.3 compute shaders, of a subset that can be verified"),
        Format("opencl-c", False, "OpenCL C 1.2 source", text=True),
        Format("native-image", False, "machine code of one instruction set, position-independent"),
        Format("library-calls", False, "tensor bytecode that calls library functions, beside code of another format"),
    )
}


@dataclass(frozen=True, slots=True)
class Profile:
    """One target: its name on the command line, the format of its executables, and its driver.

    `library_calls`: its executables may call library functions, which the device looks up by name. `library_format`:
    such calls stand in executables of their own, of this format; LAPACK calls become loops where the compiler has
    these. Empty if calls are part of other code, and stay calls. `features`: the
    features of every device for a profile of another package; programs of this package's profiles state features
    themselves. `control_flow`: the driver's recordings hold loops and branches (`DeviceInfo.control_flow`), so programs
    record theirs; on a device that does not state it, the host runs them. `level_of`: the profile with the same code
    whose programs need more of a device; a module has a program of this one only where the other's needs more.
    `max_bindings`: buffers that a dispatch binds at most, which may therefore share a binding of at most
    `max_binding_bytes`; None for as many as a dispatch has.
    """

    name: str
    format: str
    driver: str
    doc: str
    library_calls: bool = False
    library_format: str = ""
    features: frozenset[str] = frozenset()
    control_flow: bool = False
    level_of: str = ""
    max_bindings: int | None = None
    max_binding_bytes: int = 128 << 20


PROFILES: dict[str, Profile] = {
    row.name: row
    for row in (
        Profile(
            "reference",
            "tensor-bytecode",
            "reference",
            "NumPy interpreter, always there",
            library_calls=True,
            control_flow=True,
        ),
        Profile("spirv", "spirv", "vulkan", "SPIR-V 1.3 compute shaders for Vulkan 1.1 and later"),
        Profile(
            "spirv_least",
            "spirv",
            "vulkan",
            "the same for devices with the least limits: 4 buffers in a dispatch, 128 MiB of each",
            level_of="spirv",
            max_bindings=4,
        ),
        Profile("opencl", "opencl-c", "opencl", "OpenCL C 1.2 source, built by the device's own compiler"),
        Profile(
            "cpu",
            "native-image",
            "cpu",
            "machine code for processors, made when the module is compiled",
            library_calls=True,
            library_format="library-calls",
            control_flow=True,
        ),
    )
}

#: alias of a target -> its profile: the driver of each profile, and other names
PROFILE_NAMES: dict[str, str] = {
    **{row.driver: row.name for row in PROFILES.values() if not row.level_of},
    "numpy": "reference",
}


def levels_of(name: str) -> tuple[str, ...]:
    """The profiles that are further levels of a profile."""
    return tuple(row.name for row in PROFILES.values() if row.level_of == name)


def find_profile_name(name: str) -> str | None:
    """The profile that a name refers to: a profile, a device such as `vulkan` or `vulkan:1`, a row of `PROFILE_NAMES`,
    or a driver of another package. None for an unknown name.
    """
    name = name.strip()
    name, _, index = name.partition(":")
    if index and not index.isdecimal():
        return None
    if name in PROFILES:
        return name
    if name in PROFILE_NAMES:
        return PROFILE_NAMES[name]
    from .plugins import declared

    others = declared("orchestrion.profiles")
    if name in others:
        return name
    return next((other for other in others if _driver_of(other) == name), None)


def _driver_of(profile: str) -> str | None:
    """The driver of another package's profile; None if the package cannot be used."""
    try:
        row = find_profile(profile)
    except PluginError:
        return None
    return None if row is None else row.driver


def find_format(name: str) -> Format | None:
    """The format of that name, including those of other packages; None if it is not declared. Raises PluginError if its
    package cannot be used.
    """
    row = FORMATS.get(name)
    if row is not None:
        return row
    from .plugins import find

    row = find("orchestrion.formats", name, Format)
    if row is not None and row.name != name:
        raise PluginError(f"executable format {name} is declared as {row.name}: both must have one name")
    return row


def find_profile(name: str) -> Profile | None:
    """The profile of that name, including those of other packages; None if it is not declared. Raises PluginError if
    its package cannot be used, or it names an undeclared format or feature.
    """
    row = PROFILES.get(name)
    if row is not None:
        return row
    from .plugins import find

    row = find("orchestrion.profiles", name, Profile)
    if row is None:
        return None
    if row.name != name:
        raise PluginError(f"target profile {name} is declared as {row.name}: both must have one name")
    if find_format(row.format) is None:
        raise PluginError(f"target profile {name} is of format {row.format}, which no package declares")
    unknown = [feature for feature in sorted(row.features) if find_feature(feature) is None]
    if unknown:
        raise PluginError(f"target profile {name} needs feature {', '.join(unknown)}, which no package declares")
    return row


def find_feature(name: str) -> str | None:
    """The meaning of a feature, including those of other packages; None if it is not declared.

    Raises PluginError if its package cannot be used, or its name is not of the form `vendor.feature`.
    """
    doc = FEATURES.get(name)
    if doc is not None:
        return doc
    from .plugins import find

    doc = find("orchestrion.features", name, str)
    if doc is not None and not _FOREIGN_FEATURE.fullmatch(name):
        raise PluginError(f"device feature {name} of another package must be called vendor.feature")
    return doc


def is_confined(format: str) -> bool:
    """Whether a format is declared to be confined. False for an undeclared format, or one of a broken package."""
    try:
        row = find_format(format)
    except PluginError:
        return False
    return row is not None and row.confined
