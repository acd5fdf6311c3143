"""Arrays that live on a program's device: what `put` and `empty` give, and what calls take as arguments and `out=`."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from orchestrion.hal.buffer import BufferView

from .context import Context
from .errors import PUBLIC, public

Array = npt.NDArray[Any]


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

    def __array__(self, dtype: npt.DTypeLike | None = None, copy: bool | None = None) -> Array:
        """For `np.asarray`. Device memory is always copied, so `copy=False` is refused, as NumPy wants."""
        if copy is False:
            raise ValueError("a device array cannot be seen as a NumPy array without a copy")
        array = self._read()
        return array if dtype is None else array.astype(dtype, copy=False)

    def __dlpack__(self, *, copy: bool | None = None, **wanted: Any) -> Any:
        """For `from_dlpack` of other libraries: a copy in host memory. `BufferError` for `copy=False`, and for types of
        ml_dtypes, which NumPy exports to nobody."""
        if copy is False:
            raise BufferError("a device array cannot be shared without a copy")
        if self.dtype.kind == "V":
            raise BufferError(
                f"DLPack through NumPy has no {self.dtype}: np.asarray(x) is an array of ml_dtypes, and its view of "
                f"uint8 or uint16 can be shared"
            )
        return self._read().__dlpack__(**wanted)

    def __dlpack_device__(self) -> tuple[int, int]:
        """That of the copy: the CPU."""
        return (1, 0)

    def _read(self) -> Array:
        try:
            return self.view.read()
        except PUBLIC as error:
            raise public(error) from error

    def __repr__(self) -> str:
        return f"DeviceArray({self.view.dtype.name}{list(self.shape)} on {self.view.buffer.device.info.id})"
