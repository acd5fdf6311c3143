"""materialize-encodings: turns the remaining hoistable dispatches into executables and ordinary dispatches."""

from __future__ import annotations

from orchestrion.compiler.flow.dialect import HoistableDispatch
from orchestrion.compiler.flow.outline_dispatch_regions import SharedExecutables
from orchestrion.compiler.ir.builder import Builder
from orchestrion.compiler.ir.core import Operation
from orchestrion.compiler.ir.util import Initializer
from orchestrion.compiler.sequencer import hl_seq
from orchestrion.compiler.stablehlo.ops.func import Func


def run(program: hl_seq.Program) -> None:
    """Equal hoistable dispatches share an executable."""
    executables = SharedExecutables(program)
    for top in program.body.block.ops:
        for region in list(top.walk(HoistableDispatch)):
            executables.outline(region, f"encoding_{len(executables.made)}", Builder.before(_first_user(program)))


def _first_user(program: hl_seq.Program) -> Operation:
    """The first initializer or function; executables and globals precede it."""
    return next(op for op in program.body.block if isinstance(op, Initializer | Func))
