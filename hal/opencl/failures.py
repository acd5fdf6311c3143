"""OpenCL's error codes as errors of the HAL: a table with a row per code of `cl.h` and of the extensions in use.

A code may have one meaning when a command is created, and another when the host waits. `CL_OUT_OF_RESOURCES` from a
call that creates or enqueues means that the device lacks registers, local memory or queue entries. From a call that
waits (`clFinish`, `clWaitForEvents`, a blocking read) it reports how commands ended: NVIDIA's driver returns it after
an illegal access or a kernel that the watchdog stopped, Intel's after a hang of the GPU. Neither executes anything in
that context afterwards. So the table has a column for each case.

The front validates arguments before it calls a driver. A code that reports a wrong argument is therefore an
`InternalError`, never the caller's fault.
"""

from typing import NamedTuple

import pyopencl as cl

from orchestrion.hal.errors import (
    DeviceLost,
    DeviceOutOfMemory,
    DriverUnavailable,
    EventFailed,
    HalError,
    InternalError,
    Unsupported,
)
from orchestrion.schema.errors import ModuleError

AnyError = type[HalError] | type[ModuleError]


class Row(NamedTuple):
    """A code. Calls that create or enqueue raise `error`; calls that wait raise `waiting`, or `error` if it is None."""

    code: int
    name: str
    meaning: str
    error: AnyError
    waiting: AnyError | None = None


# fmt: off
TABLE: tuple[Row, ...] = (
    Row(-1, "DEVICE_NOT_FOUND", "the platform has no device of this type", DriverUnavailable),
    Row(-2, "DEVICE_NOT_AVAILABLE", "the device cannot be used any more", DeviceLost),
    Row(-3, "COMPILER_NOT_AVAILABLE", "the device has no compiler", Unsupported),
    Row(-4, "MEM_OBJECT_ALLOCATION_FAILURE", "the device has no memory for the buffer", DeviceOutOfMemory),
    Row(-5, "OUT_OF_RESOURCES", "the device lacks resources, or stopped after a fault", DeviceOutOfMemory, DeviceLost),
    Row(-6, "OUT_OF_HOST_MEMORY", "the driver has no host memory", DeviceOutOfMemory),
    Row(-7, "PROFILING_INFO_NOT_AVAILABLE", "the command was not timed", InternalError),
    Row(-8, "MEM_COPY_OVERLAP", "the ranges of a copy overlap", InternalError),
    Row(-9, "IMAGE_FORMAT_MISMATCH", "two images differ in format", InternalError),
    Row(-10, "IMAGE_FORMAT_NOT_SUPPORTED", "the device lacks the image format", InternalError),
    Row(-11, "BUILD_PROGRAM_FAILURE", "the source does not compile", ModuleError),
    Row(-12, "MAP_FAILURE", "memory cannot be mapped into the process", DeviceOutOfMemory),
    Row(-13, "MISALIGNED_SUB_BUFFER_OFFSET", "a range starts at an offset that the device cannot bind", InternalError),
    Row(-14, "EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST", "a command that was waited for failed", EventFailed,
        DeviceLost),
    Row(-15, "COMPILE_PROGRAM_FAILURE", "the source does not compile", ModuleError),
    Row(-16, "LINKER_NOT_AVAILABLE", "the device has no linker", Unsupported),
    Row(-17, "LINK_PROGRAM_FAILURE", "the compiled sources cannot be linked", ModuleError),
    Row(-18, "DEVICE_PARTITION_FAILED", "the device cannot be divided", InternalError),
    Row(-19, "KERNEL_ARG_INFO_NOT_AVAILABLE", "the program was built without argument names", InternalError),
    Row(-30, "INVALID_VALUE", "an argument is out of range", InternalError),
    Row(-31, "INVALID_DEVICE_TYPE", "no such type of device", InternalError),
    Row(-32, "INVALID_PLATFORM", "no such platform", InternalError),
    Row(-33, "INVALID_DEVICE", "no such device", InternalError),
    Row(-34, "INVALID_CONTEXT", "no such context", InternalError),
    Row(-35, "INVALID_QUEUE_PROPERTIES", "the device lacks a property of the queue", Unsupported),
    # our queues are valid until they are released: NVIDIA's driver says this once a kernel has failed in the context
    Row(-36, "INVALID_COMMAND_QUEUE", "the queue was lost with the device's context", DeviceLost),
    Row(-37, "INVALID_HOST_PTR", "the host memory cannot be used", InternalError),
    Row(-38, "INVALID_MEM_OBJECT", "no such buffer", InternalError),
    Row(-39, "INVALID_IMAGE_FORMAT_DESCRIPTOR", "the image format is malformed", InternalError),
    Row(-40, "INVALID_IMAGE_SIZE", "the image is too large", InternalError),
    Row(-41, "INVALID_SAMPLER", "no such sampler", InternalError),
    Row(-42, "INVALID_BINARY", "the program binary is not for this device", InternalError),
    Row(-43, "INVALID_BUILD_OPTIONS", "the compiler does not know an option", InternalError),
    Row(-44, "INVALID_PROGRAM", "no such program", InternalError),
    Row(-45, "INVALID_PROGRAM_EXECUTABLE", "the program is not built for the device", InternalError),
    Row(-46, "INVALID_KERNEL_NAME", "the program has no kernel of this name", ModuleError),
    Row(-47, "INVALID_KERNEL_DEFINITION", "devices disagree about the kernel's arguments", ModuleError),
    Row(-48, "INVALID_KERNEL", "no such kernel", InternalError),
    Row(-49, "INVALID_ARG_INDEX", "the kernel has no argument of this index", InternalError),
    Row(-50, "INVALID_ARG_VALUE", "the argument has a wrong value", InternalError),
    Row(-51, "INVALID_ARG_SIZE", "the argument has another size", InternalError),
    Row(-52, "INVALID_KERNEL_ARGS", "an argument is not set", InternalError),
    Row(-53, "INVALID_WORK_DIMENSION", "the grid has no such number of dimensions", InternalError),
    Row(-54, "INVALID_WORK_GROUP_SIZE", "the device cannot run the kernel in workgroups of this size", Unsupported),
    Row(-55, "INVALID_WORK_ITEM_SIZE", "a dimension of the workgroup is above the device's limit", Unsupported),
    Row(-56, "INVALID_GLOBAL_OFFSET", "the offset of the grid is too large", InternalError),
    Row(-57, "INVALID_EVENT_WAIT_LIST", "the list of events to wait for is malformed", InternalError),
    Row(-58, "INVALID_EVENT", "no such event", InternalError),
    Row(-59, "INVALID_OPERATION", "the objects do not allow the operation", InternalError),
    Row(-60, "INVALID_GL_OBJECT", "no such object of OpenGL", InternalError),
    Row(-61, "INVALID_BUFFER_SIZE", "the buffer is larger than the device's largest", DeviceOutOfMemory),
    Row(-62, "INVALID_MIP_LEVEL", "the texture has no such level", InternalError),
    Row(-63, "INVALID_GLOBAL_WORK_SIZE", "the grid is empty or too large", InternalError),
    Row(-64, "INVALID_PROPERTY", "no such property", InternalError),
    Row(-65, "INVALID_IMAGE_DESCRIPTOR", "the image is malformed", InternalError),
    Row(-66, "INVALID_COMPILER_OPTIONS", "the compiler does not know an option", InternalError),
    Row(-67, "INVALID_LINKER_OPTIONS", "the linker does not know an option", InternalError),
    Row(-68, "INVALID_DEVICE_PARTITION_COUNT", "the device cannot be divided into so many", InternalError),
    Row(-69, "INVALID_PIPE_SIZE", "the pipe is too large", InternalError),
    Row(-70, "INVALID_DEVICE_QUEUE", "no such queue on the device", InternalError),
    Row(-71, "INVALID_SPEC_ID", "the program has no such specialization constant", InternalError),
    Row(-72, "MAX_SIZE_RESTRICTION_EXCEEDED", "the argument is larger than the kernel allows", InternalError),
    Row(-1001, "PLATFORM_NOT_FOUND_KHR", "no OpenCL driver is installed", DriverUnavailable),
    Row(-1138, "INVALID_COMMAND_BUFFER_KHR", "no such command buffer, or in a wrong state", InternalError),
    Row(-1139, "INVALID_SYNC_POINT_WAIT_LIST_KHR", "the list of sync points is malformed", InternalError),
    Row(-1140, "INCOMPATIBLE_COMMAND_QUEUE_KHR", "the command buffer is for another queue", InternalError),
    Row(-1141, "INVALID_MUTABLE_COMMAND_KHR", "no such mutable command", InternalError),
    Row(-1142, "INVALID_SEMAPHORE_KHR", "no such semaphore", InternalError),
    # in no header: NVIDIA's driver gives it for a kernel that failed, often by an access outside of its buffers
    Row(-9999, "KERNEL_EXECUTION_ERROR_NV", "a kernel failed while it ran", DeviceLost),
)
# fmt: on

BY_CODE: dict[int, Row] = {row.code: row for row in TABLE}


def failure(code: int, what: str, waiting: bool = False) -> Exception:
    """Returns the error for `code`, returned by the call that did `what`. `waiting`: the call waited for commands."""
    row = BY_CODE.get(code)
    if row is None:
        return InternalError(f"{what}: OpenCL's code {code}, which has no known meaning")
    kind = row.waiting if waiting and row.waiting is not None else row.error
    advice = "; the device was lost, open it again" if kind is DeviceLost else ""
    return kind(f"{what}: {row.name}, {row.meaning}{advice}")


def translate(what: str, error: cl.Error, waiting: bool = False) -> Exception:
    """Returns the error for an exception of pyopencl."""
    return failure(error.code, what, waiting)


def check(code: int, what: str, waiting: bool = False) -> None:
    if code:
        raise failure(code, what, waiting)
