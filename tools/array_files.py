"""Arrays in files: `.npy` and `.npz`, of either byte order. The first bytes of a file determine its kind.

Only files that NumPy reads without pickles are read. Sizes are checked before memory is allocated: a header may not
claim more than the file holds, and the members of an archive not more than this machine's memory. Files do not name the
types of ml_dtypes, only the size of their elements; `as_wanted` converts to the wanted type.
"""

import errno
import io
import os
import struct
import tokenize
import warnings
import zipfile
import zlib
from collections.abc import Mapping
from math import prod
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from orchestrion.schema.dtypes import BY_NAME, DType, of_numpy
from orchestrion.schema.files import open_regular
from orchestrion.schema.rules import MAX_RANK

from .cli import InputError, write_whole

Array = npt.NDArray[Any]

#: the most characters of another library's message, bytes of a file's header, and members of an archive
_SHOWN, _HEADER, _MEMBERS = 160, 10_000, 1 << 16
#: the exceptions of NumPy and zipfile for malformed files
BAD_FILE = (
    ValueError, EOFError, TypeError, KeyError, IndexError, AttributeError, OverflowError, SyntaxError, RecursionError,
    tokenize.TokenError, struct.error, zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError,
)  # fmt: skip
#: the compression methods that NumPy uses for members of archives
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_ENCRYPTED = 1


def most_bytes() -> int:
    """Bytes of this machine's memory, or 64 GiB if the system does not report it."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):  # Windows has no sysconf, others lack the names
        return 1 << 36


def shortened(message: str) -> str:
    """A message of another library, cut to _SHOWN characters, on one line."""
    line = " ".join(message.split())
    return line if len(line) <= _SHOWN else f"{line[:_SHOWN]}..."


def load_array(path: str, wanted: DType | None = None) -> Array:
    """Reads the array of a `.npy` file. `wanted`: its type, if it is one of ml_dtypes. Raises InputError or OSError."""
    found = load(path)
    if isinstance(found, dict):
        raise InputError(f"{path}: an archive of {len(found)} arrays, one array expected")
    return as_wanted(found, wanted, path)


def load(path: str) -> Array | dict[str, Array]:
    """Reads the array of a `.npy` file, or the arrays of a `.npz` file by name. Raises InputError or OSError."""
    kind = "npy"
    try:
        with os.fdopen(open_regular(path), "rb") as file:
            if file.peek(2)[:2] == b"PK":
                kind = "npz"
                return _within(file)
            return _read_npy(file, os.fstat(file.fileno()).st_size)
    except BAD_FILE as error:
        raise InputError(f"{path}: not a .{kind} file: {shortened(str(error))}") from None
    except MemoryError:
        raise InputError(f"{path}: there is not enough memory for it") from None


def as_wanted(array: Array, wanted: DType | None, path: str) -> Array:
    """The array, converted to the wanted type of ml_dtypes. Raises InputError if its type is no element type."""
    if array.dtype.kind == "V" and wanted is not None and wanted.foreign and array.dtype.itemsize == wanted.itemsize:
        array = array.view(wanted.numpy)
    if of_numpy(array.dtype) is None:
        raise InputError(f"{path}: element type {shortened(str(array.dtype))} is not one of {', '.join(BY_NAME)}")
    return array


def _within(file: IO[bytes]) -> dict[str, Array]:
    """As `_read_npz`. Positions before the start of the file, which a damaged directory may contain,
    raise ValueError.
    """
    try:
        return _read_npz(file)
    except OSError as error:
        if error.errno != errno.EINVAL:
            raise
        raise ValueError("its directory names places that are not in the file") from None


def _read_npz(file: IO[bytes]) -> dict[str, Array]:
    """Reads the members by name, without their `.npy`. Allocates at most this machine's memory."""
    with zipfile.ZipFile(file) as archive:
        members = archive.infolist()
        if len(members) > _MEMBERS:
            raise ValueError(f"{len(members)} members, the limit is {_MEMBERS}")
        if (size := sum(member.file_size for member in members)) > (most := most_bytes()):
            raise ValueError(f"its members have {size} bytes, this machine has {most}")
        found: dict[str, Array] = {}
        for member in members:
            name = member.filename.removesuffix(".npy")
            if member.compress_type not in _METHODS or member.flag_bits & _ENCRYPTED:
                raise ValueError(f"member {name!r} is compressed or encrypted in a way that NumPy does not write")
            if name in found:
                raise ValueError(f"member {name!r} is there twice")
            with archive.open(member) as opened:
                found[name] = _read_npy(opened, member.file_size)
    return found


def _read_npy(file: IO[bytes], size: int) -> Array:
    """Reads header and elements, in the byte order of this machine. `size`: bytes of the file."""
    version = np.lib.format.read_magic(file)
    width = 2 if version == (1, 0) else 4
    length = int.from_bytes(file.read(width), "little")
    if length > _HEADER:
        raise ValueError(f"a header of {length} bytes, the limit is {_HEADER}")
    file.seek(-width, os.SEEK_CUR)
    # a header of version 3 only differs from version 2 in the encoding of field names, which arrays here do not have
    header = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # about headers written by Python 2, which are read all the same
        shape, by_columns, dtype = header(file, _HEADER)
    if dtype.hasobject or not dtype.itemsize:
        raise ValueError(f"it holds {dtype}, which is read by pickles only, or has no bytes")
    if len(shape) > MAX_RANK or any(type(size) is not int or size < 0 for size in shape):
        raise ValueError(f"its header says shape {shape}")
    count, held = prod(shape), size - file.tell()
    if count * dtype.itemsize != held:
        raise ValueError(f"it holds {held} bytes, {dtype} of shape {shape} has {count * dtype.itemsize}")
    flat = _elements(file, dtype, count)
    if flat.size != count:
        raise ValueError(f"it changed while it was read: {flat.size} of {count} elements")
    if not dtype.isnative:
        flat = flat.byteswap(inplace=True).view(dtype.newbyteorder("="))
    return flat.reshape(shape[::-1]).T if by_columns else flat.reshape(shape)


def _elements(file: IO[bytes], dtype: np.dtype[Any], count: int) -> Array:
    """Reads the rest of the file. A member of an archive has no descriptor for NumPy to read from."""
    if not count:
        return np.zeros(count, dtype)
    if isinstance(file, zipfile.ZipExtFile):
        data = bytearray(file.read(count * dtype.itemsize))
        return np.frombuffer(data, dtype, len(data) // dtype.itemsize)
    return np.fromfile(file, dtype, count)


def save_array(path: str, array: Array) -> None:
    """Writes a `.npy` file atomically."""
    data = io.BytesIO()
    np.save(data, array, allow_pickle=False)
    write_whole(Path(path), data.getvalue())


def save_arrays(path: str, arrays: Mapping[str, Array]) -> None:
    """Writes a `.npz` file with arrays by name, atomically."""
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_STORED) as archive:
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                np.lib.format.write_array(member, np.asanyarray(array), allow_pickle=False)
    write_whole(Path(path), data.getvalue())
