"""Element types of random StableHLO programs: their NumPy types, numbers of them, literals bit for bit."""

import random
from functools import cache
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
from stablehlo_text import DTYPES, tensor

Array = npt.NDArray[Any]

SIGNED = ("i8", "i16", "i32", "i64")
UNSIGNED = ("ui8", "ui16", "ui32", "ui64")
INTEGERS = SIGNED + UNSIGNED
FLOATS = ("f32", "f64")
#: what devices compute on
COMPUTED = ("i1", *INTEGERS, *FLOATS)
HALVES = ("f16", "bf16")
TINY = ("f8E4M3FN", "f8E5M2", "f8E4M3", "f8E5M2FNUZ", "f8E4M3FNUZ", "f8E4M3B11FNUZ", "f8E3M4")
REAL = FLOATS + HALVES + TINY
SMALL = ("i4", "ui4", "i2", "ui2")
COMPLEX = ("complex<f32>", "complex<f64>")
ALL = COMPUTED + HALVES + TINY + SMALL + COMPLEX

NUMPY: dict[str, np.dtype[Any]] = {name: np.dtype(kind) for name, kind in DTYPES.items()} | {
    "f16": np.dtype(np.float16), "bf16": np.dtype(ml_dtypes.bfloat16), "f8E4M3FN": np.dtype(ml_dtypes.float8_e4m3fn),
    "f8E5M2": np.dtype(ml_dtypes.float8_e5m2), "f8E4M3": np.dtype(ml_dtypes.float8_e4m3),
    "f8E5M2FNUZ": np.dtype(ml_dtypes.float8_e5m2fnuz), "f8E4M3FNUZ": np.dtype(ml_dtypes.float8_e4m3fnuz),
    "f8E4M3B11FNUZ": np.dtype(ml_dtypes.float8_e4m3b11fnuz), "f8E3M4": np.dtype(ml_dtypes.float8_e3m4),
    "i4": np.dtype(ml_dtypes.int4), "ui4": np.dtype(ml_dtypes.uint4), "i2": np.dtype(ml_dtypes.int2),
    "ui2": np.dtype(ml_dtypes.uint2), "complex<f32>": np.dtype(np.complex64), "complex<f64>": np.dtype(np.complex128),
}  # fmt: skip
NAMES = {kind: name for name, kind in NUMPY.items()}


def is_signed(t: str) -> bool:
    return t in SIGNED + ("i4", "i2")


def part(t: str) -> str:
    """The type of the parts of a complex number."""
    return t[8:-1]


@cache
def limits(t: str) -> tuple[Any, Any]:
    """The least and the greatest value; infinities where there are some."""
    if t in REAL:
        infinite = np.isinf(np.asarray(np.inf, np.float64).astype(NUMPY[t]).astype(np.float64))
        info = ml_dtypes.finfo(NUMPY[t])
        return (-np.inf, np.inf) if infinite else (float(info.min), float(info.max))
    if t == "i1":
        return 0, 1
    info = ml_dtypes.iinfo(NUMPY[t]) if t in SMALL else np.iinfo(NUMPY[t])
    return int(info.min), int(info.max)


def sums(t: str) -> int:
    """Up to how many whole numbers from -2 to 2 can be summed up without rounding."""
    return 10**6 if t not in REAL or t in FLOATS else {"f16": 1000, "bf16": 100, "f8E3M4": 0}.get(t, 3)


def literal(array: Array) -> str:
    """`dense<..> : tensor<..>` with these elements, bit for bit."""
    name = NAMES[array.dtype]
    kind = tensor(array.shape, name)
    if array.size == 0:
        return f"dense<> : {kind}"
    if name in SMALL:
        return f"dense<{array.astype(int).tolist()}> : {kind}"
    if array.ndim or name in COMPLEX:
        return f'dense<"0x{array.tobytes().hex().upper()}"> : {kind}'
    if name == "i1":
        return f"dense<{str(bool(array)).lower()}> : {kind}"
    return f"dense<0x{array.tobytes()[::-1].hex().upper()}> : {kind}"


def splat(value: Any, t: str, shape: tuple[int, ...]) -> str:
    array = np.asarray(value).astype(NUMPY[t])
    if t in COMPLEX:
        return literal(np.broadcast_to(array, shape))
    return f"{literal(array).partition(' : ')[0]} : {tensor(shape, t)}"


def numbers(rng: random.Random, t: str, shape: tuple[int, ...]) -> Array:
    """Small numbers mostly; the extremes of integers, infinities and NaN here and there."""
    state = np.random.default_rng(rng.randrange(2**32))
    if t == "i1":
        return np.asarray(state.integers(0, 2, shape).astype(bool))
    if t in COMPLEX:
        parts = state.integers(-40, 41, (2, *shape)) / 8
        return np.asarray((parts[0] + 1j * parts[1]).astype(NUMPY[t]))
    if t in REAL:
        values = np.asarray(state.integers(-40, 41, shape) / 8)
        if rng.random() < 0.3:
            special = state.choice([0.0, -0.0, np.inf, -np.inf, np.nan, 1e30, -1e-30], shape)
            values = np.where(state.random(shape) < 0.3, special, values)
        with np.errstate(all="ignore"):
            return np.asarray(values.astype(NUMPY[t]))
    least, greatest = limits(t)
    if t in SMALL:
        return np.asarray(state.integers(least, greatest + 1, shape)).astype(NUMPY[t])
    if rng.random() < 0.5:
        return np.asarray(state.integers(max(least, -9), 10, shape).astype(NUMPY[t]))
    wide = state.integers(least, greatest, shape, dtype=DTYPES[t], endpoint=True)
    edge = state.choice(np.array([least, greatest, 0, 1], DTYPES[t]), shape)
    return np.asarray(np.where(state.random(shape) < 0.3, edge, wide).astype(NUMPY[t]))
