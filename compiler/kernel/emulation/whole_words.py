"""Finds code that computes one element of a narrow result, so that an invocation may compute all elements of a word.

A device that lacks narrow integers replaces a part of a word by atomics, because other invocations store the other
parts. If an invocation computes the neighbours of an element too, it stores the whole word without atomics. Two forms
of code can be extended to neighbours:
- a branch of the entry for the invocations below a limit, if nothing but the index of an invocation in the dispatch
  tells it from others;
- a loop over the elements of a row, of which an invocation takes all, or every one that it comes to in steps of the
  size of the workgroup.

All stores stand at the end of such code, and one of them stores at the index plus a multiple of the elements of a word.
Invocations run in any order, so an invocation may do the work of several. The number of workgroups stays, because all
variants of an executable have the same dispatches; workgroups behind the last word do nothing.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from orchestrion.compiler.ir.core import Block, Operation, Value
from orchestrion.compiler.kernel import dialect as k
from orchestrion.compiler.kernel.code.affine import sum_of
from orchestrion.schema.dtypes import DType

#: most ops of all elements of a word, and most iterations of their loops; stores take little of the time of longer code
MAX_OPS, MAX_ITERATIONS = 1024, 64
#: ops with effects, which cannot be repeated for neighbours
EFFECTS = (k.Store, k.StoreVector, k.StoreBits, k.StoreShared, k.Barrier)


@dataclass(frozen=True, slots=True)
class Neighbours:
    """Code for one element that can be repeated for `count` neighbours: `ops`, then `stores`. It computes the element
    of the number `index`, if the values `zeros` are 0. A branch has a condition, the two operands of `compare_lt`.
    """

    index: Value
    count: int
    ops: Sequence[Operation]
    stores: Sequence[k.Store]
    zeros: Sequence[Value] = ()
    condition: Sequence[Value] = ()


class WholeWords:
    """Finds such code in the block of an entry. `elements`: the number of elements of a type that share a word that the
    device replaces by parts, else 1.
    """

    def __init__(self, entry: Block, elements: Callable[[DType], int], workgroup_size: int) -> None:
        self.entry = entry
        self.elements = elements
        self.workgroup_size = workgroup_size
        self.group = _only([op.output for op in entry if isinstance(op, k.WorkgroupId)])
        self.local = _only([op.output for op in entry if isinstance(op, k.LocalId)])

    @cached_property
    def place(self) -> list[Operation] | None:
        """The scalar ops outside of branches that depend on the invocation; None if an op depends on more than the
        index of the invocation in the dispatch, `group * workgroup_size + local`.
        """
        if self.group is None or self.local is None:
            return None
        tainted, pending = {self.group: None, self.local: None}, [self.group, self.local]
        while pending:
            value = pending.pop()
            for op in value.users():
                linear = isinstance(op, k.Scalar) and self._is_linear(op)
                if not linear and not self._is_of_index(value):
                    return None
                if op.parent is self.entry and not isinstance(op, k.Scalar | k.If):
                    return None
                if linear or op.parent is self.entry:
                    new = [result for result in op.results if result not in tainted]
                    tainted |= dict.fromkeys(new)
                    pending += new
        return [op for op in self.entry if isinstance(op, k.Scalar) and op.output in tainted]

    def _is_linear(self, op: k.Scalar) -> bool:
        """Whether the result is a sum of the operands, or a multiple, or a local index of another type."""
        name = op.primitive.name
        known = name == "multiply" and any(k.bits_of(value) is not None for value in op.operands)
        return known or name == "add" or name == "convert" and op.operands[0] is self.local

    def _is_of_index(self, value: Value) -> bool:
        """Whether a sum has a multiple of the index of the invocation, and no other part that tells invocations."""
        terms = {_unconverted(term): count for term, count in sum_of(value).terms.items()}
        group, local = (terms.get(term, 0) for term in (self.group, self.local) if term is not None)
        return group == local * self.workgroup_size

    def of_branch(self, op: k.If) -> Neighbours | None:
        """The code of a branch for the invocations below a limit."""
        condition = op.condition.defining_op
        if not isinstance(condition, k.Scalar) or condition.primitive.name != "compare_lt":
            return None
        if op.outputs or op.parent is not self.entry or len(op.no.block.ops) > 1 or self.place is None:
            return None
        terms = {_unconverted(term): count for term, count in sum_of(condition.operands[0]).terms.items()}
        if self.local is None or self.group is None or terms != {self.group: self.workgroup_size, self.local: 1}:
            return None
        found = self._of(op.yes.block, self.local, self.place)
        return None if found is None else replace(found, zeros=(self.group,), condition=condition.operands)

    def of_loop(self, op: k.For) -> Neighbours | None:
        """The code of a loop over the elements of a row, none of which depends on an element stored before."""
        lower, upper, step = map(k.bits_of, (op.lower, op.upper, op.step))
        shared = self.local is not None and _unconverted(op.lower) is self.local and step == self.workgroup_size
        if op.outputs or upper is None or not (shared or (lower, step) == (0, 1)):
            return None
        found = self._of(op.body.block, op.body.block.arguments[0])
        if found is None or upper % found.count:
            return None
        stored = {store.binding for store in found.stores}
        loads = [one for top in found.ops for one in top.walk() if isinstance(one, k.Load | k.LoadVector)]
        return None if any(load.binding in stored for load in loads) else found

    def _of(self, block: Block, index: Value, before: Sequence[Operation] = ()) -> Neighbours | None:
        """The code of a block, behind the ops `before`, if it can be repeated for neighbours."""
        *ops, _ = block.ops
        stores: list[k.Store] = []
        while ops and isinstance(last := ops[-1], k.Store):
            stores.insert(0, last)
            ops.pop()
        inner = [op for top in ops for op in top.walk()]
        if any(isinstance(op, EFFECTS) for op in inner):
            return None
        count = max((self._count(op, index) for op in stores), default=1)
        iterations = self._iterations(ops)
        if count == 1 or count * len(inner) > MAX_OPS or iterations is None or count * iterations > MAX_ITERATIONS:
            return None
        return Neighbours(index, count, [*before, *ops], stores)

    def _count(self, op: k.Store, index: Value) -> int:
        """The elements of the word that a store writes to, if its first element is that of a multiple of the index."""
        count, whole = self.elements(k.dtype_of(op.value)), sum_of(op.index)
        terms = {_unconverted(value): number for value, number in whole.terms.items()}
        if terms.pop(index, 0) != 1 or any(number % count for number in (whole.constant, *terms.values())):
            return 1
        return count

    def _iterations(self, ops: Sequence[Operation]) -> int | None:
        """Iterations of all loops in these ops; None if a loop has a dynamic size."""
        total = 0
        for op in ops:
            inner = [self._iterations(region.block.ops) for region in op.regions]
            if None in inner:
                return None
            times = 1
            if isinstance(op, k.For):
                lower, upper, step = map(k.bits_of, (op.lower, op.upper, op.step))
                if lower is None or upper is None or not step:
                    return None
                times = max(upper - lower, 0) // step + 1
                total += times
            total += times * sum(count for count in inner if count is not None)
        return total


def _only(values: Sequence[Value]) -> Value | None:
    return values[0] if len(values) == 1 else None


def _unconverted(value: Value) -> Value:
    op = value.defining_op
    return op.operands[0] if isinstance(op, k.Scalar) and op.primitive.name == "convert" else value
