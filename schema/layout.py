"""Parses `module.fbs`, once per process, into the layouts and checks that decoder and writer use.

It supports the part of the FlatBuffers language that `module.fbs` uses: enums, structs of scalars, ranges and digests,
one table of vectors and structs, attributes. A mistake in that file is an internal error and raises ValueError.
"""

import re
import struct
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from . import dtypes, rows

#: structs that are decoded as one bytes value -> size and alignment
BYTES = {"Digest": (32, 8)}
SCALARS = {"uint8": "B", "uint16": "H", "uint32": "I", "uint64": "Q", "int32": "i", "int64": "q"}

_DECLARATION = re.compile(r"(struct|table|enum)\s+(\w+)(?::(\w+))?\s*(\(bit_flags\))?\s*\{(.*?)\}", re.DOTALL)
_FIELD = re.compile(r"(?:///\s*([^\n]*)\n\s*)?(\w+):\[?(\w+)\]?\s*(?:\(([^)]*)\))?;")
_ATTRIBUTE = re.compile(r'(\w+)(?::"([\w|]+)")?')
_COMMENT = re.compile(r"(?<!/)//(?!/)[^\n]*")


#: (doc, name, type, attributes) as text
Field = tuple[str, str, str, str]


@dataclass(frozen=True, slots=True)
class Enum:
    name: str
    flags: bool
    members: dict[str, int]

    @property
    def values(self) -> frozenset[int]:
        if not self.flags:
            return frozenset(self.members.values())
        return frozenset(range(sum(self.members.values()) + 1))


@dataclass(frozen=True, slots=True)
class Column:
    """One field of a struct, or the only one of a scalar vector. A range takes two values from `position` on."""

    name: str
    type: str
    position: int
    attributes: dict[str, str]


@dataclass(frozen=True, slots=True)
class Vector:
    """One vector of the root. `row` makes a decoded row; None if the elements are numbers or bytes."""

    name: str
    slot: int
    doc: str
    element: str
    columns: tuple[Column, ...]
    format: struct.Struct
    alignment: int
    row: type[Any] | None

    @property
    def blob(self) -> bool:
        """Whether it is decoded as a view of its bytes."""
        return self.element == "uint8" or self.element in BYTES


@dataclass(frozen=True, slots=True)
class Layout:
    """The layout of a root. The header is described as a vector, too."""

    identifier: bytes
    header: Vector
    vectors: tuple[Vector, ...]
    enums: dict[str, Enum]

    def vector(self, name: str) -> Vector:
        return next(vector for vector in self.vectors if vector.name == name)

    def owner(self, name: str) -> tuple[Vector, Column]:
        """The single vector, and its range column, whose rows own the rows of vector `name`."""
        found = [(v, c) for v in self.vectors for c in v.columns if c.attributes.get("owns") == name]
        if len(found) != 1:
            raise ValueError(f"{name} has {len(found)} owners; local ordinals need one")
        return found[0]

    def allowed(self, column: Column) -> frozenset[int] | None:
        """The values that a column may hold if it is a closed enum or an element type; otherwise None."""
        if "dtype" in column.attributes:
            return frozenset(dtypes.BY_CODE)
        return self.enums[column.type].values if column.type in self.enums and "open" not in column.attributes else None


@cache
def layout() -> Layout:
    """The layout of this version's modules."""
    return parse(Path(__file__).with_name("module.fbs").read_text(encoding="utf-8"))


def parse(text: str) -> Layout:
    """The layout that the text of a `.fbs` file declares."""
    code = _COMMENT.sub("", text)
    enums: dict[str, Enum] = {}
    fields: dict[str, list[Field]] = {}
    for what, name, type_, flags, body in _DECLARATION.findall(code):
        if what == "enum":
            if type_ != "uint32":
                raise ValueError(f"enum {name} is {type_}; columns are uint32")
            members = [member.strip() for member in body.split(",")]
            enums[name] = Enum(name, bool(flags), {m: 1 << i if flags else i for i, m in enumerate(members)})
        else:
            fields[name] = _FIELD.findall(body)
    root = re.search(r"root_type (\w+);", code)
    identifier = re.search(r'file_identifier "(....)";', code)
    if root is None or identifier is None:
        raise ValueError("the schema has no root_type or no file_identifier")
    slots = [_vector(slot, field, fields, enums) for slot, field in enumerate(fields[root[1]])]
    for enum in enums.values():
        _check_enum(enum)
    return Layout(identifier[1].encode(), slots[0], tuple(slots[1:]), enums)


def _vector(slot: int, field: Field, structs: dict[str, list[Field]], enums: dict[str, Enum]) -> Vector:
    doc, name, element, attributes = field
    if element in SCALARS or element in BYTES:
        code, alignment = _scalar(element)
        column = Column("", element, 0, dict(_ATTRIBUTE.findall(attributes)))
        return Vector(name, slot, doc, element, (column,), struct.Struct("<" + code), alignment, None)
    columns, format_, alignment = _struct(element, structs[element], enums)
    row = getattr(rows, element)
    names = tuple(c.name + end for c in columns for end in (("_start", "_end") if c.type == "Range" else ("",)))
    if row._fields != names:
        raise ValueError(f"rows.{element} has {row._fields}; the schema says {names}")
    return Vector(name, slot, doc, element, columns, format_, alignment, row)


def _scalar(type_: str) -> tuple[str, int]:
    """The struct code of a value, and its alignment."""
    if type_ in BYTES:
        size, alignment = BYTES[type_]
        return f"{size}s", alignment
    return SCALARS[type_], struct.calcsize("<" + SCALARS[type_])


def _struct(name: str, body: list[Field], enums: dict[str, Enum]) -> tuple[tuple[Column, ...], struct.Struct, int]:
    """Columns, format and alignment of a struct. Raises ValueError for one that FlatBuffers would pad."""
    columns: list[Column] = []
    format_, size, alignment, position = "<", 0, 1, 0
    for _, field, type_, attributes in body:
        code, width = ("II", 4) if type_ == "Range" else _scalar("uint32" if type_ in enums else type_)
        if size % width:
            raise ValueError(f"{name}.{field} lies at byte {size}, which {type_} does not align to")
        size, alignment = size + struct.calcsize("<" + code), max(alignment, width)
        if attributes == "pad":
            format_ += f"{struct.calcsize('<' + code)}x"
            continue
        columns.append(Column(field, type_, position, dict(_ATTRIBUTE.findall(attributes))))
        format_, position = format_ + code, position + (2 if type_ == "Range" else 1)
    if size % alignment:
        raise ValueError(f"{name} has {size} bytes, no multiple of its alignment {alignment}")
    return tuple(columns), struct.Struct(format_), alignment


def _check_enum(enum: Enum) -> None:
    members = {member.name: int(member) for member in getattr(rows, enum.name)}
    if members != enum.members:
        raise ValueError(f"rows.{enum.name} has {members}; the schema says {enum.members}")
