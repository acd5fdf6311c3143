"""Reads files that `jax.export.Exported.serialize` writes: a FlatBuffer that holds the program as a portable artifact.

Trees of arguments and results are read if they consist of dicts, lists, tuples and None. Trees with other classes are
not: only JAX and the class itself know their structure. Field numbers are those of jax/_src/export/serialization.fbs,
which are the same in all versions.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from orchestrion.schema.errors import ModuleError
from orchestrion.schema.trees import MAX_DEPTH, Items, Keyed, Leaf, Node, Nothing, Static, Trees, decode, encode

from .interface import Interface

if TYPE_CHECKING:
    from flatbuffers.table import Table

MLIR_MAGIC: Final = b"ML\xefR"

#: Offsets in the vtable of an `Exported`: `in_tree`, `out_tree`, `platforms`, `mlir_module_serialized`,
#: `module_kept_var_idx`.
_TAKEN, _GIVEN, _PLATFORMS, _MODULE, _KEPT = 8, 12, 22, 30, 34
#: Maximum number of platforms that are read; JAX knows four.
_MAX_PLATFORMS: Final = 16
#: Offsets in the vtable of a `PyTreeDef`: `kind`, `children`, `children_names`.
_KIND, _CHILDREN, _NAMES = 4, 6, 8
_LEAF, _NONE, _TUPLE, _LIST, _DICT = range(5)
#: Maximum number of nodes of a tree; a file may share one node many times.
_MAX_NODES: Final = 1 << 20
_UNREADABLE = (struct.error, TypeError, ValueError, IndexError, UnicodeDecodeError)


class _Unknown(Exception):
    """The tree contains an object of a class, or is malformed."""


def artifact_in(data: bytes) -> bytes | None:
    """The portable artifact; None if the data is no such file."""
    if MLIR_MAGIC not in data:
        return None
    try:
        root = _root(data)
        field = root.Offset(_MODULE)
        start, length = root.Vector(field), root.VectorLen(field)
    except _UNREADABLE:  # an offset points outside the data
        return None
    found = data[start : start + length]
    return found if field and found.startswith(MLIR_MAGIC) else None


def platforms_in(data: bytes) -> tuple[str, ...]:
    """The platforms that the file names, in the order of the program's code for them; empty if it is damaged."""
    try:
        root = _root(data)
        field = root.Offset(_PLATFORMS)
        if not field or root.VectorLen(field) > _MAX_PLATFORMS:
            return ()
        start = root.Vector(field)
        return tuple([root.String(start + 4 * place).decode() for place in range(root.VectorLen(field))])
    except _UNREADABLE:
        return ()


def interface_in(data: bytes) -> Interface | None:
    """The trees of all arguments, used or not, and of the results; None if they cannot be read."""
    from flatbuffers import number_types

    try:
        root = _root(data)
        field = root.Offset(_KEPT)
        first, count = root.Vector(field), root.VectorLen(field)
        flags = number_types.Uint16Flags
        kept = [root.Get(flags, first + 2 * place) for place in range(count)] if field else []
        places = {number: Leaf(place) for place, number in enumerate(kept)}
        taken = _Reader(iter(places.get(number, Static()) for number in range(_MAX_NODES)))
        match taken.node(_child(root, _TAKEN), 0):
            case Items(True, (Items(True, args), Keyed(names, kwargs))):
                parameters = [*((f"arg{number}", one) for number, one in enumerate(args))]
                named = sorted(zip(map(str, names), kwargs, strict=True), key=lambda row: row[0])
                result = _Reader(map(Leaf, range(_MAX_NODES))).node(_child(root, _GIVEN), 0)
                found = Interface(Trees((*parameters, *named), len(kwargs), result), is_named=False)
                decode(encode(found.trees), *found.counts)  # checks the indices and names
                return found
    except (_Unknown, ModuleError, *_UNREADABLE):
        pass  # callers then use flat arrays
    return None


def _root(data: bytes) -> Table:
    from flatbuffers import encode, packer  # reading text needs neither this nor NumPy
    from flatbuffers.table import Table

    return Table(data, encode.Get(packer.uoffset, data, 0))


def _child(table: Table, field: int) -> Table:
    from flatbuffers.table import Table

    offset = table.Offset(field)
    if not offset:
        raise _Unknown
    return Table(table.Bytes, table.Indirect(table.Pos + offset))


class _Reader:
    """Reads one tree; `leaves` are its leaves in order."""

    def __init__(self, leaves: Iterator[Node]) -> None:
        self.leaves = leaves
        self.nodes = 0

    def node(self, table: Table, depth: int) -> Node:
        from flatbuffers import number_types

        self.nodes += 1
        if depth > MAX_DEPTH or self.nodes > _MAX_NODES:
            raise _Unknown
        field = table.Offset(_KIND)
        kind = table.Get(number_types.Int8Flags, table.Pos + field) if field else _LEAF
        if kind == _LEAF:
            return next(self.leaves)
        if kind == _NONE:
            return Nothing()
        if kind not in (_TUPLE, _LIST, _DICT):
            raise _Unknown
        children = tuple([self.node(child, depth + 1) for child in _children(table)])
        return Keyed(_names(table, len(children)), children) if kind == _DICT else Items(kind == _TUPLE, children)


def _children(table: Table) -> Iterator[Table]:
    from flatbuffers.table import Table

    field = table.Offset(_CHILDREN)
    if field:
        start = table.Vector(field)
        for place in range(table.VectorLen(field)):
            yield Table(table.Bytes, table.Indirect(start + 4 * place))


def _names(table: Table, count: int) -> tuple[str, ...]:
    field = table.Offset(_NAMES)
    if not field and count == 0:
        return ()
    if not field or table.VectorLen(field) != count:
        raise _Unknown
    start = table.Vector(field)
    found = tuple([table.String(start + 4 * place).decode() for place in range(count)])
    if len(set(found)) < count:
        raise _Unknown
    return found
