"""Helpers of the LAPACK functions: checks of calls, the matrices of a batch, and results of NaN."""

from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import Any

import numpy as np

from .blas import routine
from .registry import Array, Spec
from .signature import Call, Shape, same, scipy_module

TRIANGLE = {"lower": True}
_INT32 = np.dtype(np.int32)


@cache
def lapack(name: str, dtype: np.dtype[Any]) -> Callable[..., Any]:
    return routine(name, dtype, "linalg.lapack")


def checked(
    inputs: Sequence[Spec], outputs: Sequence[Spec], operands: int, results: int, whole: int = 0, scipy: bool = True
) -> Call:
    """Check the counts and element types of a call. The last `whole` results are int32, all other operands and results
    floats. `scipy`: whether the function is one of SciPy, which must be installed.
    """
    if scipy:
        scipy_module("linalg.lapack")
    call = Call(inputs, outputs)
    call.count(operands, operands, results)
    call.floats((*inputs, *outputs[: results - whole]))
    for place, spec in enumerate(outputs[results - whole :], results - whole):
        if spec.dtype != _INT32:
            raise ValueError(f"result {place} is of {spec.dtype}, expected int32")
    return call


def matrix(spec: Spec) -> tuple[Shape, int, int]:
    """The batch shape, the rows and the columns of operand a."""
    if len(spec.shape) < 2:
        raise ValueError(f"a has shape {list(spec.shape)}, expected rank 2 at least")
    *batch, rows, columns = spec.shape
    return tuple(batch), rows, columns


def square(spec: Spec) -> tuple[Shape, int]:
    batch, rows, columns = matrix(spec)
    if rows != columns:
        raise ValueError(f"a has shape {list(spec.shape)}, expected a square matrix")
    return batch, rows


def results(outputs: Sequence[Spec], *wanted: Shape) -> None:
    for place, (spec, shape) in enumerate(zip(outputs, wanted, strict=True)):
        same(f"result {place}", spec.shape, shape)


def batches(array: Array) -> Iterator[tuple[int, ...]]:
    yield from np.ndindex(array.shape[:-2])


def give_up(outputs: Sequence[Array], info: Array, index: tuple[int, ...]) -> None:
    for out in outputs:
        out[index] = np.nan
    info[index] = 1
