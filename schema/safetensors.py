"""safetensors files: named tensors in one file, in the format of the safetensors package.

    u64 size of the header | header: JSON, padded with spaces | data

The header is one object: tensor name -> {"dtype", "shape", "data_offsets": [begin, end]}, with offsets from the start
of the data, and under `__metadata__` text -> text. The reader is strict: every key is known and unique, the tensors
cover the data without overlap or gap, and the size of each matches its type and shape. Anything else raises
ModuleError. Opening a file neither copies nor reads tensors.

The writer orders tensors by the power of two that divides their size, the greatest first, and pads the header. Then
every tensor is aligned to that power (up to a page); the format has no other way to align tensors.
"""

from __future__ import annotations

import json
import mmap
import os
import stat
import struct
from collections.abc import Mapping
from hashlib import sha256
from math import prod
from typing import Any, Final, NamedTuple, NoReturn

import numpy as np
import numpy.typing as npt

from .dtypes import BY_NAME, DType, describe
from .errors import ModuleError
from .files import no_file, read_pipe, write_whole

#: the most bytes of a header: about 60,000 tensors; the parsed header takes about twenty times as much memory
MAX_HEADER: Final = 8 << 20
#: the most dimensions and bytes of a tensor, as in a module (`rules.py`)
MAX_RANK, MAX_BYTES = 64, 2**63 - 1
METADATA: Final = "__metadata__"
#: files below PAGED_FROM bytes are read instead of mapped, and not aligned to pages
PAGE, PAGED_FROM, ALIGNMENT = 16384, 65536, 64

#: name in the format -> name of the element type
DTYPES: Final[dict[str, str]] = {
    "BOOL": "i1",
    "U8": "ui8",
    "I8": "i8",
    "U16": "ui16",
    "I16": "i16",
    "U32": "ui32",
    "I32": "i32",
    "U64": "ui64",
    "I64": "i64",
    "F16": "f16",
    "BF16": "bf16",
    "F32": "f32",
    "F64": "f64",
    "F8_E4M3": "f8E4M3FN",
    "F8_E4M3FNUZ": "f8E4M3FNUZ",
    "F8_E5M2": "f8E5M2",
    "F8_E5M2FNUZ": "f8E5M2FNUZ",
    "F8_E8M0": "f8E8M0FNU",
    "C64": "complex<f32>",
}
_NAMES: Final = {name: code for code, name in DTYPES.items()}
_SIZE: Final = struct.Struct("<Q")
_KEYS: Final = frozenset(("dtype", "shape", "data_offsets"))

Data = bytes | bytearray | memoryview | npt.NDArray[Any]


class Tensor(NamedTuple):
    """A tensor of a file: bytes `start` to `end` of the file are `dims` elements of `dtype` in row-major order."""

    dtype: DType
    dims: tuple[int, ...]
    start: int
    end: int

    def __str__(self) -> str:
        return describe(self.dtype, self.dims)


class Values(NamedTuple):
    """A tensor to write."""

    dtype: DType
    dims: tuple[int, ...]
    data: Data


class TensorFile:
    """An opened file. Its views keep the map or buffer alive."""

    __slots__ = ("data", "head", "metadata", "tensors")

    def __init__(
        self, data: memoryview, head: bytes, tensors: Mapping[str, Tensor], metadata: Mapping[str, str]
    ) -> None:
        self.data = data  #: the whole file
        self.head = head  #: a copy of the decoded size and header
        self.tensors = tensors  #: by name, in the order of their data
        self.metadata = metadata

    def bytes_of(self, name: str) -> memoryview:
        """The bytes of a tensor, neither copied nor read."""
        tensor = self.tensors[name]
        return self.data[tensor.start : tensor.end]

    def digest(self) -> bytes:
        """SHA-256 of the file: of the header as it was decoded, even if the file changed since, and of all data."""
        state = sha256(self.head)
        state.update(self.data[len(self.head) :])
        return state.digest()


def holds(dtype: DType) -> bool:
    """Whether the format supports the element type."""
    return dtype.name in _NAMES


def open_file(path: str | os.PathLike[str], offset: int = 0, length: int | None = None) -> TensorFile:
    """Maps a file, or a part of it (`length` None: to its end). Small files and pipes are read instead.

    Raises OSError if it cannot be read, ModuleError if it is not a valid safetensors file, ValueError if the file has
    no such part.
    """
    file = os.open(path, os.O_RDONLY | getattr(os, "O_BINARY", 0))
    try:
        state = os.fstat(file)
        if stat.S_ISREG(state.st_mode):
            view = _part(file, *_bounds(state.st_size, offset, length))
        elif stat.S_ISFIFO(state.st_mode):
            data = read_pipe(file)
            view = memoryview(data)[slice(*_bounds(len(data), offset, length))]
        else:
            raise no_file(state.st_mode, path)
    except OSError as error:
        raise OSError(error.errno, error.strerror, os.fspath(path)) from None
    finally:
        os.close(file)
    return open_bytes(view)


def _bounds(size: int, offset: int, length: int | None) -> tuple[int, int]:
    end = size if length is None else offset + length
    if not 0 <= offset <= end <= size:
        raise ValueError(f"offset {offset} and length {length} are no part of a file of {size} bytes")
    return offset, end


def _part(file: int, start: int, end: int) -> bytes | memoryview:
    """A part of a regular file, read or mapped. Maps start at multiples of the system's allocation granularity."""
    if end - start < PAGED_FROM:
        os.lseek(file, start, os.SEEK_SET)
        return os.read(file, end - start)
    skipped = start % mmap.ALLOCATIONGRANULARITY
    mapped = mmap.mmap(file, end - start + skipped, access=mmap.ACCESS_READ, offset=start - skipped)
    return memoryview(mapped)[skipped:]


def open_bytes(data: bytes | bytearray | memoryview | mmap.mmap) -> TensorFile:
    """Opens bytes in memory, as `open_file`. They must not change while the file or a view of it lives."""
    view = memoryview(data).toreadonly().cast("B")
    start = _header_end(view)
    head = bytes(view[:start])
    header = _parsed(head[_SIZE.size :])
    metadata = _metadata(header.pop(METADATA, {}))
    rows = [(name, _tensor(name, row)) for name, row in header.items()]
    tensors = dict(sorted(rows, key=lambda item: (item[1].start, item[1].end)))
    _check_cover(tensors, len(view) - start)
    placed = {name: row._replace(start=row.start + start, end=row.end + start) for name, row in tensors.items()}
    return TensorFile(view, head, placed, metadata)


def _header_end(view: memoryview) -> int:
    length = len(view)
    if length < _SIZE.size:
        raise ModuleError(f"no safetensors file: {length} bytes, the size of the header takes {_SIZE.size}", 0)
    size: int = _SIZE.unpack_from(view)[0]
    if size > MAX_HEADER:
        raise ModuleError(f"no safetensors file: a header of {size} bytes, the limit is {MAX_HEADER}", 0)
    if size > length - _SIZE.size:
        raise ModuleError(f"truncated: a header of {size} bytes, the file has {length - _SIZE.size} behind its size", 0)
    if size == 0 or view[_SIZE.size] != ord("{"):
        raise ModuleError("no safetensors file: the header does not begin with '{'", _SIZE.size)
    return _SIZE.size + size


def _parsed(header: bytes) -> dict[str, Any]:
    """The header's object: JSON as in RFC 8259, without repeated keys, followed by spaces only."""
    text = header.rstrip(b" ")
    if not text.endswith(b"}"):
        raise ModuleError("the header does not end with '}' and spaces", _SIZE.size + len(text) - 1)
    try:
        found = json.loads(
            text.decode(),
            object_pairs_hook=_object,
            parse_constant=_no_number,
            parse_float=_no_number,
            parse_int=_number,
        )
    except UnicodeDecodeError as error:
        raise ModuleError("the header is no UTF-8", _SIZE.size + error.start) from None
    except json.JSONDecodeError as error:
        place = _SIZE.size + len(error.doc[: error.pos].encode())
        raise ModuleError(f"the header is no JSON: {error.msg.lower()}", place) from None
    except RecursionError:
        raise ModuleError("the header is nested too deeply", _SIZE.size) from None
    except ValueError as error:  # a number with thousands of digits
        raise ModuleError(f"the header is no JSON: {str(error).lower()}", _SIZE.size) from None
    assert isinstance(found, dict), "it begins with a brace"
    return found


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) != len(pairs):
        seen: set[str] = set()
        name = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
        raise ModuleError(f"the header has the key {shown(name)} twice", _SIZE.size)
    return made


def _number(text: str) -> int:
    """Refuses -0, which other readers do not accept as a whole number."""
    return _no_number(text) if text.startswith("-") else int(text)


def _no_number(text: str) -> NoReturn:
    raise ModuleError(
        f"the header holds the number {shown(text)}; only whole ones from 0 on have a meaning", _SIZE.size
    )


def shown(name: str) -> str:
    """A name from a file for messages: quoted, on one line, shortened if it is long."""
    return ascii(name) if len(name) <= 200 else f"{ascii(name[:200])}... ({len(name)} characters)"


def _metadata(found: Any) -> dict[str, str]:
    if not isinstance(found, dict) or not all(isinstance(value, str) for value in found.values()):
        raise ModuleError(f"{METADATA} is no object of texts", _SIZE.size)
    for text in (*found, *found.values()):
        _check_text(METADATA, text)
    return found


def _check_text(what: str, text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ModuleError(f"{what} {shown(text)} holds half of a surrogate pair", _SIZE.size) from None


def _tensor(name: str, row: Any) -> Tensor:
    """The tensor of a row of the header; its offsets still count from the start of the data."""
    _check_text("tensor name", name)
    what = f"tensor {shown(name)}"
    if not isinstance(row, dict) or row.keys() != _KEYS:
        there = f"the keys {', '.join(map(shown, sorted(row)))}" if isinstance(row, dict) else "no object"
        raise ModuleError(f"{what} has {there or 'none'}, not {', '.join(sorted(_KEYS))}", _SIZE.size)
    dtype = DTYPES.get(row["dtype"]) if isinstance(row["dtype"], str) else None
    if dtype is None:
        known = ", ".join(DTYPES)
        raise ModuleError(f"{what} is of type {shown(str(row['dtype']))}; known are {known}", _SIZE.size)
    dims, offsets = row["shape"], row["data_offsets"]
    if not _are_sizes(dims) or len(dims) > MAX_RANK:
        raise ModuleError(f"{what}: its shape is no list of at most {MAX_RANK} sizes", _SIZE.size)
    if not _are_sizes(offsets) or len(offsets) != 2:
        raise ModuleError(f"{what}: its data_offsets are not two sizes", _SIZE.size)
    begin, end = offsets
    size = prod(dims) * BY_NAME[dtype].itemsize
    if prod(dim or 1 for dim in dims) * BY_NAME[dtype].itemsize > MAX_BYTES:
        raise ModuleError(f"{what} has more than {MAX_BYTES} bytes", _SIZE.size)
    if end - begin != size:
        of = describe(BY_NAME[dtype], dims)
        raise ModuleError(f"{what}: bytes {begin} to {end}, but {of} takes {size}", _SIZE.size)
    return Tensor(BY_NAME[dtype], tuple(dims), begin, end)


def _are_sizes(found: Any) -> bool:
    return isinstance(found, list) and all(type(item) is int and 0 <= item <= MAX_BYTES for item in found)


def _check_cover(tensors: Mapping[str, Tensor], length: int) -> None:
    """Checks that the tensors, in order, cover everything after the header. `length`: the number of bytes there."""
    free, last = 0, "the header"
    for name, row in tensors.items():
        if row.start != free:
            word = "overlap" if row.start < free else f"leave a gap of {row.start - free} bytes"
            raise ModuleError(f"tensor {shown(name)} begins at {row.start}: it and {last} {word}", _SIZE.size)
        free, last = row.end, f"tensor {shown(name)}"
    if free != length:
        word = "truncated" if free > length else "bytes follow the last tensor"
        raise ModuleError(f"{word}: the tensors take {free} bytes, the file has {length} for them", _SIZE.size)


def pieces(tensors: Mapping[str, Values], metadata: Mapping[str, str] | None = None) -> list[bytes | memoryview]:
    """The parts of a file in order; tensors are views of the caller's data. Equal tensors give equal bytes."""
    views = {name: _view(name, row) for name, row in tensors.items()}
    order = sorted(views, key=lambda name: (-_alignment(len(views[name])), name))
    header: dict[str, Any] = {METADATA: dict(sorted(metadata.items()))} if metadata else {}
    free = 0
    for name in order:
        row, end = tensors[name], free + len(views[name])
        header[name] = {"dtype": _NAMES[row.dtype.name], "shape": list(row.dims), "data_offsets": [free, end]}
        free = end
    text = json.dumps(header, ensure_ascii=False, separators=(",", ":")).encode()
    to = PAGE if any(len(view) >= PAGED_FROM for view in views.values()) else ALIGNMENT
    size = -(-(_SIZE.size + len(text)) // to) * to - _SIZE.size
    if size > MAX_HEADER:
        raise ValueError(f"{len(order)} tensors need a header of {size} bytes, the limit is {MAX_HEADER}")
    return [_SIZE.pack(size), text.ljust(size), *(views[name] for name in order)]


def write_file(
    path: str | os.PathLike[str], tensors: Mapping[str, Values], metadata: Mapping[str, str] | None = None
) -> bytes:
    """Writes a file atomically (`files.write_whole`). Returns the file's SHA-256. Raises OSError."""
    parts = pieces(tensors, metadata)
    state = sha256()
    for part in parts:
        state.update(part)
    write_whole(path, parts, "cannot write the parameters")
    return state.digest()


def _view(name: str, row: Values) -> memoryview:
    """A view of the bytes of a tensor. Raises ValueError if their number does not match type and shape."""
    if name == METADATA or not holds(row.dtype):
        raise ValueError(f"tensor {shown(name)} of type {row.dtype}: safetensors has no such name or type")
    data = row.data
    if isinstance(data, np.ndarray) and data.flags.c_contiguous:
        data = data.reshape(-1).view(np.uint8)  # arrays of ml_dtypes do not support the buffer protocol
    view = memoryview(data)  # type: ignore[arg-type]  # NumPy arrays are buffers, which Python 3.11 cannot say
    size = prod(row.dims) * row.dtype.itemsize
    if not view.c_contiguous or view.nbytes != size:
        of = f"tensor {shown(name)} of type {describe(row.dtype, row.dims)}"
        raise ValueError(f"{of}: {view.nbytes} bytes, not {size}, or not contiguous")
    return view.cast("B") if view.nbytes else memoryview(b"")


def _alignment(size: int) -> int:
    """The greatest power of two that divides a size, at most a page. An empty tensor goes last, because anything
    divides 0.
    """
    return min(size & -size, PAGE)
