"""The control flow of one SPIR-V function: structured, in order, every value seen only where its definition dominates.

Blocks are judged in the order they stand. A stack holds the constructs (selections, loops) that are open; a label says
where in the innermost one we are. Each arm and each loop body is a *region*; regions nest, so a value is visible
exactly while its region is open, and one region dominates another when it encloses it. This is stricter than
the specification (a value made in an arm is never visible behind its merge) and takes one pass.

OpPhi names predecessors that may come later, so it is judged at the end of the function, by region and position.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from .spirv_types import Scope

#: constructs in one another: compilers recurse over them
NESTING = 64

SELECTION, LOOP = "selection", "loop"

#: merge instruction before a branch -> the branches that may follow it
_WAYS: dict[str | None, tuple[str, ...]] = {
    None: ("one way", "two ways"),
    SELECTION: ("two ways", "switch"),
    LOOP: ("one way", "two ways"),
}


@dataclass(slots=True)
class Construct:
    """A selection or a loop whose merge block has not come yet."""

    kind: str
    header: int
    merge: int
    target: int  #: a loop's continue block; 0 for a selection
    region: int  #: that the header and the merge block are in
    loop: Construct | None  #: the innermost loop, itself for a loop
    arms: set[int] = field(default_factory=set)  #: blocks that must still come, in any order
    continuing: bool = False  #: in the continue block
    closed: bool = False  #: a loop with its back edge


@dataclass(slots=True)
class Region:
    """An arm or a body, from `enter` to `leave` in the order regions open and close."""

    enter: int
    leave: int = 0


@dataclass(slots=True)
class Block:
    region: int
    end: int = 0  #: the word of its terminator
    predecessors: set[int] = field(default_factory=set)


@dataclass(slots=True)
class Phi:
    block: int
    at: int
    type: object
    pairs: list[tuple[int, int]]  #: (value, predecessor)


class Flow:
    """Judges labels, merges and terminators as they come."""

    def __init__(self, scope: Scope) -> None:
        self._scope = scope
        self._blocks: dict[int, Block] = {}
        self._incoming: dict[int, set[int]] = {}  # of blocks that have not come yet
        self._stack: list[Construct] = []
        self._regions = [Region(0)]
        self._open = [0]
        self._clock = 0
        self._next = 0  # the label that must follow, because a branch goes there
        self._merge: Construct | None = None  # declared by the instruction before a terminator
        self._phis: list[Phi] = []
        self._defined: dict[int, tuple[int, int]] = {}  # value -> region, word
        self._last = 0  # the block that ended last
        self.block = 0  # the block we are in, 0 between blocks
        self.phis_allowed = False  # nothing else was in this block yet

    @property
    def terminated(self) -> bool:
        return not self.block

    @property
    def merging(self) -> bool:
        return self._merge is not None

    @property
    def values(self) -> Iterable[int]:
        return self._defined

    @property
    def in_first_block(self) -> bool:
        return len(self._blocks) == 1 and not self.terminated

    def define(self, value: int) -> None:
        self._defined[value] = (self._open[-1], self._scope.at)

    def defines(self, value: int) -> bool:
        return value in self._defined

    def visible(self, value: int) -> bool:
        """Whether a value of this function may be used now."""
        place = self._defined.get(value)
        return place is not None and not self._regions[place[0]].leave

    def label(self, label: int) -> None:
        if not self.terminated:
            self._scope.refuse("the block before has no end")
        if label in self._blocks:
            self._scope.refuse("defined twice")
        incoming = self._incoming.pop(label, set())
        if self._next:
            if label != self._next:
                self._scope.refuse(f"block {label} where block {self._next} must follow")
            self._next = 0
        elif self._blocks:
            self._enter(label, incoming)
        self.block = label
        self.phis_allowed = True
        self._blocks[label] = Block(self._open[-1], predecessors=incoming)

    def selection_merge(self, merge: int) -> None:
        self._declare(SELECTION, merge, 0)

    def loop_merge(self, merge: int, target: int) -> None:
        if merge == target or len(self._blocks) == 1:
            self._scope.refuse("merge and continue block are the same, or the header is the function's first block")
        self._declare(LOOP, merge, target)
        self._fresh(target)

    def phi(self, type: object, operands: list[int]) -> None:
        if not self.phis_allowed:
            self._scope.refuse("not at the start of a block")
        pairs = list(zip(operands[::2], operands[1::2], strict=True))
        self._phis.append(Phi(self.block, self._scope.at, type, pairs))

    def branch(self, targets: list[int], switch: bool = False) -> None:
        """A branch of any kind: one target, two different ones, or a switch's with the default first."""
        merge, self._merge = self._merge, None
        top = self._stack[-1] if self._stack else None
        if not switch and len(set(targets)) != len(targets):
            self._scope.refuse(f"both ways lead to block {targets[0]}")
        ways = "switch" if switch else "one way" if len(targets) == 1 else "two ways"
        if ways not in _WAYS[merge.kind if merge else None]:
            self._scope.refuse(f"{ways} behind {'no' if merge is None else 'a ' + merge.kind} merge instruction")
        if top is not None and top.continuing:
            self._back_edge(top, merge, targets)
        elif merge is None:
            self._plain(top, targets)
        else:
            self._stack.append(merge)
            self._structured(merge, targets, switch)
        for target in targets:
            self._edge(target)
        self._end()

    def leave(self) -> None:
        """OpReturn, OpUnreachable."""
        if self._merge is not None:
            self._scope.refuse("behind a merge instruction")
        if self._stack and self._stack[-1].continuing:
            self._scope.refuse("in a continue block")
        self._end()

    def finish(self) -> None:
        """At the function's end: nothing is open, and every OpPhi fits its predecessors."""
        if not self.terminated or self._next or self._stack or not self._blocks:
            self._scope.refuse("the function ends inside a block or a construct")
        self._close_region()
        for phi in self._phis:
            self._scope.at, self._scope.op = phi.at, "OpPhi"
            self._judge(phi)

    def _enter(self, label: int, incoming: set[int]) -> None:
        """A block that nothing falls into: the next arm, the continue block or the merge block of what is open."""
        top = self._stack[-1] if self._stack else None
        if top is None:
            self._scope.refuse(f"block {label} follows nothing")
        if label in top.arms:
            top.arms.discard(label)
            self._return_to(top.region)
            self._open_region()
        elif top.arms:
            self._scope.refuse(f"block {label} where an arm of block {top.header} must follow")
        elif top.kind == LOOP and label == top.target and not top.continuing:
            top.continuing = True
            if incoming != {self._last}:
                self._return_to(top.region)
                self._open_region()
        elif label == top.merge and (top.kind == SELECTION or top.closed):
            self._return_to(top.region)
            self._stack.pop()
        else:
            self._scope.refuse(f"block {label} out of order in the {top.kind} of block {top.header}")

    def _declare(self, kind: str, merge: int, target: int) -> None:
        if self._merge is not None:
            self._scope.refuse("behind another merge instruction")
        top = self._stack[-1] if self._stack else None
        if top is not None and top.continuing:
            self._scope.refuse("in a continue block")
        if len(self._stack) >= NESTING:
            self._scope.refuse(f"{NESTING + 1} constructs in one another, the limit is {NESTING}")
        self._fresh(merge)
        made = Construct(kind, self.block, merge, target, self._open[-1], None)
        made.loop = made if kind == LOOP else (top.loop if top else None)
        self._merge = made
        self.phis_allowed = False

    def _fresh(self, label: int) -> None:
        """A block that nothing has named yet."""
        if label in self._blocks or label in self._incoming:
            self._scope.refuse(f"block {label} has a place already")
        self._incoming[label] = set()

    def _exits(self, construct: Construct | None) -> set[int]:
        """Where a conditional branch inside may go without a merge instruction of its own: out of the loop, or on."""
        loop = construct.loop if construct else None
        return {loop.merge, loop.target} if loop else set()

    def _plain(self, top: Construct | None, targets: list[int]) -> None:
        exits = self._exits(top)
        if len(targets) == 1 and top is not None:
            exits = exits | {top.merge}
        onward = [target for target in targets if target not in exits]
        if len(onward) > 1:
            self._scope.refuse("a selection without a merge instruction")
        for target in onward:
            self._fresh(target)
            self._next = target

    def _structured(self, merge: Construct, targets: list[int], switch: bool) -> None:
        """Behind a merge instruction each target is an arm or a body, the merge block, or an exit of a loop."""
        exits = {merge.merge} if switch else self._exits(merge) | {merge.merge}
        for target in dict.fromkeys(targets):
            if target not in exits:
                self._fresh(target)
                merge.arms.add(target)
        if merge.kind == LOOP and len(merge.arms) > 1:
            self._scope.refuse("two bodies of one loop")

    def _back_edge(self, top: Construct, merge: Construct | None, targets: list[int]) -> None:
        if merge is not None or sorted(targets) not in ([top.header], sorted((top.header, top.merge))):
            self._scope.refuse(f"from the continue block to {targets}, expected back to {top.header}")
        top.continuing = False
        top.closed = True

    def _edge(self, target: int) -> None:
        known = self._blocks.get(target)
        predecessors = known.predecessors if known is not None else self._incoming[target]
        predecessors.add(self.block)

    def _end(self) -> None:
        self._blocks[self.block].end = self._scope.at
        self._last = self.block
        self.block = 0

    def _open_region(self) -> None:
        self._clock += 1
        self._open.append(len(self._regions))
        self._regions.append(Region(self._clock))

    def _close_region(self) -> None:
        self._clock += 1
        self._regions[self._open.pop()].leave = self._clock

    def _return_to(self, region: int) -> None:
        while self._open[-1] != region:
            self._close_region()

    def _judge(self, phi: Phi) -> None:
        expected = self._blocks[phi.block].predecessors
        named = [predecessor for _, predecessor in phi.pairs]
        if len(named) != len(expected) or set(named) != expected:
            self._scope.refuse(f"predecessors {named}, expected {sorted(expected)}")
        for value, predecessor in phi.pairs:
            if self._scope.values.get(value) is not phi.type:
                self._scope.refuse(f"value {value} is not a {phi.type}")
            place = self._defined.get(value)
            if place is not None and not self._dominates(place, self._blocks[predecessor]):
                self._scope.refuse(f"value {value} is not made on the way through block {predecessor}")

    def _dominates(self, place: tuple[int, int], block: Block) -> bool:
        outer, inner = self._regions[place[0]], self._regions[block.region]
        return place[1] < block.end and outer.enter <= inner.enter < outer.leave
