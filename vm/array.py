"""Arrays in device memory. `put`, `empty` and `on_device` make them; calls take them as arguments and as `out=`."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from orchestrion.hal.backend import NativeRange
from orchestrion.hal.buffer import BufferView

from .context import Context
from .errors import HAL_ERRORS, CallerTypeError, CallerValueError, from_hal_error
from .tensors import describe

Array = npt.NDArray[Any]
_Result = TypeVar("_Result")


class DeviceArray:
    """A tensor in device memory, which is released with the last reference.

    A donated array (`Function.on_device`) is consumed: every use but `repr` and `is_donated` raises `CallerError`.
    """

    __slots__ = ("_donated_to", "_owner", "is_shared", "view")

    def __init__(self, view: BufferView, owner: Context, is_shared: bool = False) -> None:
        """`is_shared`: whether code outside of the VM may use the memory. `owner`: keeps the device open."""
        self.view = view
        self._owner = owner
        self._donated_to = ""
        self.is_shared = is_shared

    def __getattr__(self, name: str) -> Any:
        """Raise `CallerError` for the view of a consumed array."""
        if name == "view":
            raise CallerValueError(
                f"the array was donated to a call of {self._donated_to!r}, which may have written over it"
            )
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def consume(self, function: str) -> None:
        """Give the memory to a call of `function`."""
        self._donated_to = function
        del self.view

    @property
    def is_donated(self) -> bool:
        """Whether a call has consumed the array."""
        return self._donated_to != ""

    @property
    def shape(self) -> tuple[int, ...]:
        return self.view.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.view.dtype.numpy

    @property
    def ndim(self) -> int:
        return len(self.view.shape)

    @property
    def size(self) -> int:
        """The number of elements."""
        return prod(self.view.shape)

    @property
    def nbytes(self) -> int:
        return self.view.nbytes

    def to_numpy(self) -> Array:
        """Copy the elements to a new NumPy array. Waits for all work that was submitted before. `DeviceLost` if the
        device is lost.
        """
        return self._read()

    def item(self) -> Any:
        """The only element, as a Python number. `ValueError` unless there is exactly one. Waits as `to_numpy`."""
        if self.size != 1:
            raise ValueError(f"item() needs an array of one element, this one has {self.size}")
        return self._read().item()

    def __float__(self) -> float:
        return float(self.item())

    def __int__(self) -> int:
        return int(self.item())

    def __bool__(self) -> bool:
        return bool(self.item())

    def __len__(self) -> int:
        """The size of the first dimension. `TypeError` for an array without dimensions."""
        if not self.shape:
            raise TypeError("len() of an array without dimensions")
        return self.shape[0]

    @property
    def native(self) -> NativeRange | None:
        """The memory in the driver's API, as `(handle, offset, size)` in bytes. The handle is a `pyopencl.Buffer` or a
        `VkBuffer`, valid as long as this array exists. None on devices without such an API.

        docs/interoperability.md says how the caller's work is ordered.
        """
        self.is_shared = True
        return self._run(lambda: self.view.native)

    def __array__(self, dtype: npt.DTypeLike | None = None, copy: bool | None = None) -> Array:
        """For `np.asarray`: a copy. With `copy=False` the device memory itself; `ValueError` if that is not mapped."""
        if copy is not False:
            array = self._read()
            return array if dtype is None else array.astype(dtype, copy=False)
        if dtype is not None and np.dtype(dtype) != self.dtype:
            raise ValueError(
                f"a device array of {self.dtype} cannot be seen as one of {np.dtype(dtype)} without a copy"
            )
        self.is_shared = True
        shared = self._run(self.view.shared)
        if shared is None:
            raise ValueError("a device array whose memory is not mapped cannot be seen as a NumPy array without a copy")
        return shared

    def __dlpack__(self, *, copy: bool | None = None, **wanted: Any) -> Any:
        """For `from_dlpack` of other libraries: a capsule over the device memory if it is mapped, which keeps that
        memory. Later calls with this array as `out=` change what the other library sees. If it is not mapped, or
        with `copy=True`, a capsule over a copy in host memory.

        `BufferError` for `copy=False` if the memory is not mapped, and for types of ml_dtypes, which NumPy cannot
        export.
        """
        if not copy:
            self.is_shared = True
        return self._run(lambda: self.view.__dlpack__(copy=copy, **wanted))

    def __dlpack_device__(self) -> tuple[int, int]:
        """The CPU: both mapped memory and copies are host memory."""
        return self.view.__dlpack_device__()

    def _read(self) -> Array:
        return self._run(self.view.read)

    @staticmethod
    def _run(step: Callable[[], _Result]) -> _Result:
        """Run a step. Its HAL errors become errors of the VM."""
        try:
            return step()
        except HAL_ERRORS as error:
            raise from_hal_error(error) from error

    def __reduce__(self) -> tuple[Any, ...]:
        raise CallerTypeError("an array on a device does not pickle: pickle np.asarray(array)")

    def __repr__(self) -> str:
        if self.is_donated:
            return f"DeviceArray(donated to {self._donated_to!r})"
        return f"DeviceArray({describe(self.view.dtype, self.shape)} on {self.view.buffer.device.info.id})"
