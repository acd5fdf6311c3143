"""Arrays that live on a program's device: what `put` and `empty` give, and what calls take as arguments and `out=`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from orchestrion.hal.backend import NativeRange
from orchestrion.hal.buffer import BufferView

from .context import Context
from .errors import PUBLIC, public

Array = npt.NDArray[Any]
_Result = TypeVar("_Result")


class DeviceArray:
    """A tensor in device memory. Its memory goes with the last reference."""

    __slots__ = ("_owner", "view")

    def __init__(self, view: BufferView, owner: Context) -> None:
        self.view = view
        self._owner = owner  # keeps the device open

    @property
    def shape(self) -> tuple[int, ...]:
        return self.view.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.view.dtype.numpy

    @property
    def nbytes(self) -> int:
        return self.view.nbytes

    def to_numpy(self) -> Array:
        """A new array with the elements, after all work that was submitted before. `DeviceLost` if its device is."""
        return self._read()

    @property
    def native(self) -> NativeRange | None:
        """The elements in the driver's own API, as `(handle, offset, size)` with bytes: a `pyopencl.Buffer` or a
        `VkBuffer`, for work of the caller's own. None on devices without such an API. The handle is good as long as
        this array lives; see docs/interoperability.md for how work is ordered.
        """
        return self._public(lambda: self.view.native)

    def __array__(self, dtype: npt.DTypeLike | None = None, copy: bool | None = None) -> Array:
        """For `np.asarray`: a copy. With `copy=False` the device's memory where it is mapped, else `ValueError`."""
        if copy is not False:
            array = self._read()
            return array if dtype is None else array.astype(dtype, copy=False)
        if dtype is not None and np.dtype(dtype) != self.dtype:
            raise ValueError(
                f"a device array of {self.dtype} cannot be seen as one of {np.dtype(dtype)} without a copy"
            )
        shared = self._public(self.view.shared)
        if shared is None:
            raise ValueError("a device array whose memory is not mapped cannot be seen as a NumPy array without a copy")
        return shared

    def __dlpack__(self, *, copy: bool | None = None, **wanted: Any) -> Any:
        """For `from_dlpack` of other libraries: the device's memory itself where it is mapped, which the capsule keeps;
        later calls with this array as `out=` change what the other library sees. Else, or with `copy=True`, a copy in
        host memory. `BufferError`: `copy=False` and not mapped; types of ml_dtypes, which NumPy exports to nobody.
        """
        return self._public(lambda: self.view.__dlpack__(copy=copy, **wanted))

    def __dlpack_device__(self) -> tuple[int, int]:
        """The CPU, which sees mapped memory and copies alike."""
        return self.view.__dlpack_device__()

    def _read(self) -> Array:
        return self._public(self.view.read)

    @staticmethod
    def _public(step: Callable[[], _Result]) -> _Result:
        """What a step gives, its errors as the VM's."""
        try:
            return step()
        except PUBLIC as error:
            raise public(error) from error

    def __repr__(self) -> str:
        return f"DeviceArray({self.view.dtype.name}{list(self.shape)} on {self.view.buffer.device.info.id})"
