"""The file around the root: size prefix, root, directory, segments. Nothing here knows what the root says.

    u32 root size | root, identifier "ORCH" | zeros to a multiple of 64 | directory | segments

The directory: magic, CRC-32 of what follows, number of segments, number of attachments (none in format 1), SHA-256 of
prefix and root; then offset and size of each segment, in the order of their ordinals. A segment that was taken out of
the file has offset and size 0. Segments lie in ascending order, start at multiples of 64 bytes (of 4096 from 64 KiB on,
since devices import host memory by the page), and the file ends where the last one ends.

Digest of the root and checksum of the directory are checked when a file is opened, segments are not touched. Files are
memory-mapped; whoever shortens one under a reader makes the reader crash, so files are replaced, never rewritten.
"""

import mmap
import os
import stat
import struct
import zlib
from hashlib import sha256

from .errors import ModuleError
from .files import no_file, read_pipe

IDENTIFIER = b"ORCH"
MAGIC = b"ORCD"
ALIGNMENT, PAGE, PAGED_FROM = 64, 4096, 65536

_PREFIX = struct.Struct("<I4x4s")
_DIRECTORY = struct.Struct("<4sIII32s")
_SPAN = struct.Struct("<QQ")
_CHECKSUMMED_FROM = 8


class Container:
    """An opened file: its root and where each segment lies. Everything is a view of the one map or buffer."""

    __slots__ = ("data", "digest", "root", "spans")

    def __init__(self, data: memoryview, root: memoryview, digest: bytes, spans: tuple[tuple[int, int], ...]) -> None:
        self.data = data  #: the whole file
        self.root = root  #: size prefix and root, so that offsets in it are offsets in the file
        self.digest = digest  #: SHA-256 of `root`: it names the module, segments included
        self.spans = spans  #: (offset, size) per segment; (0, 0) for one that is not in this file

    def segment(self, ordinal: int) -> memoryview:
        """The bytes of a segment, neither copied nor read."""
        offset, size = self.spans[ordinal]
        if not offset:
            raise ModuleError(f"segment {ordinal} was taken out of this file")
        return self.data[offset : offset + size]


def open_file(path: str | os.PathLike[str]) -> Container:
    """Map a file. `OSError` where it cannot be read, `ModuleError` where it is not a sound container.

    One too small for a segment that is aligned to pages is read instead, which takes half the time. A pipe, such as a
    shell's `<(command)`, is read to its end, however long that takes. Devices are refused.
    """
    file = os.open(path, os.O_RDONLY | getattr(os, "O_BINARY", 0))
    try:
        state = os.fstat(file)
        if stat.S_ISREG(state.st_mode):
            size = state.st_size
            data = os.read(file, size) if size < PAGED_FROM else mmap.mmap(file, 0, access=mmap.ACCESS_READ)
        elif stat.S_ISFIFO(state.st_mode):
            data = read_pipe(file)
        else:
            raise no_file(state.st_mode, path)
    except OSError as error:
        raise OSError(error.errno, error.strerror, os.fspath(path)) from None
    finally:
        os.close(file)
    return open_bytes(data)


def open_bytes(data: bytes | bytearray | memoryview | mmap.mmap) -> Container:
    """The same for bytes in memory. They must not change while the container or a view of it lives."""
    view = memoryview(data).toreadonly().cast("B")
    length = len(view)
    if length < _PREFIX.size:
        raise ModuleError(f"not a module: {length} bytes, the size and identifier take {_PREFIX.size}", 0)
    size, identifier = _PREFIX.unpack_from(view)
    if identifier != IDENTIFIER:
        raise ModuleError(f"not a module: the identifier is {identifier!r}, not {IDENTIFIER!r}", 8)
    end = 4 + size
    directory = -(-end // ALIGNMENT) * ALIGNMENT
    if directory + _DIRECTORY.size > length:
        raise ModuleError(f"truncated: {length} bytes, root and directory need {directory + _DIRECTORY.size}", length)
    magic, checksum, count, attachments, digest = _DIRECTORY.unpack_from(view, directory)
    if magic != MAGIC:
        raise ModuleError(f"the directory starts with {magic!r}, not {MAGIC!r}", directory)
    start = directory + _DIRECTORY.size
    if count > (length - start) // _SPAN.size:
        raise ModuleError(f"truncated: the directory has {count} segments, {length - start} bytes are left", start)
    table = view[directory : start + count * _SPAN.size]
    if zlib.crc32(table[_CHECKSUMMED_FROM:]) != checksum:
        raise ModuleError("the directory is damaged: its checksum differs", directory)
    if attachments:
        raise ModuleError(f"the file has {attachments} attachments; this version reads none", directory)
    root = view[:end]
    if sha256(root).digest() != digest:
        raise ModuleError("the root is damaged: its digest differs", 0)
    spans = tuple(_SPAN.iter_unpack(table[_DIRECTORY.size :]))
    _check_spans(spans, start, length)
    return Container(view, root, digest, spans)


def _check_spans(spans: tuple[tuple[int, ...], ...], start: int, length: int) -> None:
    """Segments are in order, aligned, and fill the file from the directory to its end."""
    free = start + len(spans) * _SPAN.size
    for ordinal, (offset, size) in enumerate(spans):
        if not offset and not size:
            continue
        place = start + ordinal * _SPAN.size
        if offset < free:
            raise ModuleError(f"segment {ordinal} lies at {offset}; the first free byte is {free}", place)
        if offset & (ALIGNMENT - 1) or (size >= PAGED_FROM and offset & (PAGE - 1)):
            raise ModuleError(f"segment {ordinal} lies at {offset}, not aligned for its {size} bytes", place)
        free = offset + size
    if free != length:
        word = "truncated" if free > length else "bytes follow the last segment"
        raise ModuleError(f"{word}: the file has {length} bytes, its directory says {free}", min(free, length))


def place(position: int, size: int) -> int:
    """Where a segment of `size` bytes goes, at or behind `position`."""
    alignment = PAGE if size >= PAGED_FROM else ALIGNMENT
    return -(-position // alignment) * alignment


def directory(root: bytes, sizes: list[int]) -> tuple[bytes, list[int]]:
    """What lies between a root and its segments, padding included, and the offset of each segment."""
    start = place(len(root), 0)
    free = start + _DIRECTORY.size + len(sizes) * _SPAN.size
    offsets = []
    for size in sizes:
        offsets.append(place(free, size))
        free = offsets[-1] + size
    spans = b"".join(map(_SPAN.pack, offsets, sizes))
    return bytes(start - len(root)) + _seal(len(sizes), sha256(root).digest(), spans), offsets


def _seal(count: int, digest: bytes, spans: bytes) -> bytes:
    body = _DIRECTORY.pack(MAGIC, 0, count, 0, digest) + spans
    return MAGIC + zlib.crc32(body[_CHECKSUMMED_FROM:]).to_bytes(4, "little") + body[_CHECKSUMMED_FROM:]


def reseal(data: bytes) -> bytes:
    """The file with digest and checksum made to fit its damaged root and directory, for tests and fuzzers.

    `ModuleError` when root and directory cannot even be told apart.
    """
    end = 4 + int.from_bytes(data[:4], "little")
    start = place(end, 0)
    if start + _DIRECTORY.size > len(data) or len(data) < _PREFIX.size:
        raise ModuleError(f"truncated: {len(data)} bytes, root and directory need {start + _DIRECTORY.size}", len(data))
    first = start + _DIRECTORY.size
    count = min(_DIRECTORY.unpack_from(data, start)[2], (len(data) - first) // _SPAN.size)
    sealed = bytearray(data)
    sealed[first - 32 : first] = sha256(data[:end]).digest()
    covered = sealed[start + _CHECKSUMMED_FROM : first + count * _SPAN.size]
    sealed[start + 4 : start + 8] = zlib.crc32(covered).to_bytes(4, "little")
    return bytes(sealed)
