"""Makes device arrays of a program: from copies, new memory, and memory of other libraries and programs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import prod
from operator import index
from typing import Any, SupportsIndex

import numpy as np
import numpy.typing as npt

from orchestrion.hal.backend import MemoryUse
from orchestrion.hal.buffer import BufferView
from orchestrion.hal.device import Device
from orchestrion.schema.dtypes import DTYPES, DType, of_numpy

from .array import DeviceArray
from .context import Context
from .errors import HAL_ERRORS, CallerTypeError, CallerValueError, from_hal_error
from .interop import import_array, import_buffer
from .tensors import adopt_for, as_array, describe_array


class ProgramArrays:
    """The methods of a program that make device arrays. The arrays refer to `_base`, which keeps the device open."""

    _base: Context

    @property
    def device(self) -> Device:
        """The program's share of its device."""
        raise NotImplementedError

    def put(self, array: Any) -> DeviceArray:
        """Copy an array of any shape to the device.

        Raises `CallerError` for an element type that the VM does not have, `DeviceOutOfMemory` if the device has no
        memory left, and `MemoryExceeded` if a limit forbids the allocation.
        """
        host = np.asarray(array)
        dtype = _dtype(host.dtype)
        target = self.empty(host.shape, host.dtype)
        values = as_array(host, dtype, host.shape, "array to put")
        try:
            target.view.write(values)
        except HAL_ERRORS as error:
            raise from_hal_error(error) from error
        return target

    def from_dlpack(self, array: Any, *, copy: bool | None = None) -> DeviceArray:
        """A device array of an array of another library, as `from_dlpack` of NumPy, JAX and PyTorch. For arguments.

        If the device can use the memory of that array, the device array is read-only and shares the memory: changes of
        the memory change the argument. Otherwise, or with `copy=True`, it is a copy, as by `put`.

        Raises `CallerError` if `copy=False` and the device cannot use the memory, if the memory is not host memory, and
        for an element type that the VM does not have. Raises what `put` raises.
        """
        what = "array to import"
        host = array if isinstance(array, np.ndarray) else adopt_for(array, what)
        dtype = _dtype(host.dtype)
        if copy:
            return self.put(host)
        device = self.device
        try:
            view = import_array(device, host, dtype)
        except HAL_ERRORS as error:
            raise from_hal_error(error) from error
        if isinstance(view, BufferView):
            return DeviceArray(view, self._base, is_shared=True)
        if copy is False:
            raise CallerValueError(f"{what}: {describe_array(host)} cannot be shared without a copy: {view}")
        return self.put(host)

    def import_buffer(
        self, handle: Any, shape: Sequence[int], dtype: npt.DTypeLike, *, offset: int = 0, writable: bool = True
    ) -> DeviceArray:
        """A device array over a `pyopencl.Buffer` or `VkBuffer` of the program's device, from byte `offset` on. For
        arguments and, if `writable`, for `out=`. A program cannot access bytes outside of the array.

        docs/interoperability.md says who owns the memory, and how work on both sides is ordered. Raises what
        `hal.allocator.Allocator.import_buffer` raises, and `CallerError` for an element type that the VM does not have
        or a negative dimension.
        """
        row = _dtype(dtype)
        device = self.device
        try:
            view = import_buffer(device, handle, row, shape, offset, writable)
            return DeviceArray(view, self._base, is_shared=True)
        except HAL_ERRORS as error:
            raise from_hal_error(error) from error

    def empty(self, shape: SupportsIndex | Sequence[SupportsIndex], dtype: npt.DTypeLike) -> DeviceArray:
        """A device array of zeros, for `out=`. A number as `shape` is the size of a vector.

        Raises what `put` raises, and `CallerError` for a malformed shape.
        """
        row = _dtype(dtype)
        dims = _dims(shape)
        size = row.itemsize * prod(dims)
        device = self.device
        try:
            return DeviceArray(BufferView(device.allocator.allocate(size, MemoryUse.ARENA), row, dims), self._base)
        except HAL_ERRORS as error:
            raise from_hal_error(error) from error


def _dims(shape: SupportsIndex | Sequence[SupportsIndex]) -> tuple[int, ...]:
    try:
        dims = tuple([index(dim) for dim in (shape if isinstance(shape, Iterable) else (shape,))])
    except TypeError:
        raise CallerTypeError(f"a shape is a whole number or several, not {shape!r}") from None
    if any(dim < 0 for dim in dims):
        raise CallerValueError(f"a shape has no negative dimensions, got {list(dims)}")
    return dims


def _dtype(dtype: npt.DTypeLike) -> DType:
    try:
        row = of_numpy(np.dtype(dtype))
    except TypeError as error:
        raise CallerTypeError(str(error)) from None
    if row is None:
        raise CallerTypeError(f"{dtype} is not an element type; there are {', '.join(map(str, DTYPES))}")
    return row
