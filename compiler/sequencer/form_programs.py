"""form-programs: the module becomes one program per target, each with a copy of everything, still on tensors."""

from __future__ import annotations

from typing import TYPE_CHECKING

from orchestrion.compiler.ir.builtin import Module
from orchestrion.compiler.ir.core import Block, Region
from orchestrion.compiler.kernel.machine import DEFAULT
from orchestrion.compiler.targets.target import target as find_target

from . import hl_seq

if TYPE_CHECKING:
    from orchestrion.compiler.pipeline import Options


def run(module: Module, options: Options) -> None:
    originals = module.block.ops
    for target in options.targets:
        shaped = options.machine != DEFAULT and options.machine in find_target(target).machines
        machine = options.machine if shaped else None
        program = hl_seq.Program.build(sym_name=target, machine=machine, body=Region([Block()]), loc=module.loc)
        for op in originals:
            program.body.block.append(op.clone())
        module.block.append(program)
    for op in reversed(originals):
        op.erase()
