"""The one verifying decoder of the module's root: every byte sequence gives a `Module` or raises `ModuleError`.

Three acts: the FlatBuffers structure (here), each column as the schema's attributes say (`columns.py`), and the rules
between tables that attributes cannot say (`rules.py`). Time and memory are linear in the size of the root, and a
segment is read only when `Module.segment` is asked for it.
"""

import os
import struct
from itertools import repeat

from . import container
from .columns import Tables, checks
from .container import Container
from .errors import ModuleError
from .layout import Vector, layout
from .module import Module
from .rows import KNOWN_FEATURES, MAJOR, MINOR, Header
from .rules import NUMBERS, RULES

_U32 = struct.Struct("<I")
_I32 = struct.Struct("<i")
_SIZES = struct.Struct("<HH")
_FIRST_TABLE = 12  # behind size prefix, offset of the root table, identifier


def open_module(path: str | os.PathLike[str]) -> Module:
    """Map and decode a file. `OSError` where it cannot be read, `ModuleError` where it is not a sound module."""
    return decode(container.open_file(path))


def read_module(data: bytes | bytearray | memoryview) -> Module:
    """Decode a file that is in memory. The bytes must not change while the module lives."""
    return decode(container.open_bytes(data))


def decode(file: Container) -> Module:
    """Decode and verify a container's root, and that it speaks of the segments that the directory has."""
    module = decode_root(file.root)
    if len(module.segments) != len(file.spans):
        raise ModuleError(f"the root has {len(module.segments)} segments, the directory {len(file.spans)}")
    for ordinal, (offset, size) in enumerate(file.spans):
        if offset and size != module.segments[ordinal].size:
            expected = module.segments[ordinal].size
            raise ModuleError(f"segment {ordinal} has {size} bytes in the directory, {expected} in the root", offset)
    module.container = file
    return module


def decode_root(root: memoryview) -> Module:
    """Decode and verify size prefix and root. The module has no `container` yet."""
    plan = layout()
    table, size, fields = _root_table(root)
    module = Module()
    module.header = header = _header(root, plan.header, table, size, fields)
    if len(fields) > len(plan.vectors) + 1:
        raise ModuleError(
            f"the root table has {len(fields)} fields; format {MAJOR}.{MINOR} has {len(plan.vectors) + 1}"
        )
    tables = Tables(len(plan.vectors) + 1)
    present = len(fields)
    for vector in plan.vectors:
        slot = vector.slot
        field = fields[slot] if slot < present else 0
        data = _elements(root, vector, table, size, field, tables) if field else _absent(root, vector, table)
        setattr(module, vector.name, _rows(vector, data, tables))
    if header.producer >= len(module.strings):
        raise ModuleError(f"header.producer: {header.producer} is out of range ({len(module.strings)} strings)")
    first, second = checks()
    for check in first:
        check(tables)
    for check in second:
        check(tables)
    for rule in RULES:
        rule(module)
    return module


def _root_table(root: memoryview) -> tuple[int, int, tuple[int, ...]]:
    """Where the root table lies, its size, and the offset of each of its fields, 0 for one that is absent."""
    length = len(root)
    if length < _FIRST_TABLE + 8:
        raise ModuleError(f"truncated: the root has {length} bytes", length)
    table = 4 + _U32.unpack_from(root, 4)[0]
    if table & 3 or not _FIRST_TABLE <= table <= length - 4:
        raise ModuleError(f"the root table lies at {table}, out of range or not aligned ({length} bytes)", 4)
    vtable = table - _I32.unpack_from(root, table)[0]
    if vtable & 1 or not _FIRST_TABLE <= vtable <= length - 4:
        raise ModuleError(f"the vtable lies at {vtable}, out of range or not aligned ({length} bytes)", table)
    vtable_size, size = _SIZES.unpack_from(root, vtable)
    if vtable_size & 1 or vtable_size < 4 or vtable_size > length - vtable or size < 4 or size > length - table:
        raise ModuleError(f"a vtable of {vtable_size} and a table of {size} bytes do not fit in {length}", vtable)
    return table, size, struct.unpack_from(f"<{(vtable_size - 4) // 2}H", root, vtable + 4)


def _header(root: memoryview, vector: Vector, table: int, size: int, fields: tuple[int, ...]) -> Header:
    """The header, once version and features are ones that this reader knows."""
    field = fields[0] if fields else 0
    if not field or field + vector.format.size > size or (table + field) % vector.alignment:
        raise ModuleError("the root has no header", table)
    header = Header._make(vector.format.unpack_from(root, table + field))
    if header.major != MAJOR or header.minor > MINOR:
        readable = f"{MAJOR}.0 to {MAJOR}.{MINOR} can be read"
        raise ModuleError(f"the module has format {header.major}.{header.minor}; {readable}", table + field)
    if header.features & ~KNOWN_FEATURES:
        unknown = header.features & ~KNOWN_FEATURES
        raise ModuleError(f"the module requires features {unknown:#x}, which this version does not know", table + field)
    return header


def _elements(root: memoryview, vector: Vector, table: int, size: int, field: int, tables: Tables) -> memoryview:
    """The bytes of a vector's elements, aligned and inside the root; notes their offset and number."""
    length = len(root)
    place = table + field
    if place & 3 or field + 4 > size:
        raise ModuleError(f"{vector.name}: its field lies at {place}, out of the table or not aligned", table)
    start = place + _U32.unpack_from(root, place)[0] + 4
    if start & 3 or start % vector.alignment or start > length:
        raise ModuleError(f"{vector.name} lies at {start}, out of range or not aligned ({length} bytes)", place)
    count = _U32.unpack_from(root, start - 4)[0]
    end = start + count * vector.format.size
    if end > length:
        raise ModuleError(f"{vector.name} has {count} elements, which end at {end} of {length} bytes", start - 4)
    tables.offsets[vector.slot] = start
    tables.counts[vector.slot] = count
    return root[start:end]


def _absent(root: memoryview, vector: Vector, table: int) -> memoryview:
    if "required" in vector.columns[0].attributes:
        raise ModuleError(f"the root has no {vector.name}", table)
    return root[:0]


def _rows(vector: Vector, data: memoryview, tables: Tables) -> object:
    """A vector's elements as Python values; notes their columns for the checks."""
    if vector.element == "uint8":
        return _strings(vector, data, tables) if vector.name == "strings" else data
    if not data:
        return ()
    if vector.row is None:
        numbers = struct.unpack(f"<{tables.counts[vector.slot]}{vector.format.format[1:]}", data)
        tables.columns[vector.slot] = (numbers,)
        return numbers
    rows = list(map(tuple.__new__, repeat(vector.row), vector.format.iter_unpack(data)))
    tables.columns[vector.slot] = tuple(zip(*rows, strict=True))
    return rows


def _strings(vector: Vector, data: memoryview, tables: Tables) -> list[str]:
    try:
        strings = str(data, "utf-8").split("\0")
    except UnicodeDecodeError as error:
        offset = tables.offsets[vector.slot] + error.start
        raise ModuleError(f"strings are not UTF-8: {error.reason}", offset) from None
    tables.counts[vector.slot] = len(strings)
    return strings


def find_vector(root: memoryview, name: str) -> tuple[int, int]:
    """Offset and number of a vector's elements in a root that is not verified further; (0, 0) when it is absent."""
    vector = layout().vector(name)
    table, size, fields = _root_table(root)
    if vector.slot >= len(fields) or not fields[vector.slot]:
        return 0, 0
    tables = Tables(vector.slot + 1)
    _elements(root, vector, table, size, fields[vector.slot], tables)
    return tables.offsets[vector.slot], tables.counts[vector.slot]


def initial_value(type_name: str, bits: int) -> int | float | None:
    """The number that a global of this type starts with; None for a reference, which starts as null."""
    if type_name not in NUMBERS:
        return None
    value: int | float = struct.unpack(NUMBER_FORMATS[type_name], bits.to_bytes(NUMBERS[type_name], "little"))[0]
    return value


NUMBER_FORMATS = {"i32": "<i", "i64": "<q", "f32": "<f", "f64": "<d"}
