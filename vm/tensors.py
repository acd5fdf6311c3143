"""Describes tensor types in messages, and converts values of callers to arrays of exactly the expected type.

Nothing is cast: an array must have the element type and shape of the signature. Python numbers have no element type, so
they get the expected one. An integer must be representable exactly; a float is rounded once. A NumPy scalar of another
type is used like a Python number.
"""

import math
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from orchestrion.hal.dlpack import adopt
from orchestrion.schema.dtypes import BOOL, COMPLEX, FLOAT, DType, of_numpy

from .errors import CallerError, CallerTypeError, CallerValueError

Array = npt.NDArray[Any]

#: kind of element type -> types of Python numbers that are rounded to it, in addition to integers
_PYTHON: dict[int, tuple[type, ...]] = {FLOAT: (float,), COMPLEX: (float, complex)}


def describe(dtype: DType, shape: Sequence[int], expressions: Sequence[str] = ()) -> str:
    """A tensor type as JAX writes it: `f32[4,2]`. A dimension of -1 is shown as its expression, `f32[2*batch,3]`, or as
    `?` if `expressions` has none for it.
    """
    named = iter(expressions)
    return f"{dtype.name}[{','.join(next(named, '?') if dim == -1 else str(dim) for dim in shape)}]"


def fits(shape: Sequence[int], wanted: Sequence[int]) -> bool:
    """Whether a shape is the wanted one, where a negative dimension fits any size."""
    return len(shape) == len(wanted) and all([have == want or want < 0 for have, want in zip(shape, wanted)])  # noqa: B905


def describe_array(array: Array) -> str:
    """The type of an array, such as `f64[4]`, with NumPy's name for an element type that the VM does not have."""
    row = of_numpy(array.dtype)
    name = row.name if row is not None else str(array.dtype)
    return f"{name}[{','.join(map(str, array.shape))}]"


def mismatch(message: str, is_type: bool) -> CallerError:
    """The error for a tensor of another element type (`is_type`), or of another shape."""
    return CallerTypeError(message) if is_type else CallerValueError(message)


def as_array(value: object, dtype: DType, shape: tuple[int, ...], what: str) -> Array:
    """A caller's value as an array of this type. `shape`: a dimension of -1 fits any size. `what`: names the value in
    messages.

    Takes arrays, NumPy scalars, objects with `__array_interface__`, DLPack, the buffer protocol or `__array__`, keys of
    `jax.random.key`, and Python numbers, alone or in nested lists. Raises `CallerError` for any other value or type.
    """
    wanted = describe(dtype, shape)
    if isinstance(value, bool | int | float | complex | list | tuple | np.generic):
        return _from_numbers(value, dtype, shape, what)
    array = _adopt(value, wanted, what)
    if array.dtype != dtype.numpy or array.shape != shape and not fits(array.shape, shape):
        message = f"{what}: expected {wanted}, got {describe_array(array)}"
        raise mismatch(message, array.dtype != dtype.numpy)
    return array


def check_out(out: object, dtype: DType, shape: tuple[int, ...], what: str, value: object) -> None:
    """`CallerError` unless `out` is None, or an array that can receive a result of this type. `value`: the type in
    messages.
    """
    if out is None:
        return
    if not isinstance(out, np.ndarray):
        raise CallerTypeError(f"{what}: expected an array of {value}, got {type(out).__name__}")
    if out.dtype != dtype.numpy or out.shape != shape and not fits(out.shape, shape):
        raise mismatch(f"{what}: expected {value}, got {describe_array(out)}", out.dtype != dtype.numpy)
    if not out.flags.writeable:
        raise CallerValueError(f"{what}: the array is read-only")


def adopt_for(value: Any, what: str) -> Array:
    """An array over the memory of another library's array. `CallerError` if NumPy cannot share that memory."""
    try:
        return adopt(value)
    except (AttributeError, TypeError, ValueError, BufferError, RuntimeError) as error:
        raise CallerTypeError(f"{what}: {type(value).__name__}: {error}") from error


def _adopt(value: Any, wanted: str, what: str) -> Array:
    """An array of a value of another library, without a copy if possible. `CallerError` if it is not an array."""
    if isinstance(value, np.ndarray):
        return value
    try:
        if hasattr(value, "__array_interface__") or hasattr(value, "__array__"):
            return np.asarray(value)
        if hasattr(value, "__dlpack__"):
            return adopt(value)
    except (TypeError, ValueError, BufferError, RuntimeError) as error:
        if (data := _key_data(value)) is not None:
            return data
        raise CallerTypeError(f"{what}: expected {wanted}, got {type(value).__name__}: {error}") from error
    try:
        return np.asarray(memoryview(value))
    except (TypeError, ValueError, BufferError) as error:
        kind = "None" if value is None else type(value).__name__
        raise CallerTypeError(f"{what}: expected {wanted}, got {kind}") from error


def _key_data(value: Any) -> Array | None:
    """The words of a key of `jax.random.key`, which programs take instead of the key; None for any other value."""
    jax = sys.modules.get("jax")
    if jax is None or not isinstance(value, jax.Array):
        return None
    if not jax.dtypes.issubdtype(value.dtype, jax.dtypes.prng_key):
        return None
    return np.asarray(jax.random.key_data(value))


def _from_numbers(value: object, dtype: DType, shape: tuple[int, ...], what: str) -> Array:
    wanted = describe(dtype, shape)
    found: list[object] = []
    actual = _shape(value, found)
    if actual is None or not fits(actual, shape):
        got = f"nested lists of shape {actual}" if actual else _kind(value)
        raise CallerValueError(f"{what}: expected {wanted}, got {got}")
    array = np.empty(len(found), dtype.numpy)
    for place, number in enumerate(found):
        array[place] = _number(number, dtype, f"{what}: expected {wanted}")
    return array.reshape(actual)


def _shape(value: object, found: list[object]) -> tuple[int, ...] | None:
    """The shape of nested lists, whose numbers are appended to `found`. None if the lists are ragged."""
    if not isinstance(value, list | tuple):
        found.append(value)
        return ()
    inner = [_shape(item, found) for item in value]
    if any(shape is None or shape != inner[0] for shape in inner):
        return None
    first = inner[0] if inner else ()
    return None if first is None else (len(value), *first)


def _kind(value: object) -> str:
    return describe_array(np.asarray(value)) if isinstance(value, np.generic) else type(value).__name__


def _number(number: object, dtype: DType, what: str) -> Any:
    """A number as an element: a bool for i1, an integer if it fits exactly, a float for float and complex types."""
    if isinstance(number, np.generic):
        if number.dtype == dtype.numpy:
            return number
        if number.dtype.kind not in "mM":  # times, whose items may be integers
            number = number.item()
    if dtype.kind == BOOL:
        if isinstance(number, bool):
            return number
    elif isinstance(number, int) and not isinstance(number, bool):
        return _exact(number, dtype, what)
    elif isinstance(number, _PYTHON.get(dtype.kind, ())):
        with np.errstate(over="ignore"):
            return dtype.numpy.type(number)
    raise CallerTypeError(f"{what}, got {type(number).__name__} {number!r}")


def _exact(number: int, dtype: DType, what: str) -> Any:
    if dtype.kind in (FLOAT, COMPLEX):
        if _floats_hold(number, dtype):
            return dtype.numpy.type(number)
    else:
        limits = np.iinfo(dtype.numpy)
        if limits.min <= number <= limits.max:
            return number
    raise CallerValueError(f"{what}, got {number}, which {dtype.name} cannot hold exactly")


def _floats_hold(number: int, dtype: DType) -> bool:
    try:
        with np.errstate(over="ignore"):
            result = float(dtype.numpy.type(number).real)
    except OverflowError:
        return False
    return math.isfinite(result) and int(result) == number
