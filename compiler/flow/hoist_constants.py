"""hoist-constants: every constant that is no splat becomes a `util.global`, once per value; splats stay in place."""

from __future__ import annotations

from typing import TYPE_CHECKING

from orchestrion.compiler.ir.attributes import DenseElements, SymbolRef
from orchestrion.compiler.ir.builder import Builder
from orchestrion.compiler.ir.builtin import Module
from orchestrion.compiler.ir.core import Operation

from .util import Global, GlobalLoad

if TYPE_CHECKING:
    from orchestrion.compiler.pipeline import Options


def run(module: Module, options: Options) -> None:
    named: dict[DenseElements, Global] = {}
    functions = [op for op in module.block if op.name == "func.func"]
    for func in functions:
        loaded: dict[Global, Operation] = {}
        for op in func.regions[0].block.ops:
            elements = op.get_as("value", DenseElements) if op.name == "stablehlo.constant" else None
            if elements is None or elements.is_splat or elements.type.num_elements == 0:
                continue
            variable = named.get(elements)
            if variable is None:
                variable = named[elements] = Builder.before(functions[0]).build(
                    Global, sym_name=f"constant_{len(named)}", type=elements.type, value=elements, loc=op.loc
                )
            if variable not in loaded:
                loaded[variable] = Builder.before(op).build(
                    GlobalLoad, ref=SymbolRef(variable.sym_name.value), value=elements.type
                )
            op.result.replace_by(loaded[variable].result)
            op.erase()
