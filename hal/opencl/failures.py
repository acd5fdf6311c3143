"""OpenCL's error codes as the HAL's errors."""

import pyopencl as cl

from orchestrion.hal.errors import DeviceLost, HalError, OutOfMemory

_NO_ROOM = frozenset(
    (
        cl.status_code.MEM_OBJECT_ALLOCATION_FAILURE,
        cl.status_code.OUT_OF_RESOURCES,
        cl.status_code.OUT_OF_HOST_MEMORY,
        cl.status_code.INVALID_BUFFER_SIZE,
    )
)


def translate(what: str, error: cl.Error) -> HalError:
    """The error to raise when OpenCL refused or failed to do `what`."""
    kind = OutOfMemory if error.code in _NO_ROOM else DeviceLost
    return kind(f"{what}: {error}")


def failure(code: int, what: str) -> HalError:
    """The same for the result of a function that was called directly."""
    kind = OutOfMemory if code in _NO_ROOM else DeviceLost
    return kind(f"{what}: {cl.status_code.to_string(code, '%d')}")  # type: ignore[operator]


def check(code: int, what: str) -> None:
    if code:
        raise failure(code, what)
