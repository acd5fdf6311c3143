"""form-programs: the module becomes one program per target, each with a copy of everything, still on tensors."""

from __future__ import annotations

from typing import TYPE_CHECKING

from orchestrion.compiler.ir.builtin import Module
from orchestrion.compiler.ir.core import Block, Region

from . import hl_seq

if TYPE_CHECKING:
    from orchestrion.compiler.pipeline import Options


def run(module: Module, options: Options) -> None:
    originals = module.block.ops
    for target in options.targets:
        program = hl_seq.Program.build(sym_name=target, body=Region([Block()]), loc=module.loc)
        for op in originals:
            program.body.block.append(op.clone())
        module.block.append(program)
    for op in reversed(originals):
        op.erase()
