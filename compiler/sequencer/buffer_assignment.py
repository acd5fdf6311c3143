"""Buffer assignment: which resources of a function share memory, and where each lies.

Resources that hold one value at different times form a *group* with one buffer: a block argument and its branch
operands, an in-place update and the updated resource, a copy and its source. A group must not hold two resources that
are needed at the same time. If two are, they stay in separate groups and a copy is missing, which `materialize-copies`
inserts.

A loop argument whose next value is computed while the old one is still read lies in the loop's *state*: the old value
is in the buffer `now`, the next one in `next`, and the two swap at the back edge. The initial value is written before
the loop to the buffer that is `now` in the first iteration.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TypeVar

from orchestrion.compiler.errors import Diagnostic, InternalError
from orchestrion.compiler.flow import dialect as flow
from orchestrion.compiler.ir import util
from orchestrion.compiler.ir.core import Block, BlockArgument, Operation, OpResult, Value
from orchestrion.compiler.ir.dims import Size
from orchestrion.compiler.ir.dominance import Dominance
from orchestrion.compiler.stablehlo.ops.func import Func, Return, result_aliases

from . import hl_seq
from .lifetimes import COMMANDS, Lifetimes

#: Kinds of placements that the function does not own: nothing may be placed there.
EXTERNAL_KINDS = ("argument", "constant", "variable")

Op = TypeVar("Op", bound=Operation)
#: A branch, and its edge into a block.
IncomingEdge = tuple[util.BranchOp, util.Edge]


@dataclass(frozen=True, slots=True)
class Placement:
    """Memory that is given. `kind` -> `key`: argument, result -> its index; constant, variable, made (a global that the
    initializer fills) -> the name of the global; now, next (a loop's state) -> the loop's header block.
    """

    kind: str
    key: int | str | Block


@dataclass(frozen=True, slots=True)
class MissingCopy:
    """An operand that must be replaced by a copy."""

    op: Operation
    index: int

    @property
    def value(self) -> Value:
        return self.op.operands[self.index]


@dataclass(eq=False, slots=True)
class BufferGroup:
    """Resources that share one buffer of `size` bytes; without a `placement` the function owns the buffer."""

    size: Size
    live: int
    members: list[Value] = field(default_factory=list)
    placement: Placement | None = None


class BufferAssignment:
    """The groups of a function or an initializer: `group` for each resource that has bytes, and `missing_copies`."""

    def __init__(self, top: Func | util.Initializer) -> None:
        self.top = top
        self.blocks = top.body.blocks
        self.lifetimes = Lifetimes(self.blocks)
        self.group: dict[Value, BufferGroup] = {}
        self.results: dict[Placement | None, list[Value]] = {}  #: result -> its values, one per return
        self.missing_copies: list[MissingCopy] = []
        self.next: dict[Value, Value] = {}  #: argument of a loop with a state -> its next value
        self.order = {block: index for index, block in enumerate(self.blocks)}
        self.dominance = Dominance()
        self.edges = self._edges()
        self._make_groups()
        self.donors = self._find_donors()
        self._donate()
        if self.missing_copies:
            return
        self._join_updates()
        for block in self.blocks[1:]:
            self._join_arguments(block)
        self._find_missing_copies()
        self._join_clones()
        self._reuse_dying_arguments()

    def groups(self) -> list[BufferGroup]:
        """Each group once, in the order of their first values."""
        return list({id(group): group for group in self.group.values()}.values())

    def _make_groups(self) -> None:
        for value, live in self.lifetimes.of.items():
            size = hl_seq.size_of(value.type)
            if size != 0:
                self.group[value] = BufferGroup(size, live, [value])
        for block in self.blocks:
            for op in block:
                self._set_placement(op)

    def _set_placement(self, op: Operation) -> None:
        match op:
            case hl_seq.Import():
                assert isinstance(op.source, BlockArgument)
                self._place(op.output, Placement("argument", op.source.index))
            case util.GlobalLoad():
                kind = hl_seq.lifetime_of(op.value.type)
                self._place(op.value, Placement(kind, op.ref.root))
            case util.GlobalStore() if isinstance(self.top, util.Initializer):
                self._place_store(op)
            case Return():
                for index, value in enumerate(op.values):
                    assert isinstance(value.defining_op, hl_seq.Export)
                    self._place_result(value.defining_op, Placement("result", index))

    def _place_store(self, store: util.GlobalStore) -> None:
        """Places a computed value in the memory of the global that it is stored to; other stored values are copied."""
        group = self.group.get(store.value)
        if group is not None and group.placement is None and isinstance(store.value.defining_op, COMMANDS):
            group.placement = Placement("made", store.ref.root)

    def _place_result(self, export: hl_seq.Export, placement: Placement) -> None:
        """Values that several returns give for one result must not be live in its memory at the same time."""
        group = self.group.get(export.source)
        if group is not None:
            if self._is_occupied(placement, group):
                self.missing_copies.append(MissingCopy(export, 0))
            self.results.setdefault(placement, []).append(export.source)
            group.placement = placement

    def _is_occupied(self, placement: Placement | None, *wanted: BufferGroup) -> bool:
        """Whether other values occupy the memory of a result while these groups are live."""
        others = [self.group[value] for value in self.results.get(placement, ()) if self.group[value] not in wanted]
        return any(group.live & other.live for group in wanted for other in others)

    def _place(self, value: Value, placement: Placement) -> None:
        if value in self.group:
            self.group[value].placement = placement

    def _merge(self, a: Value, b: Value, allowed: int = 0) -> bool:
        """Merges the groups of two values unless both are live outside `allowed`. Returns whether it did."""
        if not self._may_merge(a, b, allowed):
            return False
        one, other = self.group[a], self.group[b]
        if one is not other:
            one.placement = one.placement or other.placement
            one.live |= other.live
            one.members += other.members
            for value in other.members:
                self.group[value] = one
        return True

    def _may_merge(self, a: Value, b: Value, allowed: int = 0) -> bool:
        one, other = self.group[a], self.group[b]
        if one is other:
            return True
        if one.size != other.size or (one.live & other.live & ~allowed) or not _compatible(one, other):
            return False
        placement = one.placement or other.placement
        if self._is_occupied(placement, one, other) or not self._fits_state(placement, [*one.members, *other.members]):
            return False
        return placement not in self.donors or self._is_handed_over(self.donors[placement], one, other)

    def _fits_state(self, placement: Placement | None, members: list[Value]) -> bool:
        """Whether a loop's state stays correct with these members in one of its two buffers."""
        if placement is None or not isinstance(placement.key, Block):
            return True
        pairs = [(self.group[argument], self.group[value]) for argument, value in self.next.items()]
        pair = next(p for p in pairs if any(g is self.group[m] for g in p for m in members if g.placement == placement))
        if placement.kind == "now":
            return self._may_alternate(placement.key, members, pair[1].members)
        return self._may_alternate(placement.key, pair[0].members, members)

    def _join_updates(self) -> None:
        for op in self._ops(flow.Dispatch):
            for argument, output in op.updates():
                if argument in self.group and not self._take_over(op, argument, output):
                    self.missing_copies.append(MissingCopy(op, op.arguments.index(argument)))

    def _take_over(self, op: flow.Dispatch, argument: Value, output: OpResult) -> bool:
        """Places an output in the memory of an argument whose last use is this dispatch."""
        now = self._position(op)
        readers = [user for user in argument.users() if self.lifetimes.position.get(user) == now]
        if readers != [op] or list(op.operands).count(argument) != 1 or self.lifetimes.of[argument] >> now + 1 & 1:
            return False
        return self._merge(output, argument, allowed=1 << self._position(op))

    def _position(self, op: Operation) -> int:
        return self.lifetimes.position[op]

    def _edges(self) -> dict[Block, list[IncomingEdge]]:
        """The incoming edges of each block; back edges last, since they may need a state."""
        ways: dict[Block, list[IncomingEdge]] = {block: [] for block in self.blocks}
        for branch in (block.last for block in self.blocks):
            if isinstance(branch, util.BranchOp):
                for edge in branch.edges:
                    ways[edge.target].append((branch, edge))
        return {block: sorted(found, key=lambda way: self._is_back(way[0], block)) for block, found in ways.items()}

    def _join_arguments(self, block: Block) -> None:
        for argument in block.arguments:
            if argument in self.group:
                self._join(argument)

    def _join(self, argument: BlockArgument) -> None:
        """Places a block argument and its branch operands in one buffer, or in the two buffers of a loop's state."""
        ways = self._incoming(argument)
        back = [way for way in ways if self._is_back(way.op, argument.block)]
        for way in ways:
            if way not in back:
                self._merge(argument, way.value)
        if all(self._may_merge(argument, way.value) for way in back):
            for way in back:
                self._merge(argument, way.value)
        if len(back) == 1 and self._overwrite(argument, back[0].value):
            return
        for way in back:
            if argument in self.next:
                self._merge(self.next[argument], way.value)
            else:
                self._alternate_buffers(argument, way.value)

    def _overwrite(self, argument: BlockArgument, given: Value) -> bool:
        """Places a loop's next value in the memory of its argument, if the op that computes it allows that."""
        op = given.defining_op
        if not isinstance(op, flow.Dispatch):
            return False
        return any(a is argument and o is given and self._take_over(op, a, o) for a, o in op.reuses())

    def _find_missing_copies(self) -> None:
        found = [m for block in self.blocks[1:] for a in block.arguments if a in self.group for m in self._missing(a)]
        self.missing_copies += dict.fromkeys(found)

    def _missing(self, argument: BlockArgument) -> list[MissingCopy]:
        """The branch operands that lie elsewhere than the block argument, and so need a copy.

        If a state is impossible because values of the loop reach blocks before it, those operands are copied instead.
        If an earlier copy did not help, the other operands need copies: a group formed earlier blocks the merge.
        """
        ways = self._incoming(argument)
        failed = [way for way in ways if not self._arrives(argument, way)]
        if any(self._is_back(missing.op, argument.block) for missing in failed):
            brought = [way for way in self._carried_out_of_loop(argument) if not _is_copy_for_branch(way)]
            if brought:
                return brought
        if any(map(_is_copy_for_branch, failed)):
            failed = [way for way in ways if not _is_copy_for_branch(way)] or self._passed_on(argument)
            if not failed:
                fault = Diagnostic("no copies give this block its arguments", argument.block.ops[0].loc)
                raise InternalError("materialize-copies", [fault])
        return failed

    def _passed_on(self, argument: BlockArgument) -> list[MissingCopy]:
        """Operands of other branches that share memory with an argument, and so prevent a state for it."""
        uses = [use for value in self.group[argument].members for use in value.uses]
        given = [MissingCopy(op, at) for op, at in uses if isinstance(op, util.BranchOp) and at >= op.choosing]
        return [way for way in given if not _is_copy_for_branch(way)]

    def _incoming(self, argument: BlockArgument) -> list[MissingCopy]:
        """The operands that branches pass to an argument."""
        return [MissingCopy(branch, edge.start + argument.index) for branch, edge in self.edges[argument.block]]

    def _carried_out_of_loop(self, argument: BlockArgument) -> list[MissingCopy]:
        """Operands that a loop passes to arguments of blocks before it, and that share memory with one of its own."""
        header, members = argument.block, self.group[argument].members
        before = [v for v in members if isinstance(v, BlockArgument) and self.is_before(v, header)]
        ways = [way for value in before if value.block is not self.blocks[0] for way in self._incoming(value)]
        return [way for way in ways if way.value in members and not self.is_before(way.value, header)]

    def _arrives(self, argument: BlockArgument, way: MissingCopy) -> bool:
        alternates = argument in self.next and self._is_back(way.op, argument.block)
        return self.group[self.next[argument] if alternates else argument] is self.group[way.value]

    def _is_back(self, branch: Operation, block: Block) -> bool:
        assert branch.parent is not None
        return self.order[branch.parent] >= self.order[block]

    def _alternate_buffers(self, argument: BlockArgument, given: Value) -> None:
        """Places a loop argument and its next value in the loop's state."""
        header, now, after = argument.block, self.group[argument], self.group[given]
        if now is after or now.placement or after.placement or given in header.arguments:
            return
        if self._may_alternate(header, now.members, after.members):
            now.placement, after.placement = Placement("now", header), Placement("next", header)
            self.next[argument] = given

    def _may_alternate(self, header: Block, now: list[Value], after: list[Value]) -> bool:
        """Whether these values may lie in a loop's state.

        Values computed in or after the loop lie in one of two buffers, which are known only to blocks that the header
        dominates. Values computed before the loop lie in the first buffer. So no value may pass from the former to the
        latter, not even through an outer loop, and no value before the loop may be live while the other buffer is in
        use.
        """
        before = [value for value in now if self.is_before(value, header)]
        inside = [value for value in now if not self.is_before(value, header)] + after
        if not all(self._is_inside(value, header) for value in inside):
            return False
        live = 0
        for value in after:
            live |= self.lifetimes.of[value]
        if any(self.lifetimes.of[value] & live for value in before):
            return False
        arguments = [value for value in before if isinstance(value, BlockArgument)]
        given = {way.value for value in arguments for way in self._incoming(value)}
        return given.isdisjoint(inside)

    def _is_inside(self, value: Value, header: Block) -> bool:
        assert value.parent_block is not None
        return self.dominance.dominates(header, value.parent_block)

    def is_before(self, value: Value, header: Block) -> bool:
        """Whether a value is defined before a loop."""
        assert value.parent_block is not None
        return self.order[value.parent_block] < self.order[header]

    def _join_clones(self) -> None:
        for op in self._ops(hl_seq.Clone):
            if op.output in self.group:
                self._merge(op.output, op.source, allowed=1 << self._position(op))

    def _reuse_dying_arguments(self) -> None:
        """Places outputs in the memory of arguments that die at their dispatch."""
        for op in self._ops(flow.Dispatch):
            for argument, output in op.reuses():
                if argument in self.group and self._take_over(op, argument, output):
                    break

    def _find_donors(self) -> dict[Placement | None, BufferGroup]:
        """result -> the argument whose memory the caller may pass for it"""
        if not isinstance(self.top, Func):
            return {}
        found: dict[Placement | None, BufferGroup] = {}
        for result, argument in result_aliases(self.top.arg_attrs).items():
            source = next((g for g in self.group.values() if g.placement == Placement("argument", argument)), None)
            if source is not None:
                found[Placement("result", result)] = source
        return found

    def _donate(self) -> None:
        """A result in the memory of an argument must not be written while the argument is live."""
        for export in self._ops(hl_seq.Export):
            target = self.group.get(export.source)
            if target is not None and target.placement in self.donors:
                if not self._is_handed_over(self.donors[target.placement], target):
                    self.missing_copies.append(MissingCopy(export, 0))

    def _is_handed_over(self, source: BufferGroup, *targets: BufferGroup) -> bool:
        """Whether `source` and the targets overlap nowhere, or only at an op that takes over or copies its memory."""
        both = 0
        for target in targets:
            both |= source.live & target.live
        members = [member for target in targets for member in target.members]
        if not both:
            return True
        for member in members:
            op = member.defining_op
            if op is None or 1 << self._position(op) != both:
                continue
            pairs = [*op.updates(), *op.reuses()] if isinstance(op, flow.Dispatch) else []
            if isinstance(op, hl_seq.Clone):
                return op.source in source.members  # onto itself: concurrent readers see no change
            readers = [
                u for m in source.members for u in m.users() if self.lifetimes.position.get(u) == self._position(op)
            ]
            if any(a in source.members for a, o in pairs if o is member):
                return readers == [op]
        return False

    def _ops(self, kind: type[Op]) -> Iterator[Op]:
        """The ops of a class, in text order."""
        return (op for block in self.blocks for op in block if isinstance(op, kind))


def _compatible(one: BufferGroup, other: BufferGroup) -> bool:
    """Whether two groups may share memory: not if both have placements, nor in memory that others own."""
    placements = [group.placement for group in (one, other) if group.placement is not None]
    return len(placements) < 2 and not any(placement.kind in EXTERNAL_KINDS for placement in placements)


def _is_copy_for_branch(way: MissingCopy) -> bool:
    """Whether the operand is a copy that only this branch uses."""
    copy = way.value.defining_op
    here = isinstance(copy, hl_seq.Clone) and copy.parent is way.op.parent
    return here and list(way.value.uses) == [(way.op, way.index)]
