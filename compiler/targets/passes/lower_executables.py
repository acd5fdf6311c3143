"""lower-executables: each target replaces the bodies of its entries. All refusals are reported at once.

An entry first notes which ops of the source it computes, and the tensor types of its bindings, because its body will
not show them. Profiles name the ops, and a comparison of two devices needs the types to read the bytes of a binding.

The programs of a target's levels have the same bodies. Those of the first level are lowered, and the entries of the
others name them (`sequencer/level_code.py`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from orchestrion.compiler.errors import CompileError, Diagnostic, TargetsError
from orchestrion.compiler.ir.builtin import Module
from orchestrion.compiler.options import Options
from orchestrion.compiler.profiles import known_profile
from orchestrion.compiler.sequencer import hl_seq, ll_seq
from orchestrion.compiler.sequencer.level_code import counterpart, same_body, take_code
from orchestrion.compiler.stablehlo.ops.custom_call import CustomCall
from orchestrion.compiler.targets.kernel_target import KernelTarget
from orchestrion.compiler.targets.library_code import code_of
from orchestrion.schema.profiles import PROFILES, Profile

from .entry_notes import name_source_ops, note_binding_types


def run(module: Module, options: Options) -> None:
    """Lowers all entries of all programs.

    Raises CompileError with a diagnostic for each op or entry that cannot be lowered.
    """
    found: dict[str, list[Diagnostic]] = {}
    programs = hl_seq.programs_of(module)
    work = [(entry, program) for program in programs for entry in program.walk(ll_seq.Entry)]
    firsts = _firsts(work, programs)
    for number, (entry, program) in enumerate(work, 1):
        options.steps.part(number, len(work))
        first = firsts.get(entry)
        if first is not None and first.workgroup_size is not None:
            take_code(entry, first)
            continue
        name_source_ops(entry)
        note_binding_types(entry)
        refused = _lower(entry, program)
        if refused and options.recorder is not None:
            options.recorder.refused(program.profile, refused)
        if refused:
            found.setdefault(program.profile, []).extend(refused)
    if found:
        raise TargetsError(found)


def _firsts(
    work: Sequence[tuple[ll_seq.Entry, hl_seq.Program]], programs: Sequence[hl_seq.Program]
) -> dict[ll_seq.Entry, ll_seq.Entry]:
    """Entry of a further level of a target -> the entry of the first level with the same body."""
    known = {(program.profile, program.machine_name): program for program in programs}
    levels = {program: known.get((known_profile(name).level_of, machine)) for (name, machine), program in known.items()}
    found: dict[ll_seq.Entry, ll_seq.Entry] = {}
    for entry, program in work:
        first_level = levels[program]
        first = None if first_level is None else counterpart(entry, first_level)
        if first is not None and _renders_kernels(entry, program) and same_body(first, entry):
            found[entry] = first
    return found


def _renders_kernels(entry: ll_seq.Entry, program: hl_seq.Program) -> bool:
    """Whether the code of an entry becomes `kernel` IR."""
    made_for, _ = code_of(known_profile(program.profile), [entry])
    return isinstance(made_for, KernelTarget)


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
