"""Arrays on a program's device: copies, fresh memory, and memory of other libraries and programs."""

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
from .errors import PUBLIC, CallerTypeError, CallerValueError, public
from .interop import import_array, import_buffer
from .tensors import adopt_for, as_array, describe_array


class ProgramArrays:
    """What makes device arrays of a program. The arrays keep its own context, `_base`, and so the device open."""

    _base: Context

    @property
    def device(self) -> Device:
        """The program's share of its device."""
        raise NotImplementedError

    def put(self, array: Any) -> DeviceArray:
        """Copy an array, of any shape and one of the VM's element types, to the device. `CallerError` for another type.

        `DeviceOutOfMemory` when the device has no room, `MemoryExceeded` when a limit leaves none.
        """
        host = np.asarray(array)
        dtype = _dtype(host.dtype)
        target = self.empty(host.shape, host.dtype)
        values = as_array(host, dtype, host.shape, "array to put")
        try:
            target.view.write(values)
        except PUBLIC as error:
            raise public(error) from error
        return target

    def from_dlpack(self, array: Any, *, copy: bool | None = None) -> DeviceArray:
        """An array over the memory of another library's, as `from_dlpack` of NumPy, JAX and PyTorch: for arguments.

        Where the device can use that memory in place the array is read-only, and shares and keeps it: who changes it
        changes the argument. Else, or with `copy=True`, it is a copy, as `put` makes. `CallerError`: `copy=False` and
        the device cannot; the memory is not the host's; the VM has no such element type.
        """
        what = "array to import"
        host = array if isinstance(array, np.ndarray) else adopt_for(array, what)
        dtype = _dtype(host.dtype)
        if copy:
            return self.put(host)
        device = self.device
        try:
            view = import_array(device, host, dtype)
        except PUBLIC as error:
            raise public(error) from error
        if isinstance(view, BufferView):
            return DeviceArray(view, self._base, is_shared=True)
        if copy is False:
            raise CallerValueError(f"{what}: {describe_array(host)} cannot be shared without a copy: {view}")
        return self.put(host)

    def import_buffer(
        self, handle: Any, shape: Sequence[int], dtype: npt.DTypeLike, *, offset: int = 0, writable: bool = True
    ) -> DeviceArray:
        """An array over bytes of a `pyopencl.Buffer` or `VkBuffer` of the program's device, from `offset` on: for
        arguments and, if `writable`, `out=`. No program sees bytes outside of them.

        Who owns what, and how work on both sides is ordered: docs/interoperability.md. Errors as
        `hal.allocator.Allocator.import_buffer`; `CallerError` for a type that the VM has not, or a negative dimension.
        """
        row = _dtype(dtype)
        device = self.device
        try:
            view = import_buffer(device, handle, row, shape, offset, writable)
            return DeviceArray(view, self._base, is_shared=True)
        except PUBLIC as error:
            raise public(error) from error

    def empty(self, shape: SupportsIndex | Sequence[SupportsIndex], dtype: npt.DTypeLike) -> DeviceArray:
        """Device memory for a tensor of this shape, all zero: for `out=`. A number is the shape of a vector.

        Errors as `put`; `CallerError` also for a shape that is none.
        """
        row = _dtype(dtype)
        dims = _dims(shape)
        size = row.itemsize * prod(dims)
        device = self.device
        try:
            return DeviceArray(BufferView(device.allocator.allocate(size, MemoryUse.ARENA), row, dims), self._base)
        except PUBLIC as error:
            raise public(error) from error


def _dims(shape: SupportsIndex | Sequence[SupportsIndex]) -> tuple[int, ...]:
    try:
        dims = tuple([index(dim) for dim in (shape if isinstance(shape, Iterable) else (shape,))])
    except TypeError:
        raise CallerTypeError(f"a shape is a whole number or several, not {shape!r}") from None
    if any(dim < 0 for dim in dims):
        raise CallerValueError(f"a shape has no negative dimension, as {list(dims)} has")
    return dims


def _dtype(dtype: npt.DTypeLike) -> DType:
    try:
        row = of_numpy(np.dtype(dtype))
    except TypeError as error:
        raise CallerTypeError(str(error)) from None
    if row is None:
        raise CallerTypeError(f"{dtype} is not an element type; there are {', '.join(map(str, DTYPES))}")
    return row
