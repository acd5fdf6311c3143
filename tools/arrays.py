"""Arrays on the command line: `4xf32=1,2,3,4`, `2x2xi32=[[1 2][3 4]]`, `f32=3`, `8x8xf32=0` (a splat), `@file.npy`,
`2xcomplex<f32>=1+2i,-3i`.

Shapes and element types are written as in StableHLO's tensor types. Numbers are separated by commas, spaces or
brackets, as for IREE's tools. Files are those of `array_files.py`. A text may not require more memory than this machine
has.
"""

import re
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from orchestrion.schema.dtypes import BOOL, BY_NAME, COMPLEX, FLOAT, FLOAT_FORMATS, DType, of_numpy
from orchestrion.schema.rules import MAX_RANK

from .array_files import load_array, most_bytes, shortened
from .cli import InputError

Array = npt.NDArray[Any]

_SPEC = re.compile(r"(?:(?P<dims>\d+(?:x\d+)*)x)?(?P<dtype>[a-z]\w*(?:<\w+>)?)\s*=(?P<values>.*)", re.DOTALL | re.ASCII)
#: the most characters of a user's text in a message, and digits of a size
_SHOWN, _DIGITS = 80, 18
_BOOLS = {"0": False, "1": True, "false": False, "true": True}


def parse_array(text: str, wanted: DType | None = None) -> Array:
    """Parses the value of a flag. `wanted`: the type of ml_dtypes of a file's elements. Raises InputError."""
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


def is_typed(text: str) -> bool:
    """Whether a text has the form of a type and values; the values may be invalid."""
    match = _SPEC.fullmatch(text.strip())
    return match is not None and match["dtype"] in BY_NAME


def _shape(dims: str, text: str) -> tuple[int, ...]:
    """The shape as a tuple. Raises InputError for sizes that NumPy does not support."""
    sizes = dims.split("x") if dims else []
    if len(sizes) > MAX_RANK:
        raise InputError(f"array {shown(text)}: rank {len(sizes)}, arrays have {MAX_RANK} axes at the most")
    if wide := [size for size in sizes if len(size) > _DIGITS]:
        raise InputError(f"array {shown(text)}: a size of {len(wide[0])} digits, the limit is {_DIGITS}")
    return tuple(map(int, sizes))


def shown(text: str) -> str:
    """A user's text, quoted for a message: one line, cut to _SHOWN characters."""
    return repr(text) if len(text) <= _SHOWN else f"{text[:_SHOWN]!r}... ({len(text)} characters)"


def numbers(words: list[str], dtype: DType, text: str) -> Array:
    """Parses numbers into a flat array; the element type must be able to represent each."""
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
    """Floats, rounded once from the double that the digits give."""
    row = FLOAT_FORMATS[dtype.name]
    codes = np.array([row.rounded(float(word)) for word in words], f"<u{dtype.itemsize}")
    return codes.view(dtype.numpy)


def _row(array: Array) -> DType:
    """The element type of an argument or result."""
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
    floats of fewer bits than f32 also be neighbours, which sums in another order may be rounded to.
    """
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
