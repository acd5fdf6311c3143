"""Calls of library functions: the form of names, and the values of attributes, in files and in Python.

A function is named `library.function`. Attributes are a list of (key, value), sorted by key; a value is a bool, a
64-bit int, a float, a string, or a tuple of bools, ints or floats. Encoding:

    attributes   u16 count | (string key | u8 tag of the value's kind | value)*
    string       u32 count | UTF-8
    list         u32 count | elements

`KINDS` is the table of values; the compiler, the tensor bytecode and the registry of libraries use it.
"""

import re
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from struct import Struct
from typing import Any

from .tensor_shapes import E, ShapeError, Types

Value = bool | int | float | str | tuple[bool, ...] | tuple[int, ...] | tuple[float, ...]
Attributes = tuple[tuple[str, Value], ...]

_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
MAX_NAME = 255
_U8, _U16, _U32 = Struct("<B"), Struct("<H"), Struct("<I")


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of value: its tag in a file, its name in messages, the Python type of an element, its `struct` code."""

    tag: int
    name: str
    element: type
    code: str
    is_list: bool = False


KINDS: tuple[Kind, ...] = (
    Kind(1, "bool", bool, "B"),
    Kind(2, "int", int, "q"),
    Kind(3, "float", float, "d"),
    Kind(4, "string", str, ""),
    Kind(5, "list of ints", int, "q", is_list=True),
    Kind(6, "list of floats", float, "d", is_list=True),
    Kind(7, "list of bools", bool, "B", is_list=True),
)
BY_TAG: dict[int, Kind] = {kind.tag: kind for kind in KINDS}
KIND_NAMES = ", ".join(kind.name for kind in KINDS)


def name_problem(name: str) -> str | None:
    """Why a string is not a valid name of a library function; None if it is."""
    parts = name.split(".")
    if len(name) > MAX_NAME:
        return f"a name of {len(name)} characters, at most {MAX_NAME} are possible"
    if len(parts) != 2 or not all(_IDENTIFIER.fullmatch(part) for part in parts):
        return f"{name!r} is not the name of a library function (LIBRARY.FUNCTION)"
    return None


def kind_of(value: object) -> Kind:
    """The kind of a value; an empty list is a list of ints. Raises ShapeError for an unsupported value."""
    for kind in KINDS:
        if not kind.is_list and type(value) is kind.element:
            _check_range(kind, (value,))
            return kind
        if kind.is_list and type(value) is tuple and all(type(item) is kind.element for item in value):
            _check_range(kind, value)
            return kind
    raise ShapeError(f"{value!r:.60} is no value of an attribute: {KIND_NAMES}")


def _check_range(kind: Kind, values: Sequence[Any]) -> None:
    for value in values:
        if kind.element is int and not -(2**63) <= value < 2**63:
            raise ShapeError(f"{value} does not fit 64 bits")
        if kind.element is str:
            try:
                value.encode()
            except UnicodeEncodeError:
                raise ShapeError("a string that is no UTF-8") from None


def check_attributes(attributes: Attributes) -> None:
    """Raises ShapeError unless these are attributes in order."""
    before = ""
    for key, value in attributes:
        if not _IDENTIFIER.fullmatch(key) or len(key) > MAX_NAME:
            raise ShapeError(f"{key!r:.60} is no name of an attribute")
        if key <= before:
            raise ShapeError(f"attribute {key} comes after {before}: the order is that of the names, each once")
        before = key
        kind_of(value)


def library_call(operands: Types[E], types: Types[E], function: str, attributes: Attributes) -> Types[E]:
    """The rule of the tensor bytecode: checks the given result types; there must be something to compute."""
    if problem := name_problem(function):
        raise ShapeError(problem)
    if not types or any(type.elements == 0 for type in types):
        raise ShapeError(f"results ({', '.join(map(str, types))}): one is needed, and none without elements")
    check_attributes(attributes)
    return types


def call_text(function: str, operands: Types[E], results: Types[E]) -> str:
    """A call as messages show it."""
    return f"{function}({', '.join(map(str, operands))}) -> ({', '.join(map(str, results))})"


def attributes_bytes(attributes: Attributes) -> bytes:
    """The encoding of attributes that `check_attributes` accepts."""
    out = [_U16.pack(len(attributes))]
    for key, value in attributes:
        kind = kind_of(value)
        out += (string_bytes(key), _U8.pack(kind.tag), _value_bytes(kind, value))
    return b"".join(out)


def string_bytes(text: str) -> bytes:
    data = text.encode()
    return _U32.pack(len(data)) + data


def _value_bytes(kind: Kind, value: Any) -> bytes:
    if kind.element is str:
        return string_bytes(value)
    if kind.is_list:
        return Struct(f"<I{len(value)}{kind.code}").pack(len(value), *value)
    return Struct(f"<{kind.code}").pack(value)


def read_attributes(data: bytes, at: int) -> tuple[Attributes, int]:
    """Decodes attributes at byte `at`, and returns the byte after them. Raises ShapeError, or struct.error if the data
    end.
    """
    (count,) = _U16.unpack_from(data, at)
    at += 2
    found = []
    for _ in range(count):
        key, at = read_string(data, at)
        (tag,) = _U8.unpack_from(data, at)
        kind = BY_TAG.get(tag)
        if kind is None:
            raise ShapeError(f"attribute {key!r:.60} has a value of unknown kind {tag}")
        value, at = _read_value(kind, data, at + 1)
        found.append((key, value))
    return tuple(found), at


def read_string(data: bytes, at: int) -> tuple[str, int]:
    (count,) = _U32.unpack_from(data, at)
    start, end = at + 4, at + 4 + count
    if end > len(data):
        raise struct.error("the string is longer than the data")
    try:
        return data[start:end].decode(), end
    except UnicodeDecodeError:
        raise ShapeError("a string that is no UTF-8") from None


def _read_value(kind: Kind, data: bytes, at: int) -> tuple[Value, int]:
    if kind.element is str:
        return read_string(data, at)
    count = 1
    if kind.is_list:
        (count,) = _U32.unpack_from(data, at)
        at += 4
    layout = Struct(f"<{count}{kind.code}")
    values: tuple[Any, ...] = layout.unpack_from(data, at)
    if kind.element is bool:
        if any(value > 1 for value in values):
            raise ShapeError(f"a bool is {max(values)}")
        values = tuple([bool(value) for value in values])
    return values if kind.is_list else values[0], at + layout.size
