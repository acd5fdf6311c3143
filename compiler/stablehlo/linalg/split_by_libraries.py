"""split-by-libraries and expand-libraries: library calls stay for targets with libraries, and become loops for others.

`expand` makes loops of the calls if no target has libraries, and keeps them if all have. If there are targets of both
kinds and a call that differs between them, the module is split into parts (`compiler/parts.py`), one per kind.
"""

from __future__ import annotations

from orchestrion.compiler.ir.attributes import StringAttr
from orchestrion.compiler.ir.builtin import Module
from orchestrion.compiler.ir.core import Operation
from orchestrion.compiler.options import Options
from orchestrion.compiler.parts import PARTS, calls_lapack, is_part_without_libraries
from orchestrion.compiler.stablehlo.ops.custom_call import CustomCall

from .lapack_loops import FUNCTIONS


def split(module: Module, options: Options) -> None:
    """The pass split-by-libraries."""
    kinds = set(map(calls_lapack, options.targets))
    if len(kinds) < 2 or not any(map(_may_be_loop, module.walk())):
        return
    originals = module.block.ops
    for name in PARTS.values():
        part = Module.empty(module.loc)
        part.sym_name = StringAttr(name)
        for op in originals:
            part.block.append(op.clone())
        module.block.append(part)
    for op in reversed(originals):
        op.erase()


def expand(module: Module, options: Options) -> None:
    """The pass expand-libraries: iterations calls into loops in the part for targets without libraries."""
    if is_part_without_libraries(module):
        from orchestrion.compiler.stablehlo.expansions.expand import expand_all

        expand_all(module, loops=True)


def _may_be_loop(op: Operation) -> bool:
    return isinstance(op, CustomCall) and op.function in FUNCTIONS
