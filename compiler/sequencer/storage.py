"""Which resources of a function share memory, and what memory that is.

Resources that are one thing at different times (a block argument and what branches give it, an update in place and what
it updates, a copy and its source) form a *group* with one piece of memory, as long as no two of them are needed at one
time. Where they are, the group stays apart and a copy is missing, which `materialize-copies` makes.

A loop's argument whose next value must be made while the old one is still read goes into the loop's *state*: the old
value lies in the buffer `now`, the next in `next`, and the two swap at the back edge. Before the loop, the first value
is put where `now` is at the first turn.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from orchestrion.compiler.flow import util
from orchestrion.compiler.ir.attributes import ArrayAttr, DictAttr, IntegerAttr
from orchestrion.compiler.ir.core import Block, BlockArgument, Operation, OpResult, Value
from orchestrion.compiler.ir.dominance import Dominance, successors
from orchestrion.compiler.stablehlo.func import Func, Return

from . import hl_seq
from .lifetimes import COMMANDS, Lifetimes

#: kinds of homes that belong to others, which nothing may be put into
FOREIGN = ("argument", "constant", "variable")


@dataclass(frozen=True, slots=True)
class Home:
    """Memory that is given. `kind` -> `key`: argument, result -> its number; constant, variable, made (a global that
    the initializer fills) -> the name of the global; now, next (a loop's state) -> the block where the loop begins.
    """

    kind: str
    key: int | str | Block


@dataclass(frozen=True, slots=True)
class Missing:
    """An operand that must be a copy of what it is."""

    op: Operation
    index: int


@dataclass(eq=False, slots=True)
class Group:
    """Resources in one piece of memory of `size` bytes; without a `home` it is of this function alone."""

    size: int
    live: int
    members: list[Value] = field(default_factory=list)
    home: Home | None = None


class Storage:
    """The groups of a function or an initializer. `group[value]` for each resource that has bytes; `missing` copies."""

    def __init__(self, top: Func | util.Initializer) -> None:
        self.top = top
        self.blocks = top.body.blocks
        self.lifetimes = Lifetimes(self.blocks)
        self.group: dict[Value, Group] = {}
        self.missing: list[Missing] = []
        self.next: dict[Value, Value] = {}  #: argument of a loop with a state -> its next value
        self.order = {block: index for index, block in enumerate(self.blocks)}
        self.dominance = Dominance()
        self.headers = {
            target for block in self.blocks for target in successors(block) if self.order[target] <= self.order[block]
        }
        self._make_groups()
        self.donors = self._donors()
        self._donate()
        if self.missing:
            return
        self._tie()
        for block in self.blocks[1:]:
            self._join_arguments(block)
        self._join_clones()
        self._reuse()

    def groups(self) -> list[Group]:
        """Each once, in the order of their first values."""
        return list({id(group): group for group in self.group.values()}.values())

    def _make_groups(self) -> None:
        for value, live in self.lifetimes.of.items():
            size = hl_seq.size_of(value.type)
            if size:
                self.group[value] = Group(size, live, [value])
        for block in self.blocks:
            for op in block:
                self._give_home(op)

    def _give_home(self, op: Operation) -> None:
        match op:
            case hl_seq.Import():
                assert isinstance(op.source, BlockArgument)
                self._place(op.output, Home("argument", op.source.index))
            case util.GlobalLoad():
                kind = hl_seq.lifetime_of(op.value.type)
                self._place(op.value, Home(kind, op.ref.root))
            case util.GlobalStore() if isinstance(self.top, util.Initializer):
                self._place_store(op)
            case Return():
                for index, value in enumerate(op.values):
                    assert isinstance(value.defining_op, hl_seq.Export)
                    self._place(value.defining_op.source, Home("result", index))
            case _:
                pass

    def _place_store(self, store: util.GlobalStore) -> None:
        """What an initializer makes for a global is made in its memory; what it has from elsewhere is copied there."""
        group = self.group.get(store.value)
        if group is not None and group.home is None and isinstance(store.value.defining_op, COMMANDS):
            group.home = Home("made", store.ref.root)

    def _place(self, value: Value, home: Home) -> None:
        if value in self.group:
            self.group[value].home = home

    def _merge(self, a: Value, b: Value, allowed: int = 0) -> bool:
        """One group for two values, unless both are needed at another time than `allowed`."""
        one, other = self.group[a], self.group[b]
        if one is other:
            return True
        if one.size != other.size or (one.live & other.live & ~allowed) or not _compatible(one, other):
            return False
        home = one.home or other.home
        if home in self.donors and not self._handed_over(self.donors[home], one, other):
            return False
        one.home = home
        one.live |= other.live
        one.members += other.members
        for value in other.members:
            self.group[value] = one
        return True

    def _tie(self) -> None:
        for op in self._commands():
            if not isinstance(op, hl_seq.Dispatch):
                continue
            for argument, output in op.updates():
                if argument in self.group and not self._take_over(op, argument, output):
                    self.missing.append(Missing(op, op.arguments.index(argument)))

    def _take_over(self, op: hl_seq.Dispatch, argument: Value, output: OpResult) -> bool:
        """Puts an output into the memory of an argument that nobody else needs any more."""
        readers = [user for user in argument.users() if self.lifetimes.position.get(user) == self._now(op)]
        if readers != [op] or list(op.operands).count(argument) != 1:
            return False
        return self._merge(output, argument, allowed=1 << self._now(op))

    def _now(self, op: Operation) -> int:
        return self.lifetimes.position[op]

    def _join_arguments(self, block: Block) -> None:
        """A block's arguments with what branches give them; back edges last, as they may need a state."""
        edges = [(branch, edge) for branch in self._branches() for edge in branch.edges if edge.target is block]
        edges.sort(key=lambda pair: self._is_back(pair[0], block))
        for argument in block.arguments:
            if argument not in self.group:
                continue
            given = [(branch, edge.values[argument.index], edge.start + argument.index) for branch, edge in edges]
            failed = [way for way in given if not self._join(argument, way[1], way[0])]
            if any(_is_fresh(value, branch) for branch, value, _ in failed):  # what was joined first is in the way
                failed = [way for way in given if not _is_fresh(way[1], way[0])]
            self.missing += [Missing(branch, index) for branch, _, index in failed]

    def _join(self, argument: BlockArgument, given: Value, branch: Operation) -> bool:
        if self._leaves_a_loop(given, argument.block):
            return False
        if self._merge(argument, given):
            return True
        return self._is_back(branch, argument.block) and self._alternate(argument, given)

    def _leaves_a_loop(self, value: Value, block: Block) -> bool:
        """Whether a loop's argument goes where control may come from elsewhere, too.

        It lies in the one buffer of the loop's state or in the other, which only those know who come out of the loop.
        """
        if not isinstance(value, BlockArgument) or value.block is block or value.block not in self.headers:
            return False
        return not self.dominance.dominates(value.block, block)

    def _branches(self) -> Iterator[util.BranchOp]:
        for block in self.blocks:
            if isinstance(block.last, util.BranchOp):
                yield block.last

    def _is_back(self, branch: Operation, block: Block) -> bool:
        assert branch.parent is not None
        return self.order[branch.parent] >= self.order[block]

    def _alternate(self, argument: BlockArgument, given: Value) -> bool:
        """Puts a loop's argument and its next value into the loop's state."""
        header, now, after = argument.block, self.group[argument], self.group[given]
        if argument in self.next:
            return self._merge(self.next[argument], given)
        if now is after or now.home or after.home or given in header.arguments or self._is_before(given, header):
            return False
        if not all(member is argument or self._is_before(member, header) for member in now.members):
            return False
        now.home, after.home = Home("now", header), Home("next", header)
        self.next[argument] = given
        return True

    def _is_before(self, value: Value, header: Block) -> bool:
        assert value.parent_block is not None
        return self.order[value.parent_block] < self.order[header]

    def _join_clones(self) -> None:
        for op in self._commands():
            if isinstance(op, hl_seq.Clone) and op.output in self.group and not self._is_brought_out(op):
                self._merge(op.output, op.source, allowed=1 << self._now(op))

    def _is_brought_out(self, clone: hl_seq.Clone) -> bool:
        """Whether a copy is there for a block that control reaches from a loop and from elsewhere."""
        blocks = [member.block for member in self.group[clone.output].members if isinstance(member, BlockArgument)]
        sources = self.group[clone.source].members
        return any(self._leaves_a_loop(value, block) for value in sources for block in blocks)

    def _reuse(self) -> None:
        """Outputs into the memory of arguments that die at their dispatch."""
        for op in self._commands():
            if isinstance(op, hl_seq.Dispatch):
                for argument, output in op.reuses():
                    if argument in self.group and self._take_over(op, argument, output):
                        break

    def _donors(self) -> dict[Home | None, Group]:
        """result -> the argument in whose memory a caller may want it."""
        if not isinstance(self.top, Func):
            return {}
        found: dict[Home | None, Group] = {}
        for result, argument in aliases(self.top).items():
            source = next((g for g in self.group.values() if g.home == Home("argument", argument)), None)
            if source is not None:
                found[Home("result", result)] = source
        return found

    def _donate(self) -> None:
        """A result in the memory of an argument must not be written while the argument is still needed."""
        for export in self._exports():
            target = self.group.get(export.source)
            if target is not None and target.home in self.donors:
                if not self._handed_over(self.donors[target.home], target):
                    self.missing.append(Missing(export, 0))

    def _handed_over(self, source: Group, *targets: Group) -> bool:
        """Whether groups meet a donor nowhere, or only where an op takes over its memory, or copies it onto itself."""
        both = 0
        for target in targets:
            both |= source.live & target.live
        members = [member for target in targets for member in target.members]
        if not both:
            return True
        for member in members:
            op = member.defining_op
            if op is None or 1 << self._now(op) != both:
                continue
            pairs = [*op.updates(), *op.reuses()] if isinstance(op, hl_seq.Dispatch) else []
            if isinstance(op, hl_seq.Clone):
                return op.source in source.members  # onto itself: whoever reads it meanwhile sees no change
            readers = [u for m in source.members for u in m.users() if self.lifetimes.position.get(u) == self._now(op)]
            if any(a in source.members for a, o in pairs if o is member):
                return readers == [op]
        return False

    def _exports(self) -> Iterator[hl_seq.Export]:
        for block in self.blocks:
            for op in block:
                if isinstance(op, hl_seq.Export):
                    yield op

    def _commands(self) -> Iterator[Operation]:
        for block in self.blocks:
            for op in block:
                if isinstance(op, COMMANDS):
                    yield op


def _compatible(one: Group, other: Group) -> bool:
    """Whether what is in given memory may be in the other's: never in an argument's or a global's, nor in two."""
    homes = [group.home for group in (one, other) if group.home is not None]
    return len(homes) < 2 and not any(home.kind in FOREIGN for home in homes)


def _is_fresh(value: Value, branch: Operation) -> bool:
    """Whether it is a copy made for the branch alone."""
    return isinstance(value.defining_op, hl_seq.Clone) and value.users() == [branch] and len(value.uses) == 1


def aliases(func: Func) -> dict[int, int]:
    """result -> the argument whose memory the caller may give for it."""
    found = {}
    for index, attrs in enumerate(func.arg_attrs or ArrayAttr(())):
        output = attrs.get("tf.aliasing_output") if isinstance(attrs, DictAttr) else None
        if isinstance(output, IntegerAttr):
            found[output.value] = index
    return found
