"""Chooses the targets of a module: resolves the names that callers give, and leaves out targets of the default.

The caller names targets, or takes the default, which is every profile of this package that can compile the program. A
target of the default that cannot compile it is left out, with one warning for all. A named target that cannot compile
it is an error.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterable, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from orchestrion.compiler.errors import ArgumentTypeError, ArgumentValueError, Diagnostic, TargetWarning
from orchestrion.compiler.profiles import known_profile
from orchestrion.schema.profiles import PROFILE_NAMES, PROFILES, find_profile_name, levels_of

#: the folder of the compiler; warnings skip its frames
_COMPILER: Final = f"{Path(__file__).parents[1]}{os.sep}"


def default_targets() -> tuple[str, ...]:
    """The profiles of this package, without those whose compiler is not installed."""
    return tuple(
        name
        for name, row in PROFILES.items()
        if not row.level_of and (name != "cpu" or find_spec("llvmlite") is not None)
    )


def with_levels(names: Sequence[str]) -> tuple[str, ...]:
    """Profiles, each followed by its further levels that are not named."""
    return tuple(one for name in names for one in (name, *levels_of(name)) if one == name or one not in names)


def names_in(given: str | Sequence[str], what: str = "targets") -> tuple[str, ...]:
    """The names in an argument: a text of names separated by commas, or texts. Raises ArgumentTypeError for any other
    value.
    """
    if isinstance(given, str):
        return tuple(given.split(","))
    if not isinstance(given, Iterable):
        raise ArgumentTypeError(f"{what}={given!r}: a name or several expected")
    return tuple(given)


def profile_names(targets: str | Sequence[str]) -> tuple[str, ...]:
    """The profiles that names stand for, in their order. A text is one name, or several with commas.

    Raises CompileError for an unknown name, or for two names of one profile.
    """
    given = names_in(targets)
    names = [_profile_name(name) for name in given]
    for number, name in enumerate(names):
        if name in names[:number]:
            raise ArgumentValueError(f"a target is given twice: {_pair(given[names.index(name)], given[number], name)}")
    return tuple(names)


def _profile_name(name: object) -> str:
    if not isinstance(name, str):
        raise ArgumentTypeError(f"a target is given as {name!r}, its name expected, one of {', '.join(PROFILES)}")
    found = find_profile_name(name)
    return known_profile(name).name if found is None else found


def _pair(first: str, second: str, profile: str) -> str:
    return first if first == second else f"{first} and {second} are both {profile}"


def help_text() -> str:
    """The names of targets, for the help of a command."""
    others = [f"{name} for {profile}" for name, profile in PROFILE_NAMES.items() if name != profile]
    return f"{', '.join(PROFILES)} (or {', '.join(others)})"


def left_out_text(refusals: Mapping[str, Sequence[Diagnostic]], kept: Sequence[str]) -> str:
    """The text of the warning about targets that are left out: all reasons, a line each."""
    lines = [f"  {name}: {one}" for name, found in refusals.items() for one in found]
    return "\n".join(
        [f"the module is for {' and '.join(kept)} only; other targets cannot compile this program:", *lines]
    )


def warn(text: str, category: type[Warning] = TargetWarning) -> None:
    """Emits a warning at the line that called the compiler."""
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_COMPILER):
        frame, level = frame.f_back, level + 1
    warnings.warn(text, category, stacklevel=level)
