"""Memory of other libraries and programs as device arrays, without a copy where that is possible."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from orchestrion.hal.buffer import BufferView
from orchestrion.hal.device import Device
from orchestrion.schema.dtypes import DType

from .errors import CallerValueError

#: Bytes from which an argument of another library's is imported for one call. Importing has a price of its own: objects
#: of the driver, and a recording for memory that it has not met before.
IMPORT_BYTES = 1 << 20


def import_array(device: Device, array: npt.NDArray[Any], dtype: DType) -> BufferView | str:
    """A read-only view over host memory, which it keeps alive; or why the device cannot use that memory in place."""
    if not array.flags.c_contiguous:
        return f"it is not contiguous (strides {array.strides})"
    buffer = device.allocator.import_host(array)
    if buffer is None:
        alignment = device.info.limits.host_import_alignment
        return f"device {device.info.id} takes host memory of whole words at multiples of {alignment} bytes, or none"
    return BufferView(buffer, dtype, array.shape)


def import_buffer(
    device: Device, handle: Any, dtype: DType, shape: Sequence[int], offset: int, writable: bool
) -> BufferView:
    """A view over a range of a `cl_mem` or `VkBuffer`; errors as `Allocator.import_buffer`, and `CallerError`."""
    dims = tuple(shape)
    if any(dim < 0 for dim in dims):
        raise CallerValueError(f"shape {dims} of a buffer to import has a negative dimension")
    size = dtype.itemsize
    for dim in dims:
        size *= dim
    return BufferView(device.allocator.import_buffer(handle, size, offset, writable), dtype, dims)


def is_foreign(value: object) -> bool:
    """Whether a value is an array of another library's that shares its memory by DLPack."""
    return hasattr(value, "__dlpack__") and not isinstance(value, np.ndarray)
