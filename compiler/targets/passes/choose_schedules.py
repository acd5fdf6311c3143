"""choose-schedules: sets the schedules by which the target of a program lowers its entries.

The attribute `schedules` of an entry lists the specialized schedules, then the general one. A file of schedules
(`schedule_file.py`) has precedence, then schedules that the entry has already, so that the text of the phase can be
edited and continued. Entries that no schedule fits are left to `lower-executables`, which reports all refusals at once.
"""

from __future__ import annotations

from collections.abc import Iterator

from orchestrion.compiler.errors import CompileError, Diagnostic
from orchestrion.compiler.flow import dialect as flow
from orchestrion.compiler.ir.attributes import ArrayAttr, SymbolRef
from orchestrion.compiler.ir.builtin import Module
from orchestrion.compiler.ir.locations import UNKNOWN, source_text
from orchestrion.compiler.kernel.body import Body
from orchestrion.compiler.kernel.choose import Choice
from orchestrion.compiler.kernel.elements.refusals import diagnose
from orchestrion.compiler.kernel.library import KERNELS
from orchestrion.compiler.kernel.lower import attribute_of, illegal
from orchestrion.compiler.options import Options
from orchestrion.compiler.sequencer import hl_seq
from orchestrion.compiler.stablehlo.ops.func import Func
from orchestrion.compiler.targets.kernel_target import KernelTarget
from orchestrion.compiler.targets.schedule_file import SavedChoice, SavedSchedules, digest_of
from orchestrion.compiler.targets.target import Target, target


def run(module: Module, options: Options) -> None:
    """Sets the schedules of all entries.

    Raises CompileError with a diagnostic for each choice of the file that does not fit its body.
    """
    wrong: list[Diagnostic] = []
    for program in hl_seq.programs_of(module):
        for func, dispatch in entries_of(program):
            if options.schedules is not None:
                wrong += _take_saved(program, func, dispatch, options.schedules)
            if func.schedules is not None:
                continue
            choice = _choice(target(program.profile), program.machine_name, func, dispatch)
            if choice is None:
                continue
            func.schedules = attribute_of(choice)
            if choice.missed and options.recorder is not None:
                what = f"specialization of {func.sym_name.value}"
                options.recorder.not_taken(program.sym_name.value, what, func.loc, choice.missed)
    if wrong:
        raise CompileError(wrong)
    if options.recorder is not None and options.schedules is not None:
        for saved in options.schedules.unused():
            what = f"the schedules of {options.schedules.file.place(saved)}"
            why = f"no program for target {saved.target} and machine {saved.machine} has a body of that digest"
            options.recorder.not_taken("", what, UNKNOWN, why)


def entries_of(program: hl_seq.Program) -> Iterator[tuple[Func, flow.Dispatch]]:
    """The entries of a program that are dispatched, each with one of its dispatches."""
    dispatches = {op.entry: op for op in program.walk(flow.Dispatch)}
    for executable in program.body.block.of(flow.Executable):
        for func in executable.body.block:
            assert isinstance(func, Func)
            dispatch = dispatches.get(SymbolRef(executable.sym_name.value, (func.sym_name.value,)))
            if dispatch is not None:
                yield func, dispatch


def body_of(func: Func, dispatch: flow.Dispatch) -> Body:
    """The body of an entry."""
    return Body.of_function(func, () if dispatch.tied is None else dispatch.tied.ints)


def digest(func: Func, dispatch: flow.Dispatch) -> str:
    """The digest of the body of an entry, its key in files of schedules."""
    return digest_of(func, body_of(func, dispatch).kind, () if dispatch.tied is None else dispatch.tied.ints)


def _take_saved(
    program: hl_seq.Program, func: Func, dispatch: flow.Dispatch, schedules: SavedSchedules
) -> list[Diagnostic]:
    """Sets the schedules that the file has for an entry, if any. Returns why they do not fit."""
    saved = schedules.take(program.profile, program.machine_name, digest(func, dispatch))
    if saved is None:
        return []
    found = list(_problems(program, saved, func, dispatch))
    if not found:
        func.schedules = ArrayAttr(tuple(one.attribute for one in saved.schedules))
    at = f"{schedules.file.place(saved)}: for the entry {func.sym_name.value} at {source_text(func.loc) or 'no place'}"
    return [Diagnostic(f"{at}: {message}") for message in found]


def _problems(program: hl_seq.Program, saved: SavedChoice, func: Func, dispatch: flow.Dispatch) -> Iterator[str]:
    """Why the schedules of a file do not fit an entry."""
    made_for = target(program.profile)
    if isinstance(made_for, KernelTarget):
        yield from illegal(body_of(func, dispatch), list(saved.schedules), made_for.row(program.machine_name))
    else:
        yield f"target {program.profile} has no schedules"


def _choice(made_for: Target, machine: str, func: Func, dispatch: flow.Dispatch) -> Choice | None:
    """The schedules of an entry; None if its target has no schedules or will refuse the entry. The next phase checks
    whether a library kernel stores its results directly.
    """
    body = body_of(func, dispatch)
    if body.kind not in KERNELS and any(diagnose(func.entry.ops[:-1])):
        return None
    try:
        return made_for.choose(body, machine)
    except CompileError:
        return None
