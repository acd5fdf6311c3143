"""lower-executables: each target replaces the bodies of its entries. All that cannot be lowered is said at once.

An entry first notes which ops of the source it computes: nothing of them is left afterwards, and profiles name them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from orchestrion.compiler.errors import CompileError, Diagnostic
from orchestrion.compiler.ir.builtin import Module
from orchestrion.compiler.sequencer import hl_seq, ll_seq

from .source_ops import name_source_ops
from .target import target

if TYPE_CHECKING:
    from orchestrion.compiler.pipeline import Options


def run(module: Module, options: Options) -> None:
    found: list[Diagnostic] = []
    for program in module.block:
        if not isinstance(program, hl_seq.Program):
            continue
        lower = target(program.sym_name.value).lower
        for entry in [op for op in program.walk() if isinstance(op, ll_seq.Entry)]:
            name_source_ops(entry)
            try:
                lower(entry)
            except CompileError as error:
                found += error.diagnostics
    if found:
        raise CompileError(dict.fromkeys(found))
