"""The code of executables that call library functions, in programs whose other code is of another format."""

from __future__ import annotations

from collections.abc import Iterable

from orchestrion.compiler.flow.kinds import LIBRARY_CALL
from orchestrion.compiler.sequencer.ll_seq import Entry
from orchestrion.schema.profiles import Profile

from .target import Target, target


def code_of(profile: Profile, entries: Iterable[Entry]) -> tuple[Target, str]:
    """The target that lowers and serializes entries of one executable, and the format of the code.

    Raises CompileError if the target cannot be loaded.
    """
    if profile.library_format and any(map(calls_library, entries)):
        return target("reference"), profile.library_format
    return target(profile.name), profile.format


def calls_library(entry: Entry) -> bool:
    """Whether an entry calls a library function. It computes nothing else."""
    return entry.kind is not None and entry.kind.value == LIBRARY_CALL
