"""Segments verified one by one: a whole segment, or a piece of a long one, against the root's digests.

Whoever downloads a single segment, or reads a part of a mapped one, verifies it here without the rest of the file. The
digest of a parameter may be zero, which says nothing: `is_open` tells.
"""

from hashlib import sha256

from .errors import ModuleError
from .rows import Segment, SegmentKind

#: bytes of a piece that has a digest of its own
CHUNK = 1 << 20
DIGEST = 32

_NONE = bytes(DIGEST)


def is_open(row: Segment) -> bool:
    """Whether any bytes of the right size will do: a parameter without a digest."""
    return row.kind == SegmentKind.Parameter and row.digest == _NONE


def chunk_count(size: int) -> int:
    """How many pieces of 1 MiB a segment has."""
    return -(-size // CHUNK)


def verify_segment(
    row: Segment, data: bytes | memoryview, name: str = "the segment", offset: int | None = None
) -> None:
    """`ModuleError` unless the data are the whole segment of a row. An open parameter only has to have its size."""
    if len(data) != row.size:
        raise ModuleError(f"{name} has {len(data)} bytes, {row.size} in the root", offset)
    if not is_open(row) and sha256(data).digest() != row.digest:
        raise ModuleError(f"{name} is damaged: its digest differs", offset)


def verify_chunk(
    row: Segment, chunks: memoryview, number: int, data: bytes | memoryview, name: str = "the segment"
) -> None:
    """`ModuleError` unless the data are piece `number` of a segment whose row has chunks; `chunks`: of its module."""
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
    """Verify all bytes at once and each piece that has a digest: a root may have been made in which these differ."""
    verify_segment(row, data, name)
    for number in range(row.chunks_end - row.chunks_start):
        verify_chunk(row, chunks, number, data[number * CHUNK : (number + 1) * CHUNK], name)


def chunk_digests(data: bytes | memoryview) -> tuple[bytes, list[bytes]]:
    """The digest of all bytes, and of each piece: each byte is read from memory once."""
    whole, pieces = sha256(), []
    for at in range(0, len(data), CHUNK):
        piece = data[at : at + CHUNK]
        whole.update(piece)
        pieces.append(sha256(piece).digest())
    return whole.digest(), pieces
