"""Entries that update a tensor where it is: which of their results are written into the memory of an argument.

A binding that is loaded from and stored to holds such a tensor. Its entry says `%r = dynamic_update_slice(%x, ...)`
of the loaded `%x` and stores `%r`; a target writes the window only. Or `%r = flow.scatter(%x, ...)`, which has as many
such operands and results. Nothing else may use `%x` or `%r`: invocations run in any order, so whoever reads the tensor
might see it before or after the update.
"""

from __future__ import annotations

from collections.abc import Iterator

from orchestrion.compiler.errors import CompileError, Diagnostic
from orchestrion.compiler.flow.scatter import Update, update_of, updated
from orchestrion.compiler.ir.core import Block, Operation, Value

from .ll_seq import LoadInput, StoreOutput

#: store -> the update that it stores into the memory of what is updated
Updates = dict[Operation, Update]


def updates_in_place(body: Block) -> Updates:
    """The stores that write a window only. CompileError where a binding is loaded from and stored to in another way."""
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
    """Each store with each load of the same binding."""
    loads: dict[Value, list[LoadInput]] = {}
    for op in body:
        if isinstance(op, LoadInput):
            loads.setdefault(op.binding, []).append(op)
    for op in body:
        if isinstance(op, StoreOutput):
            for load in loads.get(op.binding, ()):
                yield op, load


def _only(value: Value, user: Operation, index: int) -> bool:
    """Whether the value is used as that operand and nowhere else."""
    return list(value.uses) == [(user, index)]
