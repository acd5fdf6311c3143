"""Blocks with branches as nested statements: `if`, `while True` with `break` and `continue`, `return`.

Code of the compiler comes from structured programs, so its branches nest. A function whose branches do not nest, or a
loop that is left for two places, is refused by name.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from orchestrion.compiler.errors import CompileError

from .ssa import Block, Function, Op, Phi, Value


@dataclass(slots=True)
class Ops:
    """Ops that run in order, without the terminator."""

    ops: list[Op]


@dataclass(slots=True)
class Assign:
    """Phis get their values, all at once."""

    phis: list[Phi]
    values: list[Value]


@dataclass(slots=True)
class If:
    """The first statements run if the condition is not 0, or equals `index` if that is not None; else the others."""

    condition: Value
    index: int | None
    then: list[Statement]
    other: list[Statement]


@dataclass(slots=True)
class Loop:
    """Statements that run until a `Jump` leaves them."""

    body: list[Statement]


@dataclass(slots=True)
class Jump:
    """`break` or `continue`."""

    text: str


@dataclass(slots=True)
class End:
    """`return` or `fail`."""

    op: Op


Statement = Ops | Assign | If | Loop | Jump | End


@dataclass(frozen=True, slots=True)
class _Place:
    """Where statements stand. `follow`: the block that runs after them; `header`, `leave`: of the innermost loop."""

    follow: Block | None = None
    header: Block | None = None
    leave: Block | None = None


@dataclass
class _Structurer:
    function: Function
    done: set[Block] = field(default_factory=set)

    def __post_init__(self) -> None:
        blocks = self.function.blocks
        self.order = {block: place for place, block in enumerate(blocks)}
        self.joins = _post_dominators(blocks)

    def block(self, block: Block | None, place: _Place) -> list[Statement]:
        """A block and all that follows it up to `place.follow`."""
        found: list[Statement] = []
        while block is not None:
            body = self._loop(block)
            if body and block is not place.header:
                leave = self._leave(block, body)
                found.append(Loop(_trimmed(self.block(block, _Place(None, block, leave)))))
                block = None if leave is None else self._next(found, leave, place)
                continue
            if block in self.done:
                raise self._refusal(block)
            self.done.add(block)
            end = block.ends
            found.append(Ops(block.ops if end is None else block.ops[:-1]))
            block = self._after(found, block, place)
        return found

    def _after(self, found: list[Statement], block: Block, place: _Place) -> Block | None:
        """Appends how a block ends. Returns the block to go on with."""
        end = block.ends
        if end is None or end.row.name == "br" or len(block.after) == 1 and end.row.name == "br_if":
            self._edge(found, block, block.after[0])
            return self._next(found, block.after[0], place)
        if not block.after:
            found.append(End(end))
            return None
        join = self.joins.get(block)
        if join in (place.leave, place.header, place.follow) or join is not None and not self._inside(join, place):
            join = None
        inner = _Place(place.follow if join is None else join, place.header, place.leave)
        arms = [self._arm(block, target, inner) for target in block.after]
        found += _choice(end, arms)
        return join

    def _arm(self, block: Block, target: Block, place: _Place) -> list[Statement]:
        found: list[Statement] = []
        self._edge(found, block, target)
        following = self._next(found, target, place)
        return found if following is None else found + self.block(following, place)

    def _edge(self, found: list[Statement], source: Block, target: Block) -> None:
        """Appends the assignment of the target's phis."""
        changed = [phi for phi in target.phis if phi.sources[source] is not phi]
        if changed:
            found.append(Assign(changed, [phi.sources[source] for phi in changed]))

    def _next(self, found: list[Statement], target: Block, place: _Place) -> Block | None:
        """Appends a jump to a block if it takes one. Returns the block if it stands here instead."""
        if target is place.follow:
            return None
        if target is place.header or target is place.leave:
            found.append(Jump("continue" if target is place.header else "break"))
            return None
        return target

    def _loop(self, header: Block) -> set[Block]:
        """The blocks of the loop that begins with a block; empty if none does."""
        ends = [block for block in header.before if self.order[block] >= self.order[header]]
        body, work = {header} if ends else set(), ends
        while work:
            block = work.pop()
            if block not in body:
                body.add(block)
                work += block.before
        return body

    def _inside(self, block: Block, place: _Place) -> bool:
        return place.header is None or block in self._loop(place.header)

    def _leave(self, header: Block, body: set[Block]) -> Block | None:
        """The block that runs after a loop."""
        found = {target for block in body for target in block.after} - body
        if len(found) > 1:
            raise self._refusal(header)
        return found.pop() if found else None

    def _refusal(self, block: Block) -> CompileError:
        name = self.function.name
        return CompileError(f"function {name} pc {block.start:#x}: branches do not nest, which HAL code cannot say")


def _choice(end: Op, arms: list[list[Statement]]) -> list[Statement]:
    """The statements of a branch. An arm that jumps needs no `else`: the other arm follows it."""
    condition = next(end.values())
    if end.row.name == "br_if":
        then, other = arms
        if _jumps(other) and not (_jumps(then) and len(then) < len(other)):
            return [If(condition, 0, other, []), *then]
        return [If(condition, None, then, []), *other] if _jumps(then) else [If(condition, None, then, other)]
    *table, last = arms
    for index, arm in reversed([*enumerate(table)]):
        last = [If(condition, index, arm, last)]
    return last


def _jumps(statements: Sequence[Statement]) -> bool:
    """Whether control never runs behind statements."""
    if not statements:
        return False
    last = statements[-1]
    if isinstance(last, If):
        return _jumps(last.then) and _jumps(last.other)
    return isinstance(last, Jump | End)


def _trimmed(body: list[Statement]) -> list[Statement]:
    """The statements of a loop without a `continue` at their end."""
    if body and isinstance(body[-1], Jump) and body[-1].text == "continue":
        return body[:-1]
    return body


def _post_dominators(blocks: Sequence[Block]) -> dict[Block, Block]:
    """For each block the nearest one that runs later on all ways to an end."""
    after: dict[Block, set[Block]] = {block: set(blocks) for block in blocks}
    changed = True
    while changed:
        changed = False
        for block in reversed(blocks):
            common = set.intersection(*[after[target] for target in block.after]) if block.after else set()
            if after[block] != common | {block}:
                after[block], changed = common | {block}, True
    found = {}
    for block in blocks:
        later = after[block] - {block}
        nearest = [one for one in later if after[one] == later]
        if nearest:
            found[block] = nearest[0]
    return found


def structure(function: Function) -> list[Statement]:
    """The statements of a function. Raises CompileError if its branches do not nest."""
    return _Structurer(function).block(function.blocks[0], _Place())
