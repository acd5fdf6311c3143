"""lower-imported-calls: a call of a function of another module ends its block.

    before: util.global_store @argument, %x
            util.imported_call_branch ^rest @module.function, [@argument] -> [@result]
    ^rest:  %y = util.global_load @result; the ops behind the call

Arguments and results lie in mutable globals that belong to this call alone and have memory of their own, so the other
module can access no other memory.
"""

from __future__ import annotations

from orchestrion.compiler.ir.attributes import ArrayAttr, SymbolRef, UnitAttr
from orchestrion.compiler.ir.builder import Builder
from orchestrion.compiler.ir.builtin import Module
from orchestrion.compiler.ir.core import Block, Operation, Value
from orchestrion.compiler.ir.types import FunctionType
from orchestrion.compiler.ir.util import Global, GlobalLoad, GlobalStore, ImportedCall, ImportedCallBranch
from orchestrion.compiler.stablehlo.ops.func import Func

from .blocks import code_of, split_behind
from .symbols import Names, identifier


def run(module: Module) -> None:
    """Lowers all imported calls."""
    names = Names.of(module)
    for op in code_of(module):
        region, at = op.regions[0], 0
        while at < len(region.blocks):
            block = region.blocks[at]
            call = next((inner for inner in block if isinstance(inner, ImportedCall)), None)
            at += 1
            if call is not None:
                rest = _lower(call, block, op, names)
                rest.region = region
                region.blocks.insert(at, rest)


def _lower(call: ImportedCall, block: Block, top: Operation, names: Names) -> Block:
    """Lowers one call. Returns the block of the ops behind it."""
    rest = split_behind(block, call)
    assert isinstance(top, Func), "initializers hold constant work, which calls nobody"
    wish = identifier(call.callee.value)
    arguments = [_global(value, f"{wish}_argument", top, names) for value in call.arguments]
    results = [_global(value, f"{wish}_result", top, names) for value in call.outputs]
    before, behind = Builder.before(call), Builder(rest, rest.first, call.loc)
    for value, ref in zip(call.arguments, arguments, strict=True):
        before.build(GlobalStore, ref=ref, value=value)
    for value, ref in zip(call.outputs, results, strict=True):
        value.replace_by(behind.build(GlobalLoad, ref=ref, value=value.type).value)
    before.build(
        ImportedCallBranch,
        callee=call.callee,
        function_type=FunctionType(
            tuple(value.type for value in call.arguments), tuple(value.type for value in call.outputs)
        ),
        arguments=ArrayAttr(tuple(arguments)),
        outputs=ArrayAttr(tuple(results)),
        to=rest,
    )
    call.erase()
    return rest


def _global(value: Value, wish: str, top: Func, names: Names) -> SymbolRef:
    name = names.fresh(wish)
    Builder.before(top).build(Global, sym_name=name, type=value.type, mutable=UnitAttr(), loc=value.loc)
    return SymbolRef(name)
