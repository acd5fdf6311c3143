"""Rules after the executables phase: as after ll_seq, but every entry is in its target's IR and has a
workgroup size.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from orchestrion.compiler.ir.attributes import SymbolRef
from orchestrion.compiler.ir.core import Operation, UnregisteredOp
from orchestrion.compiler.ir.dims import symbols_of
from orchestrion.compiler.ir.symbols import SymbolTables
from orchestrion.compiler.sequencer import ll_seq
from orchestrion.compiler.sequencer.level_code import with_code
from orchestrion.compiler.stablehlo.ops.base import StablehloOp

from .engine import Rules
from .ll_seq import AROUND_ENTRIES, is_binding_types, is_source_ops, problems_around_entries, symbol_names


def problems(op: Operation, tables: SymbolTables) -> Iterator[str]:
    yield from problems_around_entries(op, tables)
    if isinstance(op, UnregisteredOp):
        yield "is not known"
    if isinstance(op, StablehloOp):
        yield "has not been lowered"
    if isinstance(op, ll_seq.Entry):
        size = op.workgroup_size.ints if op.workgroup_size is not None else ()
        if len(size) != 3 or min(size) < 1:
            yield f"workgroup_size {list(size)} must be three positive numbers"
        if op.source_ops is not None and not is_source_ops(op.source_ops):
            yield f"source_ops {op.source_ops} must be names of ops, without blanks"
        if op.binding_types is not None and not is_binding_types(op.binding_types, len(op.bindings)):
            yield f"binding_types {op.binding_types} must be the type of a tensor, or none, per binding"
        yield from _specialized(op, tables)
        if op.code is not None:
            yield from _code(op)


def _code(op: ll_seq.Entry) -> Iterator[str]:
    """The code of an entry without code of its own is that of an entry with the same bindings, elsewhere."""
    if [type(inner) for inner in op.body.block] != [ll_seq.End]:
        yield f"has code of its own, and names that of program {op.code}"
    found = with_code(op)
    if found is None:
        yield f"program {op.code} has no code of an executable and an entry of these names"
        return
    for name in ("workload", "workgroup_size", "bindings", "dims", "predicate", "specialized"):
        if found.get(name) != op.get(name):
            yield f"its {name} is {op.get(name)}, where its code is {found.get(name)}"


def _specialized(op: ll_seq.Entry, tables: SymbolTables) -> Iterator[str]:
    """Specializations are entries of the same executable with the same bindings; its own symbols select them."""
    try:
        rows = ll_seq.specializations_of(op)
    except ValueError as error:
        yield f"specialized: {error}"
        return
    for row in rows:
        other = tables.lookup(op, SymbolRef(row.entry))
        if not isinstance(other, ll_seq.Entry) or other.specialized is not None:
            yield f"specialized: {row.entry} is not an entry of the executable, or one with specializations of its own"
        elif (other.bindings, other.dims, other.shared) != (op.bindings, op.dims, op.shared):
            yield f"specialized: {row.entry} has other bindings or other dims"
        unknown = {one.name for one in symbols_of(row.size)} - set(symbol_names(op))
        if unknown:
            yield f"specialized: {row.size} has {', '.join(sorted(unknown))}, which is not one of its symbols"


RULES: Final = Rules(AROUND_ENTRIES, problems)
