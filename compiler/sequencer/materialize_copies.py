"""materialize-copies: inserts a copy where two values cannot share memory, so that later passes need not check.

- An in-place update of a value that is still needed, or that is not owned by the function, updates a copy (copy on
  write).
- A branch operand that cannot lie in the memory of the block argument is copied there.
- A result in the memory of a donated argument is computed elsewhere, and copied after the last use of the argument.
- The value of a variable that is stored to later is copied when it is loaded.

A copy whose source is dead afterwards costs nothing: `buffer_assignment.py` assigns both to one buffer.
"""

from __future__ import annotations

from typing import Final

from orchestrion.compiler.errors import Diagnostic, InternalError
from orchestrion.compiler.ir import util
from orchestrion.compiler.ir.builder import Builder
from orchestrion.compiler.stablehlo.ops.func import Func

from . import hl_seq
from .buffer_assignment import BufferAssignment, MissingCopy
from .split_edges import split_edges

#: Maximum rounds beyond one per block: inserting one copy may reveal that another is missing.
MORE_ROUNDS: Final = 10


def run(program: hl_seq.Program) -> None:
    for op in program.body.block.ops:
        if isinstance(op, Func | util.Initializer):
            split_edges(op.body)
            _keep_loads(op)
            _complete(op)


def _complete(top: Func | util.Initializer) -> None:
    """Inserts copies until none is missing."""
    rounds = MORE_ROUNDS + len(top.body.blocks)
    for _ in range(rounds):
        missing = BufferAssignment(top).missing_copies
        if not missing:
            return
        for found in missing:
            _copy(found)
    fault = Diagnostic(f"copies are missing after {rounds} rounds", top.loc, top.name)
    raise InternalError("materialize-copies", [fault])


def _copy(missing: MissingCopy) -> None:
    op, index = missing.op, missing.index
    source = op.operands[index]
    size = hl_seq.size_of(source.type)
    lifetime = "transient"
    # the exported resource becomes transient, and the copy is external, after all other ops
    if isinstance(op, hl_seq.Export):
        source.type, lifetime = hl_seq.resource("transient", size), "external"
        block = op.parent
        assert block is not None
        block.take([op], block.last)
    copy = Builder.before(op).build(hl_seq.Clone, source=source, output=hl_seq.resource(lifetime, size))
    op.set_operand(index, copy.output)


def _keep_loads(top: Func | util.Initializer) -> None:
    """Copies a loaded variable that the function stores to, unless all its reads precede the store."""
    stores = [op for block in top.body.blocks for op in block.of(util.GlobalStore)]
    for store in stores:
        for block in top.body.blocks:
            for op in block.ops:
                if isinstance(op, util.GlobalLoad) and op.ref == store.ref and not _read_before(op, store):
                    _clone_load(op)


def _clone_load(load: util.GlobalLoad) -> None:
    users = list(load.value.uses)
    size = hl_seq.size_of(load.value.type)
    copy = Builder.after(load).build(
        hl_seq.Clone, source=load.value, output=hl_seq.resource("transient", size), loc=load.loc
    )
    for user, index in users:
        user.set_operand(index, copy.output)


def _read_before(load: util.GlobalLoad, store: util.GlobalStore) -> bool:
    """Whether all users of the load precede the store in the same block."""
    assert load.parent is not None
    before = set()
    for op in load.parent:
        before.add(op)
        if op is store:
            return all(user in before for user in load.value.users())
    return False
