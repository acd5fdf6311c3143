"""Decodes a root by the schema, vector by vector: slower than `root_generated.py`, but it reports what is wrong.

Two steps: the FlatBuffers structure (here), and each column against the schema's attributes (`columns.py`). The decoder
calls it for a root that it rejected. Writers, tests and fuzzers use it to locate each vector.
"""

import struct
from collections.abc import Callable
from contextlib import suppress
from functools import cache, partial
from typing import Any, NoReturn

from .columns import Tables, verify
from .errors import ModuleError
from .layout import Vector, layout
from .module import Module
from .rows import NONE, Header
from .versions import HEADER_FEATURES, KNOWN_FEATURES, MAJOR, MINOR

_U32 = struct.Struct("<I")
_I32 = struct.Struct("<i")
_SIZES = struct.Struct("<HH")
_FIRST_TABLE = 12  # after size prefix, offset of the root table, and identifier


def decode(root: memoryview) -> Module:
    """Returns the same as `root_generated.decode`. Raises ModuleError for the first violation of the schema."""
    module, tables = structure(root)
    producer = module.header.producer
    if producer >= len(module.strings):
        raise ModuleError(f"header.producer: {producer} is out of range ({len(module.strings)} strings)")
    verify(tables)
    return module


def structure(root: memoryview) -> tuple[Module, Tables]:
    """The first step alone: every vector lies inside of the root, but the values of rows are not verified."""
    plan = layout()
    table, size, fields = _root_table(root)
    module = Module()
    module.header = _header(root, plan.header, table, size, fields)
    slots = len(plan.vectors) + 1
    tables = Tables(slots)
    fields += (0,) * (slots - len(fields))  # fields after the known slots are skipped
    if module.header.features & ~KNOWN_FEATURES:
        with suppress(ModuleError):  # unknown features may change everything except the names
            _vectors(module, root, table, size, fields, tables)
        _refuse_features(module, table + fields[0])
    _vectors(module, root, table, size, fields, tables)
    return module, tables


def _root_table(root: memoryview) -> tuple[int, int, tuple[int, ...]]:
    """Returns the offset of the root table, its size, and the offset of each of its fields, 0 if absent."""
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
    """The header, if this reader supports its version."""
    field = fields[0] if fields else 0
    if not field or field + vector.format.size > size or (table + field) % vector.alignment:
        raise ModuleError("the root has no header", table)
    header = Header._make(vector.format.unpack_from(root, table + field))
    if header.major != MAJOR or header.minor > MINOR:
        needed = f"the module needs format {header.major}.{header.minor}"
        raise ModuleError(f"{needed}, this version reads {MAJOR}.0 to {MAJOR}.{MINOR}", table + field)
    return header


def _refuse_features(module: Module, offset: int) -> NoReturn:
    """Refuses unknown features of the format, by number, and by name if the file states it."""
    features = module.header.features
    bits = [bit for bit in range(64) if features >> bit & 1]
    strings = getattr(module, "strings", ())
    words = dict(zip(bits, getattr(module, "feature_names", ()), strict=False))
    unknown = [bit for bit in bits if bit not in HEADER_FEATURES]
    names = [strings[words[bit]] if words.get(bit, NONE) < len(strings) else f"bit {bit}" for bit in unknown]
    message = f"the module needs features {features & ~KNOWN_FEATURES:#x} of the format ({', '.join(names):.400})"
    raise ModuleError(f"{message}, which this version does not know", offset)


def _vectors(module: Module, root: memoryview, table: int, size: int, fields: tuple[int, ...], tables: Tables) -> None:
    """Decodes every vector into Python values, and their columns for the checks. One loop without calls: this is the
    hot path.
    """
    length = len(root)
    unpack, counts, offsets, columns = _U32.unpack_from, tables.counts, tables.offsets, tables.columns
    for slot, vector, name, mask, width, iterate, row in _plan():
        field = fields[slot]
        if not field:
            setattr(module, name, _absent(root, vector, table))
            continue
        place = table + field
        if place & 3 or field + 4 > size:
            raise ModuleError(f"{name}: its field lies at {place}, out of the table or not aligned", table)
        start = place + unpack(root, place)[0] + 4
        if start & mask or start > length:
            raise ModuleError(f"{name} lies at {start}, out of range or not aligned ({length} bytes)", place)
        counts[slot] = count = unpack(root, start - 4)[0]
        offsets[slot] = start
        end = start + count * width
        if end > length:
            raise ModuleError(f"{name} has {count} elements, which end at {end} of {length} bytes", start - 4)
        if row is None:
            setattr(module, name, _plain(vector, root[start:end], tables))
            continue
        rows = list(map(row, iterate(root[start:end])))
        columns[slot] = list(zip(*rows))  # noqa: B905 (strict costs a third more)
        setattr(module, name, rows)


@cache
def _plan() -> tuple[tuple[int, Vector, str, int, int, Callable[[memoryview], Any], Callable[[Any], Any] | None], ...]:
    """For `_vectors`, per vector: slot, vector, name, alignment mask, width, decoder, constructor of rows."""
    return tuple(
        (
            v.slot,
            v,
            v.name,
            max(v.alignment, 4) - 1,
            v.format.size,
            v.format.iter_unpack,
            v.row and partial(tuple.__new__, v.row),
        )
        for v in layout().vectors
    )


def _absent(root: memoryview, vector: Vector, table: int) -> object:
    if "required" in vector.columns[0].attributes:
        raise ModuleError(f"the root has no {vector.name}", table)
    return root[:0] if vector.blob else ()


def _plain(vector: Vector, data: memoryview, tables: Tables) -> object:
    """Decodes a vector of bytes or numbers."""
    if vector.name == "strings":
        return _strings(vector, data, tables)
    if vector.blob:
        return data
    numbers = struct.unpack(f"<{tables.counts[vector.slot]}{vector.format.format[1:]}", data)
    if numbers:
        tables.columns[vector.slot] = [numbers]
    return numbers


def _strings(vector: Vector, data: memoryview, tables: Tables) -> list[str]:
    try:
        strings = str(data, "utf-8").split("\0")
    except UnicodeDecodeError as error:
        offset = tables.offsets[vector.slot] + error.start
        raise ModuleError(f"strings are not UTF-8: {error.reason}", offset) from None
    tables.counts[vector.slot] = len(strings)
    return strings
