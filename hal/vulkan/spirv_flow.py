"""Checks the control flow of one SPIR-V function: nested if, if-else and loops, in the form that the emitter writes.

    selection: ... OpSelectionMerge M, OpBranchConditional c Y N | Y: ... OpBranch M | N: ... OpBranch M | M: [phis] ...
    loop:      ... OpBranch H | H: [phis] ... OpLoopMerge M C, OpBranchConditional c B M
               | B: ... OpBranch C | C: ... OpBranch H | M: ...

Without an else arm, N is M. So the label that must follow is known at the end of each block, and one pass over the
blocks in order checks everything. Each arm and each body (with its continue block) is a *region*. Regions nest, and a
value is visible while its region is open. Values of a loop's header are also visible after the loop.

For `spirv_uniform` this records every construct's condition, the dependencies of every OpPhi, and the barriers.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from .spirv_types import Scope

#: the deepest nesting of constructs; compilers recurse over them
NESTING = 64

SELECTION, LOOP = "selection", "loop"


@dataclass(slots=True)
class HeaderPhi:
    """An OpPhi in a loop's header. Its second value is checked at the end of the continue block."""

    id: int
    type: object
    first: int  #: its value from before the loop
    value: int  #: its value from the continue block
    predecessor: int
    at: int  #: the word of the instruction


@dataclass(slots=True)
class Construct:
    """A selection or a loop whose merge block has not been reached yet."""

    kind: str
    header: int
    began: int  #: the word of the branch to its header or arms; values defined before it dominate its blocks
    merge: int = 0
    target: int = 0  #: a loop's continue block
    condition: int = 0
    other: int = 0  #: a selection's second arm; 0 without one
    in_continue: bool = False
    arms: list[tuple[int, int]] = field(default_factory=list)  #: last block and region of each arm that has ended
    phis: list[HeaderPhi] = field(default_factory=list)


@dataclass(slots=True)
class Definition:
    """Where a value is defined: its region, and the word of its instruction."""

    region: int
    at: int


Pairs = tuple[tuple[int, int], tuple[int, int]]


class Flow:
    """Checks labels, merge instructions and terminators in order."""

    def __init__(self, scope: Scope) -> None:
        self._scope = scope
        self._stack: list[Construct] = []
        self._loop: Construct | None = None  # the loop whose header is this block or the next one
        self._merge: Construct | None = None  # the construct that the merge instruction of this block declares
        self._ended: Construct | None = None  # the two-armed selection whose merge block this is
        self._named: set[int] = set()  # labels that were defined, or named by a branch or merge instruction
        self._next = 0  # the label that must follow; 0 before the first block and after the last
        self._before = 0  # the block that ended most recently
        self._open = [0]  # open regions, each nested in the previous one
        self._closed: set[int] = set()
        self._regions = 1
        self._definitions: dict[int, Definition] = {}
        self._returned = False
        self.block = 0  # the current block; 0 between blocks
        self.phis_allowed = False  # True while this block contains only phis
        self.phis: dict[int, tuple[int, ...]] = {}  #: OpPhi -> the values and conditions that it depends on
        self.barriers: list[tuple[int, tuple[int, ...]]] = []  #: word of a barrier, and the conditions around it

    @property
    def merging(self) -> bool:
        return self._merge is not None

    @property
    def values(self) -> Iterable[int]:
        return self._definitions

    @property
    def values_only(self) -> bool:
        """Whether this is a loop's header or continue block, in which stores and barriers are forbidden."""
        return self._loop is not None or bool(self._stack) and self._stack[-1].in_continue

    def define(self, value: int) -> None:
        self._definitions[value] = Definition(self._open[-1], self._scope.at)

    def defines(self, value: int) -> bool:
        return value in self._definitions

    def visible(self, value: int) -> bool:
        """Whether a value of this function may be used now."""
        definition = self._definitions.get(value)
        return definition is not None and definition.region not in self._closed

    def barrier(self) -> None:
        """Record a barrier in this block."""
        self.barriers.append((self._scope.at, tuple([construct.condition for construct in self._stack])))

    # blocks

    def label(self, label: int) -> None:
        if self.block or self._returned:
            self._scope.refuse("the block before has no end, or the function has returned")
        if label != self._next and (self._next or self._before):
            self._scope.refuse(f"block {label} where block {self._next} must follow")
        self._named.add(label)
        top = self._stack[-1] if self._stack else None
        if top is not None and self._loop is None:  # a header belongs to the enclosing construct
            self._enter(top, label)
        self.block = label
        self.phis_allowed = self._loop is not None or self._ended is not None

    def _enter(self, top: Construct, label: int) -> None:
        """Enter a block of the innermost construct: its merge block, its continue block, an arm or a body."""
        if label == top.merge:
            self._close_region()
            self._stack.pop()
            self._ended = top if len(top.arms) == 2 else None
        elif label == top.target:
            top.in_continue = True
        else:
            if top.arms:
                self._close_region()
            self._open.append(self._regions)
            self._regions += 1

    def _close_region(self) -> None:
        self._closed.add(self._open.pop())

    # phis

    def phi(self, id: int, type: object, pairs: Pairs) -> None:
        """Check an OpPhi. `pairs`: (value, predecessor), in the order of the emitter."""
        if not self.phis_allowed:
            self._scope.refuse("not at the start of a loop's header or behind two arms")
        if self._loop is not None:
            self._header_phi(id, type, pairs, self._loop)
        elif self._ended is not None:
            self._merge_phi(id, type, pairs, self._ended)

    def _merge_phi(self, id: int, type: object, pairs: Pairs, construct: Construct) -> None:
        for (value, predecessor), (end, region) in zip(pairs, construct.arms, strict=True):
            if predecessor != end:
                self._scope.refuse(f"predecessor {predecessor}, expected {end}")
            definition = self._definitions.get(value)
            in_arm = definition is not None and definition.region == region
            before = definition is None or definition.at < construct.began and self.visible(value)
            if self._scope.values.get(value) is not type or not (in_arm or before):
                self._scope.refuse(f"value {value} is not a {type} that is made on the way through block {predecessor}")
        self.phis[id] = (pairs[0][0], pairs[1][0], construct.condition)

    def _header_phi(self, id: int, type: object, pairs: Pairs, loop: Construct) -> None:
        (first, before), (second, predecessor) = pairs
        if before != self._before:
            self._scope.refuse(f"predecessor {before}, expected {self._before}")
        definition = self._definitions.get(first)
        made_before = definition is None or definition.at < loop.began and self.visible(first)
        if self._scope.values.get(first) is not type or not made_before:
            self._scope.refuse(f"value {first} is not a {type} that is made before the loop")
        loop.phis.append(HeaderPhi(id, type, first, second, predecessor, self._scope.at))

    # merge instructions

    def selection_merge(self, merge: int) -> None:
        if self.values_only:
            self._scope.refuse("in a loop's header or continue block")
        self._declare(Construct(SELECTION, self.block, self._scope.at), merge)

    def loop_merge(self, merge: int, target: int) -> None:
        loop = self._loop
        if loop is None:
            self._scope.refuse("not in a block that a branch without a merge instruction leads to")
        self._fresh(target)
        loop.target = target
        for phi in loop.phis:
            if phi.predecessor != target:
                self._scope.refuse(f"an OpPhi names predecessor {phi.predecessor}, expected {target}")
        self._declare(loop, merge)

    def _declare(self, construct: Construct, merge: int) -> None:
        if self._merge is not None:
            self._scope.refuse("behind another merge instruction")
        if len(self._stack) >= NESTING:
            self._scope.refuse(f"{NESTING + 1} constructs in one another, the limit is {NESTING}")
        self._fresh(merge)
        construct.merge = merge
        self._merge = construct
        self.phis_allowed = False

    def _fresh(self, label: int) -> None:
        """Check that nothing has named the block yet."""
        if label in self._named:
            self._scope.refuse(f"block {label} has a place already")
        self._named.add(label)

    # terminators

    def branch(self, target: int) -> None:
        """OpBranch: to the end of an arm or a body, back to a loop's header, or on to the header of a loop."""
        top = self._stack[-1] if self._stack else None
        if self._merge is not None or self._loop is not None:
            self._scope.refuse("one way out of a header")
        if top is not None and top.in_continue:
            self._back_edge(top, target)
        elif top is not None and top.kind == SELECTION and target == top.merge:
            top.arms.append((self.block, self._open[-1]))
            self._end(top.other if len(top.arms) == 1 and top.other else top.merge)
        elif top is not None and top.kind == LOOP and target == top.target:
            self._end(target)
        else:
            self._fresh(target)
            self._loop = Construct(LOOP, target, self._scope.at)
            self._end(target)

    def branch_conditional(self, condition: int, yes: int, no: int) -> None:
        construct, self._merge = self._merge, None
        if construct is None:
            self._scope.refuse("two ways without a merge instruction")
        if construct.kind == LOOP and no != construct.merge:
            self._scope.refuse(f"out of a loop to block {no}, expected {construct.merge}")
        self._fresh(yes)
        if no != construct.merge:
            self._fresh(no)
            construct.other = no
        construct.condition = condition
        for phi in construct.phis:
            self.phis[phi.id] = (phi.first, phi.value, condition)
        self._stack.append(construct)
        self._loop = None
        self._end(yes)

    def leave(self) -> None:
        """OpReturn."""
        if self._stack or self._merge is not None or self._loop is not None:
            self._scope.refuse("inside a construct")
        self._end(0)
        self._returned = True

    def finish(self) -> None:
        """Check the end of the function."""
        if not self._returned:
            self._scope.refuse("the function ends inside a block or a construct")

    def _back_edge(self, top: Construct, target: int) -> None:
        if target != top.header:
            self._scope.refuse(f"from the continue block to {target}, expected back to {top.header}")
        for phi in top.phis:
            visible = not self.defines(phi.value) or self.visible(phi.value)
            if self._scope.values.get(phi.value) is not phi.type or not visible:
                self._scope.at, self._scope.op = phi.at, "OpPhi"
                self._scope.refuse(f"value {phi.value} is not a {phi.type} that is made in the loop")
        top.in_continue = False
        self._end(top.merge)

    def _end(self, following: int) -> None:
        self._before, self.block, self._next = self.block, 0, following
        self._ended = None
        self.phis_allowed = False
