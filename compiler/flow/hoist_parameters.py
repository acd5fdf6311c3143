"""hoist-parameters: an argument that is a parameter becomes a `util.global`, one for all functions.

Each block loads the globals that it uses. An unused parameter is removed.
"""

from __future__ import annotations

from orchestrion.compiler.ir.attributes import DictAttr, SymbolRef
from orchestrion.compiler.ir.builder import Builder
from orchestrion.compiler.ir.builtin import Module
from orchestrion.compiler.ir.core import Block, BlockArgument, Operation, Value
from orchestrion.compiler.ir.parameters import name_of
from orchestrion.compiler.ir.util import Global, GlobalLoad
from orchestrion.compiler.stablehlo.functions.parameters import attributes_of, parameters_of, set_arguments
from orchestrion.compiler.stablehlo.ops.base import tensor_of
from orchestrion.compiler.stablehlo.ops.func import Func

from .symbols import Names


def run(module: Module) -> None:
    """Hoists the parameters of a module."""
    functions = module.block.of(Func)
    names = Names.of(module)
    made: dict[str, Global] = {}
    for func in functions:
        found = dict(parameters_of(func))
        for index, attribute in found.items():
            argument, name = func.entry.arguments[index], name_of(attribute)
            if not argument.uses:
                continue
            if name not in made:
                made[name] = _global(names.fresh(f"parameter_{len(made)}"), argument, attribute, functions[0])
            _load(func, argument, made[name])
        _drop(func, set(found))


def _global(name: str, argument: BlockArgument, attribute: DictAttr, before: Operation) -> Global:
    builder = Builder.before(before)
    return builder.build(Global, sym_name=name, type=argument.type, parameter=attribute, loc=argument.loc)


def _load(func: Func, argument: BlockArgument, variable: Global) -> None:
    """Each block that uses the argument loads the global in front of all other ops."""
    loaded: dict[Block, Value] = {}
    for op, index in list(argument.uses):
        block = next(around.parent for around in op.enclosing() if around.parent_op is func)
        assert block is not None
        if block not in loaded:
            builder = Builder(block, block.first, argument.loc)
            ref = SymbolRef(variable.sym_name.value)
            loaded[block] = builder.build(GlobalLoad, ref=ref, value=argument.type).value
        op.set_operand(index, loaded[block])


def _drop(func: Func, gone: set[int]) -> None:
    if not gone:
        return
    attrs = [item for index, item in enumerate(attributes_of(func)) if index not in gone]
    func.entry.erase_arguments(gone)
    set_arguments(func, [tensor_of(argument) for argument in func.entry.arguments], attrs)
