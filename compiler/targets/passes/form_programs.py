"""form-programs: makes one program per target and machine; each is a copy of the whole module, still over tensors.

The program of a further level of a target is left out if its first level binds as few buffers in each dispatch.

If the module has parts (`compiler/parts.py`), a program is a copy of the part that its target can run.
"""

from __future__ import annotations

from orchestrion.compiler.flow import dialect as flow
from orchestrion.compiler.ir.builtin import Module
from orchestrion.compiler.ir.core import Block, Region
from orchestrion.compiler.ir.locations import UNKNOWN
from orchestrion.compiler.options import Options
from orchestrion.compiler.parts import part_for, parts_of
from orchestrion.compiler.profiles import DEFAULT, known_profile, program_name
from orchestrion.compiler.sequencer import hl_seq
from orchestrion.compiler.stablehlo.ops.func import Func
from orchestrion.compiler.targets.target import target


def run(module: Module, options: Options) -> None:
    originals = module.block.ops
    kept = [name for name in options.targets if not _serves_all(module, name, options)]
    wanted = [(name, machine) for name in kept for machine in _machines(name, options)]
    for name, machine in wanted:
        program = hl_seq.Program.build(
            sym_name=program_name(name, machine),
            machine=None if machine == DEFAULT else machine,
            body=Region([Block()]),
            loc=module.loc,
        )
        for op in part_for(module, name).block.ops if parts_of(module) else originals:
            program.body.block.append(op.clone())
        module.block.append(program)
    for op in reversed(originals):
        op.erase()


def _serves_all(module: Module, name: str, options: Options) -> bool:
    """Whether a target is a level whose devices run the programs of the first level."""
    level = known_profile(name)
    most = level.max_bindings
    if most is None or level.level_of not in options.targets:
        return False
    ops = list(part_for(module, name).walk())
    few = all(_buffers(op) <= most for op in ops if isinstance(op, flow.Dispatch))
    return few and not any(_has_loop(op) for op in ops if isinstance(op, Func))


def _has_loop(func: Func) -> bool:
    """Whether a function has a loop: a kernel for it may bind more buffers than each of its dispatches."""
    order = {block: number for number, block in enumerate(func.body.blocks)}
    ends = ((block, to) for block in order if block.last is not None for to in block.last.successors)
    return any(order[to] <= order[block] for block, to in ends)


def _buffers(dispatch: flow.Dispatch) -> int:
    """The buffers that a dispatch binds."""
    tied = () if dispatch.tied is None else dispatch.tied.ints
    return len(dispatch.operands) + len(dispatch.results) - sum(index >= 0 for index in tied)


def _machines(name: str, options: Options) -> tuple[str, ...]:
    """The machines for which a target gets a program: those that it has rows for, or only the default."""
    own = tuple(machine for machine in options.machines if target(name).machine(machine) is not None)
    if options.recorder is not None:
        missing = [machine for machine in options.machines if machine not in (DEFAULT, *own)]
        if missing and target(name).machines:
            why = f"target {name} has no facts about that machine"
        else:
            why = f"target {name} makes the same code for all machines"
        if missing:
            options.recorder.not_taken(name, f"a program for machine {' or '.join(missing)}", UNKNOWN, why)
    return own or (DEFAULT,)
