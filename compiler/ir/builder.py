"""A place to insert operations at and the location new ones get."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

from .core import Block, Operation, Value
from .locations import UNKNOWN, Location

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Any

Op = TypeVar("Op", bound=Operation)


class Builder:
    """Inserts before `anchor` in `block` (None: at the end). `loc` is given to operations that are built here."""

    def __init__(self, block: Block, anchor: Operation | None = None, loc: Location = UNKNOWN) -> None:
        self.block = block
        self.anchor = anchor
        self.loc = loc

    @classmethod
    def before(cls, op: Operation) -> Builder:
        """Before `op`, with its location."""
        if op.parent is None:
            raise ValueError(f"{op.name} is in no block")
        return cls(op.parent, op, op.loc)

    @classmethod
    def after(cls, op: Operation) -> Builder:
        """Behind `op`, with its location."""
        if op.parent is None:
            raise ValueError(f"{op.name} is in no block")
        return cls(op.parent, op.next_op, op.loc)

    def insert(self, op: Op) -> Op:
        """Inserts a detached operation; one without a location gets the builder's."""
        if not op.loc.known:
            op.loc = op.loc.at(self.loc)
        self.block.insert_before(op, self.anchor)
        return op

    def build(self, cls: type[Op], **fields: Any) -> Op:
        """`cls.build(**fields)`, inserted."""
        fields.setdefault("loc", self.loc)
        return self.insert(cls.build(**fields))

    @contextmanager
    def at(self, loc: Location) -> Iterator[None]:
        """Another location for what is built inside."""
        old, self.loc = self.loc, loc
        yield
        self.loc = old


def inline_block(block: Block, arguments: Sequence[Value], insert: Callable[[Operation], object]) -> list[Value]:
    """What the terminator of a block is given for these arguments; copies of the other ops are inserted for it."""
    mapping: dict[Value, Value] = dict(zip(block.arguments, arguments, strict=True))
    *ops, last = block.ops
    for op in ops:
        insert(op.clone(mapping))
    return [mapping.get(value, value) for value in last.operands]
