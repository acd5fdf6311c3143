"""Rules of globals in a module or program: a constant has a value, or is stored to once before any load."""

from __future__ import annotations

from collections.abc import Iterator

from orchestrion.compiler.ir.core import Operation
from orchestrion.compiler.ir.symbols import SymbolTables
from orchestrion.compiler.ir.util import Global, GlobalLoad, GlobalStore, Initializer


def stored_once(scope: Operation) -> Iterator[str]:
    """Initializers run in text order, functions after all of them."""
    members = scope.regions[0].block.ops
    globals_ = [op for op in members if isinstance(op, Global)]
    ready = {op.sym_name.value: op.value is not None or op.is_constant for op in globals_}
    mutable = {op.sym_name.value for op in globals_ if op.mutable is not None}
    for initializer in members:
        if not isinstance(initializer, Initializer):
            continue
        for op in initializer.walk():
            name = op.ref.root if isinstance(op, GlobalLoad | GlobalStore) else None
            if name is None or name in mutable or name not in ready:
                continue
            if isinstance(op, GlobalLoad) and not ready[name]:
                yield f"global @{name} is loaded before it is stored to"
            if isinstance(op, GlobalStore) and ready[name]:
                yield f"global @{name} is stored to although it has its value"
            ready[name] = True
    for name, done in ready.items():
        if not done and name not in mutable:
            yield f"global @{name} has no value, and no initializer stores to it"


def store(op: GlobalStore, tables: SymbolTables) -> Iterator[str]:
    """A store has the global's type; a function stores only to mutable globals."""
    variable = tables.lookup(op, op.ref)
    if not isinstance(variable, Global):
        yield f"{op.ref} is not a global"
    elif variable.type != op.value.type:
        yield f"{op.ref} is of type {variable.type}, stored to as {op.value.type}"
    elif variable.mutable is None and not isinstance(op.parent_op, Initializer):
        yield f"{op.ref} is not mutable: only an initializer may store to it"
