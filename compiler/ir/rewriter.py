"""Pattern rewriting on a worklist; locations are preserved.

A pattern is a function `(op, rewriter) -> bool`. It inspects one op, changes the IR only through the rewriter, and
returns whether it did. New ops are inserted before the op and get its location; a replaced op gives its location to new
ops that have none. After a change, the changed ops, the users of new values, and the definitions of operands that lost
a use are visited again. Unused ops without effects are erased on the way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

from orchestrion.compiler.errors import CompileError, Diagnostic

from .builder import Builder
from .core import Operation, Value
from .dims import UndecidedError
from .effects import is_dead
from .locations import UNKNOWN, Location
from .symbols import SymbolTables

Op = TypeVar("Op", bound=Operation)
#: The op is of the class that has the name under which the pattern is tried.
Pattern = Callable[[Any, "Rewriter"], bool]

#: Maximum rewrites per op; more means that the patterns do not terminate.
MAX_REWRITES_PER_OP = 64


class Rewriter:
    """The interface by which a pattern changes the IR. `symbols` are those at the time of a pattern's first query."""

    def __init__(self, worklist: dict[Operation, None]) -> None:
        self._worklist = worklist
        self.symbols = SymbolTables()
        self._op: Operation | None = None
        self._loc: Location = UNKNOWN

    @classmethod
    def before(cls, op: Operation, loc: Location = UNKNOWN) -> Rewriter:
        """A rewriter outside of patterns that inserts before `op`, with its location unless `loc` is given."""
        rewriter = cls({})
        rewriter.at(op, loc)
        return rewriter

    def at(self, op: Operation, loc: Location = UNKNOWN) -> None:
        """Sets the op that the pattern visits. `loc`: location of new ops, by default the op's."""
        self._op = op
        self._loc = loc

    @contextmanager
    def inside(self, op: Operation) -> Iterator[None]:
        """Context manager: new ops are inserted before `op`, with its location, and then where they were before."""
        place = self._op, self._loc
        self.at(op)
        yield
        self._op, self._loc = place

    @property
    def loc(self) -> Location:
        """The location of new ops."""
        assert self._op is not None, "inside a pattern"
        return self._op.loc if self._loc is UNKNOWN else self._loc

    def build(self, cls: type[Op], **fields: Any) -> Op:
        """Inserts a new op before the visited one, with its location unless `loc` is given."""
        return self.insert(cls.build(**fields))

    def insert(self, op: Op) -> Op:
        """Inserts a detached op before the visited one."""
        assert self._op is not None, "inside a pattern"
        if not op.loc.known:
            op.loc = op.loc.at(self.loc)
        Builder.before(self._op).insert(op)
        self._worklist[op] = None
        return op

    def revisit(self, op: Operation) -> None:
        """Adds an op and the ops in its regions to the worklist."""
        self._worklist.update(dict.fromkeys(reversed(list(op.walk()))))

    def replace(self, op: Operation, values: Sequence[Value]) -> bool:
        """Replaces every use of the op's results by `values` and erases the op; its location goes to its replacement.

        A replacement that existed before (a value used again) keeps its own location only. Returns True, as a pattern
        does that changed something.
        """
        for old, new in zip(op.results, values, strict=True):
            self._worklist.update(dict.fromkeys(old.users()))
            old.replace_by(new)
            maker = new.defining_op
            if maker is not None and not maker.loc.known:
                maker.loc = maker.loc.at(op.loc)
        return self.erase(op)

    def replace_value(self, old: Value, new: Value) -> None:
        """Replaces every use of `old` by `new`; the op that defines `old` stays, and is visited again."""
        self._worklist.update(dict.fromkeys(old.users()))
        old.replace_by(new)
        if old.defining_op is not None:
            self._worklist[old.defining_op] = None

    def erase(self, op: Operation) -> bool:
        """Erases an op with unused results; the ops that define its operands are visited again. Returns True."""
        for inner in op.walk():
            self._worklist.pop(inner, None)
            for value in inner.operands:
                maker = value.defining_op
                if maker is not None and not maker.is_inside(op):
                    self._worklist[maker] = None
        op.erase()
        return True


def erase_unused(op: Operation, rewriter: Rewriter) -> bool:
    """A pattern that erases an op with unused results."""
    return not any(result.uses for result in op.results) and rewriter.erase(op)


def rewrite(top: Operation, patterns: Mapping[str, Iterable[Pattern]]) -> bool:
    """Applies patterns inside `top` until none changes anything; returns whether something changed.

    `patterns` maps an op's name to its patterns in the order in which they are tried; those under `""` are tried on
    every op. Raises CompileError if a pattern depends on a comparison of symbolic sizes that is undecided.
    """
    worklist: dict[Operation, None] = dict.fromkeys(reversed([op for op in top.walk() if op is not top]))
    budget = MAX_REWRITES_PER_OP * (len(worklist) + 16)
    rewriter = Rewriter(worklist)
    table = {name: tuple(items) for name, items in patterns.items()}
    general = table.get("", ())
    changed = False
    while worklist:
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
    """Whether the pattern changed something. Raises CompileError, with the op's location, for undecided sizes."""
    try:
        return pattern(op, rewriter)
    except UndecidedError as error:
        raise CompileError([Diagnostic(f"{error}, which is not supported", op.loc, op.name)]) from None
