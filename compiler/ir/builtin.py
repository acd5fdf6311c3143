"""The builtin dialect: the module."""

from __future__ import annotations

from .attributes import StringAttr
from .core import Block, Operation, Region, Trait
from .declare import optional, region
from .dialect import Dialect
from .locations import UNKNOWN, Location


class Module(Operation):
    """The top of the IR: one region with one block, a scope of symbols."""

    name = "builtin.module"
    sym_name = optional(StringAttr)
    body = region()
    traits = frozenset({Trait.ISOLATED, Trait.SYMBOL_TABLE, Trait.NO_TERMINATOR})

    @classmethod
    def empty(cls, loc: Location = UNKNOWN) -> Module:
        """A module without operations."""
        return cls(regions=[Region([Block()])], loc=loc)

    @property
    def block(self) -> Block:
        return self.regions[0].block

    def find(self, symbol: str) -> Operation | None:
        """The operation with that symbol directly in the module; None if there is none."""
        return next((op for op in self.block if op.symbol == symbol), None)


DIALECT = Dialect("builtin", [Module])
