"""hoist-constants: every constant that is no splat becomes a `util.global`, one per value. Splats stay in place.

Each block loads the globals that it uses, so that their values are not passed between blocks.
"""

from __future__ import annotations

from orchestrion.compiler.ir.attributes import DenseElements, SymbolRef
from orchestrion.compiler.ir.builder import Builder
from orchestrion.compiler.ir.builtin import Module
from orchestrion.compiler.ir.core import Operation
from orchestrion.compiler.ir.util import Global, GlobalLoad
from orchestrion.compiler.stablehlo.ops.structural import Constant

from .blocks import code_of
from .symbols import Names


def run(module: Module) -> None:
    """Hoists the constants of a module."""
    named: dict[DenseElements, Global] = {}
    names = Names.of(module)
    code = list(code_of(module))
    for block in [block for op in code for block in op.regions[0].blocks]:
        loaded: dict[Global, Operation] = {}
        for op in block.ops:
            if not isinstance(op, Constant) or op.value.is_splat or op.value.type.num_elements == 0:
                continue
            elements = op.value
            variable = named.get(elements)
            if variable is None:
                name = names.fresh(f"constant_{len(named)}")
                variable = named[elements] = Builder.before(code[0]).build(
                    Global, sym_name=name, type=elements.type, value=elements, loc=op.loc
                )
            if variable not in loaded:
                loaded[variable] = Builder.before(op).build(
                    GlobalLoad, ref=SymbolRef(variable.sym_name.value), value=elements.type
                )
            op.out.replace_by(loaded[variable].result)
            op.erase()
