"""Target profiles for the compiler, those of this package and of others, and the kinds of device of a target."""

from __future__ import annotations

from typing import Final

from orchestrion.compiler.errors import ArgumentValueError, CompileError
from orchestrion.schema.errors import PluginError
from orchestrion.schema.profiles import PROFILES, Profile, find_profile

#: kinds of device that kernels are tuned for; they are correct on any device. A kind that drivers can recognise is a
#: feature of the same name (`schema.profiles.FEATURES`)
MACHINES: Final[dict[str, str]] = {
    "cpu": "processors, also through PoCL and lavapipe (vectors, no barriers)",
    "gpu": "graphics processors (blocks of results in shared memory)",
    "mcu": "microcontrollers (scalar code, sums of integers in i32, constants in flash), for target cpu only",
}
#: the default machine; every device runs its programs
DEFAULT: Final = "cpu"


def known_profile(name: str) -> Profile:
    """The profile of a target. Raises CompileError if it is not declared, or if its package cannot be used."""
    try:
        found = find_profile(name)
    except PluginError as error:
        raise CompileError(str(error)) from error
    if found is None:
        from orchestrion.schema.plugins import declared

        names = [*PROFILES, *declared("orchestrion.profiles")]
        raise ArgumentValueError(f"no target is called {name}; targets are {', '.join(names)}")
    return found


def holds_confined_code(profile: Profile) -> bool:
    """Whether the profile's code is declared to be confined (`schema.profiles.Format`)."""
    from orchestrion.schema.profiles import is_confined

    return is_confined(profile.format)


def program_name(profile: str, machine: str) -> str:
    """Name of the program of a target for a machine."""
    return profile if machine == DEFAULT else f"{profile}_{machine}"


def profile_of(name: str, machine: str) -> str:
    """Name of the target of a program for a machine; the inverse of `program_name`."""
    return name if machine == DEFAULT else name.removesuffix(f"_{machine}")
