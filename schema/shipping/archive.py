"""Zip archives whose stored entries are mapped in place.

There are two levels of strictness:

- `open_archive` reads any zip file in which every entry is unambiguous: a bundle, an APK. It raises ModuleError for
  comments, several disks, encryption, duplicate names, overlapping entries, and local headers that contradict the
  central directory.
- `build` writes the canonical form of entries with given names and bytes. `Archive.check_form` requires it, so that no
  byte outside of the entries' data can change unnoticed. Times are 1980-01-01. Stored data is aligned to 64 bytes, from
  64 KiB on to `container.PAGE`, by padding in an extra field as Android's zipalign writes it.

Entries above 4 GiB use zip64. This file does not know the contents of a bundle.
"""

import os
import zlib
from collections.abc import Iterator, Sequence
from struct import Struct
from typing import NamedTuple

from orchestrion.schema.container import PAGE, PAGED_FROM, aligned_offset
from orchestrion.schema.errors import ModuleError
from orchestrion.schema.files import map_file

STORED, DEFLATED = 0, 8
#: the largest expansion by deflate, slightly above its 1032, and the most bytes that an entry may expand to in memory
MAX_EXPANSION, MAX_EXPANDED = 1040, 256 << 20
#: the most bytes of the directory, because it becomes Python objects
MAX_DIRECTORY = 64 << 20

_LOCAL = Struct("<4sHHHHHIIIHH")
_CENTRAL = Struct("<4sHHHHHHIIIHHHHHII")
_END = Struct("<4sHHHHIIH")
_END64 = Struct("<4sQHHIIQQQQ")
_LOCATOR = Struct("<4sIQI")
_FIELD = Struct("<HH")
_LOCAL_MAGIC, _CENTRAL_MAGIC, _END_MAGIC = b"PK\3\4", b"PK\1\2", b"PK\5\6"
_END64_MAGIC, _LOCATOR_MAGIC = b"PK\6\6", b"PK\6\7"
_FULL16, _FULL32 = 0xFFFF, 0xFFFFFFFF
#: general purpose flags without effect here: level of deflate, sizes after the data, names in UTF-8
_SIZES_BEHIND, _UTF8 = 1 << 3, 1 << 11
_HARMLESS = 1 << 1 | 1 << 2 | _SIZES_BEHIND | _UTF8
_ZIP64, _ALIGNED = 0x0001, 0xD935
_VERSION, _VERSION64, _MADE_BY = 20, 45, 3 << 8 | 45
_DATE = 1 << 5 | 1  # 1 January 1980, midnight
_MODE = 0o100644 << 16


class Entry(NamedTuple):
    """One entry: its `compressed` bytes begin at offset `data` of the file; the content has `size` bytes."""

    name: str
    method: int
    crc: int
    compressed: int
    size: int
    header: int
    data: int

    @property
    def end(self) -> int:
        return self.data + self.compressed


class Archive:
    """An opened zip file. Entries are in the order of the central directory; all bytes are views of one map."""

    __slots__ = ("data", "directory", "entries")

    def __init__(self, data: memoryview, entries: dict[str, Entry], directory: int) -> None:
        self.data = data
        self.entries = entries
        self.directory = directory  #: offset of the central directory

    def find(self, name: str) -> Entry:
        """The entry of that name. Raises ModuleError, which lists some of the existing names."""
        found = self.entries.get(name)
        if found is None:
            names = list(self.entries)
            more = f" and {len(names) - 8} more" if len(names) > 8 else ""
            raise ModuleError(f"no entry {name!r:.200}: the archive has {', '.join(names[:8])[:400] or 'none'}{more}")
        return found

    def stored(self, entry: Entry) -> memoryview:
        """The bytes of a stored entry, neither copied nor read. Raises ModuleError for a compressed one."""
        if entry.method != STORED:
            raise ModuleError(f"entry {entry.name} is compressed: what is mapped in place is stored", entry.header)
        return self.data[entry.data : entry.end]

    def read(self, entry: Entry) -> memoryview:
        """The content of an entry, inflated if it is compressed, with its checksum checked."""
        content = self.stored(entry) if entry.method == STORED else self._inflate(entry)
        if zlib.crc32(content) != entry.crc:
            raise ModuleError(f"entry {entry.name} is damaged: its checksum differs", entry.data)
        return content

    def _inflate(self, entry: Entry) -> memoryview:
        if entry.size > min(entry.compressed * MAX_EXPANSION, MAX_EXPANDED):
            raise ModuleError(
                f"entry {entry.name} says that {entry.compressed} bytes expand to {entry.size}", entry.header
            )
        stream = zlib.decompressobj(-zlib.MAX_WBITS)
        try:
            content = stream.decompress(self.data[entry.data : entry.end], entry.size + 1)
        except zlib.error as error:
            raise ModuleError(f"entry {entry.name} is damaged: {error}", entry.data) from None
        if len(content) != entry.size or not stream.eof or stream.unused_data:
            raise ModuleError(f"entry {entry.name} does not expand to its {entry.size} bytes exactly", entry.data)
        return memoryview(content)

    def check_form(self) -> None:
        """Raises ModuleError unless `build` would write every byte outside of the entries' data exactly as here."""
        position = 0
        for entry in self.entries.values():
            head = _local(entry, position)
            self._same(position, head, f"the header of entry {entry.name}")
            position += len(head) + entry.compressed
        tail = _tail(list(self.entries.values()), position)
        self._same(position, tail, "the central directory")
        if position + len(tail) != len(self.data):
            raise ModuleError(f"the archive has {len(self.data)} bytes, its entries say {position + len(tail)}")

    def _same(self, position: int, expected: bytes, what: str) -> None:
        found = bytes(self.data[position : position + len(expected)])
        if found != expected:
            at = next((i for i, (a, b) in enumerate(zip(found, expected, strict=False)) if a != b), len(found))
            raise ModuleError(f"{what} is not as this version writes it", position + at)


def is_archive(path: str | os.PathLike[str]) -> bool:
    """Whether a regular file begins like a zip archive; False if it does not exist."""
    if not os.path.isfile(path):
        return False
    with open(path, "rb") as file:
        return file.read(4) == _LOCAL_MAGIC


def open_archive(path: str | os.PathLike[str]) -> Archive:
    """Maps a zip file. Raises OSError if it cannot be read, ModuleError if it is not a valid archive."""
    return read_archive(map_file(path))


def read_archive(data: bytes | bytearray | memoryview) -> Archive:
    """Opens bytes in memory, as `open_archive`. They must not change while the archive or a view of it lives."""
    view = memoryview(data).toreadonly().cast("B")
    start, size, count = _find_directory(view)
    entries: dict[str, Entry] = {}
    used = 0
    for entry in _central(view, start, size, count):
        if entry.name in entries:
            raise ModuleError(f"two entries are named {entry.name!r:.200}", entry.header)
        used += entry.end - entry.header
        if used > start:  # checked early, because many headers could otherwise share, and read, one extra field
            raise ModuleError(f"entry {entry.name!r:.200} begins inside of another, or of the directory", entry.header)
        entries[entry.name] = entry
    free = 0
    for entry in sorted(entries.values(), key=lambda entry: entry.header):
        if entry.header < free:
            raise ModuleError(f"entry {entry.name!r:.200} begins inside of the one before it", entry.header)
        free = entry.end
    if free > start:
        raise ModuleError(f"an entry ends at {free}, inside of the central directory", start)
    return Archive(view, entries, start)


def _find_directory(view: memoryview) -> tuple[int, int, int]:
    """Offset, bytes and number of entries of the central directory, which immediately precedes the end records."""
    end = len(view) - _END.size
    if end < 0 or view[end : end + 4] != _END_MAGIC:
        raise ModuleError(f"not a zip archive without a comment: no end record at {max(end, 0)}", max(end, 0))
    _, disk, first, here, count, size, start, comment = _END.unpack_from(view, end)
    if disk or first or here != count or comment:
        raise ModuleError("the end record speaks of several disks or of a comment", end)
    top = end
    if count == _FULL16 or _FULL32 in (size, start):
        top, large = _end64(view, end)
        for small, full, value in zip((count, size, start), (_FULL16, _FULL32, _FULL32), large, strict=True):
            if small not in (full, value):
                raise ModuleError(f"the two end records differ: {small} and {value}", end)
        count, size, start = large
    if start + size != top or size > MAX_DIRECTORY:
        raise ModuleError(f"the central directory of {size} bytes at {start} does not end at {top}", end)
    return start, size, count


def _end64(view: memoryview, end: int) -> tuple[int, tuple[int, int, int]]:
    """The offset of the zip64 end record, and (entries, bytes, offset) of the directory."""
    at = end - _LOCATOR.size
    top = at - _END64.size
    if top < 0:
        raise ModuleError("the end record needs a zip64 record, and there is none", end)
    magic, disk, offset, disks = _LOCATOR.unpack_from(view, at)
    record = _END64.unpack_from(view, top)
    if magic != _LOCATOR_MAGIC or record[0] != _END64_MAGIC or (disk, offset, disks) != (0, top, 1):
        raise ModuleError("the end record needs a zip64 record, and there is none", end)
    _, length, _, _, this, first, here, count, size, start = record
    if length != _END64.size - 12 or this or first or here != count:
        raise ModuleError("the zip64 end record speaks of several disks, or is longer than this version knows", top)
    return top, (count, size, start)


def _central(view: memoryview, start: int, size: int, count: int) -> Iterator[Entry]:
    at, end = start, start + size
    for _ in range(count):
        if end - at < _CENTRAL.size or view[at : at + 4] != _CENTRAL_MAGIC:
            raise ModuleError(f"the central directory has fewer than its {count} entries", at)
        row = _CENTRAL.unpack_from(view, at)
        _, _, _, flags, method, time, date, crc, compressed, plain, named, extra, comment, disk, _, _, header = row
        after = at + _CENTRAL.size + named + extra + comment
        if after > end or flags & ~_HARMLESS or method not in (STORED, DEFLATED):
            raise ModuleError(f"an entry has flags {flags:#x}, method {method}: not a plain or deflated one", at)
        raw = bytes(view[at + _CENTRAL.size : at + _CENTRAL.size + named])
        fields = view[at + _CENTRAL.size + named : after - comment]
        plain, compressed, header, disk = _wide(fields, (plain, compressed, header), disk, at)
        if disk or (method == STORED and plain != compressed):
            raise ModuleError(f"an entry lies on disk {disk}, has {compressed} bytes for {plain}", at)
        yield _entry(view, _name(raw, flags, at), raw, (flags, method, time, date, crc, compressed, plain, header))
        at = after
    if at != end:
        raise ModuleError(f"the central directory has {end - at} bytes after its {count} entries", at)


def _wide(fields: memoryview, numbers: tuple[int, ...], disk: int, at: int) -> tuple[int, ...]:
    """The numbers of a header; those with all bits set are read from its zip64 field. `disk` comes last."""
    wide = sum(number == _FULL32 for number in numbers)
    if not wide and disk != _FULL16:
        return (*numbers, disk)
    values = _field(fields, _ZIP64, at)
    if len(values) < 8 * wide + 4 * (disk == _FULL16):
        raise ModuleError("an entry lacks the zip64 field that its sizes need", at)
    found = []
    for place_, number in enumerate(numbers):
        before = sum(other == _FULL32 for other in numbers[:place_])
        found.append(int.from_bytes(values[8 * before : 8 * before + 8], "little") if number == _FULL32 else number)
    return (*found, int.from_bytes(values[8 * wide : 8 * wide + 4], "little") if disk == _FULL16 else disk)


def _field(fields: memoryview, wanted: int, at: int) -> bytes:
    """The extra field of that kind. Raises ModuleError for several, and for truncated fields."""
    found: list[bytes] = []
    place_ = 0
    while place_ + _FIELD.size <= len(fields):
        kind, length = _FIELD.unpack_from(fields, place_)
        place_ += _FIELD.size
        if place_ + length > len(fields):
            raise ModuleError("an extra field is longer than its header says", at)
        if kind == wanted:
            found.append(bytes(fields[place_ : place_ + length]))
        place_ += length
    if len(found) > 1:
        raise ModuleError(f"an entry has {len(found)} zip64 fields", at)
    return found[0] if found else b""


def _name(raw: bytes, flags: int, at: int) -> str:
    try:
        return raw.decode("utf-8" if flags & _UTF8 else "ascii")
    except UnicodeDecodeError:
        raise ModuleError(f"the name {raw[:80]!r} is neither ASCII nor marked as UTF-8", at) from None


def _entry(view: memoryview, name: str, raw: bytes, said: tuple[int, ...]) -> Entry:
    """The entry of a row of the central directory. Raises ModuleError if its local header differs."""
    flags, method, time, date, crc, compressed, plain, header = said
    if header + _LOCAL.size > len(view) or view[header : header + 4] != _LOCAL_MAGIC:
        raise ModuleError(f"entry {name!r:.200} has no local header at {header}", min(header, len(view)))
    row = _LOCAL.unpack_from(view, header)
    data = header + _LOCAL.size + row[9] + row[10]
    if data + compressed > len(view):
        raise ModuleError(f"entry {name!r:.200} ends at {data + compressed}, the file at {len(view)}", header)
    fields = view[data - row[10] : data]
    sizes = _wide(fields, (row[8], row[7]), 0, header)[:2]
    numbers = (row[6], *reversed(sizes))
    agreed = numbers == (crc, compressed, plain) or (flags & _SIZES_BEHIND and numbers == (0, 0, 0))
    there = bytes(view[header + _LOCAL.size : data - row[10]])
    if row[2:6] != (flags, method, time, date) or not agreed or there != raw:
        raise ModuleError(f"entry {name!r:.200}: local header and central directory differ", header)
    return Entry(name, method, crc, compressed, plain, header, data)


class Row(NamedTuple):
    """The input of `build` for one entry."""

    name: str
    content: bytes | memoryview
    deflate: bool = False


def build(rows: Sequence[Row]) -> list[bytes | memoryview]:
    """The archive in pieces: headers, and the contents without copies. Equal rows give equal pieces."""
    pieces: list[bytes | memoryview] = []
    entries: list[Entry] = []
    position = 0
    for row in rows:
        body = packed(row)
        method = DEFLATED if row.deflate else STORED
        entry = Entry(row.name, method, zlib.crc32(row.content), len(body), len(row.content), position, 0)
        head = _local(entry, position)
        entries.append(entry._replace(data=position + len(head)))
        pieces += (head, body)
        position += len(head) + len(body)
    return [*pieces, _tail(entries, position)]


def packed(row: Row) -> bytes | memoryview:
    """The bytes of an entry as stored in the archive."""
    if not row.deflate:
        return row.content
    stream = zlib.compressobj(9, zlib.DEFLATED, -zlib.MAX_WBITS)
    return stream.compress(row.content) + stream.flush()


def _is_wide(entry: Entry) -> bool:
    return max(entry.size, entry.compressed) >= _FULL32


def _local(entry: Entry, position: int) -> bytes:
    """The local header of an entry, including padding."""
    name = entry.name.encode()
    wide = _is_wide(entry)
    sizes = (_FULL32, _FULL32) if wide else (entry.compressed, entry.size)
    extra = _FIELD.pack(_ZIP64, 16) + Struct("<QQ").pack(entry.size, entry.compressed) if wide else b""
    if entry.method == STORED:
        free = position + _LOCAL.size + len(name) + len(extra) + _FIELD.size + 2
        padding = aligned_offset(free, entry.size) - free
        alignment = PAGE if entry.size >= PAGED_FROM else 64
        extra += _FIELD.pack(_ALIGNED, 2 + padding) + alignment.to_bytes(2, "little") + bytes(padding)
    version = _VERSION64 if wide else _VERSION
    fixed = (version, _flags(name), entry.method, 0, _DATE, entry.crc, *sizes, len(name), len(extra))
    return _LOCAL.pack(_LOCAL_MAGIC, *fixed) + name + extra


def _flags(name: bytes) -> int:
    return 0 if name.isascii() else _UTF8


def _tail(entries: Sequence[Entry], position: int) -> bytes:
    """The central directory of entries, and the end records."""
    directory = b"".join(map(_central_row, entries))
    count, size = len(entries), len(directory)
    small = (min(count, _FULL16), min(size, _FULL32), min(position, _FULL32))
    end64 = b""
    if small != (count, size, position) or count == _FULL16 or _FULL32 in small[1:]:
        top = position + size
        numbers = (_END64.size - 12, _MADE_BY, _VERSION64, 0, 0, count, count, size, position)
        end64 = _END64.pack(_END64_MAGIC, *numbers) + _LOCATOR.pack(_LOCATOR_MAGIC, 0, top, 1)
    return directory + end64 + _END.pack(_END_MAGIC, 0, 0, small[0], small[0], small[1], small[2], 0)


def _central_row(entry: Entry) -> bytes:
    name = entry.name.encode()
    wide = _is_wide(entry)
    values = [entry.size, entry.compressed] if wide else []
    if entry.header >= _FULL32:
        values.append(entry.header)
    extra = _FIELD.pack(_ZIP64, 8 * len(values)) + Struct(f"<{len(values)}Q").pack(*values) if values else b""
    sizes = (_FULL32, _FULL32) if wide else (entry.compressed, entry.size)
    version = _VERSION64 if values else _VERSION
    start = (_MADE_BY, version, _flags(name), entry.method, 0, _DATE, entry.crc, *sizes)
    rest = (len(name), len(extra), 0, 0, 0, _MODE, min(entry.header, _FULL32))
    return _CENTRAL.pack(_CENTRAL_MAGIC, *start, *rest) + name + extra
