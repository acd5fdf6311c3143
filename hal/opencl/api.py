"""Calls OpenCL directly, where pyopencl lacks a function, or its wrapper costs more than the call.

pyopencl takes 50 us to wrap a kernel object that OpenCL creates in one, and does not support command buffers. So
kernels, enqueueing, recording and waiting use ctypes, with the loader that pyopencl itself is linked with.
- Handles are integers. Whoever creates one releases it. A result is OpenCL's code, which `failures.check` interprets.
- Functions that block or take long let other threads run meanwhile. The others end before the interpreter lock could
  change hands.
- `cl_khr_command_buffer` changed its ABI between versions. Only versions with a row in `COMMAND_BUFFER_VERSIONS`, with
  which this driver was tested, are called.
"""

import ctypes
import sys
from functools import cache
from types import SimpleNamespace
from typing import Any, NamedTuple

import pyopencl as cl
import pyopencl._cl as extension_module

from orchestrion.hal.errors import DriverUnavailable, HalError

from .failures import check

P, U, Size, Code = ctypes.c_void_p, ctypes.c_uint32, ctypes.c_size_t, ctypes.c_int32
EVENTS = (U, P, P)  # number of events to wait for, their array, and the address of the new event
SYNC_POINTS = (U, P, P, P)  # the same inside a command buffer, and the address of the mutable command's handle
Sizes = Size * 3
Version = tuple[int, int, int]

#: function -> (argument types, whether other threads run meanwhile); each returns a code
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
    "clRetainEvent": ((P,), False),
}
#: the functions of cl_khr_command_buffer that all versions share; they are looked up through the platform
COMMAND_BUFFER_FUNCTIONS: dict[str, tuple[tuple[Any, ...], bool]] = {
    "clFinalizeCommandBufferKHR": ((P,), False),
    "clReleaseCommandBufferKHR": ((P,), False),
    "clEnqueueCommandBufferKHR": ((U, P, P, *EVENTS), True),
    "clCommandNDRangeKernelKHR": ((P, P, P, P, U, P, P, P, *SYNC_POINTS), False),
}
#: commands whose leading arguments depend on the version: the types of the arguments after these
TRANSFER_COMMANDS: dict[str, tuple[Any, ...]] = {
    "clCommandCopyBufferKHR": (P, P, Size, Size, Size, *SYNC_POINTS),
    "clCommandFillBufferKHR": (P, P, Size, Size, Size, *SYNC_POINTS),
}


class CommandBufferVersion(NamedTuple):
    """The calling convention of a version of cl_khr_command_buffer.

    `properties`: copies and fills take a list of properties after the queue, as since 0.9.5. `pipelined`: a command
    buffer may be enqueued again while it is in flight, as since 0.9.8. Earlier versions need simultaneous use for that,
    which the device must support.
    """

    properties: bool
    pipelined: bool


COMMAND_BUFFERS = "cl_khr_command_buffer"
COMMAND_BUFFER_VERSIONS: dict[Version, CommandBufferVersion] = {
    (0, 9, 0): CommandBufferVersion(properties=False, pipelined=False),
    (1, 0, 0): CommandBufferVersion(properties=True, pipelined=True),
}
#: versions of the extension whose update function takes an array of the structures in `mutable_dispatch.py`
MUTABLE_DISPATCH = "cl_khr_command_buffer_mutable_dispatch"
MUTABLE_DISPATCH_VERSIONS: tuple[Version, ...] = ((0, 9, 3),)
MUTABLE_CAPABILITIES, CAPABILITY_ARGUMENTS = 0x12B0, 0x8
CAPABILITIES, REQUIRED_QUEUE_PROPERTIES, FLAGS = 0x12A9, 0x12AA, 0x1293
CAPABILITY_SIMULTANEOUS_USE, SIMULTANEOUS_USE, MUTABLE = 0x4, 0x1, 0x2
EVENT_STATUS = 0x11D3


def why_no_command_buffers(device: cl.Device) -> str:
    """Why recordings are not command buffers on this device; empty if they are."""
    if COMMAND_BUFFERS not in device.extensions.split():
        return f"no {COMMAND_BUFFERS}"
    version = extension_version(device, COMMAND_BUFFERS)
    known = COMMAND_BUFFER_VERSIONS.get(version) if version else None
    if known is None:
        names = " and ".join(map(_dotted, COMMAND_BUFFER_VERSIONS))
        return f"{COMMAND_BUFFERS} of version {_dotted(version)}, known are {names}"
    if not known.pipelined and not _device_bits(device, CAPABILITIES) & CAPABILITY_SIMULTANEOUS_USE:
        return f"{COMMAND_BUFFERS} without simultaneous use"
    if _device_bits(device, REQUIRED_QUEUE_PROPERTIES):
        return f"{COMMAND_BUFFERS} needs another kind of queue"
    return ""


def has_mutable_dispatch(device: cl.Device) -> bool:
    """Whether arguments of dispatches in command buffers can be updated, in a known version of the extension."""
    if extension_version(device, MUTABLE_DISPATCH) not in MUTABLE_DISPATCH_VERSIONS:
        return False
    return bool(_device_bits(device, MUTABLE_CAPABILITIES) & CAPABILITY_ARGUMENTS)


def extension_version(device: cl.Device, name: str) -> Version | None:
    """The version of an extension. None if the device lacks it, or is older than OpenCL 3.0, which
    introduced versions.
    """
    try:
        rows = device.extensions_with_version
    except cl.Error:
        return None
    return next(
        ((row.version >> 22, row.version >> 12 & 0x3FF, row.version & 0xFFF) for row in rows if row.name == name), None
    )


def _dotted(version: Version | None) -> str:
    return ".".join(map(str, version)) if version else "unknown"


def _device_bits(device: cl.Device, what: int) -> int:
    value = ctypes.c_uint64()
    ask = _prototype((P, U, Size, P, P), False)(("clGetDeviceInfo", _library()))
    check(ask(device.int_ptr, what, ctypes.sizeof(value), ctypes.byref(value), None), f"device query {what:#x}")
    return value.value


@cache
def _library() -> ctypes.CDLL:
    """The OpenCL loader that pyopencl is linked with, found through pyopencl's own library."""
    return ctypes.CDLL("OpenCL.dll" if sys.platform == "win32" else extension_module.__file__)


@cache
def _prototype(arguments: tuple[Any, ...], releases: bool, result: Any = Code) -> Any:
    return (ctypes.CFUNCTYPE if releases else ctypes.PYFUNCTYPE)(result, *arguments)


class Api:
    """The functions above for one device, as `calls.clFinish(...)`. Those of the extension only if it is used."""

    def __init__(self, device: cl.Device, recorded: bool) -> None:
        library = _library()
        self.calls: Any = SimpleNamespace()
        self._create_kernel = _prototype((P, ctypes.c_char_p, P), False, P)(("clCreateKernel", library))
        for name, row in FUNCTIONS.items():
            if not hasattr(library, name):
                raise DriverUnavailable(f"the OpenCL loader has no {name}, new in OpenCL 2.0: install a newer one")
            setattr(self.calls, name, _prototype(*row)((name, library)))
        #: leading arguments of a copy or fill, after the command buffer: queue, and properties
        self.transfer_prefix: tuple[None, ...] = ()
        self._create_command_buffer: Any = None
        self._command_buffer_flags = 0
        self.mutable_dispatch = recorded and has_mutable_dispatch(device)
        if recorded:
            version = extension_version(device, COMMAND_BUFFERS)
            self._load_command_buffers(library, device.platform.int_ptr, COMMAND_BUFFER_VERSIONS[version or (0, 9, 0)])

    def _load_command_buffers(self, library: ctypes.CDLL, platform: int, version: CommandBufferVersion) -> None:
        find = _prototype((P, ctypes.c_char_p), False, P)(("clGetExtensionFunctionAddressForPlatform", library))

        def load(name: str, prototype: Any) -> Any:
            address = find(platform, name.encode())
            if not address:
                raise HalError(f"the OpenCL platform has {COMMAND_BUFFERS}, but not its function {name}")
            return prototype(address)

        for name, row in COMMAND_BUFFER_FUNCTIONS.items():
            setattr(self.calls, name, load(name, _prototype(*row)))
        self.transfer_prefix = (None,) * (1 + version.properties)
        for name, arguments in TRANSFER_COMMANDS.items():
            leading = (P,) * (2 + version.properties)
            setattr(self.calls, name, load(name, _prototype((*leading, *arguments), False)))
        self._create_command_buffer = load("clCreateCommandBufferKHR", _prototype((U, P, P, P), False, P))
        self._command_buffer_flags = 0 if version.pipelined else SIMULTANEOUS_USE
        if self.mutable_dispatch:
            self.calls.clUpdateMutableCommandsKHR = load("clUpdateMutableCommandsKHR", _prototype((P, U, P, P), False))

    def create_kernel(self, program: int, name: str) -> int:
        code = Code()
        handle = self._create_kernel(program, name.encode(), ctypes.byref(code))
        check(code.value, f"kernel {name}")
        return int(handle)

    def is_over(self, event: ctypes.c_void_p) -> bool:
        """Whether a command is over, with success or without; True for a null event."""
        if not event.value:
            return True
        status = ctypes.c_int32()
        check(self.calls.clGetEventInfo(event, EVENT_STATUS, 4, ctypes.byref(status), None), "status of an event")
        return status.value <= 0

    def create_command_buffer(self, queue: int, mutable: bool) -> int:
        """Returns an empty command buffer, which may be submitted again while it is in flight."""
        code, queues = Code(), (P * 1)(queue)
        properties = (ctypes.c_uint64 * 3)(FLAGS, self._command_buffer_flags | MUTABLE * mutable, 0)
        handle = self._create_command_buffer(1, queues, properties, ctypes.byref(code))
        check(code.value, "a command buffer")
        return int(handle)
