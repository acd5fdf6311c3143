"""outline-dispatch-regions: each `flow.dispatch_region` becomes a `flow.executable` and a `flow.dispatch` of it.

The entry is a function over tensors: what the region used from outside becomes its arguments, in the order of use.
Executables are named after the function and numbered: `main_dispatch_0`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from orchestrion.compiler.ir.attributes import SymbolRef, dense_ints
from orchestrion.compiler.ir.builder import Builder
from orchestrion.compiler.ir.builtin import Module
from orchestrion.compiler.ir.core import Block, Operation, Region, Value
from orchestrion.compiler.ir.types import FunctionType
from orchestrion.compiler.stablehlo.func import Func, Return

from .access import elements
from .dialect import Dispatch, DispatchRegion, Executable
from .symbols import Names, identifier

if TYPE_CHECKING:
    from orchestrion.compiler.pipeline import Options


def run(module: Module, options: Options) -> None:
    names = Names.of(module)
    for func in module.block.ops:
        if not isinstance(func, Func):
            continue
        regions = [op for op in func.regions[0].block if isinstance(op, DispatchRegion)]
        prefix = identifier(func.sym_name.value)
        for number, region in enumerate(regions):
            _outline(region, names.fresh(f"{prefix}_dispatch_{number}"), func)


def _outline(region: DispatchRegion, name: str, func: Func) -> None:
    captures = _captures(region)
    entry = _entry(region, name, captures)
    executable = Executable.build(sym_name=name, body=Region([Block()]), loc=region.loc)
    executable.body.block.append(entry)
    Builder.before(func).insert(executable)
    workload = dense_ints(elements(region.outputs[0]), 1, 1)
    dispatch = Builder.before(region).build(
        Dispatch,
        entry=SymbolRef(name, (name,)),
        workload=workload,
        arguments=captures,
        outputs=[value.type for value in region.outputs],
    )
    for old, new in zip(region.outputs, dispatch.outputs, strict=True):
        old.replace_by(new)
    region.erase()


def _captures(region: DispatchRegion) -> list[Value]:
    """Values that the region uses and does not define, in the order of use."""
    inside = {result for op in region.body.walk() for result in op.results}
    inside_blocks = {block for op in (region, *region.body.walk()) for r in op.regions for block in r.blocks}
    found: dict[Value, None] = {}
    for op in region.body.walk():
        for value in op.operands:
            if value not in inside and value.parent_block not in inside_blocks:
                found[value] = None
    return list(found)


def _entry(region: DispatchRegion, name: str, captures: list[Value]) -> Operation:
    """The region's ops as a function."""
    inputs = tuple(value.type for value in captures)
    block = Block(inputs, [value.loc for value in captures])
    mapping: dict[Value, Value] = dict(zip(captures, block.arguments, strict=True))
    *ops, terminator = region.body.block.ops
    for op in ops:
        block.append(op.clone(mapping))
    returned = [mapping[value] for value in terminator.operands]
    block.append(Return.build(values=returned, loc=region.loc))
    type = FunctionType(inputs, tuple(value.type for value in returned))
    return Func.build(sym_name=name, function_type=type, body=Region([block]), loc=region.loc)
