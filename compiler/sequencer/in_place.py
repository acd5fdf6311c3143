"""In-place updates of entries: which results are written into the memory of an argument.

A binding that is both loaded and stored holds an updated tensor. The entry computes `%r = dynamic_update_slice(%x,
...)` of the loaded `%x` and stores `%r`; a target then writes only the window. Or it computes `%r = flow.scatter(%x,
...)` with as many such operands and results. Nothing else may use `%x` or `%r`: invocations run in any order, so
another reader might see the tensor before or after the update.
"""

from __future__ import annotations

from collections.abc import Iterator

from orchestrion.compiler.errors import CompileError, Diagnostic
from orchestrion.compiler.flow.scatter import Update, update_of, updated
from orchestrion.compiler.ir.core import Block, Operation, Value

from .ll_seq import LoadInput, StoreOutput

#: store -> the in-place update whose result it stores
Updates = dict[Operation, Update]


def updates_in_place(body: Block) -> Updates:
    """The stores that write only a window. Raises CompileError if a binding is loaded and stored in any other way."""
    found: Updates = {}
    problems = []
    for store, load in _pairs(body):
        update, stored = update_of(store.value), store.value
        if update is not None and _only(load.value, update, updated(stored)) and _only(stored, store, 0):
            found[store] = update
            continue
        message = (
            "stores to a binding that is loaded from: this takes a dynamic_update_slice or a scatter of what is "
            "loaded, and that nothing else uses either"
        )
        problems.append(Diagnostic(message, store.loc, store.name))
    if problems:
        raise CompileError(problems)
    return found


def _pairs(body: Block) -> Iterator[tuple[StoreOutput, LoadInput]]:
    """Each store paired with each load of the same binding."""
    loads: dict[Value, list[LoadInput]] = {}
    for op in body:
        if isinstance(op, LoadInput):
            loads.setdefault(op.binding, []).append(op)
    for op in body:
        if isinstance(op, StoreOutput):
            for load in loads.get(op.binding, ()):
                yield op, load


def _only(value: Value, user: Operation, index: int) -> bool:
    """Whether the value's only use is this operand of this op."""
    return list(value.uses) == [(user, index)]
