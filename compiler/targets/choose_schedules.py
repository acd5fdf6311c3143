"""choose-schedules: each entry of a program gets the schedules by which its target lowers it.

The attribute `schedules` of an entry lists those for dispatches of some sizes, then the one for all others. An entry
that has the attribute keeps it: text of the phase can be edited and continued from. What no schedule takes is left for
`lower-executables`, which reports all that cannot be lowered at once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from orchestrion.compiler.errors import CompileError
from orchestrion.compiler.ir.attributes import SymbolRef
from orchestrion.compiler.ir.builtin import Module
from orchestrion.compiler.kernel.body import Body
from orchestrion.compiler.kernel.choose import Choice
from orchestrion.compiler.kernel.lower import attribute_of
from orchestrion.compiler.kernel.refusals import diagnose
from orchestrion.compiler.sequencer import hl_seq
from orchestrion.compiler.stablehlo.ops.func import Func

from .target import Target, target

if TYPE_CHECKING:
    from orchestrion.compiler.options import Options


def run(module: Module, options: Options) -> None:
    for program in module.block:
        if not isinstance(program, hl_seq.Program):
            continue
        dispatches = {op.entry: op for op in program.walk() if isinstance(op, hl_seq.Dispatch)}
        for executable in [op for op in program.body.block if isinstance(op, hl_seq.Executable)]:
            for func in executable.body.block:
                assert isinstance(func, Func)
                dispatch = dispatches.get(SymbolRef(executable.sym_name.value, (func.sym_name.value,)))
                if dispatch is None or func.schedules is not None:
                    continue
                choice = _choice(target(program.profile), program.machine_name, func, dispatch)
                if choice is None:
                    continue
                func.schedules = attribute_of(choice)
                if choice.missed and options.recorder is not None:
                    what = f"specialization of {func.sym_name.value}"
                    options.recorder.not_taken(program.sym_name.value, what, func.loc, choice.missed)


def _choice(made_for: Target, machine: str, func: Func, dispatch: hl_seq.Dispatch) -> Choice | None:
    """The schedules of an entry; None if its target has no schedules or will refuse the entry."""
    if any(True for _ in diagnose(func.entry.ops[:-1])):
        return None
    tied = () if dispatch.tied is None else dispatch.tied.ints
    try:
        return made_for.choose(Body.of_function(func, tied), machine)
    except CompileError:
        return None
