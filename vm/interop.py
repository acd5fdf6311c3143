"""Imports memory of other libraries and programs as device arrays, without a copy if possible."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from orchestrion.hal.buffer import BufferView
from orchestrion.hal.device import Device
from orchestrion.schema.dtypes import DType

from .errors import CallerValueError

#: an argument of another library, or of any library on a device that works on the host's memory, with at least so many
#: bytes is imported for one call, not copied: an import creates objects of the driver, and makes it encode recordings
#: for the new memory
IMPORT_BYTES = 1 << 20
#: the same for an array of NumPy in the memory of the one that the last call passed: it needs no import of its own. A
#: copy is in the caches of the core that made it, from where other threads of a device fetch each line
REPEATED_BYTES = 1 << 16


def import_array(device: Device, array: npt.NDArray[Any], dtype: DType) -> BufferView | str:
    """A read-only view over the host memory of an array, which it keeps alive. Or a text that says why the device
    cannot use that memory.
    """
    if not array.flags.c_contiguous:
        return f"it is not contiguous (strides {array.strides})"
    buffer = device.allocator.import_host(array)
    if buffer is None:
        alignment = device.info.limits.host_import_alignment
        return f"device {device.info.id} imports no host memory, or only whole words at multiples of {alignment} bytes"
    return BufferView(buffer, dtype, array.shape)


def import_buffer(
    device: Device, handle: Any, dtype: DType, shape: Sequence[int], offset: int, writable: bool
) -> BufferView:
    """A view over a range of a `cl_mem` or `VkBuffer`, from byte `offset` on. Raises what `Allocator.import_buffer`
    raises, and `CallerError` for a negative dimension.
    """
    dims = tuple(shape)
    if any(dim < 0 for dim in dims):
        raise CallerValueError(f"shape {dims} of a buffer to import has a negative dimension")
    size = dtype.itemsize
    for dim in dims:
        size *= dim
    return BufferView(device.allocator.import_buffer(handle, size, offset, writable), dtype, dims)


def is_foreign(value: object) -> bool:
    """Whether a value is an array of another library that can share its memory by DLPack."""
    return hasattr(value, "__dlpack__") and not isinstance(value, np.ndarray)
