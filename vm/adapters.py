"""Low-rank adapters: files that change parameters to W + scale * (B @ A). The host computes that before initializers
run.

An adapter is a safetensors file with two tensors for each parameter `p` that it changes: `p.lora_A` of shape (r, ...)
and `p.lora_B` of shape (..., r). The axes of `p` are all axes of `lora_B` but the last, then all axes of `lora_A` but
the first. The metadata give the scale: `scale`, or `alpha` divided by r (by the square root of r if `use_rslora` is
`true`). Without either, the scale is 1. If `fan_in_fan_out` is `true`, the product is transposed before it is added.

Parameters and adapters are floats: f16, bf16, f32, f64. Sums are computed in f32, or in f64 if the parameter is f64.
Adapters are added in their order. The sum is rounded once, to the nearest, ties to even.
"""

from __future__ import annotations

import math
import mmap
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from orchestrion.schema.dtypes import DType, describe
from orchestrion.schema.safetensors import TensorFile, shown

Array = npt.NDArray[Any]

DOWN, UP = ".lora_A", ".lora_B"
_FLOATS: Final = ("f16", "bf16", "f32", "f64")


class Update(NamedTuple):
    """The change of one parameter by one adapter: scale * (up @ down), or its transpose."""

    down: Array  #: (r, columns)
    up: Array  #: (rows, r)
    scale: float
    transposed: bool


def parameters_in(file: TensorFile) -> list[str]:
    """The names of the parameters that an adapter changes. `ValueError` for a tensor that is not one of a pair."""
    found: dict[str, set[str]] = {}
    for name in file.tensors:
        half = next((half for half in (DOWN, UP) if name.endswith(half) and len(name) > len(half)), None)
        if half is None:
            raise ValueError(f"tensor {shown(name)} is called neither <parameter>{DOWN} nor <parameter>{UP}")
        found.setdefault(name.removesuffix(half), set()).add(half)
    for name, halves in found.items():
        for half in (DOWN, UP):
            if half not in halves:
                raise ValueError(f"tensor {shown(name + half)} is missing")
    return list(found)


def update_of(file: TensorFile, name: str, dtype: DType, dims: Sequence[int]) -> Update:
    """The update of a parameter by an adapter. `ValueError` if the adapter does not fit the parameter's
    type and shape.
    """
    down, up = file.tensors[name + DOWN], file.tensors[name + UP]
    of = f"parameter {shown(name)} of {describe(dtype, dims)}"
    for half, tensor in ((DOWN, down), (UP, up)):
        if tensor.dtype.name not in _FLOATS or dtype.name not in _FLOATS:
            raise ValueError(f"{of}: {half[1:]} is {tensor}; adapters and their parameters are {', '.join(_FLOATS)}")
    rank = down.dims[0] if down.dims else 0
    transposed = _flag(file.metadata, "fan_in_fan_out")
    shape = (*up.dims[:-1], *down.dims[1:])
    made = shape[::-1] if transposed and len(shape) == 2 else shape
    if rank == 0 or up.dims[-1:] != (rank,) or made != tuple(dims) or (transposed and len(shape) != 2):
        raise ValueError(f"{of}: lora_B of {up} times lora_A of {down} does not have its shape")
    columns = math.prod(down.dims[1:])
    wide = np.float64 if dtype.name == "f64" else np.float32
    return Update(
        as_floats(file.bytes_of(name + DOWN), down.dtype).astype(wide).reshape(rank, columns),
        as_floats(file.bytes_of(name + UP), up.dtype).astype(wide).reshape(-1, rank),
        _scale(file.metadata, rank),
        transposed,
    )


def _flag(metadata: Mapping[str, str], key: str) -> bool:
    text = metadata.get(key, "false").lower()
    if text not in ("true", "false"):
        raise ValueError(f"{key} is {shown(text)}, true or false wanted")
    return text == "true"


def _scale(metadata: Mapping[str, str], rank: int) -> float:
    if "scale" in metadata and "alpha" in metadata:
        raise ValueError("there are both scale and alpha")
    if "alpha" in metadata:
        return _number(metadata, "alpha") / (math.sqrt(rank) if _flag(metadata, "use_rslora") else rank)
    return _number(metadata, "scale") if "scale" in metadata else 1.0


def _number(metadata: Mapping[str, str], key: str) -> float:
    try:
        number = float(metadata[key])
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise ValueError(f"{key} is {shown(metadata[key])}, a finite number wanted")
    return number


def apply_updates(data: memoryview, dtype: DType, updates: Sequence[Update]) -> memoryview:
    """The parameter with all updates added, in new memory that starts at a page."""
    wide = np.float64 if dtype.name == "f64" else np.float32
    total: Array = np.array(as_floats(data, dtype), wide)
    for update in updates:
        product: Array = update.up @ update.down
        product *= wide(update.scale)
        total += (product.T if update.transposed else product).reshape(-1)
    made = mmap.mmap(-1, max(len(data), 1))
    _write_rounded(total, dtype, np.frombuffer(made, np.uint8, len(data)))
    return memoryview(made)[: len(data)].toreadonly()


def as_floats(data: memoryview, dtype: DType) -> Array:
    """Floats as a NumPy array without further packages: bf16 becomes f32."""
    if dtype.name != "bf16":
        return np.frombuffer(data, dtype.numpy)
    return (np.frombuffer(data, "<u2").astype(np.uint32) << 16).view(np.float32)


def _write_rounded(value: Array, dtype: DType, to: npt.NDArray[np.uint8]) -> None:
    """Round numbers to elements of the type, and write them to memory."""
    if dtype.name != "bf16":
        with np.errstate(over="ignore"):
            to.view(dtype.numpy)[:] = value.reshape(-1)
        return
    bits = value.astype(np.float32).reshape(-1).view(np.uint32)
    rounded = (bits + (0x7FFF + (bits >> 16 & 1))) >> 16
    quiet = bits >> 16 | 0x40
    to.view("<u2")[:] = np.where(bits & 0x7FFFFFFF > 0x7F800000, quiet, rounded)
