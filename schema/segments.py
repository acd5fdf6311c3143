"""Verifies segments one by one against the root's digests: a whole segment, or a piece of a long one.

A downloader of a single segment, or a reader of a part of a mapped one, verifies it here without the rest of the file.
The digest of a parameter may be zero, which matches any bytes (`is_open`).
"""

from hashlib import sha256

from .errors import ModuleError
from .rows import Segment, SegmentKind

#: bytes of a piece with its own digest
CHUNK = 1 << 20
DIGEST = 32
#: kinds of segments that are not copied out of a mapped file
DATA_KINDS = frozenset((int(SegmentKind.Constant), int(SegmentKind.Parameter)))

_NONE = bytes(DIGEST)


def is_open(row: Segment) -> bool:
    """Whether any bytes of the right size are accepted: a parameter without a digest."""
    return row.kind == SegmentKind.Parameter and row.digest == _NONE


def chunk_count(size: int) -> int:
    """The number of pieces of 1 MiB of a segment."""
    return -(-size // CHUNK)


def verify_segment(
    row: Segment, data: bytes | memoryview, name: str = "the segment", offset: int | None = None
) -> None:
    """Raises ModuleError unless the data are the whole segment of a row. For an open parameter only the size is
    compared.
    """
    if len(data) != row.size:
        raise ModuleError(f"{name} has {len(data)} bytes, {row.size} in the root", offset)
    if not is_open(row) and sha256(data).digest() != row.digest:
        raise ModuleError(f"{name} is damaged: its digest differs", offset)


def verify_chunk(
    row: Segment, chunks: memoryview, number: int, data: bytes | memoryview, name: str = "the segment"
) -> None:
    """Raises ModuleError unless the data are piece `number` of a segment with chunks; `chunks` are those
    of its module.
    """
    count = row.chunks_end - row.chunks_start
    if not 0 <= number < count:
        raise ModuleError(f"{name} has {count} pieces with a digest; piece {number} is none of them")
    size = min(CHUNK, row.size - number * CHUNK)
    if len(data) != size:
        raise ModuleError(f"piece {number} of {name} has {len(data)} bytes, {size} wanted")
    first = (row.chunks_start + number) * DIGEST
    if sha256(data).digest() != chunks[first : first + DIGEST]:
        raise ModuleError(f"piece {number} of {name} is damaged: its digest differs", number * CHUNK)


def verify_whole(row: Segment, chunks: memoryview, data: memoryview, name: str = "the segment") -> None:
    """Verifies all bytes and each piece with a digest. Both are compared, because in a crafted root they may
    contradict.
    """
    verify_segment(row, data, name)
    for number in range(row.chunks_end - row.chunks_start):
        verify_chunk(row, chunks, number, data[number * CHUNK : (number + 1) * CHUNK], name)


def chunk_digests(data: bytes | memoryview) -> tuple[bytes, list[bytes]]:
    """The digest of all bytes, and of each piece. Each byte is read from memory once."""
    whole, pieces = sha256(), []
    for at in range(0, len(data), CHUNK):
        piece = data[at : at + CHUNK]
        whole.update(piece)
        pieces.append(sha256(piece).digest())
    return whole.digest(), pieces
