"""OpenCL called directly: what pyopencl has no function for, or one that costs more than what it calls.

pyopencl takes 50 us to wrap a kernel object that OpenCL makes in one, and knows no command buffers. So kernels, what is
enqueued or recorded of them, and waiting go through ctypes, to the loader that pyopencl itself is linked with.
- Handles are integers; whoever makes one releases it. A result is OpenCL's code, which `failures.check` reads.
- What blocks or works for long lets other threads run meanwhile. The rest is over sooner than the interpreter's lock
  changes hands.
- The ABI of `cl_khr_command_buffer` is provisional: only the versions in `KNOWN_VERSIONS` are called.
"""

import ctypes
import sys
from functools import cache
from types import SimpleNamespace
from typing import Any

import pyopencl as cl
import pyopencl._cl as extension_module

from orchestrion.hal.errors import DriverUnavailable, HalError

from .failures import check

P, U, Size, Code = ctypes.c_void_p, ctypes.c_uint32, ctypes.c_size_t, ctypes.c_int32
EVENTS = (U, P, P)  # how many to wait for, which, and where to put the new one
SYNC_POINTS = (U, P, P, P)  # the same inside a command buffer, and the handle to change the command by
Sizes = Size * 3

#: function -> (arguments, whether other threads run meanwhile); the result is a code
FUNCTIONS: dict[str, tuple[tuple[Any, ...], bool]] = {
    "clGetKernelInfo": ((P, U, Size, P, P), False),
    "clGetKernelWorkGroupInfo": ((P, P, U, Size, P, P), False),
    "clSetKernelArg": ((P, U, Size, P), False),
    "clSetKernelArgSVMPointer": ((P, U, P), False),
    "clReleaseKernel": ((P,), False),
    "clEnqueueNDRangeKernel": ((P, P, U, P, P, P, *EVENTS), False),
    "clEnqueueCopyBuffer": ((P, P, P, Size, Size, Size, *EVENTS), False),
    "clEnqueueFillBuffer": ((P, P, P, Size, Size, Size, *EVENTS), False),
    "clEnqueueMarkerWithWaitList": ((P, *EVENTS), False),
    "clFlush": ((P,), True),
    "clWaitForEvents": ((U, P), True),
    "clGetEventInfo": ((P, U, Size, P, P), False),
    "clReleaseEvent": ((P,), False),
    "clFinish": ((P,), True),
}
#: the same for the extension; its functions are found through the platform
COMMAND_BUFFER_FUNCTIONS: dict[str, tuple[tuple[Any, ...], bool]] = {
    "clFinalizeCommandBufferKHR": ((P,), False),
    "clReleaseCommandBufferKHR": ((P,), False),
    "clEnqueueCommandBufferKHR": ((U, P, P, *EVENTS), True),
    "clCommandNDRangeKernelKHR": ((P, P, P, P, U, P, P, P, *SYNC_POINTS), False),
    "clCommandCopyBufferKHR": ((P, P, P, P, Size, Size, Size, *SYNC_POINTS), False),
    "clCommandFillBufferKHR": ((P, P, P, P, Size, Size, Size, *SYNC_POINTS), False),
}

COMMAND_BUFFERS = "cl_khr_command_buffer"
#: versions whose functions take what the table above says
KNOWN_VERSIONS = ((0, 9, 0),)
CAPABILITIES, REQUIRED_QUEUE_PROPERTIES, FLAGS = 0x12A9, 0x12AA, 0x1293
CAPABILITY_SIMULTANEOUS_USE, SIMULTANEOUS_USE = 0x4, 0x1


def why_no_command_buffers(device: cl.Device) -> str:
    """Why recordings are not command buffers on this device; empty when they are."""
    if COMMAND_BUFFERS not in device.extensions.split():
        return f"no {COMMAND_BUFFERS}"
    try:
        rows = device.extensions_with_version
    except cl.Error:  # before OpenCL 3.0 there is no such question
        return f"{COMMAND_BUFFERS} of unknown version"
    version = next((_version(row.version) for row in rows if row.name == COMMAND_BUFFERS), None)
    if version not in KNOWN_VERSIONS:
        known = ", ".join(map(_dotted, KNOWN_VERSIONS))
        return f"{COMMAND_BUFFERS} of version {_dotted(version or ())}, known is {known}"
    if not _device_bits(device, CAPABILITIES) & CAPABILITY_SIMULTANEOUS_USE:
        return f"{COMMAND_BUFFERS} without simultaneous use"
    if _device_bits(device, REQUIRED_QUEUE_PROPERTIES):
        return f"{COMMAND_BUFFERS} wants another kind of queue"
    return ""


def _version(number: int) -> tuple[int, int, int]:
    return number >> 22, number >> 12 & 0x3FF, number & 0xFFF


def _dotted(version: tuple[int, ...]) -> str:
    return ".".join(map(str, version)) or "none"


def _device_bits(device: cl.Device, what: int) -> int:
    value = ctypes.c_uint64()
    ask = _prototype((P, U, Size, P, P), False)(("clGetDeviceInfo", _library()))
    check(ask(device.int_ptr, what, ctypes.sizeof(value), ctypes.byref(value), None), f"device query {what:#x}")
    return value.value


@cache
def _library() -> ctypes.CDLL:
    """The loader: what pyopencl is linked with is found through pyopencl's own library."""
    return ctypes.CDLL("OpenCL.dll" if sys.platform == "win32" else extension_module.__file__)


def _prototype(arguments: tuple[Any, ...], releases: bool, result: Any = Code) -> Any:
    return (ctypes.CFUNCTYPE if releases else ctypes.PYFUNCTYPE)(result, *arguments)


class Api:
    """The functions above for one device, as `calls.clFinish(...)`; those of the extension only where it is used."""

    def __init__(self, device: cl.Device, recorded: bool) -> None:
        library = _library()
        self.calls: Any = SimpleNamespace()
        self._create_kernel = _prototype((P, ctypes.c_char_p, P), False, P)(("clCreateKernel", library))
        for name, row in FUNCTIONS.items():
            if not hasattr(library, name):
                raise DriverUnavailable(f"the OpenCL loader has no {name}, new in OpenCL 2.0: install a newer one")
            setattr(self.calls, name, _prototype(*row)((name, library)))
        self._create_command_buffer: Any = None
        if recorded:
            self._load_extension(library, device.platform.int_ptr)

    def _load_extension(self, library: ctypes.CDLL, platform: int) -> None:
        find = _prototype((P, ctypes.c_char_p), False, P)(("clGetExtensionFunctionAddressForPlatform", library))

        def load(name: str, prototype: Any) -> Any:
            address = find(platform, name.encode())
            if not address:
                raise HalError(f"the OpenCL platform has {COMMAND_BUFFERS}, but not its function {name}")
            return prototype(address)

        for name, row in COMMAND_BUFFER_FUNCTIONS.items():
            setattr(self.calls, name, load(name, _prototype(*row)))
        self._create_command_buffer = load("clCreateCommandBufferKHR", _prototype((U, P, P, P), False, P))

    def create_kernel(self, program: int, name: str) -> int:
        code = Code()
        handle = self._create_kernel(program, name.encode(), ctypes.byref(code))
        check(code.value, f"kernel {name}")
        return int(handle)

    def create_command_buffer(self, queue: int) -> int:
        """An empty one, which may be submitted again while it is under way."""
        code, queues = Code(), (P * 1)(queue)
        properties = (ctypes.c_uint64 * 3)(FLAGS, SIMULTANEOUS_USE, 0)
        handle = self._create_command_buffer(1, queues, properties, ctypes.byref(code))
        check(code.value, "a command buffer")
        return int(handle)
