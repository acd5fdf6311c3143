"""Target profiles for the compiler: those of this package, and those that other packages declare."""

from __future__ import annotations

from orchestrion.compiler.errors import ArgumentValueError, CompileError
from orchestrion.schema.errors import PluginError
from orchestrion.schema.profiles import PROFILES, Profile, find_profile


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
