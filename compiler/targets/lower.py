"""lower-executables: each target replaces the bodies of its entries. All refusals are reported at once.

An entry first notes which ops of the source it computes, and the tensor types of its bindings, because its body will
not show them. Profiles name the ops, and a comparison of two devices needs the types to read the bytes of a binding.

The programs of a target's levels have the same bodies, which are lowered once.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from orchestrion.compiler.errors import CompileError, Diagnostic, TargetsError
from orchestrion.compiler.ir.builder import Builder
from orchestrion.compiler.ir.builtin import Module
from orchestrion.compiler.ir.core import Operation
from orchestrion.compiler.ir.printer import print_module
from orchestrion.compiler.ir.types import Attribute
from orchestrion.compiler.options import Options
from orchestrion.compiler.profiles import known_profile
from orchestrion.compiler.sequencer import hl_seq, ll_seq
from orchestrion.compiler.stablehlo.ops.custom_call import CustomCall
from orchestrion.schema.profiles import PROFILES, Profile

from .entry_notes import name_source_ops, note_binding_types
from .library_code import code_of

#: the property of entries in which those of the levels of a target differ
SHARED: Final = "shared"


def run(module: Module, options: Options) -> None:
    """Lowers all entries of all programs.

    Raises CompileError with a diagnostic for each op or entry that cannot be lowered.
    """
    found: dict[str, list[Diagnostic]] = {}
    programs = hl_seq.programs_of(module)
    lowered = _Lowered({program.profile for program in programs})
    work = [(entry, program) for program in programs for entry in program.walk(ll_seq.Entry)]
    for number, (entry, program) in enumerate(work, 1):
        options.steps.part(number, len(work))
        name_source_ops(entry)
        note_binding_types(entry)
        refused = lowered.lower(entry, program)
        if refused and options.recorder is not None:
            options.recorder.refused(program.profile, refused)
        if refused:
            found.setdefault(program.profile, []).extend(refused)
    if found:
        raise TargetsError(found)


class _Lowered:
    """Entries that were lowered for a level of a target, from which those of its other levels are copied."""

    def __init__(self, profiles: set[str]) -> None:
        firsts = {name: known_profile(name).level_of or name for name in profiles}
        self._firsts = {name: first for name, first in firsts.items() if [*firsts.values()].count(first) > 1}
        self._made: dict[tuple[str, str, str], list[Operation]] = {}

    def lower(self, entry: ll_seq.Entry, program: hl_seq.Program) -> list[Diagnostic]:
        """Lowers an entry. Returns the diagnostics if its target cannot."""
        first = self._firsts.get(program.profile)
        if first is None:
            return _lower(entry, program)
        shared = entry.properties.pop(SHARED, None)
        key = first, program.machine_name, print_module(entry, locations=False)
        known = self._made.get(key)
        if known is not None:
            for op in known:
                _set_shared(Builder.before(entry).insert(op.clone()), shared)
            entry.erase()
            return []
        refused = _lower(entry, program)
        made: list[Operation] = [entry]
        for _ in entry.specialized or ():
            following = made[-1].next_op
            assert following is not None, "specializations follow their entry"
            made.append(following)
        for op in made:
            _set_shared(op, shared)
        if not refused:
            self._made[key] = made
        return refused


def _set_shared(entry: Operation, shared: Attribute | None) -> None:
    entry.properties.pop(SHARED, None)
    if shared is not None:
        entry.properties[SHARED] = shared


def _lower(entry: ll_seq.Entry, program: hl_seq.Program) -> list[Diagnostic]:
    """Lowers an entry. Returns the diagnostics if its target cannot."""
    profile = known_profile(program.profile)
    if calls := list(_library_calls(entry, profile)):
        return calls
    made_for, _ = code_of(profile, [entry])
    try:
        made_for.lower(entry, program.machine_name)
    except CompileError as error:
        return list(error.diagnostics)
    return []


def _library_calls(entry: ll_seq.Entry, profile: Profile) -> Iterator[Diagnostic]:
    """The library calls in an entry, if the target has no library."""
    if profile.library_calls:
        return
    able = ",".join(name for name, row in PROFILES.items() if row.library_calls)
    for op in entry.body.block:
        if isinstance(op, CustomCall):
            yield Diagnostic(
                f"calls library function {op.function}, and target {profile.name} has no library calls: compile with "
                f"--target={able}, or write what the function computes in StableHLO",
                op.loc,
                op.name,
            )
