"""Inserts new operations at a place, with a location."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

from .core import Block, Operation, Value
from .locations import UNKNOWN, Location

Op = TypeVar("Op", bound=Operation)


class Builder:
    """Inserts before `anchor` in `block` (None: at the end). Operations that are built here get the location `loc`."""

    def __init__(self, block: Block, anchor: Operation | None = None, loc: Location = UNKNOWN) -> None:
        self.block = block
        self.anchor = anchor
        self.loc = loc

    @classmethod
    def before(cls, op: Operation) -> Builder:
        """A builder before `op`, with its location. Raises ValueError if `op` is in no block."""
        if op.parent is None:
            raise ValueError(f"{op.name} is in no block")
        return cls(op.parent, op, op.loc)

    @classmethod
    def after(cls, op: Operation) -> Builder:
        """A builder after `op`, with its location. Raises ValueError if `op` is in no block."""
        if op.parent is None:
            raise ValueError(f"{op.name} is in no block")
        return cls(op.parent, op.next_op, op.loc)

    def insert(self, op: Op) -> Op:
        """Inserts a detached operation; gives it the builder's location if it has none."""
        if not op.loc.known:
            op.loc = op.loc.at(self.loc)
        self.block.insert_before(op, self.anchor)
        return op

    def build(self, cls: type[Op], **fields: Any) -> Op:
        """Inserts `cls.build(**fields)`."""
        fields.setdefault("loc", self.loc)
        return self.insert(cls.build(**fields))

    @contextmanager
    def at(self, loc: Location) -> Iterator[None]:
        """Context manager: operations built inside get another location."""
        old, self.loc = self.loc, loc
        yield
        self.loc = old


def inline_block(block: Block, arguments: Sequence[Value], insert: Callable[[Operation], object]) -> list[Value]:
    """Inserts copies of a block's ops except the terminator, with `arguments` for its arguments; returns the operands
    that the terminator would have.
    """
    mapping: dict[Value, Value] = dict(zip(block.arguments, arguments, strict=True))
    *ops, last = block.ops
    for op in ops:
        insert(op.clone(mapping))
    return [mapping.get(value, value) for value in last.operands]
