"""After the executables phase: as after ll_seq, but every entry is in the IR of its target and has a workgroup size."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from orchestrion.compiler.ir.core import Operation, UnregisteredOp
from orchestrion.compiler.ir.symbols import SymbolTables
from orchestrion.compiler.sequencer import ll_seq
from orchestrion.compiler.stablehlo.base import StablehloOp

from .engine import Rules
from .ll_seq import around_entries, is_binding_types, is_source_ops, problems_around_entries


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


RULES: Final = Rules(around_entries, problems)
