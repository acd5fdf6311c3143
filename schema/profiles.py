"""Target profiles: what a program in a module is compiled for, and the names of what a device may have.

A module's program names one profile; a variant of an executable may ask for more features. The loader takes the
first program, in the order of the module, whose format and features the chosen device has.
"""

from dataclasses import dataclass

#: feature -> its one meaning, for every driver. The position is the feature's bit in a module: append only.
FEATURES: dict[str, str] = {
    "int8": "8-bit integers in arithmetic and in storage buffers",
    "int16": "16-bit integers in arithmetic and in storage buffers",
    "int64": "64-bit integers in arithmetic and in storage buffers",
    "float64": "64-bit floats in arithmetic and in storage buffers",
    "robust": "an access past the end of a binding touches nothing outside of it",
    "gpu": "a graphics processor: neighbouring invocations run and load together, a workgroup has memory of its own",
}


def feature_bits(names: frozenset[str]) -> int:
    return sum(1 << bit for bit, name in enumerate(FEATURES) if name in names)


def feature_names(bits: int) -> tuple[str, ...]:
    return tuple(name for bit, name in enumerate(FEATURES) if bits >> bit & 1)


@dataclass(frozen=True, slots=True)
class Profile:
    """One target: its name on the command line, the format of its executables, the driver it is meant for."""

    name: str
    format: str
    driver: str
    native_code: bool  #: not confined by verification, so policy decides whether it may run
    library_calls: bool  #: its executables may call library functions, which the device looks up by name
    doc: str


PROFILES: dict[str, Profile] = {
    row.name: row
    for row in (
        Profile("reference", "tensor-bytecode", "reference", False, True, "NumPy interpreter, always there"),
        Profile("spirv", "spirv", "vulkan", False, False, "SPIR-V 1.3 compute shaders for Vulkan 1.1 and later"),
        Profile("opencl", "opencl-c", "opencl", True, False, "OpenCL C 1.2 source, built by the device's own compiler"),
    )
}
