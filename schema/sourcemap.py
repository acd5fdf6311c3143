"""The source map of a program, stored in a debug segment: the origin of instructions and device code.

    u32 rows | u32 bytes of text | rows: u32 function, u32 pc, u32 text, ascending | text: UTF-8, a NUL between two

Functions count within the program. A row applies from its pc on, until the next row of the same function; its text is a
source location. Rows whose function is `OPS + n` or `BINDINGS + n` describe executable n, and their pc is one of its
entries. With `OPS`, the text lists the source ops that the entry computes, separated by blanks, the main one first.
With `BINDINGS`, it lists the MLIR type of the tensor in each binding, or `none`, separated by `; `. For a binding that
operands share it lists these instead, separated by ` | `: number, access, type, `at` and the parameter word with the
offset in bytes, as in `0 read tensor<4xf32> at 2`. The map is read only when an error, a listing, a profile or a
comparison needs it.
"""

import struct
from bisect import bisect_left, bisect_right
from collections.abc import Iterable

from .errors import ModuleError

_HEAD = struct.Struct("<II")
_ROW = struct.Struct("<III")
#: added to an executable's ordinal in the function column
OPS = 1 << 31
BINDINGS = 3 << 30


class SourceMap:
    """`rows` are (function, pc, location number), `texts` are the locations."""

    __slots__ = ("rows", "texts")

    def __init__(self, rows: list[tuple[int, int, int]], texts: list[str]) -> None:
        self.rows = rows
        self.texts = texts

    def find(self, function: int, pc: int) -> str | None:
        place = bisect_right(self.rows, (function, pc, len(self.texts))) - 1
        if place < 0 or self.rows[place][0] != function:
            return None
        return self.texts[self.rows[place][2]]

    def source_ops(self, executable: int, entry: int) -> tuple[str, ...]:
        """The ops that an entry computes, the main one first; empty if the map does not state them."""
        return tuple(self._text(executable + OPS, entry).split())

    def binding_types(self, executable: int, entry: int) -> tuple[str, ...]:
        """The type of the tensor in each binding; empty if the map does not state them."""
        return tuple(filter(None, self._text(executable + BINDINGS, entry).split("; ")))

    def _text(self, *key: int) -> str:
        place = bisect_left(self.rows, (*key, 0))
        if place == len(self.rows) or self.rows[place][:2] != key:
            return ""
        return self.texts[self.rows[place][2]]


def encode(locations: Iterable[tuple[int, int, str]]) -> bytes:
    """The segment for rows (function, pc, text) in ascending order; equal texts are stored once."""
    texts: dict[str, int] = {}
    rows = b"".join(_ROW.pack(function, pc, texts.setdefault(text, len(texts))) for function, pc, text in locations)
    if any("\0" in text for text in texts):
        raise ValueError("a location holds a NUL")
    pool = "\0".join(texts).encode()
    return _HEAD.pack(len(rows) // _ROW.size, len(pool)) + rows + pool


def decode(data: memoryview) -> SourceMap:
    """Parses and verifies a segment. Offsets in errors count within the segment."""
    if len(data) < _HEAD.size:
        raise ModuleError(f"source map: {len(data)} bytes, its head takes {_HEAD.size}", 0)
    count, size = _HEAD.unpack_from(data)
    text = _HEAD.size + count * _ROW.size
    if text + size != len(data):
        raise ModuleError(f"source map: {len(data)} bytes, its head says {text + size}", 0)
    try:
        texts = str(data[text:], "utf-8").split("\0")
    except UnicodeDecodeError as error:
        raise ModuleError(f"source map: not UTF-8: {error.reason}", text + error.start) from None
    rows: list[tuple[int, int, int]] = list(_ROW.iter_unpack(data[_HEAD.size : text]))
    previous = (0, -1)
    for place, (function, pc, location) in enumerate(rows):
        if (function, pc) <= previous:
            raise ModuleError(f"source map: row {place} does not ascend", _HEAD.size + place * _ROW.size)
        if location >= len(texts):
            raise ModuleError(f"source map: location {location} of {len(texts)}", _HEAD.size + place * _ROW.size)
        previous = (function, pc)
    return SourceMap(rows, texts)
