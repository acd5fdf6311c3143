"""Device memory for the arguments and results of a function, which stays from call to call."""

from __future__ import annotations

import ctypes
import sys
from typing import Any, NamedTuple

import numpy as np

from orchestrion.hal.buffer import Buffer, BufferView
from orchestrion.hal.device import Device
from orchestrion.schema.dtypes import DType

from .array import Array
from .interop import import_array

#: most calls in a row with a new array each, after which arrays that could be imported if they were the same are copied
MAX_NEW = 8
#: where an array of NumPy in CPython has the address of its elements, and its flags: fields of `PyArrayObject_fields`
#: behind the head of an object, with five pointers and the number of dimensions between them. `array.ctypes.data` and
#: `array.flags` make objects of Python, which takes some us each.
ADDRESS_AT, FLAGS_AT = object.__basicsize__, object.__basicsize__ + 6 * ctypes.sizeof(ctypes.c_void_p)
#: whether the `id` of an object is its address
IS_CPYTHON = sys.implementation.name == "cpython"
#: the bit of the flags of an array whose elements lie in row-major order, one behind the other
C_CONTIGUOUS = 1


class Slot(NamedTuple):
    """Device memory for one argument or result. `elements`: the memory as an array, if the driver maps it."""

    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    elements: Array | None
    buffer: Buffer
    view: BufferView
    nbytes: int


def slot_over(view: BufferView) -> Slot:
    """The slot whose memory is a view."""
    return Slot(view.dtype.numpy, view.shape, view.map(), view.buffer, view, view.nbytes)


def is_readable(slot: Slot) -> bool:
    """Whether the host reads a result quickly through the mapping of its slot."""
    return slot.elements is not None and slot.buffer.host_cached


class _Memory:
    """The memory of an array, without a reference to the array."""

    __slots__ = ("__array_interface__",)

    def __init__(self, array: Array) -> None:
        self.__array_interface__ = array.__array_interface__


class ArrayFields:
    """The address and the flags of the array that was asked about last, without a reference to it."""

    __slots__ = ("_address", "_flags", "_id")

    def __init__(self) -> None:
        self._id = 0

    def address(self, array: Array) -> int:
        """The address of the elements of an array; 0 if they are not in row-major order, one behind the other."""
        if not IS_CPYTHON:
            return array.ctypes.data if array.flags.c_contiguous else 0
        if id(array) != self._id:
            self._id = id(array)
            self._address = ctypes.c_size_t.from_address(self._id + ADDRESS_AT)
            self._flags = ctypes.c_int.from_address(self._id + FLAGS_AT)
        return self._address.value if self._flags.value & C_CONTIGUOUS else 0


class ImportSlot:
    """The view over the host memory that the last call passed for an argument, on a device that works on the host's
    memory. The next call with an array of the same memory imports nothing: an import takes 25 us.

    It keeps no array alive, so its view is valid only while the caller holds an array over the memory. Calls that
    return before their work has ended, or whose results stay on the device, must not use it.

    An import that is used once costs more than a copy of up to `IMPORT_BYTES`, so such an array is imported only if it
    is where the array of the call before was (`repeats`). To find that out costs more than to copy, so a function stops
    asking once `MAX_NEW` calls in a row had new arrays (`is_hopeless`).
    """

    __slots__ = ("_address", "_fields", "_new", "_view")

    def __init__(self) -> None:
        self._view: BufferView | None = None
        self._fields = ArrayFields()
        self._address = 0
        self._new = 0

    def view_again(self, array: object) -> BufferView | None:
        """The view if it is over the memory of this array, with its shape and type; otherwise None."""
        view = self._view
        if view is None or type(array) is not np.ndarray or self._fields.address(array) != self._address:
            return None
        is_same = array.shape == view.shape and array.dtype == view.dtype.numpy
        return view if is_same and not view.buffer.submitted else None  # no call with it was interrupted

    def import_array(self, device: Device, array: Array, dtype: DType) -> BufferView | str:
        """As `interop.import_array`, for the calls that follow, too."""
        found = import_array(device, np.asarray(_Memory(array)), dtype)
        if isinstance(found, BufferView):
            self._address, self._view = self._fields.address(array), found
        return found

    def repeats(self, array: Array) -> bool:
        """Whether the array is where the one of the last call was; the next call compares with this one."""
        before, self._address, self._view = self._address, self._fields.address(array), None
        self._new = 0 if before == self._address else self._new + 1
        return before == self._address

    @property
    def is_hopeless(self) -> bool:
        """Whether the arrays of the last calls were all in other memory than the array before."""
        return self._new > MAX_NEW
