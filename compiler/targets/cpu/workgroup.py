"""Divides the code of a workgroup into segments: ops between two barriers, which a loop over the invocations runs.

A value is *common* if it has one value in the workgroup and needs no memory: it is computed once, in front of segments.
A value that other segments need is *cheap*, integer arithmetic on common values and the number of the invocation, which
each segment repeats, or it is *kept*: an array on the stack has it for each invocation.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass, field, replace

from orchestrion.compiler.ir.core import Block, Operation, Value
from orchestrion.compiler.kernel import dialect as k
from orchestrion.schema.dtypes import FLOAT

from .forms import VARYING, Form, Forms, has_barrier
from .neighbours import conjuncts

#: more lanes than a workgroup has: only values that no lane changes are then the same in all
_WORKGROUP = 1 << 40
#: most ops of a cheap value
_CHEAP = 12
#: vectors at once, preferred first, in loops that only load and reduce neighbours, and the most ops of such loops. The
#: steps of a reduction wait for each other, and longer pieces of a row of memory are read at once
INTERLEAVED, MOST_INTERLEAVED = (8, 4, 2), 64
#: most ops of loops that change rows of memory, as scatters have them, which also read longer pieces of rows
MOST_MOVED = 96
#: most vectors of sums of more than 4 vectors at once: half of the fewest registers
MOST_SUMS = 8
#: ops that are computed once per workgroup if their results are common
_COMMON = (k.Scalar, k.Call, k.ByteOffset, k.HasPairProducts, k.PrefersPanels)
_Facts = tuple[type[Operation], ...]
#: ops whose result is a fact of a level
_FACTS: _Facts = (k.HasPairProducts, k.PrefersPanels)
#: ops that have no place in segments
_ELSEWHERE = (k.Constant, k.WorkgroupId, k.LocalId, k.Parameter, k.Shared, k.Barrier, k.Yield, k.Return)


@dataclass(slots=True)
class Analysis:
    """Which values of a body are common, and which are cheap. `place`: the value that numbers the invocations."""

    block: Block
    place: Value | None
    forms: Forms = field(init=False)
    _costs: dict[Value, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        numbers = [op.output for op in self.block.walk(k.LocalId)]
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
    ops = list(block.walk())
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
    factor = next((k.bits_of(v) for v in product.operands if v is not groups[0].output), None)
    if factor != size or _only_user(product.output) is not user:
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
    for value in conjuncts(op.condition):
        test = value.defining_op
        if analysis.is_common(value):
            conditions.append(value)
        elif not isinstance(test, k.Scalar) or not _is_number(test.operands[0], analysis):
            return None
        elif test.primitive.name == "compare_lt" and analysis.is_common(test.operands[1]):
            limits.append(test.operands[1])
        elif test.primitive.name == "compare_eq" and k.bits_of(test.operands[1]) == 0 and analysis.place is None:
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


class WorkgroupOps(ABC):
    """The ops of an entry in the order in which a workgroup runs them. A subclass renders them.

    `size`: invocations of a workgroup. `place`: the number of the invocation in the dispatch if the code needs no other
    number; one loop then runs all invocations of all workgroups, and `skipped` are the ops that compute it.
    `most_lanes`: invocations that may run at once; `masks`: whether also where only some of them access memory,
    `versions`: where it may be that all of them do.
    `absent`: ops that are false; branches on them are left out. `joins`: whether calls for several vectors at once cost
    less, and versions for two vectors at once.
    """

    def __init__(
        self,
        block: Block,
        size: int,
        most_lanes: int,
        masks: bool,
        versions: bool = False,
        absent: _Facts = _FACTS,
        joins: bool = False,
    ) -> None:
        self.block, self.size, self.most_lanes, self.absent, self.joins = block, size, most_lanes, absent, joins
        self.masks, self.versions = masks, versions
        self.place: Value | None
        self.skipped: frozenset[Operation]
        self.local_ids = [op.output for op in block.walk(k.LocalId)]
        self.place, self.skipped = flat_place(block, self.size) or (None, frozenset())
        self.analysis = Analysis(block, self.place)
        if self.place is not None and len(segments_of(list(filter(self._is_own, block)), self.analysis)) > 1:
            self.place, self.skipped = None, frozenset()
            self.analysis = Analysis(block, None)
        #: values that are computed once per workgroup, and addresses of memory
        self.names: dict[Value, str] = {}
        #: value -> its array on the stack
        self.kept: dict[Value, str] = {}
        self.pending: list[Operation] = []

    @abstractmethod
    def _common(self, op: Operation) -> None:
        """Renders an op whose result is computed once per workgroup."""

    @abstractmethod
    def _reserve_shared(self, op: k.Shared) -> None:
        """Reserves a shared array."""

    @abstractmethod
    def _loop(self, op: k.For) -> None:
        """A loop with barriers, which all invocations run together."""

    @abstractmethod
    def _branch(self, op: k.If) -> None:
        """A branch with barriers, which all invocations take alike."""

    @abstractmethod
    def _reserve(self, value: Value) -> str:
        """An array with a value of each invocation."""

    @abstractmethod
    def _run(self, segment: Segment, keeps: Sequence[tuple[Value, str]]) -> None:
        """A loop over the invocations that run a segment. `keeps`: values that it stores to arrays."""

    def _copy(self, pairs: Sequence[tuple[Value, str]]) -> None:
        """Stores values of each invocation to arrays."""
        if pairs:
            self._run(Segment(()), pairs)

    def _most(self, segment: Segment) -> int:
        """The most invocations that run a segment, by those of its limits that are constants."""
        known = [bits for limit in segment.limits if (bits := k.bits_of(limit)) is not None]
        return min([self.size, *known, *([1] if segment.first_only else [])])

    def _workgroup(self, block: Block) -> None:
        """The ops of a block, for all invocations of a workgroup."""
        for op in block:
            if isinstance(op, k.Barrier | k.Yield | k.Return):
                self._flush()
            elif isinstance(op, k.Shared):
                if any(not self._is_in_left_out(user) for user, _ in op.output.uses):
                    self._reserve_shared(op)
            elif isinstance(op, k.For) and has_barrier(op):
                self._flush()
                self._loop(op)
            elif isinstance(op, k.If) and has_barrier(op):
                self._flush()
                self._workgroup(op.no.block) if self._is_left_out(op) else self._branch(op)
            elif self._is_own(op):
                self.pending.append(op)
            elif op not in self.skipped and isinstance(op, _COMMON) and self.analysis.is_common(op.output):
                self._common(op)

    def _is_left_out(self, op: k.If) -> bool:
        """Whether a branch without results is on an op that is false."""
        return not op.outputs and any(isinstance(value.defining_op, self.absent) for value in conjuncts(op.condition))

    def _is_in_left_out(self, op: Operation) -> bool:
        """Whether a branch that is left out contains an op."""
        while (outer := op.parent_op) is not None:
            if isinstance(outer, k.If) and op.parent is outer.yes.block and self._is_left_out(outer):
                return True
            op = outer
        return False

    def _is_own(self, op: Operation) -> bool:
        """Whether segments run an op, and do not just repeat it where its result is needed."""
        if op in self.skipped or isinstance(op, _ELSEWHERE):
            return False
        if isinstance(op, _COMMON) and self.analysis.is_common(op.output):
            return False
        return not (isinstance(op, k.Scalar) and self.analysis.is_cheap(op.output))

    def _flush(self) -> None:
        """Ends the ops between two barriers."""
        pending, self.pending = self.pending, []
        for segment in segments_of(pending, self.analysis):
            self._segment(segment)

    def _segment(self, segment: Segment) -> None:
        own = set(segment.ops)
        results = [value for op in segment.ops for value in op.results]
        keeps = [(value, self.kept.setdefault(value, "")) for value in results if self._must_keep(value, own)]
        for value, _ in keeps:
            self.kept[value] = self._reserve(value)
        self._run(segment, [(value, self.kept[value]) for value, _ in keeps])

    def _must_keep(self, value: Value, own: set[Operation]) -> bool:
        return is_used_outside(value, own) and self.place is None

    def _needed(self, segment: Segment, kept: Sequence[Value]) -> list[Value]:
        """Values from outside that the ops of a segment use, and those of `kept`."""
        inner = [op for top in segment.ops for op in top.walk()]
        made: set[Value] = {value for op in inner for value in op.results}
        made |= {v for op in inner for region in op.regions for v in region.block.arguments}
        used = [value for op in inner for value in op.operands]
        found = dict.fromkeys(value for value in (*used, *kept) if value not in made)
        return [value for value in found if not self._is_known(value)]

    def _is_known(self, value: Value) -> bool:
        return isinstance(value.defining_op, k.Constant | k.LocalId) or value is self.place or value in self.names

    def _cheap_ops(self, values: Iterable[Value]) -> list[Operation]:
        """The ops that compute cheap values, in order."""
        found: dict[Operation, None] = {}

        def visit(value: Value) -> None:
            op = value.defining_op
            if value in self.kept or self._is_known(value) or not isinstance(op, k.Scalar) or op in found:
                return
            for operand in op.operands:
                visit(operand)
            found[op] = None

        for value in values:
            visit(value)
        return list(found)

    def _ways(self, ops: Sequence[Operation], kept: Sequence[Value]) -> list[Forms]:
        """The forms of a segment for each number of lanes that it is run with, the greatest first: several vectors at
        once if that pays, and the best vector. Empty if its invocations run one by one.
        """
        best = self._best_vector(ops, kept)
        if best is None:
            return []
        sums = [op for op in ops if isinstance(op, k.For) and op.start]
        moves = [op for op in ops if isinstance(op, k.For) and self.place is not None and not op.start and _writes(op)]
        loops, most = (sums, MOST_INTERLEAVED) if sums else (moves, MOST_MOVED)
        inner = [op for loop in loops for op in loop.walk()]
        calls = self.joins and any(isinstance(op, k.Call) for op in (*ops, *inner))
        versions = self.versions and self.joins and not (best.always_masked or loops or calls)
        plain = not (best.gathers or (best.masked and not versions) or best.shuffled) and len(inner) <= most
        if not plain or not (loops or calls or self.place is None):
            return [best]
        carried = max((len(loop.start) for loop in loops), default=MOST_SUMS)
        counts = [count for count in INTERLEAVED if count <= 4 or (count * carried <= MOST_SUMS and not calls)]
        if best.guards and any(isinstance(op, k.Call) for top in ops for op in top.walk()):
            return [best]  # functions are copied to each use, and guarded loads have several
        counts = [2] if best.masked else counts
        wider = (self._visited(count * best.width, ops, kept) for count in counts)
        fitting = (
            forms
            for forms in wider
            if not (self.size % forms.width or forms.gathers)
            and not (forms.always_masked if best.masked else forms.masked)
        )
        wide = next(fitting, None)
        return [best] if wide is None else [wide, best]

    def _best_vector(self, ops: Sequence[Operation], kept: Sequence[Value]) -> Forms | None:
        """The forms for the fewest accesses that are no neighbours, then for the most lanes."""
        best: Forms | None = None
        width = self.most_lanes
        while width >= min(4, self.most_lanes):
            if self.size % width == 0:
                forms = self._visited(width, ops, kept)
                masked = forms.always_masked if self.versions else forms.masked
                if forms.explicit or forms.diverges or (masked and not self.masks):
                    break
                if best is None or forms.gathers < best.gathers:
                    best = forms
                if not best.gathers:
                    break
            width //= 2
        return best

    def _visited(self, width: int, ops: Sequence[Operation], kept: Sequence[Value]) -> Forms:
        places = [self.place] if self.place is not None else self.local_ids
        seeds = {**dict.fromkeys(kept, VARYING), **dict.fromkeys(places, Form(1, width))}
        decides = self.versions and self.joins
        forms = Forms(width, seeds, guarded=self.masks or self.versions, decides=decides)
        forms.visit(ops)
        return forms
