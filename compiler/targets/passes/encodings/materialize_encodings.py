"""materialize-encodings: turns the remaining hoistable dispatches into executables and ordinary dispatches."""

from __future__ import annotations

from orchestrion.compiler.flow.dialect import HoistableDispatch
from orchestrion.compiler.flow.outline_dispatch_regions import dispatch_instead, executable_of
from orchestrion.compiler.flow.symbols import Names
from orchestrion.compiler.ir.builder import Builder
from orchestrion.compiler.ir.core import Operation
from orchestrion.compiler.ir.printer import operation_text
from orchestrion.compiler.ir.util import Initializer
from orchestrion.compiler.sequencer import hl_seq
from orchestrion.compiler.stablehlo.ops.func import Func


def run(program: hl_seq.Program) -> None:
    """Equal hoistable dispatches share an executable."""
    names, made = Names.of(program), dict[str, str]()
    for top in program.body.block.ops:
        for region in list(top.walk(HoistableDispatch)):
            text = operation_text(executable_of(region, "encoding"))
            if text not in made:
                made[text] = names.fresh(f"encoding_{len(made)}")
                Builder.before(_first_user(program)).insert(executable_of(region, made[text]))
            dispatch_instead(region, made[text])


def _first_user(program: hl_seq.Program) -> Operation:
    """The first initializer or function; executables and globals precede it."""
    return next(op for op in program.body.block if isinstance(op, Initializer | Func))
