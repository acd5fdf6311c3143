"""Vulkan's result codes as errors of the HAL: a table with a row per `VkResult`.

The front validates arguments before it calls a driver. A code that reports wrong use is therefore an `InternalError`,
never the caller's fault. Codes of windows, video and images have rows so that every code has a meaning; no call made
here returns them. Codes above 0 are not errors by themselves: the few calls that may return one check for it first, and
anywhere else it is unexpected.
"""

from orchestrion.hal.errors import (
    BuildFailed,
    DeviceLost,
    DeviceOutOfMemory,
    DriverUnavailable,
    HalError,
    InternalError,
    InvalidArgument,
    Unsupported,
)

_WINDOWS = "windows are not used here"
_VIDEO = "video is not used here"
_IMAGES = "images are not used here"
_DEFERRED = "deferred operations are not used here"

#: name of the code -> its meaning, and the error to raise
TABLE: dict[str, tuple[str, type[HalError]]] = {
    "VK_NOT_READY": ("the results are not there yet", InternalError),
    "VK_TIMEOUT": ("the wait ended before the work", InternalError),
    "VK_EVENT_SET": ("an event is set", InternalError),
    "VK_EVENT_RESET": ("an event is not set", InternalError),
    "VK_INCOMPLETE": ("a list is longer than the room for it", InternalError),
    "VK_SUBOPTIMAL_KHR": (_WINDOWS, InternalError),
    "VK_THREAD_IDLE_KHR": (_DEFERRED, InternalError),
    "VK_THREAD_DONE_KHR": (_DEFERRED, InternalError),
    "VK_OPERATION_DEFERRED_KHR": (_DEFERRED, InternalError),
    "VK_OPERATION_NOT_DEFERRED_KHR": (_DEFERRED, InternalError),
    "VK_PIPELINE_COMPILE_REQUIRED": ("a pipeline is not in the cache", InternalError),
    "VK_ERROR_INCOMPATIBLE_SHADER_BINARY_EXT": ("a shader binary is not for this device", InternalError),
    "VK_ERROR_OUT_OF_HOST_MEMORY": ("the driver has no host memory", DeviceOutOfMemory),
    "VK_ERROR_OUT_OF_DEVICE_MEMORY": ("the device has no memory", DeviceOutOfMemory),
    "VK_ERROR_INITIALIZATION_FAILED": ("the driver cannot start", DriverUnavailable),
    "VK_ERROR_DEVICE_LOST": ("the device was lost, open it again", DeviceLost),
    "VK_ERROR_MEMORY_MAP_FAILED": ("memory cannot be mapped into the process", DeviceOutOfMemory),
    "VK_ERROR_LAYER_NOT_PRESENT": ("a layer is not installed", DriverUnavailable),
    "VK_ERROR_EXTENSION_NOT_PRESENT": ("the driver lacks an extension", Unsupported),
    "VK_ERROR_FEATURE_NOT_PRESENT": ("the device lacks a feature", Unsupported),
    "VK_ERROR_INCOMPATIBLE_DRIVER": ("no installed driver has this version of Vulkan", DriverUnavailable),
    "VK_ERROR_TOO_MANY_OBJECTS": ("the device holds no more objects of this kind", DeviceOutOfMemory),
    "VK_ERROR_FORMAT_NOT_SUPPORTED": (_IMAGES, InternalError),
    "VK_ERROR_FRAGMENTED_POOL": ("a pool has no contiguous room", DeviceOutOfMemory),
    "VK_ERROR_UNKNOWN": ("the driver does not say why", InternalError),
    "VK_ERROR_OUT_OF_POOL_MEMORY": ("a pool has no room", DeviceOutOfMemory),
    "VK_ERROR_INVALID_EXTERNAL_HANDLE": ("the memory to import cannot be used", InvalidArgument),
    "VK_ERROR_FRAGMENTATION": ("a pool has no contiguous room", DeviceOutOfMemory),
    "VK_ERROR_INVALID_OPAQUE_CAPTURE_ADDRESS": ("an address is not free", InternalError),
    "VK_ERROR_SURFACE_LOST_KHR": (_WINDOWS, InternalError),
    "VK_ERROR_NATIVE_WINDOW_IN_USE_KHR": (_WINDOWS, InternalError),
    "VK_ERROR_OUT_OF_DATE_KHR": (_WINDOWS, InternalError),
    "VK_ERROR_INCOMPATIBLE_DISPLAY_KHR": (_WINDOWS, InternalError),
    "VK_ERROR_FULL_SCREEN_EXCLUSIVE_MODE_LOST_EXT": (_WINDOWS, InternalError),
    "VK_ERROR_VALIDATION_FAILED_EXT": ("the validation layer refuses the call", InternalError),
    "VK_ERROR_INVALID_SHADER_NV": ("the driver does not take a shader", InternalError),
    "VK_ERROR_IMAGE_USAGE_NOT_SUPPORTED_KHR": (_IMAGES, InternalError),
    "VK_ERROR_INVALID_DRM_FORMAT_MODIFIER_PLANE_LAYOUT_EXT": (_IMAGES, InternalError),
    "VK_ERROR_COMPRESSION_EXHAUSTED_EXT": (_IMAGES, InternalError),
    "VK_ERROR_VIDEO_PICTURE_LAYOUT_NOT_SUPPORTED_KHR": (_VIDEO, InternalError),
    "VK_ERROR_VIDEO_PROFILE_OPERATION_NOT_SUPPORTED_KHR": (_VIDEO, InternalError),
    "VK_ERROR_VIDEO_PROFILE_FORMAT_NOT_SUPPORTED_KHR": (_VIDEO, InternalError),
    "VK_ERROR_VIDEO_PROFILE_CODEC_NOT_SUPPORTED_KHR": (_VIDEO, InternalError),
    "VK_ERROR_VIDEO_STD_VERSION_NOT_SUPPORTED_KHR": (_VIDEO, InternalError),
    "VK_ERROR_INVALID_VIDEO_STD_PARAMETERS_KHR": (_VIDEO, InternalError),
    "VK_ERROR_NOT_PERMITTED_KHR": ("the system does not permit it to this user", Unsupported),
}


def build_failure(name: str, what: str) -> HalError:
    """As `failure`, for a call that builds code. Codes that are about neither memory nor a lost device, and codes that
    such a call must not return, as drivers of phones do, become `BuildFailed`.
    """
    error = failure(name, what)
    return (
        error
        if isinstance(error, DeviceLost | DeviceOutOfMemory)
        else BuildFailed(f"{what}: the driver returned {name}")
    )


def failure(name: str, what: str) -> HalError:
    """Returns the error for the code `name`, other than VK_SUCCESS, returned by the call that did `what`."""
    row = TABLE.get(name)
    if row is None:
        return InternalError(f"{what}: Vulkan's code {name}, which has no known meaning")
    meaning, error = row
    return error(f"{what}: {name}, {meaning}")
