"""DLPack: memory shared with other libraries, in both directions.

NumPy makes the capsules, over the memory that a driver maps, so what it does about versions, streams and read-only
memory holds here, too. A capsule holds the array, which holds the memory: whoever drops the last of them, on whatever
thread, only leaves the memory to the device to release (`lifetime.py`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from .buffer import BufferView

#: DLDeviceType -> its name; the host reads and writes the memory of those in `HOST` itself
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
    """A capsule over the elements of a view, which shares its memory if that is mapped and `copy` does not ask for one.

    `BufferError`: `copy` is False and the memory is not mapped; NumPy has no such element type, or exports it to
    nobody; another device than the CPU is wanted.
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
    """An array over the memory of another library's. `BufferError`: that is not the host's, or not for NumPy."""
    kind, number = value.__dlpack_device__()
    name = DEVICES.get(int(kind), f"of type {int(kind)}")
    if name not in HOST:
        raise BufferError(f"its memory is on DLPack device {name} {number}, and only that of the CPU is taken")
    return np.from_dlpack(value)
