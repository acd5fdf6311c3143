"""split-by-libraries and expand-libraries: calls of LAPACK stay for some targets, and become loops for others.

`expand` makes loops of the calls that no target keeps. If targets differ in a call, the module is split into parts
(`compiler/parts.py`), one per kind of target.
"""

from __future__ import annotations

from orchestrion.compiler.ir.attributes import StringAttr
from orchestrion.compiler.ir.builtin import Module
from orchestrion.compiler.options import Options
from orchestrion.compiler.parts import PARTS, kinds_of, lapack_calls_of_part
from orchestrion.compiler.stablehlo.ops.custom_call import CustomCall

from .lapack_loops import FUNCTIONS, is_large


def split(module: Module, options: Options) -> None:
    """The pass split-by-libraries."""
    kinds = kinds_of(options)
    calls = [op for op in module.walk(CustomCall) if op.function in FUNCTIONS]
    if not any(map(is_large, calls)):
        kinds = {"loops" if kind == "large" else kind for kind in kinds}
    if len(kinds) < 2 or not calls:
        return
    originals = module.block.ops
    for kind, name in PARTS.items():
        if kind not in kinds:
            continue
        part = Module.empty(module.loc)
        part.sym_name = StringAttr(name)
        for op in originals:
            part.block.append(op.clone())
        module.block.append(part)
    for op in reversed(originals):
        op.erase()


def expand(module: Module, options: Options) -> None:
    """The pass expand-libraries: turns calls into loops in the parts for targets that do not call LAPACK."""
    kind = lapack_calls_of_part(module)
    if kind != "calls":
        from orchestrion.compiler.stablehlo.expansions.expand import expand_all

        expand_all(module, kind)
