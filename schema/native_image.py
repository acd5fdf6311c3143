"""Native images: machine code of one instruction set in one position-independent piece, the format `native-image`.

A payload is a header, a row per entry, zeros, then the code: text and read-only data, without relocations and without
external symbols. All numbers are little-endian. `decode` accepts exactly the bytes that `encode` writes, or raises
ModuleError with an offset; it knows nothing about instructions, so code that it accepts is as dangerous as any other.

An entry is `void entry(const void *arguments, uint64_t begin, uint64_t end)` in the C calling convention of Linux. It
runs the workgroups `begin <= g < end` of a dispatch, one after the other. `arguments` points to the addresses of the
bindings, 8 bytes each, which the parameter words follow, 4 bytes each. The row of an entry says how many bytes of the
stack it uses. The code is mapped readable and executable, never writable, at a multiple of `PAGE` bytes.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from struct import Struct

from .errors import ModuleError

MAGIC = b"ORCHNIMG"
VERSION = 1
#: architecture -> its number in an image
ARCHITECTURES: dict[str, int] = {"x86-64": 1, "aarch64": 2}
#: alignment of the code in an image and in memory
PAGE = 4096
#: entries start at multiples of this number of bytes: no instruction of any architecture is cut
ENTRY_ALIGNMENT = 4
#: most entries of an image, bindings of an entry, parameter words of an entry
MOST_ENTRIES, MOST_BINDINGS, MOST_PARAMETERS = 1 << 16, 1 << 10, 1 << 14
#: most bytes of code, and of the stack that an entry uses
MOST_CODE, MOST_STACK = 1 << 30, 1 << 19

_HEADER = Struct("<8s6I")
_ENTRY = Struct("<4I")
_NAMES = {number: name for name, number in ARCHITECTURES.items()}


@dataclass(frozen=True, slots=True)
class Entry:
    """An entry: the offset of its first instruction in the code, its bindings and its parameter words. `stack`: bytes
    of the stack that it uses, with those of functions that it calls.
    """

    offset: int
    bindings: int
    parameters: int
    stack: int = 0


@dataclass(frozen=True, slots=True)
class Image:
    """An image. `code_offset`: the byte of the payload at which the code starts, a multiple of `PAGE`."""

    architecture: str
    entries: tuple[Entry, ...]
    code: bytes | memoryview

    @property
    def code_offset(self) -> int:
        return _code_offset(len(self.entries))


def encode(architecture: str, entries: Sequence[Entry], code: bytes) -> bytes:
    """The payload of an image. Raises ValueError if it exceeds a bound of the format."""
    offset = _code_offset(len(entries))
    header = _HEADER.pack(MAGIC, VERSION, ARCHITECTURES[architecture], offset, len(code), len(entries), 0)
    rows = b"".join(_ENTRY.pack(entry.offset, entry.bindings, entry.parameters, entry.stack) for entry in entries)
    payload = (header + rows).ljust(offset, b"\0") + code
    try:
        decode(payload)
    except ModuleError as error:
        raise ValueError(str(error)) from error
    return payload


def decode(payload: bytes | bytearray | memoryview) -> Image:
    """The image of a payload; its code is a view of the payload. Raises ModuleError for anything else."""
    view = memoryview(payload).cast("B").toreadonly()
    if len(view) < _HEADER.size:
        raise ModuleError(f"a native image of {len(view)} bytes, its header has {_HEADER.size}", 0)
    magic, version, number, start, size, count, zero = _HEADER.unpack_from(view)
    if magic != MAGIC:
        raise ModuleError(f"no native image: starts with {magic!r}, not {MAGIC!r}", 0)
    if version != VERSION:
        raise ModuleError(f"native image of version {version}, this version reads {VERSION}", 8)
    if number not in _NAMES:
        raise ModuleError(f"native image for architecture {number}, there are {sorted(_NAMES)}", 12)
    if not 1 <= count <= MOST_ENTRIES:
        raise ModuleError(f"native image with {count} entries, 1 to {MOST_ENTRIES} are allowed", 24)
    if start != _code_offset(count):
        raise ModuleError(f"native image with code at {start}, with {count} entries it is at {_code_offset(count)}", 16)
    if not 1 <= size <= MOST_CODE:
        raise ModuleError(f"native image with {size} bytes of code, 1 to {MOST_CODE} are allowed", 20)
    if zero:
        raise ModuleError(f"native image with {zero} in a reserved word", 28)
    if len(view) != start + size:
        raise ModuleError(f"native image of {len(view)} bytes, its header says {start + size}", len(view))
    rows_end = _HEADER.size + count * _ENTRY.size
    entries = tuple(_entry(view, at, size) for at in range(_HEADER.size, rows_end, _ENTRY.size))
    if any(view[rows_end:start]):
        raise ModuleError("native image with bytes other than zero between entries and code", rows_end)
    return Image(_NAMES[number], entries, view[start:])


def _entry(view: memoryview, at: int, size: int) -> Entry:
    offset, bindings, parameters, stack = _ENTRY.unpack_from(view, at)
    if offset >= size or offset % ENTRY_ALIGNMENT:
        raise ModuleError(f"entry at byte {offset} of {size} bytes of code, or not at a multiple of 4", at)
    if bindings > MOST_BINDINGS:
        raise ModuleError(f"entry with {bindings} bindings, at most {MOST_BINDINGS} are allowed", at + 4)
    if parameters > MOST_PARAMETERS:
        raise ModuleError(f"entry with {parameters} parameter words, at most {MOST_PARAMETERS} are allowed", at + 8)
    if stack > MOST_STACK:
        raise ModuleError(f"entry that uses {stack} bytes of the stack, at most {MOST_STACK} are allowed", at + 12)
    return Entry(offset, bindings, parameters, stack)


def _code_offset(entries: int) -> int:
    """The first multiple of `PAGE` behind the rows."""
    return -(-(_HEADER.size + entries * _ENTRY.size) // PAGE) * PAGE
