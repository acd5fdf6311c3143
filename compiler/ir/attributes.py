"""Attributes of the IR: immutable, compared by value, printed as MLIR text.

Elements (`dense<..>`) hold raw little-endian bytes, never a list of numbers; a splat holds one element. Elements of
more than 64 bytes that are no splat print as `dense_resource<name>`, named by a digest, with the bytes in the module's
resource section, so that large constants are never written as digits. Floats hold their bits: NaN payloads survive.

A dialect's attribute (`#stablehlo<comparison_direction GT>`) is kept as text in `DialectAttr`.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final

from orchestrion.schema.dtypes import BOOL, BY_NAME, COMPLEX, DTYPES, FLOAT, FLOAT_FORMATS, SIGNED, UNSIGNED

from .dims import Dim, Shape, Size, is_dynamic
from .types import DIMS, I64, Attribute, TensorType, Type, scalar

if TYPE_CHECKING:
    import numpy as np

#: The resources of a printed text: name -> the elements with the bytes.
Resources = dict[str, "DenseElements"]

#: Elements of more bytes print as a resource.
INLINE_BYTES: Final = 64

#: Name of the resource that MLIR prints for omitted elements.
ELIDED: Final = "__elided__"

#: Bytes of one stored element; `DenseElements` holds only element types in this table.
ELEMENT_BYTES: Final[dict[str, int]] = {row.name: row.itemsize for row in DTYPES} | {"index": 8}
#: Complex type -> type of its parts, the real one first in memory.
PARTS: Final = {row.name: row.storage for row in DTYPES if row.kind == COMPLEX}
_LETTERS: Final = {BOOL: "?", SIGNED: "bhiq", UNSIGNED: "BHIQ", FLOAT: " efd"}
#: Type whose elements are numbers of Python -> its code in `struct`: by kind, then by number of bytes.
STRUCT_CODES: Final = {"index": "q"} | {
    row.name: _LETTERS[row.kind][row.itemsize.bit_length() - 1]
    for row in DTYPES
    if row.kind != COMPLEX and not (row.kind == FLOAT and row.foreign)
}
#: Float that text shows in digits; of other floats it shows the bits.
FLOAT_CODES: Final = {row.name: f"<{STRUCT_CODES[row.name]}" for row in DTYPES if row.kind == FLOAT and not row.foreign}
_BARE_KEY: Final = re.compile(r"[A-Za-z_][\w$.]*\Z")
_BARE_SYMBOL: Final = re.compile(r"[A-Za-z_][\w$.]*\Z")
_ESCAPES: Final = re.compile(rb"[^ !#-\[\]-~]")


def quote(value: str) -> str:
    r"""A string literal: `"`, `\` and everything outside printable ASCII are escaped as two hex digits."""
    data = value.encode("utf-8", "surrogateescape")
    return '"' + _ESCAPES.sub(lambda m: b"\\%02X" % m[0][0], data).decode("ascii") + '"'


def float_text(bits: int, type_name: str) -> str:
    """Digits that parse to the same bits, or the bits in hex for infinities and NaN."""
    code = FLOAT_CODES.get(type_name)
    if code is None:
        return f"0x{bits:X}"
    width = struct.calcsize(code)
    value = struct.unpack(code, bits.to_bytes(width, "little"))[0]
    if value != value or value in (float("inf"), float("-inf")):
        return f"0x{bits:0{2 * width}X}"
    for digits in (6, 8, 16):
        text = f"{value:.{digits}e}"
        if struct.pack(code, float(text)) == struct.pack(code, value):
            return text
    raise AssertionError(f"{value!r} does not survive 17 digits")


@dataclass(frozen=True, slots=True)
class IntegerAttr(Attribute):
    """`4 : i32`."""

    value: int
    type: Type = I64

    def text(self, resources: Resources | None = None) -> str:
        return f"{self.value} : {self.type}"


@dataclass(frozen=True, slots=True)
class BoolAttr(Attribute):
    """`true` or `false`."""

    value: bool

    def text(self, resources: Resources | None = None) -> str:
        return "true" if self.value else "false"


@dataclass(frozen=True, slots=True)
class FloatAttr(Attribute):
    """`1.5 : f32`, stored as bits."""

    bits: int
    type: Type

    @classmethod
    def of(cls, value: float, type_name: str = "f64") -> FloatAttr:
        """From a Python float; rounds to the type."""
        data = struct.pack(FLOAT_CODES[type_name], value)
        return cls(int.from_bytes(data, "little"), scalar(type_name))

    @property
    def value(self) -> float:
        """The value as a Python float."""
        code = FLOAT_CODES[str(self.type)]
        return float(struct.unpack(code, self.bits.to_bytes(struct.calcsize(code), "little"))[0])

    def text(self, resources: Resources | None = None) -> str:
        return f"{float_text(self.bits, str(self.type))} : {self.type}"


@dataclass(frozen=True, slots=True)
class StringAttr(Attribute):
    """`"text"`; bytes that are not UTF-8 are surrogate escapes."""

    value: str

    def text(self, resources: Resources | None = None) -> str:
        return quote(self.value)


@dataclass(frozen=True, slots=True)
class UnitAttr(Attribute):
    """A flag: its presence is its meaning."""

    def text(self, resources: Resources | None = None) -> str:
        return "unit"


@dataclass(frozen=True, slots=True)
class SymbolRef(Attribute):
    """`@root::@nested`."""

    root: str
    nested: tuple[str, ...] = ()

    def text(self, resources: Resources | None = None) -> str:
        path = (self.root, *self.nested)
        return "::".join("@" + (name if _BARE_SYMBOL.match(name) else quote(name)) for name in path)


@dataclass(frozen=True, slots=True)
class ArrayAttr(Attribute):
    """`[a, b]`."""

    items: tuple[Attribute, ...]

    def text(self, resources: Resources | None = None) -> str:
        return f"[{', '.join(item.text(resources) for item in self.items)}]"

    def __iter__(self) -> Iterator[Attribute]:
        return iter(self.items)

    def __len__(self) -> int:
        return len(self.items)


@dataclass(frozen=True, slots=True)
class DenseArray(Attribute):
    """`array<i64: 1, 2>`: a flat list of numbers (bool for i1, int, float)."""

    values: tuple[int | float | Dim, ...]
    element: Type = I64

    def text(self, resources: Resources | None = None) -> str:
        name = str(self.element)
        if not self.values:
            return f"array<{name}>"
        return f"array<{name}: {', '.join(_number_text(value, name) for value in self.values)}>"

    @property
    def ints(self) -> tuple[int, ...]:
        """The values as numbers. Raises UndecidedError if a value is an expression."""
        return tuple(int(value) for value in self.values)

    @property
    def sizes(self) -> Shape:
        """The values as sizes."""
        return self.ints

    def __len__(self) -> int:
        return len(self.values)


@dataclass(frozen=True, slots=True)
class DimArray(DenseArray):
    """`#util.dims<2 * b, 4>`: a list of sizes, some of them expressions."""

    values: Shape

    def text(self, resources: Resources | None = None) -> str:
        return f"{DIMS}{', '.join(map(str, self.values))}>"

    @property
    def sizes(self) -> Shape:
        return self.values


@dataclass(frozen=True)
class DictAttr(Attribute):
    """`{a = 1 : i64, b}`: sorted by key when printed and compared."""

    items: tuple[tuple[str, Attribute], ...]

    @classmethod
    def of(cls, mapping: Mapping[str, Attribute]) -> DictAttr:
        """A dictionary with sorted keys."""
        return cls(tuple(sorted(mapping.items())))

    @cached_property
    def mapping(self) -> Mapping[str, Attribute]:
        """The entries as a mapping."""
        return dict(self.items)

    def get(self, key: str) -> Attribute | None:
        """The value of a key; None if there is no such key."""
        return self.mapping.get(key)

    def text(self, resources: Resources | None = None) -> str:
        return "{" + entries_text(self.mapping, resources) + "}"


def dictionaries(attrs: Attribute | None, count: int) -> list[DictAttr]:
    """One for each of `count` arguments or results; empty ones if `attrs` is not an array of that many."""
    found = [item for item in attrs if isinstance(item, DictAttr)] if isinstance(attrs, ArrayAttr) else []
    return found if len(found) == count else [DictAttr(())] * count


@dataclass(frozen=True, slots=True)
class DialectAttr(Attribute):
    """`#dialect.name<body>` or `#dialect<body>`; `name` is the text before the bracket, without `#`."""

    name: str
    body: str = ""

    def text(self, resources: Resources | None = None) -> str:
        return f"#{self.name}<{self.body}>" if self.body else f"#{self.name}"


@dataclass(frozen=True, slots=True)
class RawAttr(Attribute):
    """An attribute that is kept as text (`affine_map<..>`, elements of unknown type)."""

    source: str

    def text(self, resources: Resources | None = None) -> str:
        return self.source


class DenseElements(Attribute):
    """Elements of a tensor: `type` (static, of a type in ELEMENT_BYTES) and `data`, row major, little endian.

    `data` is one element for a splat. Equality and hash are by content; the digest is computed once, on demand. Raises
    ValueError if `data` has another number of bytes.
    """

    __slots__ = ("type", "data", "_digest")

    def __init__(self, type: TensorType, data: bytes | memoryview) -> None:
        itemsize = ELEMENT_BYTES[str(type.element)]
        view = data if isinstance(data, bytes) else memoryview(data).cast("B")
        if len(view) not in (itemsize * type.num_elements, itemsize):
            raise ValueError(f"{type} needs {itemsize * type.num_elements} bytes or one element, got {len(view)}")
        self.type = type
        self.data: bytes | memoryview = view
        self._digest = b""

    @classmethod
    def of(cls, array: np.ndarray[Any, Any], element: str) -> DenseElements:
        """From a NumPy array of that element type; a uniform array becomes a splat."""
        import numpy as np

        type = TensorType(tuple(array.shape), scalar(element))
        if array.size > 1 and not any(array.strides):  # a splat as `array` returns it, of any size
            array = array[(slice(1),) * array.ndim]
        array = np.ascontiguousarray(array).reshape(-1)
        data = array.reshape(-1).view(np.uint8).data
        size = array.itemsize
        if array.size > 1 and data[:size] == data[-size:] and data[size:] == data[:-size]:
            data = memoryview(bytes(data[:size]))
        return cls(type, bytes(data) if len(data) <= INLINE_BYTES else data)

    @property
    def itemsize(self) -> int:
        """Bytes of one stored element."""
        return ELEMENT_BYTES[str(self.type.element)]

    @property
    def is_splat(self) -> bool:
        """Whether one stored element stands for all; true for a single element."""
        return len(self.data) == self.itemsize and self.type.num_elements > 0

    @property
    def nbytes(self) -> int:
        """Number of bytes of the whole tensor."""
        return self.itemsize * int(self.type.num_elements)

    def array(self) -> np.ndarray[Any, Any]:
        """A read-only NumPy array of the tensor's shape; a splat is broadcast without a copy."""
        import numpy as np

        name = str(self.type.element)
        flat = np.frombuffer(self.data, BY_NAME["i64" if name == "index" else name].numpy)
        flat.flags.writeable = False
        shape = self.type.static_shape
        if self.type.num_elements == 0:
            return flat[:0].reshape(shape)
        return np.broadcast_to(flat[0], shape) if self.is_splat else flat.reshape(shape)

    def scalars(self) -> tuple[int | float, ...]:
        """The stored elements as Python numbers: one for a splat. For small constants; needs no NumPy."""
        count, name = len(self.data) // self.itemsize, str(self.type.element)
        if name in FLOAT_FORMATS:
            bits = struct.unpack(f"<{count}{'H' if self.itemsize == 2 else 'B'}", self.data)
            return tuple([FLOAT_FORMATS[name].value(item) for item in bits])
        return struct.unpack(f"<{count}{STRUCT_CODES[name]}", self.data)

    @property
    def digest(self) -> bytes:
        """SHA-256 of type and data."""
        if not self._digest:
            state = sha256(str(self.type).encode())
            state.update(self.data)
            self._digest = state.digest()
        return self._digest

    def text(self, resources: Resources | None = None) -> str:
        if self.type.num_elements == 0:
            return f"dense<> : {self.type}"
        if resources is not None and len(self.data) > INLINE_BYTES:
            name = f"c_{self.digest[:16].hex()}"
            resources[name] = self
            return f"dense_resource<{name}> : {self.type}"
        name = str(self.type.element)
        if self.is_splat:
            return f"dense<{_element_text(self.data, name)}> : {self.type}"
        size = self.itemsize
        items = [_element_text(self.data[i : i + size], name) for i in range(0, len(self.data), size)]
        return f"dense<{_nest(items, self.type.static_shape)}> : {self.type}"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, DenseElements) or self.type != other.type or len(self.data) != len(other.data):
            return False
        return self.data == other.data if len(self.data) <= INLINE_BYTES else self.digest == other.digest

    def __hash__(self) -> int:
        return hash((self.type, len(self.data), bytes(self.data[:INLINE_BYTES])))

    def __repr__(self) -> str:
        return f"DenseElements({self.type}, {len(self.data)} bytes)"


#: Python values that `attribute_of` converts.
Convertible = Attribute | bool | Size | float | str | Sequence["Convertible"] | Mapping[str, "Convertible"]


def attribute_of(value: Convertible) -> Attribute:
    """An attribute for a Python value: int -> i64, float -> f64, str -> string, sequence -> array, mapping ->
    dictionary. Raises TypeError for any other value.
    """
    match value:
        case Attribute():
            return value
        case bool():
            return BoolAttr(value)
        case int():
            return IntegerAttr(value)
        case Dim():
            return DimArray((value,))
        case float():
            return FloatAttr.of(value)
        case str():
            return StringAttr(value)
        case Mapping():
            return DictAttr.of({key: attribute_of(item) for key, item in value.items()})
        case Sequence():
            return ArrayAttr(tuple(attribute_of(item) for item in value))
    raise TypeError(f"no attribute for {type(value).__name__}")


def dense_ints(*values: Size) -> DenseArray:
    """`array<i64: ...>`, or `#util.dims<...>` if a value is an expression."""
    return DimArray(values) if is_dynamic(*values) else DenseArray(values)


def entries_text(mapping: Mapping[str, Attribute], resources: Resources | None) -> str:
    """`a = 1 : i64, b` (the text between the braces), sorted by key."""
    parts = []
    for key in sorted(mapping):
        value = mapping[key]
        name = key if _BARE_KEY.match(key) else quote(key)
        parts.append(name if isinstance(value, UnitAttr) else f"{name} = {value.text(resources)}")
    return ", ".join(parts)


def _number_text(value: int | float | Dim, name: str) -> str:
    if name == "i1":
        return "true" if value else "false"
    if name in FLOAT_CODES or name in FLOAT_FORMATS:
        return float_text(int.from_bytes(struct.pack(FLOAT_CODES[name], value), "little"), name)
    return str(int(value))


def _element_text(data: bytes | memoryview, name: str) -> str:
    if name in PARTS:
        half = len(data) // 2
        return f"({', '.join(_element_text(part, PARTS[name]) for part in (data[:half], data[half:]))})"
    if name in FLOAT_CODES or name in FLOAT_FORMATS:
        return float_text(int.from_bytes(data, "little"), name)
    value = struct.unpack("<" + STRUCT_CODES[name], data)[0]
    return ("true" if value else "false") if name == "i1" else str(value)


def _nest(items: list[str], shape: tuple[int, ...]) -> str:
    if not shape:
        return items[0]
    for size in reversed(shape):
        items = [f"[{', '.join(items[i : i + size])}]" for i in range(0, len(items), size)]
    return items[0]
