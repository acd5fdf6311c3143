"""Adds a predicate to the code of an entry: it writes nothing if the byte in a binding is 0.

All code goes into a branch. Where invocations wait for each other, only the stores do, because a barrier must be
reached by all of them, and the value of a load does not count as the same for all. Such an entry then computes in vain.
"""

from collections.abc import Sequence

from orchestrion.compiler.ir.attributes import IntegerAttr
from orchestrion.compiler.ir.core import Block, Operation, Region, Value
from orchestrion.compiler.ir.types import scalar
from orchestrion.compiler.kernel import dialect as k
from orchestrion.compiler.sequencer.ll_seq import BINDING

_STORES = (k.Store, k.StoreVector, k.StoreBits)


def add_predicate(block: Block, number: int) -> None:
    """Adds binding `number`, the last one, to the code of an entry, and makes its stores depend on it."""
    while len(block.arguments) <= number:
        block.add_argument(BINDING)
    first, code = block.first, [op for op in block if not isinstance(op, k.Shared | k.Return)]
    word = scalar("ui32")
    zero = k.Constant(result_types=[word], properties={"value": IntegerAttr(0, word)})
    predicate = k.Load([block.arguments[number], zero.output], [scalar("i1")])
    for op in (zero, predicate):
        block.insert_before(op, first)
    if any(isinstance(inner, k.Barrier) for op in code for inner in op.walk()):
        for store in [inner for op in code for inner in op.walk() if isinstance(inner, _STORES)]:
            _enclose([store], predicate.output)
    else:
        _enclose(code, predicate.output)


def _enclose(ops: Sequence[Operation], condition: Value) -> None:
    """Puts ops, which follow each other but for declarations, into a branch."""
    block, anchor = ops[0].parent, ops[-1].next_op
    assert block is not None
    arm = Block()
    for op in ops:
        op.detach()
        arm.append(op)
    arms = [arm, Block()]
    for one in arms:
        one.append(k.Yield([]))
    block.insert_before(k.If([condition], [], regions=[Region([one]) for one in arms]), anchor)
