"""take-parameters: turns a constant marked as a parameter into an argument of each function that uses it.

No later pass can fold an argument, or merge two. Copies of a constant from several inlined calls become one argument.
"""

from __future__ import annotations

from orchestrion.compiler.ir.attributes import DictAttr
from orchestrion.compiler.ir.builtin import Module
from orchestrion.compiler.ir.core import BlockArgument
from orchestrion.compiler.ir.parameters import name_of
from orchestrion.compiler.stablehlo.ops.base import tensor_of
from orchestrion.compiler.stablehlo.ops.func import Func
from orchestrion.compiler.stablehlo.ops.structural import Constant

from .parameters import KEY, attributes_of, set_arguments


def run(module: Module) -> None:
    for func in module.block.of(Func):
        _take(func)


def _take(func: Func) -> None:
    made: dict[str, BlockArgument] = {}
    attrs = attributes_of(func)
    for op in func.walk():
        found = op.attributes.get(KEY) if isinstance(op, Constant) else None
        if found is None:
            continue
        name = name_of(found)
        if name not in made:
            made[name] = func.entry.add_argument(op.results[0].type, op.loc)
            attrs.append(DictAttr.of({KEY: found}))
        op.results[0].replace_by(made[name])
        op.erase()
    if made:
        set_arguments(func, [tensor_of(argument) for argument in func.entry.arguments], attrs)
