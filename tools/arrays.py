"""Arrays on the command line: `4xf32=1,2,3,4`, `2x2xi32=[[1 2][3 4]]`, `f32=3`, `8x8xf32=0` (a splat), `@file.npy`,
`2xcomplex<f32>=1+2i,-3i`.

Shapes and element types are written as in StableHLO's tensor types; numbers are separated by commas, spaces or
brackets, as IREE's tools take them. Only what NumPy can read without pickles is read from files. A file does not say
which type of ml_dtypes its elements are, only how many bytes they have: they are of the type that is wanted then.

Sizes are checked before memory is taken: a text may not ask for more memory than this machine has, and a file's header
for no more than the file holds.
"""

import io
import os
import re
import struct
import tokenize
import warnings
from math import prod
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from orchestrion.schema.dtypes import BOOL, BY_NAME, COMPLEX, FLOAT, DType, of_numpy
from orchestrion.schema.files import open_regular
from orchestrion.schema.float_formats import FLOAT_FORMATS
from orchestrion.schema.rules import MAX_RANK

from .cli import InputError, write_whole

Array = npt.NDArray[Any]

_SPEC = re.compile(r"(?:(?P<dims>\d+(?:x\d+)*)x)?(?P<dtype>[a-z]\w*(?:<\w+>)?)\s*=(?P<values>.*)", re.DOTALL | re.ASCII)
#: characters of a user's text in a message; digits of a size; bytes of a file's header
_SHOWN, _DIGITS, _HEADER = 80, 18, 10_000
#: what NumPy raises for malformed headers
_BAD_HEADER = (
    ValueError, EOFError, TypeError, KeyError, IndexError, AttributeError, OverflowError, SyntaxError, RecursionError,
    tokenize.TokenError, struct.error,
)  # fmt: skip
_BOOLS = {"0": False, "1": True, "false": False, "true": True}


def parse_array(text: str, wanted: DType | None = None) -> Array:
    """The array that a flag's value stands for, and which `wanted` may be the type of. `InputError`: what is wrong."""
    if text.startswith("@"):
        return load_array(text[1:], wanted)
    match = _SPEC.fullmatch(text.strip())
    if match is None:
        raise InputError(f"array {shown(text)}: expected DIMSxTYPE=VALUES, such as 4xf32=1,2,3,4, or @file.npy")
    dtype = BY_NAME.get(match["dtype"])
    if dtype is None:
        raise InputError(
            f"array {shown(text)}: no element type {shown(match['dtype'])}: there are {', '.join(BY_NAME)}"
        )
    shape = _shape(match["dims"] or "", text)
    words = re.sub(r"[\[\],;]", " ", match["values"]).split()
    size = prod(shape)
    if len(words) not in (size, 1) or (size == 0 and words):
        raise InputError(f"array {shown(text)}: {len(words)} values for {size} elements")
    if size * dtype.itemsize > (most := most_bytes()):
        raise InputError(f"array {shown(text)}: {size * dtype.itemsize} bytes, this machine has {most}")
    values = numbers(words, dtype, text)
    try:
        return values.reshape(shape) if len(words) == size else np.full(shape, values[0])
    except (ValueError, MemoryError) as error:
        raise InputError(f"array {shown(text)}: cannot be made: {error}") from None


def _shape(dims: str, text: str) -> tuple[int, ...]:
    """Sizes as NumPy takes them."""
    sizes = dims.split("x") if dims else []
    if len(sizes) > MAX_RANK:
        raise InputError(f"array {shown(text)}: rank {len(sizes)}, arrays have {MAX_RANK} axes at the most")
    if wide := [size for size in sizes if len(size) > _DIGITS]:
        raise InputError(f"array {shown(text)}: a size of {len(wide[0])} digits, {_DIGITS} are the most")
    return tuple(map(int, sizes))


def shown(text: str) -> str:
    """A user's text, quoted for a message: one line, cut to _SHOWN characters."""
    return repr(text) if len(text) <= _SHOWN else f"{text[:_SHOWN]!r}... ({len(text)} characters)"


def most_bytes() -> int:
    """Bytes of this machine's memory, or 64 GiB if the system does not say."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):  # Windows has no sysconf, others lack the names
        return 1 << 36


def numbers(words: list[str], dtype: DType, text: str) -> Array:
    """Numbers as a flat array; each must be one that the element type has."""
    try:
        if dtype.name in FLOAT_FORMATS:
            return _narrow_floats(words, dtype)
        if dtype.kind == BOOL:
            return np.array([_BOOLS[word.lower()] for word in words], dtype.numpy)
        if dtype.kind == FLOAT:
            return np.array([float(word) for word in words], np.float64).astype(dtype.numpy)
        if dtype.kind == COMPLEX:
            parts = [complex(f"{word[:-1]}j" if word.endswith("i") else word) for word in words]
            return np.array(parts, np.complex128).astype(dtype.numpy)
        whole = [int(word, 0) for word in words]
        if dtype.bits < 8 and whole:
            signed = dtype.name[0] == "i"
            least, most = (-(1 << dtype.bits - 1), (1 << dtype.bits - 1) - 1) if signed else (0, (1 << dtype.bits) - 1)
            if not least <= min(whole) <= max(whole) <= most:
                raise OverflowError(f"{dtype} holds {least} to {most}")
            return np.array(whole, np.int8).astype(dtype.numpy)
        return np.array(whole, dtype.numpy)
    except ImportError as error:
        raise InputError(f"array {shown(text)}: {error}") from None
    except (ValueError, KeyError, OverflowError) as error:
        raise InputError(f"array {shown(text)}: not all values are {dtype}: {shortened(str(error))}") from None


def _narrow_floats(words: list[str], dtype: DType) -> Array:
    """Rounded once, from the digits' double."""
    row = FLOAT_FORMATS[dtype.name]
    codes = np.array([row.rounded(float(word)) for word in words], f"<u{dtype.itemsize}")
    return codes.view(dtype.numpy)


def shortened(message: str) -> str:
    """A message of another library, cut to twice _SHOWN characters."""
    return message if len(message) <= 2 * _SHOWN else f"{message[: 2 * _SHOWN]}..."


def load_array(path: str, wanted: DType | None = None) -> Array:
    """The array in a `.npy` file. Raises InputError or OSError. `wanted`: its type, if ml_dtypes has it."""
    try:
        with os.fdopen(open_regular(path), "rb") as file:
            array = _read_npy(file, path)
    except _BAD_HEADER as error:
        raise InputError(f"{path}: not a .npy file: {shortened(str(error))}") from None
    except MemoryError:
        raise InputError(f"{path}: there is not enough memory for it") from None
    if array.dtype.kind == "V" and wanted is not None and wanted.foreign and array.dtype.itemsize == wanted.itemsize:
        array = array.view(wanted.numpy)
    if of_numpy(array.dtype) is None:
        raise InputError(f"{path}: element type {shortened(str(array.dtype))} is not one of {', '.join(BY_NAME)}")
    return array


def _read_npy(file: BinaryIO, path: str) -> Array:
    """Header, then elements. Nothing is unpickled, and no more memory is taken than the file's size."""
    version = np.lib.format.read_magic(file)
    width = 2 if version == (1, 0) else 4
    length = int.from_bytes(file.read(width), "little")
    if length > _HEADER:
        raise ValueError(f"a header of {length} bytes, {_HEADER} are the most")
    file.seek(-width, os.SEEK_CUR)
    # a header of version 3 is that of version 2 with other letters in names of fields, which no array has here
    header = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of headers that Python 2 wrote, which are read all the same
        shape, by_columns, dtype = header(file, _HEADER)
    if dtype.hasobject or not dtype.itemsize:
        raise ValueError(f"it holds {dtype}, which is read by pickles only, or has no bytes")
    if len(shape) > MAX_RANK or any(type(size) is not int or size < 0 for size in shape):
        raise ValueError(f"its header says shape {shape}")
    count = prod(shape)
    held = os.fstat(file.fileno()).st_size - file.tell()
    if count * dtype.itemsize != held:
        raise ValueError(f"it holds {held} bytes, {dtype} of shape {shape} has {count * dtype.itemsize}")
    flat = np.fromfile(file, dtype, count) if held else np.zeros(count, dtype)
    if flat.size != count:
        raise ValueError(f"it changed while it was read: {flat.size} of {count} elements")
    return flat.reshape(shape[::-1]).T if by_columns else flat.reshape(shape)


def save_array(path: str, array: Array) -> None:
    data = io.BytesIO()
    np.save(data, array, allow_pickle=False)
    write_whole(Path(path), data.getvalue())


def _row(array: Array) -> DType:
    """The row of an array that a function took or gave."""
    row = of_numpy(array.dtype)
    assert row is not None, f"{array.dtype} is an element type"
    return row


def type_text(array: Array) -> str:
    return "x".join([*map(str, array.shape), _row(array).name])


def format_array(array: Array) -> str:
    """`4xf32=[1 2 3 4]`, cut in the middle when it is long."""
    with np.printoptions(threshold=200, linewidth=120, suppress=False, floatmode="maxprec"):
        return f"{type_text(array)}={np.array2string(array, separator=' ')}"


def mismatch(got: Array, want: Array, relative: float, absolute: float) -> str | None:
    """Why two arrays differ, or None. Floats and complex numbers may differ by absolute max|want| + relative |want|;
    floats of fewer bits than f32 also be neighbours, which sums in another order may be rounded to."""
    if got.dtype != want.dtype or got.shape != want.shape:
        return f"is {type_text(got)}, expected {type_text(want)}"
    if _row(got).kind not in (FLOAT, COMPLEX):
        wrong = got != want
    else:
        near = np.zeros(got.shape, bool)
        if _row(got).kind == FLOAT and not _row(got).computed:
            near |= (np.nextafter(want, got) == got) & (relative > 0)
            got, want = (x.astype(np.float32) for x in (got, want))
        finite = np.isfinite(want)
        scale = float(np.max(np.abs(want), where=finite, initial=0.0))
        with np.errstate(invalid="ignore", over="ignore"):
            close = near | (np.abs(got - want) <= absolute * scale + relative * np.abs(want))
        wrong = ~np.where(finite, close, (got == want) | (np.isnan(got) & np.isnan(want)))
    count = int(np.count_nonzero(wrong))
    if not count:
        return None
    first = tuple(int(i) for i in np.argwhere(wrong)[0])
    return (
        f"differs in {count} of {got.size} elements, first at {list(first)}: {got[first]!s}, expected {want[first]!s}"
    )
