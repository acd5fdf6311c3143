"""Divides the code of a workgroup into segments: ops between two barriers, which a loop over the invocations runs.

A value is *common* if it has one value in the workgroup and needs no memory: it is computed once, in front of segments.
A value that other segments need is *cheap*, integer arithmetic on common values and the number of the invocation, which
each segment repeats, or it is *kept*: an array on the stack has it for each invocation.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass, field, replace

from orchestrion.compiler.ir.core import Block, Operation, Value
from orchestrion.compiler.kernel import dialect as k
from orchestrion.schema.dtypes import FLOAT

from .forms import Form, Forms

#: more lanes than a workgroup has: only values that no lane changes are then the same in all
_WORKGROUP = 1 << 40
#: most ops of a cheap value
_CHEAP = 12


@dataclass(slots=True)
class Analysis:
    """Which values of a body are common, and which are cheap. `place`: the value that numbers the invocations."""

    block: Block
    place: Value | None
    forms: Forms = field(init=False)
    _costs: dict[Value, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        numbers = [op.output for top in self.block for op in top.walk() if isinstance(op, k.LocalId)]
        self.forms = Forms(_WORKGROUP, dict.fromkeys(numbers, Form(1)), whole_workgroup=True)
        self.forms.visit(self.block)

    def is_common(self, value: Value) -> bool:
        """Whether a value is computed once per workgroup."""
        return self.forms[value].stride == 0

    def is_cheap(self, value: Value) -> bool:
        """Whether segments repeat the computation of a value that is not common."""
        return self._cost(value) <= _CHEAP

    def _cost(self, value: Value) -> int:
        if value not in self._costs:
            op = value.defining_op
            if value is self.place or self.is_common(value) or isinstance(op, k.LocalId):
                self._costs[value] = 0
            elif isinstance(op, k.Scalar) and k.dtype_of(value).kind != FLOAT:
                self._costs[value] = 1 + sum(map(self._cost, op.operands))
            else:
                self._costs[value] = _CHEAP + 1
        return self._costs[value]


def flat_place(block: Block, size: int) -> tuple[Value, frozenset[Operation]] | None:
    """The number of the invocation in the dispatch, and the ops that compute it; None if the code needs the number of
    the workgroup, or of the invocation in it, for anything else.
    """
    ops = [op for top in block for op in top.walk()]
    groups, locals = ([op for op in ops if isinstance(op, kind)] for kind in (k.WorkgroupId, k.LocalId))
    if len(groups) != 1 or len(locals) != 1 or any(isinstance(op, k.Barrier | k.Shared) for op in ops):
        return None
    local = locals[0].output
    path: set[Operation] = {groups[0], locals[0]}
    user = _only_user(local)
    if isinstance(user, k.Scalar) and user.primitive.name == "convert":
        path.add(user)
        local, user = user.output, _only_user(user.output)
    product = _only_user(groups[0].output)
    if not isinstance(user, k.Scalar) or user.primitive.name != "add" or user.parent is not block:
        return None
    if not isinstance(product, k.Scalar) or product.primitive.name != "multiply":
        return None
    factor = next((v.defining_op for v in product.operands if v is not groups[0].output), None)
    if not isinstance(factor, k.Constant) or factor.bits != size or _only_user(product.output) is not user:
        return None
    if set(user.operands) != {local, product.output}:
        return None
    return user.output, frozenset((*path, product, user))


def _only_user(value: Value) -> Operation | None:
    return next(iter(value.uses))[0] if len(value.uses) == 1 else None


@dataclass(frozen=True, slots=True)
class Segment:
    """Ops that a loop over invocations runs. `limits`: invocations below each of these values run them; `conditions`:
    if one is false, none does. `first_only`: only the first invocation does.
    """

    ops: tuple[Operation, ...]
    limits: tuple[Value, ...] = ()
    conditions: tuple[Value, ...] = ()
    first_only: bool = False


def segments_of(ops: Sequence[Operation], analysis: Analysis) -> list[Segment]:
    """Divides the ops between two barriers, so that each condition on the number of the invocation stands alone."""
    found: list[Segment] = []
    pending: list[Operation] = []
    for op in ops:
        limited = _limited(op, analysis)
        if limited is None:
            pending.append(op)
            continue
        before, own = _split(pending, op)
        if before:
            found.append(Segment(tuple(before)))
        found.append(replace(limited, ops=(*own, *limited.ops)))
        pending = []
    return [*found, Segment(tuple(pending))] if pending else found


def _limited(op: Operation, analysis: Analysis) -> Segment | None:
    """The segment of a branch that invocations below a limit take; None for any other op."""
    if not isinstance(op, k.If) or op.outputs or op.no.block.first is not op.no.block.last:
        return None
    limits, conditions, first_only = [], [], False
    for value in _conjuncts(op.condition):
        test = value.defining_op
        if analysis.is_common(value):
            conditions.append(value)
        elif not isinstance(test, k.Scalar) or not _is_number(test.operands[0], analysis):
            return None
        elif test.primitive.name == "compare_lt" and analysis.is_common(test.operands[1]):
            limits.append(test.operands[1])
        elif test.primitive.name == "compare_eq" and _is_zero(test.operands[1]) and analysis.place is None:
            first_only = True
        else:
            return None
    if not limits and not first_only:
        return None
    return Segment(tuple(op.yes.block), tuple(limits), tuple(conditions), first_only)


def _is_number(value: Value, analysis: Analysis) -> bool:
    """Whether a value is the number of the invocation."""
    if analysis.place is not None:
        return value is analysis.place
    return isinstance(value.defining_op, k.LocalId)


def _is_zero(value: Value) -> bool:
    return isinstance(value.defining_op, k.Constant) and value.defining_op.bits == 0


def _conjuncts(value: Value) -> list[Value]:
    op = value.defining_op
    if isinstance(op, k.Scalar) and op.primitive.name == "and" and str(value.type) == "i1":
        return [part for operand in op.operands for part in _conjuncts(operand)]
    return [value]


def _split(pending: Sequence[Operation], branch: Operation) -> tuple[list[Operation], list[Operation]]:
    """Ops in front of a branch: those that stay there, and those that only the branch needs."""
    writes = any(_writes(op) for op in pending)
    own: list[Operation] = []
    inside = {branch}
    for op in reversed(pending):
        moves = isinstance(op, k.Scalar | k.Call) or not writes
        if moves and not any(is_used_outside(value, inside) for value in op.results):
            own.append(op)
            inside.add(op)
    return [op for op in pending if op not in inside], own[::-1]


def _top(op: Operation | None, ops: Container[Operation]) -> Operation | None:
    """The op of a set that an op is, or is inside of; None if there is none."""
    while op is not None and op not in ops:
        op = op.parent_op
    return op


def _writes(op: Operation) -> bool:
    return any(k.writes(inner) for inner in op.walk())


def is_used_outside(value: Value, ops: Container[Operation]) -> bool:
    """Whether another op than these, and those inside of them, uses a value."""
    return any(_top(user, ops) is None for user, _ in value.uses)
