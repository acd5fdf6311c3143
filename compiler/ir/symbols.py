"""Symbols: names in scopes. A reference is resolved in the nearest enclosing scope that has its root, then inwards."""

from __future__ import annotations

from collections.abc import Iterator

from .attributes import ArrayAttr, DictAttr, SymbolRef
from .core import Operation, Trait
from .types import Attribute


def table_of(scope: Operation) -> dict[str, Operation]:
    """The symbols directly in a scope."""
    return {name: op for block in scope.inner_blocks() for op in block if (name := op.symbol) is not None}


class SymbolTables:
    """Resolves references and caches the tables: make a new object after edits."""

    def __init__(self) -> None:
        self._tables: dict[Operation, dict[str, Operation]] = {}

    def table(self, scope: Operation) -> dict[str, Operation]:
        """The symbols directly in a scope, cached."""
        if scope not in self._tables:
            self._tables[scope] = table_of(scope)
        return self._tables[scope]

    def lookup(self, user: Operation, ref: SymbolRef) -> Operation | None:
        """The operation that `ref` names at `user`; None if there is no such symbol."""
        scopes = (op for op in user.enclosing() if op is not user and op.has(Trait.SYMBOL_TABLE))
        found = next((op for scope in scopes if (op := self.table(scope).get(ref.root)) is not None), None)
        for name in ref.nested:
            found = self.table(found).get(name) if found is not None else None
        return found


def references(op: Operation) -> Iterator[SymbolRef]:
    """Every symbol reference in the op's properties."""
    for value in op.properties.values():
        yield from _inside(value)


def _inside(value: Attribute) -> Iterator[SymbolRef]:
    if isinstance(value, SymbolRef):
        yield value
    elif isinstance(value, ArrayAttr):
        for item in value.items:
            yield from _inside(item)
    elif isinstance(value, DictAttr):
        for _, item in value.items:
            yield from _inside(item)
