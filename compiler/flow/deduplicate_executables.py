"""deduplicate-executables: keeps the first of structurally equal executables and renumbers the rest.

Executables are equal if they differ in names and locations only, and have the same tied arguments, because a tied
argument shares a binding with a result. Ops without operands, such as constants, stand in front of their first user,
whatever their place in the source was.
"""

from __future__ import annotations

from collections.abc import Hashable

from orchestrion.compiler.ir.attributes import SymbolRef
from orchestrion.compiler.ir.builtin import Module
from orchestrion.compiler.ir.core import Block, Operation
from orchestrion.compiler.ir.cse import structure
from orchestrion.compiler.ir.effects import is_pure

from .dialect import Dispatch, Executable
from .symbols import Names, prefix_of


def run(module: Module) -> None:
    """Removes duplicates and renumbers the executables of all functions."""
    first: dict[Hashable, Executable] = {}
    kept: dict[str, Executable] = {}  # the symbol an executable had -> the one that stands for it now
    tied = {op.entry.root: str(op.tied) for op in module.walk(Dispatch)}
    for executable in module.block.of(Executable):
        symbol = executable.sym_name.value
        _sink_leaves(executable.entry.body.block)
        executable.rename("")
        kept[symbol] = first.setdefault((structure(executable), tied.get(symbol, "")), executable)
        if kept[symbol] is not executable:
            executable.erase()
    names = Names.of(module)
    for func in module.block:
        _renumber(func, kept, names)


def _sink_leaves(block: Block) -> None:
    """Moves pure ops without operands in front of their first users."""
    leaves = {op for op in block if op.results and not op.operands and not op.regions and is_pure(op)}
    for op in block.ops:
        for value in [value for inner in op.walk() for value in inner.operands]:
            leaf = value.defining_op
            if leaf in leaves:
                leaves.remove(leaf)
                leaf.detach()
                block.insert_before(leaf, op)


def erase_unused(scope: Operation) -> None:
    """Erases the executables in a scope that none of its dispatches names."""
    used = {op.entry.root for op in scope.walk(Dispatch)}
    for executable in scope.regions[0].block.of(Executable):
        if executable.sym_name.value not in used:
            executable.erase()


def _renumber(func: Operation, kept: dict[str, Executable], names: Names) -> None:
    """Renames executables: `main_dispatch_2` is the third executable whose first user is `main`."""
    number = 0
    for dispatch in list(func.walk(Dispatch)):
        executable = kept[dispatch.entry.root]
        if not executable.sym_name.value:
            executable.rename(names.fresh(f"{prefix_of(func)}_dispatch_{number}"))
            number += 1
        dispatch.entry = SymbolRef(executable.sym_name.value, (executable.sym_name.value,))
