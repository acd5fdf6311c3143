"""The file around the root: size prefix, root, directory, segments. This file does not interpret the root.

    u32 root size | root, identifier "ORCH" | zeros to a multiple of 64 | directory | segments | attachments | sections

The directory: magic, CRC-32 of the rest of it, number of segments, number of attachments, SHA-256 of prefix and root;
then offset and size of each segment, in the order of their ordinals, and a row per attachment. A segment that was
removed from the file has offset and size 0. Everything lies in ascending order, each item at the first multiple of 64
bytes after the previous one. Segments of 64 KiB and more are aligned to 16 KiB, because devices import host memory by
the page and phones have pages of 16 KiB. Gaps are zero. Offsets count from the start of the module, which may be a part
of another file.

Attachments hold data about this file, such as signatures, and have a tag. Sections follow everything else, each with
its own header, so that a tool can append one to a file. Both carry a bit that says whether a reader must understand
them; unknown ones without it are skipped.

Opening a file checks the digest of the root, the checksum of the directory, and the gaps; nothing else is read. Files
are memory-mapped. Truncating a mapped file crashes its readers, so files are replaced, never rewritten.
"""

import mmap
import os
import re
import stat
import struct
import zlib
from collections.abc import Hashable, Sequence
from hashlib import sha256
from typing import NamedTuple, NoReturn

from .errors import ModuleError
from .files import identity, no_file, read_pipe

IDENTIFIER = b"ORCH"
MAGIC, SECTION_MAGIC = b"ORCD", b"ORCS"
ALIGNMENT, PAGE, PAGED_FROM = 64, 16384, 65536
#: flag of an attachment or section: a reader that does not know its tag or name refuses the file
MUST_UNDERSTAND = 1
#: tags of attachments and names of sections that this version knows
ATTACHMENTS: dict[str, str] = {"SIGN": "a signature set"}
SECTIONS: dict[str, str] = {}

_PREFIX = struct.Struct("<I4x4s")
_DIRECTORY = struct.Struct("<4sIII32s")
_SPAN = struct.Struct("<QQ")
_ATTACHMENT = struct.Struct("<4sIQQII")  # tag, flags, offset, size, CRC-32 of the data, zero
_SECTION = struct.Struct("<4sIQ12sI")  # magic, flags, size, name, CRC-32 of what stands before it
_CHECKSUMMED_FROM = 8

Span = tuple[int, int]


class Attachment(NamedTuple):
    """Data about a file that is not a part of the module. `tag` is four ASCII characters."""

    tag: str
    data: memoryview | bytes
    flags: int = 0
    checksum: int = -1  #: CRC-32 stated by the file; -1 if it is not in a file yet
    offset: int = 0

    def verified(self) -> memoryview | bytes:
        """The data. Raises ModuleError if its checksum differs."""
        if self.checksum not in (-1, zlib.crc32(self.data)):
            raise ModuleError(f"the attachment {self.tag!r} is damaged: its checksum differs", self.offset)
        return self.data


class Section(NamedTuple):
    """Data that was appended to a file. `name` is 1 to 12 printable ASCII characters."""

    name: str
    data: memoryview | bytes
    flags: int = 0
    offset: int = 0


class Container:
    """An opened file: a copy of its root, and the range of each segment, which is a view of one map or buffer."""

    __slots__ = ("attachments", "complete", "data", "digest", "identity", "root", "sections", "spans")

    def __init__(self, data: memoryview, root: memoryview, digest: bytes, spans: tuple[Span, ...]) -> None:
        self.data = data  #: the whole file
        self.root = root  #: size prefix and root, so that offsets in it are offsets in the file
        self.digest = digest  #: SHA-256 of `root`: identifies the module, including its segments
        self.spans = spans  #: (offset, size) per segment; (0, 0) for one that is not in this file
        self.complete = True  #: whether every segment that is not a parameter is in this file
        #: changes whenever the file is written; None for bytes in memory, and if changes cannot be detected
        self.identity: Hashable | None = None
        self.attachments: tuple[Attachment, ...] = ()
        self.sections: tuple[Section, ...] = ()

    def segment(self, ordinal: int) -> memoryview:
        """The bytes of a segment, neither copied nor read. Raises ModuleError if it was removed from the file."""
        offset, size = self.spans[ordinal]
        if not offset:
            raise ModuleError(f"segment {ordinal} was taken out of this file")
        return self.data[offset : offset + size]


def open_file(path: str | os.PathLike[str], offset: int = 0, length: int | None = None) -> Container:
    """Maps a file. Raises OSError if it cannot be read, ModuleError if it is not a valid container.

    With `offset` and `length`, in bytes, the module is that part of the file, such as a stored entry of a zip archive;
    raises ValueError if the file has no such part.

    A file too small for a page-aligned segment is read instead, which takes half the time. A pipe, such as a shell's
    `<(command)`, is read to its end, however long that takes. Devices are refused.
    """
    file = os.open(path, os.O_RDONLY | getattr(os, "O_BINARY", 0))
    try:
        state = os.fstat(file)
        if stat.S_ISREG(state.st_mode):
            view = _part(file, state.st_size, offset, length)
        elif stat.S_ISFIFO(state.st_mode):
            data = read_pipe(file)
            view = memoryview(data)[slice(*_bounds(len(data), offset, length))]
        else:
            raise no_file(state.st_mode, path)
        times = identity(state)
    except OSError as error:
        raise OSError(error.errno, error.strerror, os.fspath(path)) from None
    finally:
        os.close(file)
    found = open_bytes(view)
    found.identity = None if times is None else (times, offset, length)
    return found


def _part(file: int, size: int, offset: int, length: int | None) -> bytes | memoryview | mmap.mmap:
    """A part of a regular file, read or mapped. Maps start at multiples of the system's allocation granularity."""
    start, end = _bounds(size, offset, length)
    if end - start < PAGED_FROM:
        if start:
            os.lseek(file, start, os.SEEK_SET)
        return os.read(file, end - start)
    skipped = start % mmap.ALLOCATIONGRANULARITY
    mapped = mmap.mmap(file, end - start + skipped, access=mmap.ACCESS_READ, offset=start - skipped)
    return memoryview(mapped)[skipped:] if skipped else mapped


def _bounds(size: int, offset: int, length: int | None) -> Span:
    end = size if length is None else offset + length
    if not 0 <= offset <= end <= size:
        raise ValueError(f"offset {offset} and length {length} are no part of a file of {size} bytes")
    return offset, end


#: beginning of files that are mistaken for modules -> what they are, and how to proceed
_OTHERS: tuple[tuple[bytes, str], ...] = (
    (rb"ML\xefR", "MLIR bytecode, which vm-compile and compiler.compile make a module of"),
    (
        rb'(\s|//[^\n]*\n|#[^\n]*\n)*(module\b|func\.func\b|"builtin\.module")',
        "the text of a program, which vm-compile and compiler.compile make a module of",
    ),
    (rb"PK\x03\x04", "a zip archive; vm-pack unbundle takes the module out of a bundle"),
    (rb"version https://git-lfs", "a pointer of Git LFS; git lfs pull fetches the file"),
)


def _instead(beginning: bytes, identifier: bytes) -> str:
    """What the file is, judging by its first bytes."""
    for form, what in _OTHERS:
        if re.match(form, beginning):
            return f"this is {what}"
    return f"the identifier is {identifier!r}, not {IDENTIFIER!r}"


def open_bytes(data: bytes | bytearray | memoryview | mmap.mmap) -> Container:
    """Opens bytes in memory, as `open_file`. They must not change while the container or a view of it lives.

    The root is copied before its digest is checked: another process may write to a mapped file afterwards.
    """
    view = memoryview(data).toreadonly().cast("B")
    length = len(view)
    if length < _PREFIX.size:
        raise ModuleError(f"not a module: {length} bytes, the size and identifier take {_PREFIX.size}", 0)
    size, identifier = _PREFIX.unpack_from(view)
    if identifier != IDENTIFIER:
        raise ModuleError(f"not a module: {_instead(view[:512].tobytes(), identifier)}", 8)
    end = 4 + size
    directory = -(-end // ALIGNMENT) * ALIGNMENT
    if directory + _DIRECTORY.size > length:
        raise ModuleError(f"truncated: {length} bytes, root and directory need {directory + _DIRECTORY.size}", length)
    magic, checksum, count, attachments, digest = _DIRECTORY.unpack_from(view, directory)
    if magic != MAGIC:
        raise ModuleError(f"the directory starts with {magic!r}, not {MAGIC!r}", directory)
    start = directory + _DIRECTORY.size
    rows = start + count * _SPAN.size
    behind = rows + attachments * _ATTACHMENT.size
    if behind > length:
        words = f"the directory has {count} segments and {attachments} attachments"
        raise ModuleError(f"truncated: {words}, {length - start} bytes are left", start)
    if zlib.crc32(view[directory + _CHECKSUMMED_FROM : behind]) != checksum:
        raise ModuleError("the directory is damaged: its checksum differs", directory)
    root = memoryview(bytes(view[:end]))
    if sha256(root).digest() != digest:
        raise ModuleError("the root is damaged: its digest differs", 0)
    file = Container(view, root, digest, tuple(_SPAN.iter_unpack(view[start:rows])))
    gaps = [(end, directory)]
    free = _check_spans(file, start, behind, gaps)
    if attachments:
        file.attachments, free = _read_attachments(view, rows, behind, free, gaps)
    if free != length:
        file.sections = _read_sections(view, free, gaps)
    zeros = b"".join([view[first:last] for first, last in gaps])
    if zeros != bytes(len(zeros)):
        _refuse_padding(view, gaps)
    return file


def _check_spans(file: Container, start: int, free: int, gaps: list[Span]) -> int:
    """Checks that segments are in order and aligned. Returns the end of the last one; `free` is the end of the
    directory.
    """
    length = len(file.data)
    for ordinal, (offset, size) in enumerate(file.spans):
        if not offset and not size:
            file.complete = False
            continue
        alignment = PAGE if size >= PAGED_FROM else ALIGNMENT
        if offset != -(-free // alignment) * alignment:
            _refuse_place(f"segment {ordinal}", offset, size, free, start + ordinal * _SPAN.size)
        if offset != free:
            gaps.append((free, offset))
        free = offset + size
        if free > length:
            raise ModuleError(f"truncated: the file has {length} bytes, segment {ordinal} ends at {free}", length)
    return free


def _refuse_place(what: str, offset: int, size: int, free: int, at: int) -> NoReturn:
    """Raises ModuleError that says why an item may not lie at `offset`."""
    wanted = aligned_offset(free, size)
    if offset < free:
        raise ModuleError(f"{what} lies at {offset}; the first free byte is {free}", at)
    if offset < wanted or offset % ALIGNMENT:
        raise ModuleError(f"{what} lies at {offset}, not aligned for its {size} bytes", at)
    raise ModuleError(f"{what} lies at {offset} after a gap of {offset - free} bytes, expected at {wanted}", at)


def _read_attachments(
    view: memoryview, rows: int, end: int, free: int, gaps: list[Span]
) -> tuple[tuple[Attachment, ...], int]:
    found, length = [], len(view)
    for at, (tag, flags, offset, size, checksum, zero) in zip(
        range(rows, end, _ATTACHMENT.size), _ATTACHMENT.iter_unpack(view[rows:end]), strict=True
    ):
        name = _name(tag, "an attachment's tag", at)
        if zero:
            raise ModuleError(f"the row of attachment {name!r} ends with {zero:#x}, 0 wanted", at)
        if offset != aligned_offset(free, 0):
            _refuse_place(f"attachment {name!r}", offset, 0, free, at)
        if offset + size > length:
            raise ModuleError(f"truncated: the file has {length} bytes, {name!r} ends at {offset + size}", length)
        _must_know("attachment", name, flags, ATTACHMENTS, at)
        gaps.append((free, offset))
        free = offset + size
        found.append(Attachment(name, view[offset:free], flags, checksum, offset))
    return tuple(found), free


def _read_sections(view: memoryview, free: int, gaps: list[Span]) -> tuple[Section, ...]:
    """The appended sections, up to the end of the file."""
    found, length = [], len(view)
    while free != length:
        at = aligned_offset(free, 0)
        if at + _SECTION.size > length:
            raise ModuleError(f"bytes follow the last segment or section: {length - free} of them, no section", free)
        magic, flags, size, name, checksum = _SECTION.unpack_from(view, at)
        if magic != SECTION_MAGIC or zlib.crc32(view[at : at + _SECTION.size - 4]) != checksum:
            raise ModuleError(f"bytes follow the last segment or section: no valid section lies at {at}", at)
        text, start = _name(name, "a section's name", at), at + _SECTION.size
        if size > length - start:
            raise ModuleError(f"truncated: the file has {length} bytes, section {text!r} ends at {start + size}", at)
        _must_know("section", text, flags, SECTIONS, at)
        gaps.append((free, at))
        free = start + size
        found.append(Section(text, view[start:free], flags, at))
    return tuple(found)


def _name(data: bytes, what: str, at: int) -> str:
    """Decodes printable ASCII that is padded with zeros."""
    stripped = data.rstrip(b"\0")
    if not stripped or not all(32 < byte < 127 for byte in stripped):
        raise ModuleError(f"{what} is {data!r}, printable ASCII wanted", at)
    return stripped.decode()


def _must_know(what: str, name: str, flags: int, known: dict[str, str], at: int) -> None:
    if flags & MUST_UNDERSTAND and name not in known:
        words = ", ".join(known) or "none"
        raise ModuleError(f"{what} {name!r} must be understood by who reads this file; this version knows {words}", at)


def _refuse_padding(view: memoryview, gaps: Sequence[Span]) -> NoReturn:
    at = next(at for first, last in gaps for at in range(first, last) if view[at])
    raise ModuleError(f"padding at {at} is not zero but {view[at]:#04x}", at)


def aligned_offset(position: int, size: int) -> int:
    """The offset of a segment of `size` bytes at or after `position`. Attachments and sections are aligned as if `size`
    were 0.
    """
    alignment = PAGE if size >= PAGED_FROM else ALIGNMENT
    return -(-position // alignment) * alignment


def build(
    root: bytes | memoryview,
    segments: Sequence[bytes | memoryview | None],
    attachments: Sequence[Attachment] = (),
    sections: Sequence[Section] = (),
) -> list[bytes | memoryview]:
    """The pieces of a file in order, including padding; a segment that is None is left out. Nothing is copied.

    `root` has its size prefix; all data are bytes or views of bytes. Raises ValueError for an invalid tag or name.
    """
    between, offsets = directory(root, [None if data is None else len(data) for data in segments], attachments)
    pieces: list[bytes | memoryview] = [root, between]
    free = len(root) + len(between)
    for offset, data in zip(offsets, segments, strict=True):
        if data is not None:
            pieces += (bytes(offset - free), data)
            free = offset + len(data)
    for data in (row.data for row in attachments):
        pieces += (bytes(aligned_offset(free, 0) - free), data)
        free = aligned_offset(free, 0) + len(data)
    for section in sections:
        pieces += (bytes(aligned_offset(free, 0) - free), section_header(section), section.data)
        free = aligned_offset(free, 0) + _SECTION.size + len(section.data)
    return pieces


def directory(
    root: bytes | memoryview, sizes: Sequence[int | None], attachments: Sequence[Attachment] = ()
) -> tuple[bytes, list[int]]:
    """Returns the bytes between a root and its segments, including padding, and the offset of each
    segment, 0 for None.
    """
    start = aligned_offset(len(root), 0)
    free = start + _DIRECTORY.size + len(sizes) * _SPAN.size + len(attachments) * _ATTACHMENT.size
    offsets = []
    for size in sizes:
        offsets.append(0 if size is None else aligned_offset(free, size))
        free = free if size is None else offsets[-1] + size
    rows = [_SPAN.pack(offset, size or 0) for offset, size in zip(offsets, sizes, strict=True)]
    for row in attachments:
        offset = aligned_offset(free, 0)
        checksum = zlib.crc32(row.data)
        rows.append(_ATTACHMENT.pack(_named(row.tag, 4), row.flags, offset, len(row.data), checksum, 0))
        free = offset + len(row.data)
    digest = sha256(root).digest()
    body = _DIRECTORY.pack(MAGIC, 0, len(sizes), len(attachments), digest) + b"".join(rows)
    checksum = zlib.crc32(body[_CHECKSUMMED_FROM:])
    return bytes(start - len(root)) + MAGIC + checksum.to_bytes(4, "little") + body[_CHECKSUMMED_FROM:], offsets


def section_header(section: Section) -> bytes:
    """The header that precedes a section's data."""
    header = _SECTION.pack(SECTION_MAGIC, section.flags, len(section.data), _named(section.name, 12), 0)[:-4]
    return header + zlib.crc32(header).to_bytes(4, "little")


def _named(name: str, most: int) -> bytes:
    data = name.encode("ascii", "replace")
    if not 1 <= len(data) <= most or data.decode() != name or not all(32 < byte < 127 for byte in data):
        raise ValueError(f"the name {name!r} is not 1 to {most} printable ASCII characters")
    return data


def reseal(data: bytes) -> bytes:
    """Returns the file with digests and checksums recomputed for a damaged root, directory, attachments and section
    headers.

    For tests and fuzzers. Raises ModuleError if root and directory cannot be located.
    """
    end = 4 + int.from_bytes(data[:4], "little")
    start = aligned_offset(end, 0)
    if start + _DIRECTORY.size > len(data) or len(data) < _PREFIX.size:
        raise ModuleError(f"truncated: {len(data)} bytes, root and directory need {start + _DIRECTORY.size}", len(data))
    first = start + _DIRECTORY.size
    _, _, count, attachments, _ = _DIRECTORY.unpack_from(data, start)
    rows = first + min(count, (len(data) - first) // _SPAN.size) * _SPAN.size
    behind = rows + min(attachments, (len(data) - rows) // _ATTACHMENT.size) * _ATTACHMENT.size
    sealed = bytearray(data)
    sealed[first - 32 : first] = sha256(data[:end]).digest()
    for at in range(rows, behind, _ATTACHMENT.size):
        _, _, offset, size, _, _ = _ATTACHMENT.unpack_from(data, at)
        sealed[at + 24 : at + 28] = zlib.crc32(data[offset : offset + size]).to_bytes(4, "little")
    _reseal_sections(sealed, _last_end(data, first, rows, behind))
    sealed[start + 4 : start + 8] = zlib.crc32(sealed[start + _CHECKSUMMED_FROM : behind]).to_bytes(4, "little")
    return bytes(sealed)


def _last_end(data: bytes, first: int, rows: int, behind: int) -> int:
    """The end of the last segment or attachment, according to a directory that may be damaged."""
    spans = [offset + size for offset, size in _SPAN.iter_unpack(data[first:rows])]
    tagged = [offset + size for _, _, offset, size, _, _ in _ATTACHMENT.iter_unpack(data[rows:behind])]
    return int(max([behind, *spans, *tagged]))


def _reseal_sections(sealed: bytearray, free: int) -> None:
    at = aligned_offset(free, 0)
    while at + _SECTION.size <= len(sealed):
        end = at + _SECTION.size
        sealed[end - 4 : end] = zlib.crc32(sealed[at : end - 4]).to_bytes(4, "little")
        at = aligned_offset(end + _SECTION.unpack_from(sealed, at)[2], 0)
