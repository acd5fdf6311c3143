"""outline-dispatch-regions: each `flow.dispatch_region` becomes a `flow.executable` and a `flow.dispatch` of it.

The entry is a function over tensors. Values from outside that the region uses become its arguments, in the order of
use. Executables are named after the function and numbered: `main_dispatch_0`, `initializer_dispatch_0`.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from functools import reduce

from orchestrion.compiler.ir.attributes import SymbolRef, dense_ints
from orchestrion.compiler.ir.builder import Builder
from orchestrion.compiler.ir.builtin import Module
from orchestrion.compiler.ir.core import Block, Operation, Region, Value
from orchestrion.compiler.ir.cse import structure
from orchestrion.compiler.ir.dims import dim_max
from orchestrion.compiler.ir.types import FunctionType
from orchestrion.compiler.stablehlo.ops.base import tensor_of
from orchestrion.compiler.stablehlo.ops.func import Func, Return
from orchestrion.compiler.stablehlo.ops.function_dims import dims_attribute, used_symbols

from .blocks import code_of
from .captures import captures
from .dialect import Dispatch, DispatchRegion, Executable, HoistableDispatch
from .kinds import kind_of
from .layout import storage_elements
from .scatter import Update, changes, update_of, updated
from .symbols import Names, prefix_of

#: ops that become an executable
Outlined = DispatchRegion | HoistableDispatch


def run(module: Module) -> None:
    """Outlines all regions of a module."""
    names = Names.of(module)
    for code in list(code_of(module)):
        regions = [op for block in code.regions[0].blocks for op in block.of(DispatchRegion)]
        for number, region in enumerate(regions):
            _outline(region, names.fresh(f"{prefix_of(code)}_dispatch_{number}"), code)


def _outline(region: DispatchRegion, name: str, code: Operation) -> None:
    Builder.before(code).insert(executable_of(region, name))
    dispatch_instead(region, name)


class SharedExecutables:
    """Outlines regions of a program. Equal regions share an executable. `made`: structure of an executable -> name."""

    def __init__(self, program: Operation) -> None:
        self.names = Names.of(program)
        self.made: dict[Hashable, str] = {}

    def outline(self, region: Outlined, wish: str, builder: Builder) -> Dispatch:
        """Replaces a region by a dispatch. `wish`, `builder`: name and place of the executable if there is none yet."""
        executable = executable_of(region, "")
        key = structure(executable)
        if key not in self.made:
            self.made[key] = self.names.fresh(wish)
            executable.rename(self.made[key])
            builder.insert(executable)
        return dispatch_instead(region, self.made[key])


def inlined(func: Func, values: Sequence[Value], block: Block) -> list[Value]:
    """Appends the ops of an entry, on other values in place of its arguments, to a block. Returns its results."""
    mapping: dict[Value, Value] = dict(zip(func.entry.arguments, values, strict=True))
    *ops, end = func.entry.ops
    for op in ops:
        block.append(op.clone(mapping))
    return [mapping[value] for value in end.operands]


def dispatch_instead(region: Outlined, name: str) -> Dispatch:
    """Replaces a region by a dispatch of the executable that was made from it or from an equal one."""
    updates = _updates(region)
    writes = zip(region.outputs, updates, strict=True)
    written = (value if update is None else changes(update[0]) for value, update in writes)
    work = reduce(dim_max, (storage_elements(tensor_of(value)) for value in written))
    arguments = captures(region)
    dispatch = Builder.before(region).build(
        Dispatch,
        entry=SymbolRef(name, (name,)),
        workload=[work, 1, 1],
        arguments=arguments,
        outputs=[value.type for value in region.outputs],
    )
    if any(updates):
        dispatch.tied = dense_ints(*(-1 if found is None else arguments.index(found[1]) for found in updates))
    region.replace_by(dispatch.outputs)
    return dispatch


def _updates(region: Outlined) -> list[tuple[Update, Value] | None]:
    """For each output the update in place that computes it, and the updated value."""
    marks = region.updates.ints if isinstance(region, DispatchRegion) and region.updates is not None else ()
    found: list[tuple[Update, Value] | None] = [None] * len(region.outputs)
    for index, mark in enumerate(marks):
        value = region.body.block.end.operands[index]
        update = update_of(value) if mark else None
        found[index] = None if update is None else (update, update.operands[updated(value)])
    return found


def executable_of(region: Outlined, name: str) -> Executable:
    """An executable whose only entry, of the same name, computes the outputs of a region."""
    return Executable.of(_entry(region, name), name)


def _entry(region: Outlined, name: str) -> Func:
    """The ops of a region as a function."""
    used = captures(region)
    inputs = tuple(value.type for value in used)
    block = Block(inputs, [value.loc for value in used])
    mapping: dict[Value, Value] = dict(zip(used, block.arguments, strict=True))
    *ops, terminator = region.body.block.ops
    for op in ops:
        block.append(op.clone(mapping))
    returned = [mapping[value] for value in terminator.operands]
    block.append(Return.build(values=returned, loc=region.loc))
    type = FunctionType(inputs, tuple(value.type for value in returned))
    results = zip(terminator.operands, _updates(region), strict=True)
    kind = kind_of(ops, [value if update is None else changes(update[0]) for value, update in results])
    entry = Func.build(sym_name=name, function_type=type, kind=kind, body=Region([block]), loc=region.loc)
    symbols = used_symbols(entry)
    if symbols:
        entry.dims = dims_attribute((symbol, None) for symbol in symbols)
    return entry
