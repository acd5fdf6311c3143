"""DLPack: memory shared with other libraries, in both directions.

NumPy makes the capsules, over the memory that a driver maps; its rules for versions, streams and read-only memory
apply. A capsule holds the array, which holds the memory. The last holder, on whatever thread, only queues the memory
for the device to release (`lifetime.py`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from .buffer import BufferView

#: DLDeviceType -> its name; the host can read and write the memory of the types in `HOST`
DEVICES = {
    1: "kDLCPU",
    2: "kDLCUDA",
    3: "kDLCUDAHost",
    4: "kDLOpenCL",
    7: "kDLVulkan",
    8: "kDLMetal",
    10: "kDLROCM",
    11: "kDLROCMHost",
    13: "kDLCUDAManaged",
    14: "kDLOneAPI",
}
HOST = ("kDLCPU",)


def export(view: BufferView, copy: bool | None, wanted: dict[str, Any]) -> Any:
    """Returns a capsule over the elements of a view. It shares the view's memory if that is mapped and `copy` is not
    True.

    Raises BufferError if `copy` is False and the memory is not mapped, if NumPy has no such element type or does not
    export it, or if another device than the CPU is requested.
    """
    if view.dtype.numpy.kind == "V":
        raise BufferError(
            f"DLPack through NumPy has no {view.dtype.numpy}: np.asarray(x) is an array of ml_dtypes, and its view of "
            f"uint8 or uint16 can be shared"
        )
    elements = None if copy else view.shared()
    if elements is None:
        if copy is False:
            raise BufferError(
                f"memory of {view.buffer.device.info.id} that is not mapped cannot be shared without a copy"
            )
        elements = view.read()
    return elements.__dlpack__(**wanted)


def adopt(value: Any) -> npt.NDArray[Any]:
    """Returns an array over the memory of another library's array. Raises BufferError if that is not host memory, or
    NumPy cannot import it.
    """
    kind, number = value.__dlpack_device__()
    name = DEVICES.get(int(kind), f"of type {int(kind)}")
    if name not in HOST:
        raise BufferError(f"its memory is on DLPack device {name} {number}, and only that of the CPU is taken")
    return np.from_dlpack(value)
