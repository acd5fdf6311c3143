"""Mutators of a written file: rows, counts and offsets of the root's vectors, strings, directory, segments, what stands
behind these.

They find their way by `structure.structure`, and seal what they damaged.
"""

import random
import struct

from mutate_numbers import Impossible, damaged, unsigned

from orchestrion.schema import container, structure, writer
from orchestrion.schema.columns import Tables
from orchestrion.schema.errors import ModuleError
from orchestrion.schema.layout import Vector, layout


def sealed(data: bytes) -> bytes:
    """With digests and checksums that fit, as far as what belongs where can still be told."""
    for seal in (writer.reseal, container.reseal):
        try:
            return seal(data)
        except ModuleError:
            continue
    return data


def _tables(data: bytes) -> Tables:
    try:
        return structure.structure(container.open_bytes(data).root)[1]
    except ModuleError:
        raise Impossible from None


def _vector(choose: random.Random, tables: Tables) -> Vector:
    found = [v for v in layout().vectors if tables.counts[v.slot] and v.name != "strings"]
    if not found:
        raise Impossible
    return choose.choice(found)


def _or_any(change):
    """A file that is damaged beyond its structure gets some more bytes damaged."""

    def mutator(choose: random.Random, data: bytes) -> bytes:
        try:
            return sealed(change(choose, data))
        except (Impossible, ModuleError, struct.error):
            return any_bytes(choose, data)

    return mutator


def any_bytes(choose: random.Random, data: bytes) -> bytes:
    return sealed(damaged(choose, data, 8 if choose.random() < 0.9 else 0))


@_or_any
def row_fields(choose: random.Random, data: bytes) -> bytes:
    """Numbers in rows replaced, now and then by the number of another row."""
    tables, changed = _tables(data), bytearray(data)
    for _ in range(choose.choice((1, 1, 2, 3))):
        vector = _vector(choose, tables)
        start, count, layout_ = tables.offsets[vector.slot], tables.counts[vector.slot], vector.format
        at = start + choose.randrange(count) * layout_.size
        values = list(layout_.unpack_from(changed, at))
        place = choose.randrange(len(values))
        if isinstance(values[place], bytes):
            values[place] = choose.randbytes(len(values[place]))
        elif choose.random() < 0.3:
            values[place] = layout_.unpack_from(changed, start + choose.randrange(count) * layout_.size)[place]
        else:
            values[place] = unsigned(choose, 32, values[place])
        try:
            layout_.pack_into(changed, at, *values)
        except struct.error:
            values[place] &= 0xFF
            layout_.pack_into(changed, at, *values)
    return bytes(changed)


@_or_any
def row_order(choose: random.Random, data: bytes) -> bytes:
    """Rows swapped or copied over each other."""
    tables, changed = _tables(data), bytearray(data)
    vector = _vector(choose, tables)
    start, count, width = tables.offsets[vector.slot], tables.counts[vector.slot], vector.format.size
    one, other = (start + choose.randrange(count) * width for _ in range(2))
    first, second = changed[one : one + width], changed[other : other + width]
    changed[one : one + width] = second
    if choose.random() < 0.5:
        changed[other : other + width] = first
    return bytes(changed)


@_or_any
def counts(choose: random.Random, data: bytes) -> bytes:
    """The length of a vector."""
    tables, changed = _tables(data), bytearray(data)
    vector = _vector(choose, tables)
    at = tables.offsets[vector.slot] - 4
    struct.pack_into("<I", changed, at, unsigned(choose, 32, tables.counts[vector.slot]))
    return bytes(changed)


@_or_any
def offsets(choose: random.Random, data: bytes) -> bytes:
    """Root table, vtable and the offsets of vectors: all in the words before the first vector."""
    _tables(data)  # there are any
    table = 4 + struct.unpack_from("<I", data, 4)[0]
    vtable = table - struct.unpack_from("<i", data, table)[0]
    size, table_size = struct.unpack_from("<HH", data, vtable)
    start, end = choose.choice(((4, 12), (vtable, vtable + size), (table, table + table_size)))
    return damaged(choose, data, start, end)


@_or_any
def strings(choose: random.Random, data: bytes) -> bytes:
    """Bytes of the pool, or a part of it moved over another."""
    tables, vector = _tables(data), layout().vector("strings")
    start = tables.offsets[vector.slot]
    size = struct.unpack_from("<I", data, start - 4)[0]
    if choose.random() < 0.5 or not size:
        return damaged(choose, data, start, start + size)
    changed = bytearray(data)
    length = choose.randrange(1, min(size, 24) + 1)
    source, target = (start + choose.randrange(size - length + 1) for _ in range(2))
    changed[target : target + length] = data[source : source + length]
    return bytes(changed)


@_or_any
def directory(choose: random.Random, data: bytes) -> bytes:
    """Offsets and sizes of segments and attachments, their numbers, the kind of directory."""
    file = container.open_bytes(data)
    start = container.aligned_offset(len(file.root), 0)
    end = start + 48 + 16 * len(file.spans) + 32 * len(file.attachments)
    if choose.random() < 0.3 and len(file.spans) > 1:
        changed = bytearray(data)
        one, other = (start + 48 + 16 * choose.randrange(len(file.spans)) for _ in range(2))
        changed[one : one + 16], changed[other : other + 16] = data[other : other + 16], data[one : one + 16]
        return bytes(changed)
    if choose.random() < 0.3 and file.spans:
        changed = bytearray(data)
        taken = start + 48 + 16 * choose.randrange(len(file.spans))
        changed[taken : taken + 16] = bytes(16)
        return bytes(changed)
    return damaged(choose, data, start + 8, end)


@_or_any
def thinned(choose: random.Random, data: bytes) -> bytes:
    """Packed anew without some segments, with other attachments and sections."""
    file = container.open_bytes(data)
    kept = [None if choose.random() < 0.2 else _present(file, at) for at in range(len(file.spans))]
    attachments, sections = list(file.attachments), list(file.sections)
    for _ in range(choose.choice((0, 1, 1, 2))):
        tag = choose.choice(("SIGN", "NEW1", "A"))
        attachments.append(container.Attachment(tag, choose.randbytes(choose.choice((0, 3, 64, 100))), _flags(choose)))
    for _ in range(choose.choice((0, 1, 1, 2))):
        name = choose.choice(("notes", "twelve-bytes", "SIGN"))
        sections.append(container.Section(name, choose.randbytes(choose.choice((0, 3, 64, 100))), _flags(choose)))
    choose.shuffle(attachments)
    return b"".join(container.build(file.root, kept, attachments, sections))


def _present(file: container.Container, ordinal: int) -> memoryview | None:
    return file.segment(ordinal) if file.spans[ordinal][0] else None


def _flags(choose: random.Random) -> int:
    return choose.choice((0, 0, 0, 1, 2, 1 << 31))


@_or_any
def behind(choose: random.Random, data: bytes) -> bytes:
    """What stands behind the segments: data of attachments, headers of sections, gaps; cut short or made longer."""
    file = container.open_bytes(data)
    start = max([0, *(offset + size for offset, size in file.spans)])
    if choose.random() < 0.2:
        return data[: choose.randrange(start, len(data) + 1)]
    if choose.random() < 0.2 or start == len(data):
        return data + choose.choice((bytes(64), b"\0", data[start:], choose.randbytes(40)))
    return damaged(choose, data, start, len(data))


@_or_any
def segments(choose: random.Random, data: bytes) -> bytes:
    """The bytes of a segment; sometimes nothing is sealed but the root."""
    file = container.open_bytes(data)
    there = [span for span in file.spans if span[1]]
    if not there:
        raise Impossible
    offset, size = choose.choice(there)
    return damaged(choose, data, offset, offset + size)
