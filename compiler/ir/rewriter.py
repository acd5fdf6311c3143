"""Rewriting: patterns on a worklist, with locations that survive.

A pattern is a function `(op, rewriter) -> bool`: it looks at one op, changes the IR only through the rewriter, and says
whether it did. What it builds stands before the op and has the op's location; what it replaces gives its location to
the new ops that have none. After a change, the changed ops, the users of new values and the definitions of operands
that lost a use are looked at again. Ops without effect whose results nobody uses are erased on the way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeVar

from orchestrion.compiler.errors import CompileError, Diagnostic

from .builder import Builder
from .core import Operation, Value
from .dims import UndecidedError
from .effects import is_dead
from .locations import UNKNOWN, Location, fused
from .symbols import SymbolTables

if TYPE_CHECKING:
    from typing import Any

Op = TypeVar("Op", bound=Operation)
Pattern = Callable[[Operation, "Rewriter"], bool]

#: rewrites per op before we say that the patterns do not come to an end
MAX_REWRITES_PER_OP = 64


class Rewriter:
    """What a pattern changes the IR with. `symbols` are those that stood there when a pattern first asked."""

    def __init__(self, worklist: dict[Operation, None]) -> None:
        self._worklist = worklist
        self._later: dict[Operation, None] = {}
        self.symbols = SymbolTables()
        self._op: Operation | None = None
        self._loc: Location = UNKNOWN

    def at(self, op: Operation, loc: Location = UNKNOWN) -> None:
        """The op that the pattern looks at. `loc` is given to what is built before it, in place of its location."""
        self._op = op
        self._loc = loc

    @property
    def loc(self) -> Location:
        """The location that what is built gets."""
        assert self._op is not None, "inside a pattern"
        return self._op.loc if self._loc is UNKNOWN else self._loc

    def build(self, cls: type[Op], **fields: Any) -> Op:
        """A new op before the one looked at, with its location unless `loc` is given."""
        return self.insert(cls.build(**fields))

    def insert(self, op: Op) -> Op:
        """Inserts a detached op before the one looked at."""
        assert self._op is not None, "inside a pattern"
        if not op.loc.known:
            op.loc = op.loc.at(self.loc)
        Builder.before(self._op).insert(op)
        self._worklist[op] = None
        return op

    def look_at_later(self, op: Operation) -> None:
        """An op is looked at again, once, when nothing else is left to look at."""
        self._later[op] = None

    def postponed(self) -> bool:
        """Whether there are ops to be looked at later: now is later."""
        self._worklist.update(dict.fromkeys(reversed(self._later)))
        self._later.clear()
        return bool(self._worklist)

    def look_at(self, op: Operation) -> None:
        """What an op's regions hold is looked at, too."""
        self._worklist.update(dict.fromkeys(reversed(list(op.walk()))))

    def replace(self, op: Operation, values: Sequence[Value]) -> None:
        """Every use of the op's results becomes a use of `values`, the op goes, its location stays with its successor.

        An op that stood there before (a value used again) gets no second location: it is what it was.
        """
        for old, new in zip(op.results, values, strict=True):
            for user in old.users():
                self._worklist[user] = None
            old.replace_by(new)
            maker = new.defining_op
            if maker is not None and not maker.loc.known:
                maker.loc = maker.loc.at(op.loc)
        self.erase(op)

    def replace_value(self, old: Value, new: Value) -> None:
        """Every use of one value becomes a use of another; who made the old one stays, and is looked at again."""
        for user in old.users():
            self._worklist[user] = None
        old.replace_by(new)
        if old.defining_op is not None:
            self._worklist[old.defining_op] = None

    def merge(self, op: Operation, into: Operation) -> None:
        """As `replace` by an equal op, which now stands for both places in the source."""
        into.loc = fused(into.loc, op.loc)
        self.replace(op, into.results)

    def erase(self, op: Operation) -> None:
        """Erases an op whose results are unused; those who made its operands are looked at again."""
        for inner in op.walk():
            self._worklist.pop(inner, None)
            self._later.pop(inner, None)
            for value in inner.operands:
                maker = value.defining_op
                if maker is not None and not maker.is_inside(op):
                    self._worklist[maker] = None
        op.erase()

    def changed(self, op: Operation) -> None:
        """Say that an op was changed in place: it and its users are looked at again."""
        self._worklist[op] = None
        for result in op.results:
            for user in result.users():
                self._worklist[user] = None

    def set_operand(self, op: Operation, index: int, value: Value) -> None:
        old = op.operands[index].defining_op
        op.set_operand(index, value)
        if old is not None:
            self._worklist[old] = None
        self.changed(op)


def rewrite(top: Operation, patterns: Mapping[str, Iterable[Pattern]]) -> bool:
    """Applies patterns inside `top` until none changes anything; says whether something changed.

    `patterns` maps an op's name to its patterns in the order they are tried; those under `""` are tried on every op.
    """
    worklist: dict[Operation, None] = dict.fromkeys(reversed([op for op in top.walk() if op is not top]))
    budget = MAX_REWRITES_PER_OP * (len(worklist) + 16)
    rewriter = Rewriter(worklist)
    table = {name: tuple(items) for name, items in patterns.items()}
    general = table.get("", ())
    changed = False
    while worklist or rewriter.postponed():
        op, _ = worklist.popitem()
        if op.parent is None:
            continue
        if is_dead(op):
            rewriter.erase(op)
            changed = True
            continue
        rewriter.at(op)
        for pattern in (*table.get(op.name, ()), *general):
            if _applied(pattern, op, rewriter):
                changed = True
                budget -= 1
                if op.parent is not None:
                    worklist[op] = None
                break
        if budget < 0:
            raise AssertionError(f"rewriting does not come to an end; the last op was {op.name}")
    return changed


def _applied(pattern: Pattern, op: Operation, rewriter: Rewriter) -> bool:
    """Whether the pattern did something. Raises CompileError, with the op's place, where sizes of a call decide."""
    try:
        return pattern(op, rewriter)
    except UndecidedError as error:
        raise CompileError([Diagnostic(f"{error}, which is not supported", op.loc, op.name)]) from None
