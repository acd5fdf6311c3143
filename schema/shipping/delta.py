"""Deltas: produce a new file from an old one. This file reads and applies them; the tools create them.

    header 112 bytes | steps | packed literals | SHA-256 of everything before it

The header: magic `ORCX`, u32 version, size and SHA-256 of the old file, size and SHA-256 of the new one, u32 codec of
the literals (`CODECS`), u32 number of steps, u64 literals in bytes, u64 packed literals in bytes. A step is u64 offset,
u64 length: it copies `length` bytes of the old file from `offset` on, or, with offset 2**64 - 1, of the literals.

- The digest at the end covers every byte; damage is refused before anything else is read.
- The old file is hashed before the new one is created, and the new one before it gets its name: a delta is applied
  completely or not at all.
- The size of the new file is limited for untrusted deltas (`most_bytes`); memory is a few MiB for all sizes.
- The digest proves that nothing changed in transit, not who made the delta: the new file has its own signatures.
"""

import os
import zlib
from collections.abc import Callable, Iterator, Sequence
from hashlib import sha256
from struct import Struct
from typing import Any, NamedTuple

from orchestrion.schema.errors import ModuleError
from orchestrion.schema.files import map_file, write_whole

MAGIC, VERSION = b"ORCX", 1
LITERAL = 2**64 - 1
#: limit of the new file for untrusted deltas: multiple of the old file, plus multiple of the delta, plus bytes
TIMES_OLD, TIMES_DELTA, AND_BYTES = 2, 64, 1 << 20

_HEADER = Struct("<4sIQ32sQ32sIIQQ")
_STEP = Struct("<QQ")
_DIGEST = 32
#: bytes that are processed at a time
_PIECE = 1 << 20
#: dictionary size of LZMA streams, so that none requires more memory when it is read
DICTIONARY = 8 << 20


class Delta(NamedTuple):
    """A delta with a valid form; `steps` are (offset in the old file or LITERAL, length)."""

    old_size: int
    old_digest: bytes
    new_size: int
    new_digest: bytes
    codec: str
    steps: Sequence[tuple[int, int]]
    literals: int
    packed: memoryview
    size: int


class Codec(NamedTuple):
    """A compression of literals. `open` returns an object with `decompress(data, most)`, `eof` and `unused_data`, and
    the exception that it raises for damaged data.
    """

    name: str
    code: int
    open: Callable[[], tuple[Any, type[Exception]]]


def _zlib() -> tuple[Any, type[Exception]]:
    return zlib.decompressobj(), zlib.error


def _lzma() -> tuple[Any, type[Exception]]:
    try:
        import lzma
    except ImportError:
        raise ModuleError(
            "the delta is packed with LZMA, which this Python was built without: make it with --compression=zlib"
        ) from None
    return lzma.LZMADecompressor(lzma.FORMAT_RAW, filters=lzma_filters()), lzma.LZMAError


def lzma_filters() -> list[dict[str, int]]:
    """LZMA2 with a dictionary size that does not depend on the delta."""
    import lzma

    return [{"id": lzma.FILTER_LZMA2, "preset": 9, "dict_size": DICTIONARY}]


CODECS: tuple[Codec, ...] = (Codec("zlib", 1, _zlib), Codec("lzma", 2, _lzma))
_BY_CODE = {row.code: row for row in CODECS}
BY_NAME = {row.name: row for row in CODECS}


def read_delta(data: bytes | bytearray | memoryview) -> Delta:
    """Parses a delta. Raises ModuleError unless its form is valid."""
    view = memoryview(data).toreadonly().cast("B")
    body = len(view) - _DIGEST
    if body < _HEADER.size or view[:4] != MAGIC:
        raise ModuleError(f"not a delta: {len(view)} bytes that start with {bytes(view[:4])!r}, not {MAGIC!r}", 0)
    if sha256(view[:body]).digest() != view[body:]:
        raise ModuleError("the delta is damaged: its digest differs", body)
    _, version, old_size, old_digest, new_size, new_digest, code, count, literals, packed = _HEADER.unpack_from(view)
    if version != VERSION:
        raise ModuleError(f"the delta has version {version}, this version of the package applies {VERSION}", 4)
    if code not in _BY_CODE:
        raise ModuleError(f"the literals are packed with codec {code}; there are {', '.join(BY_NAME)}", 88)
    start = _HEADER.size + count * _STEP.size
    if start + packed != body:
        raise ModuleError(f"{count} steps and {packed} bytes of literals do not fill the delta's {len(view)} bytes", 92)
    steps = tuple(_STEP.iter_unpack(view[_HEADER.size : start]))
    _check_steps(steps, old_size, new_size, literals)
    codec = _BY_CODE[code].name
    return Delta(old_size, old_digest, new_size, new_digest, codec, steps, literals, view[start:body], len(view))


def _check_steps(steps: Sequence[tuple[int, ...]], old_size: int, new_size: int, literals: int) -> None:
    """Checks that steps stay inside of the old file, sum up to the new size, use all literals, and are not empty."""
    made = used = 0
    was_literal = False
    for number, (offset, length) in enumerate(steps):
        at = _HEADER.size + number * _STEP.size
        is_literal = offset == LITERAL
        if not length or (is_literal and was_literal):
            raise ModuleError(f"step {number} is empty, or belongs to the one before it", at)
        if not is_literal and offset + length > old_size:
            raise ModuleError(f"step {number} copies {length} bytes at {offset}; the old file has {old_size}", at)
        made += length
        used += length if is_literal else 0
        was_literal = is_literal
    if (made, used) != (new_size, literals):
        raise ModuleError(f"the steps give {made} bytes, {used} of literals; the header says {new_size}, {literals}")


def write_delta(delta: Delta) -> bytes:
    """The bytes of a delta; `size` is ignored."""
    head = _HEADER.pack(
        MAGIC,
        VERSION,
        delta.old_size,
        delta.old_digest,
        delta.new_size,
        delta.new_digest,
        BY_NAME[delta.codec].code,
        len(delta.steps),
        delta.literals,
        len(delta.packed),
    )
    body = head + b"".join(_STEP.pack(*step) for step in delta.steps) + delta.packed
    return body + sha256(body).digest()


def default_limit(delta: Delta) -> int:
    """The default limit of the new file's bytes."""
    return TIMES_OLD * delta.old_size + TIMES_DELTA * delta.size + AND_BYTES


def apply(old: memoryview, delta: Delta, most_bytes: int | None = None) -> Iterator[memoryview | bytes]:
    """Yields the new file in pieces. Raises ModuleError before the first piece if the old file is a different one, or
    the new one exceeds `most_bytes`; and after the last piece if their digest is not that of the new file, so do not
    use them before.
    """
    limit = default_limit(delta) if most_bytes is None else most_bytes
    if delta.new_size > limit:
        raise ModuleError(
            f"the delta of {delta.size} bytes gives a file of {delta.new_size}, more than {limit}: "
            "most_bytes or --most-bytes raises the limit for a delta that you trust"
        )
    if len(old) != delta.old_size or sha256(old).digest() != delta.old_digest:
        raise ModuleError(
            f"the delta is for a file of {delta.old_size} bytes with digest {delta.old_digest.hex()[:16]}; "
            f"this one has {len(old)} bytes and digest {sha256(old).hexdigest()[:16]}"
        )
    made = sha256()
    for piece in _pieces(old, delta):
        made.update(piece)
        yield piece
    if made.digest() != delta.new_digest:
        raise ModuleError(f"the delta gives digest {made.hexdigest()[:16]}, not {delta.new_digest.hex()[:16]}")


def apply_file(
    old: str | os.PathLike[str],
    delta: str | os.PathLike[str],
    new: str | os.PathLike[str],
    most_bytes: int | None = None,
) -> Delta:
    """Writes the new file atomically. Raises OSError, or ModuleError as `apply`, and then changes nothing.

    `new` may be `old`. Processes that have the old file mapped keep it.
    """
    target = os.path.realpath(new)
    if os.path.exists(target) and not os.path.isfile(target):
        raise OSError(22, "is no file: a delta is verified before it replaces one", os.fspath(new))
    found = read_delta(map_file(delta))
    write_whole(new, apply(map_file(old), found, most_bytes), "could not be written")
    return found


def _pieces(old: memoryview, delta: Delta) -> Iterator[memoryview | bytes]:
    literals = _Literals(delta)
    for offset, length in delta.steps:
        if offset == LITERAL:
            yield from literals.take(length)
            continue
        for at in range(offset, offset + length, _PIECE):
            yield old[at : min(at + _PIECE, offset + length)]
    literals.end()


class _Literals:
    """The literals of a delta, decompressed on demand."""

    def __init__(self, delta: Delta) -> None:
        self._packed, self._at = delta.packed, 0
        self._stream, self._error = BY_NAME[delta.codec].open()
        self._rest = b""  # input that zlib returned; LZMA keeps it and states whether it needs more
        self._left = b""

    def take(self, length: int) -> Iterator[bytes]:
        while length:
            if not self._left:
                self._left = self._next()
            piece, self._left = self._left[:length], self._left[length:]
            length -= len(piece)
            yield piece

    def end(self) -> None:
        """Raises ModuleError unless everything was taken."""
        if self._left or (not self._stream.eof and self._more()):
            raise ModuleError("the literals unpack to more bytes than the delta says")
        if not self._stream.eof or self._stream.unused_data or self._at != len(self._packed):
            raise ModuleError("the packed literals go on after their end, or lack it")

    def _next(self) -> bytes:
        found = b"" if self._stream.eof else self._more()
        if not found:
            raise ModuleError("the literals unpack to fewer bytes than the delta says")
        return found

    def _more(self) -> bytes:
        """Returns up to one piece; empty if the stream or its input has ended."""
        while not self._stream.eof:
            is_last = self._at == len(self._packed)
            if not self._rest and getattr(self._stream, "needs_input", True):
                self._rest = bytes(self._packed[self._at : self._at + _PIECE])
                self._at += len(self._rest)
            try:
                found: bytes = self._stream.decompress(self._rest, _PIECE)
            except (self._error, EOFError) as error:
                raise ModuleError(f"the literals are damaged: {error}") from None
            self._rest = getattr(self._stream, "unconsumed_tail", b"")
            if found or (is_last and not self._rest):
                return found
        return b""
