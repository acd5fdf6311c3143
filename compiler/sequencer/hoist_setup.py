"""The passes that hoist setup out of the run loops, so that requests reuse it.

`hoist-allocations`, `hoist-executables` (and constants) and `hoist-recordings` move an op before the run loop if all
its operands are defined there. Equal executables and constants of several functions are merged. Their arenas are merged
as well, because requests of one instance never overlap.
"""

from __future__ import annotations

from collections.abc import Iterable

from orchestrion.compiler.flow.captures import inputs
from orchestrion.compiler.ir.attributes import DimArray
from orchestrion.compiler.ir.core import Operation
from orchestrion.compiler.ir.symbols import SymbolTables

from . import hl_seq, ll_seq


def allocations(program: hl_seq.Program) -> None:
    """The pass `hoist-allocations`."""
    _share_arena(_hoist(program, ll_seq.Allocate))


def executables(program: hl_seq.Program) -> None:
    """The pass `hoist-executables`."""
    _share_equal(_hoist(program, ll_seq.CreateExecutable, ll_seq.Constant))


def recordings(program: hl_seq.Program) -> None:
    """The pass `hoist-recordings`."""
    _hoist(program, ll_seq.Record)


def _is_sized(op: Operation, tables: SymbolTables) -> bool:
    """Whether an op depends on the sizes of a request."""
    for inner in op.walk():
        if any(isinstance(value, DimArray) for value in inner.properties.values()):
            return True
        entry = tables.lookup(inner, inner.entry) if isinstance(inner, ll_seq.Dispatch) else None
        if isinstance(entry, ll_seq.Entry) and entry.dims is not None:
            return True
    return False


def _hoist(program: hl_seq.Program, *kinds: type[Operation]) -> list[Operation]:
    """Moves ops of these classes out of the run loops. Returns those of the instance, which other passes may share."""
    for run_loop in list(program.walk(ll_seq.RunLoop)):
        outer, tables = run_loop.parent, SymbolTables()
        assert outer is not None
        for op in [op for block in run_loop.body.blocks for op in block if isinstance(op, kinds)]:
            is_static = run_loop.dims is None or not _is_sized(op, tables)
            if is_static and all(value.parent_block is outer for value in inputs(op)):
                outer.take([op], run_loop)
    instance = program.body.block.last
    return [op for op in instance.body.block if isinstance(op, kinds)] if isinstance(instance, ll_seq.Instance) else []


def _share_arena(allocations: Iterable[Operation]) -> None:
    """Merges the arenas of all functions that have the same label."""
    shared: dict[str, ll_seq.Allocate] = {}
    for other in allocations:
        assert isinstance(other, ll_seq.Allocate)
        if other.lifetime.value != "transient":
            continue
        first = shared.setdefault(other.label.value, other)
        if first is not other:
            first.size = max(first.size, other.size)
            other.output.replace_by(first.output)
            other.erase()


def _share_equal(ops: Iterable[Operation]) -> None:
    seen: dict[object, Operation] = {}
    for op in ops:
        known = seen.setdefault((op.name, tuple(op.properties.items())), op)
        if known is not op:
            op.result.replace_by(known.result)
            op.erase()
