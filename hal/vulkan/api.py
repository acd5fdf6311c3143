"""The raw layer: Vulkan through cffi, without the wrappers of the package `vulkan`.

The package provides the declarations and constants. Its wrapper functions cost more than the calls they wrap, and free
nested temporaries too early, so they are not used. Two rules keep raw cffi safe:
- A struct is made by `Api.new`, which sets `sType` and keeps every pointer given to it alive as long as the struct.
- A result code is passed to `Api.check`, which turns it into an error of the HAL. Handles and structs are cffi data,
  which has no static types: they are `Any`.
"""

import importlib
from functools import cache
from types import SimpleNamespace
from typing import Any
from weakref import WeakKeyDictionary

from orchestrion.hal.errors import DriverUnavailable, HalError, InvalidArgument
from orchestrion.schema.hints import install

from .failures import build_failure, failure

Handle = Any
WHOLE_SIZE = 0xFFFFFFFFFFFFFFFF

#: struct -> its sType, without the common prefix
STRUCTURE_TYPES: dict[str, str] = {
    "VkApplicationInfo": "APPLICATION_INFO",
    "VkBufferCreateInfo": "BUFFER_CREATE_INFO",
    "VkCommandBufferAllocateInfo": "COMMAND_BUFFER_ALLOCATE_INFO",
    "VkCommandBufferBeginInfo": "COMMAND_BUFFER_BEGIN_INFO",
    "VkCommandPoolCreateInfo": "COMMAND_POOL_CREATE_INFO",
    "VkComputePipelineCreateInfo": "COMPUTE_PIPELINE_CREATE_INFO",
    "VkDebugUtilsMessengerCreateInfoEXT": "DEBUG_UTILS_MESSENGER_CREATE_INFO_EXT",
    "VkDescriptorPoolCreateInfo": "DESCRIPTOR_POOL_CREATE_INFO",
    "VkDescriptorSetAllocateInfo": "DESCRIPTOR_SET_ALLOCATE_INFO",
    "VkDescriptorSetLayoutCreateInfo": "DESCRIPTOR_SET_LAYOUT_CREATE_INFO",
    "VkDeviceCreateInfo": "DEVICE_CREATE_INFO",
    "VkDeviceQueueCreateInfo": "DEVICE_QUEUE_CREATE_INFO",
    "VkExternalMemoryBufferCreateInfo": "EXTERNAL_MEMORY_BUFFER_CREATE_INFO",
    "VkFenceCreateInfo": "FENCE_CREATE_INFO",
    "VkImportMemoryHostPointerInfoEXT": "IMPORT_MEMORY_HOST_POINTER_INFO_EXT",
    "VkInstanceCreateInfo": "INSTANCE_CREATE_INFO",
    "VkMemoryAllocateInfo": "MEMORY_ALLOCATE_INFO",
    "VkMemoryBarrier": "MEMORY_BARRIER",
    "VkMemoryHostPointerPropertiesEXT": "MEMORY_HOST_POINTER_PROPERTIES_EXT",
    "VkPhysicalDevice16BitStorageFeatures": "PHYSICAL_DEVICE_16BIT_STORAGE_FEATURES",
    "VkPhysicalDevice8BitStorageFeatures": "PHYSICAL_DEVICE_8BIT_STORAGE_FEATURES",
    "VkPhysicalDeviceDriverProperties": "PHYSICAL_DEVICE_DRIVER_PROPERTIES",
    "VkPhysicalDeviceExternalMemoryHostPropertiesEXT": "PHYSICAL_DEVICE_EXTERNAL_MEMORY_HOST_PROPERTIES_EXT",
    "VkPhysicalDeviceFeatures2": "PHYSICAL_DEVICE_FEATURES_2",
    "VkPhysicalDeviceFloatControlsProperties": "PHYSICAL_DEVICE_FLOAT_CONTROLS_PROPERTIES",
    "VkPhysicalDeviceMaintenance3Properties": "PHYSICAL_DEVICE_MAINTENANCE_3_PROPERTIES",
    "VkPhysicalDeviceMemoryBudgetPropertiesEXT": "PHYSICAL_DEVICE_MEMORY_BUDGET_PROPERTIES_EXT",
    "VkPhysicalDeviceMemoryProperties2": "PHYSICAL_DEVICE_MEMORY_PROPERTIES_2",
    "VkPhysicalDeviceProperties2": "PHYSICAL_DEVICE_PROPERTIES_2",
    "VkPhysicalDeviceRobustness2FeaturesEXT": "PHYSICAL_DEVICE_ROBUSTNESS_2_FEATURES_EXT",
    "VkPhysicalDeviceShaderFloat16Int8Features": "PHYSICAL_DEVICE_SHADER_FLOAT16_INT8_FEATURES",
    "VkPhysicalDeviceTimelineSemaphoreFeatures": "PHYSICAL_DEVICE_TIMELINE_SEMAPHORE_FEATURES",
    "VkPhysicalDeviceZeroInitializeWorkgroupMemoryFeatures": (
        "PHYSICAL_DEVICE_ZERO_INITIALIZE_WORKGROUP_MEMORY_FEATURES"
    ),
    "VkPipelineCacheCreateInfo": "PIPELINE_CACHE_CREATE_INFO",
    "VkPipelineLayoutCreateInfo": "PIPELINE_LAYOUT_CREATE_INFO",
    "VkPipelineShaderStageCreateInfo": "PIPELINE_SHADER_STAGE_CREATE_INFO",
    "VkQueryPoolCreateInfo": "QUERY_POOL_CREATE_INFO",
    "VkSemaphoreCreateInfo": "SEMAPHORE_CREATE_INFO",
    "VkSemaphoreSignalInfo": "SEMAPHORE_SIGNAL_INFO",
    "VkSemaphoreTypeCreateInfo": "SEMAPHORE_TYPE_CREATE_INFO",
    "VkSemaphoreWaitInfo": "SEMAPHORE_WAIT_INFO",
    "VkShaderModuleCreateInfo": "SHADER_MODULE_CREATE_INFO",
    "VkSubmitInfo": "SUBMIT_INFO",
    "VkTimelineSemaphoreSubmitInfo": "TIMELINE_SEMAPHORE_SUBMIT_INFO",
    "VkValidationFeaturesEXT": "VALIDATION_FEATURES_EXT",
    "VkWriteDescriptorSet": "WRITE_DESCRIPTOR_SET",
}

#: functions of a device, from vkGetDeviceProcAddr: one indirection less than the loader's exports
DEVICE_FUNCTIONS: tuple[str, ...] = (
    "vkAllocateCommandBuffers",
    "vkAllocateDescriptorSets",
    "vkAllocateMemory",
    "vkBeginCommandBuffer",
    "vkBindBufferMemory",
    "vkCmdBindDescriptorSets",
    "vkCmdBindPipeline",
    "vkCmdCopyBuffer",
    "vkCmdDispatch",
    "vkCmdDispatchIndirect",
    "vkCmdFillBuffer",
    "vkCmdPipelineBarrier",
    "vkCmdResetQueryPool",
    "vkCmdWriteTimestamp",
    "vkCreateBuffer",
    "vkCreateCommandPool",
    "vkCreateComputePipelines",
    "vkCreateDescriptorPool",
    "vkCreateDescriptorSetLayout",
    "vkCreateFence",
    "vkCreatePipelineCache",
    "vkCreatePipelineLayout",
    "vkCreateQueryPool",
    "vkCreateSemaphore",
    "vkCreateShaderModule",
    "vkDestroyBuffer",
    "vkDestroyCommandPool",
    "vkDestroyDescriptorPool",
    "vkDestroyDescriptorSetLayout",
    "vkDestroyDevice",
    "vkDestroyFence",
    "vkDestroyPipeline",
    "vkDestroyPipelineCache",
    "vkDestroyPipelineLayout",
    "vkDestroyQueryPool",
    "vkDestroySemaphore",
    "vkDestroyShaderModule",
    "vkDeviceWaitIdle",
    "vkEndCommandBuffer",
    "vkFreeCommandBuffers",
    "vkFreeMemory",
    "vkGetBufferMemoryRequirements",
    "vkGetDeviceQueue",
    "vkGetPipelineCacheData",
    "vkGetQueryPoolResults",
    "vkMapMemory",
    "vkQueueSubmit",
    "vkResetDescriptorPool",
    "vkResetFences",
    "vkUpdateDescriptorSets",
    "vkWaitForFences",
)
#: functions in the core of Vulkan 1.2; as extensions of 1.1 they have a suffix
TIMELINE_FUNCTIONS: tuple[str, ...] = ("vkGetSemaphoreCounterValue", "vkSignalSemaphore", "vkWaitSemaphores")
EXTENSION_FUNCTIONS: dict[str, tuple[str, ...]] = {
    "VK_EXT_external_memory_host": ("vkGetMemoryHostPointerPropertiesEXT",),
}


class Api:
    """The loader and its declarations: `ffi`, `lib`, and the constants as `vk.VK_...`."""

    def __init__(self, vk: Any) -> None:
        self.vk = vk
        self.ffi = vk.ffi
        self.lib = vk.lib
        self.null = vk.ffi.NULL
        self._kept: WeakKeyDictionary[Any, Any] = WeakKeyDictionary()
        self._types = {name: getattr(vk, f"VK_STRUCTURE_TYPE_{kind}") for name, kind in STRUCTURE_TYPES.items()}

    def new(self, struct: str, **fields: Any) -> Any:
        """Returns a pointer to a new struct. Everything that `fields` point to lives as long as it does."""
        value = self.ffi.new(f"{struct} *", fields)
        kind = self._types.get(struct)
        if kind is not None:
            value.sType = kind
        self._kept[value] = fields
        return value

    def create(self, function: Any, device: Handle, info: Any, what: str) -> Handle:
        """Call a `vkCreate...` or `vkAllocateMemory` function and return the handle."""
        out = self.ffi.new(self.ffi.typeof(function).args[-1].item.cname + "[1]")
        self.check(function(device, info, self.null, out), what)
        return out[0]

    def enumerate(self, what: str, item: str, *arguments: Any) -> Any:
        """Returns an array of the items that the loader's function `what` lists, after a first call for
        their number.
        """
        function = getattr(self.lib, what)
        count = self.ffi.new("uint32_t *")
        self.check(function(*arguments, count, self.null) or 0, what)
        items = self.ffi.new(f"{item}[]", count[0])
        self.check(function(*arguments, count, items) or 0, what)
        return items

    def borrowed(self, kind: str, handle: Any) -> Handle:
        """Returns a caller's handle, of cffi or an integer, as one of `kind`. Raises InvalidArgument if it is of
        another kind.
        """
        if not isinstance(handle, int | self.ffi.CData) or not handle:
            raise InvalidArgument(f"expected a {kind}, as an integer or of cffi, got {handle!r}")
        if not isinstance(handle, int) and self.ffi.typeof(handle) is not self.ffi.typeof(kind):
            raise InvalidArgument(f"expected a {kind}, got {self.ffi.typeof(handle).cname}")
        return self.ffi.cast(kind, handle)

    def check(self, result: int, what: str) -> None:
        if result:
            raise self.error(result, what)

    def error(self, result: int, what: str) -> HalError:
        """Returns the HAL's error for a result code other than VK_SUCCESS."""
        name = str(self.ffi.string(self.ffi.cast("VkResult", result)))
        return failure(name, what)

    def check_build(self, result: int, what: str) -> None:
        """As `check`, for a call that builds code. Raises `BuildFailed` if the driver does not build it."""
        if result:
            raise build_failure(str(self.ffi.string(self.ffi.cast("VkResult", result))), what)

    def string(self, characters: Any) -> str:
        return str(self.ffi.string(characters).decode("utf-8", "replace"))

    def strings(self, names: list[str]) -> Any:
        """Returns a `char *[]` that keeps its strings alive."""
        kept = [self.ffi.new("char[]", name.encode()) for name in names]
        array = self.ffi.new("char *[]", kept)
        self._kept[array] = kept
        return array

    def device_functions(self, device: Handle, suffix: str, extensions: tuple[str, ...]) -> SimpleNamespace:
        """Returns the device's functions. `suffix` is "" or "KHR" for those of timeline semaphores."""
        wanted = {name: name for name in DEVICE_FUNCTIONS} | {name: name + suffix for name in TIMELINE_FUNCTIONS}
        wanted |= {name: name for extension in extensions for name in EXTENSION_FUNCTIONS.get(extension, ())}
        table = SimpleNamespace()
        for name, exported in wanted.items():
            address = self.lib.vkGetDeviceProcAddr(device, exported.encode())
            if address == self.null:
                raise HalError(f"the Vulkan driver lacks {exported}")
            setattr(table, name, self.ffi.cast(f"PFN_{name}", address))
        return table


@cache
def load() -> Api:
    """Returns the process's single Api. Raises DriverUnavailable, which states what to install."""
    try:
        return Api(importlib.import_module("vulkan._vulkan"))
    except ImportError as error:
        raise DriverUnavailable(f"the Python package `vulkan` is missing ({error}): {install('vulkan')}") from error
    except OSError as error:
        raise DriverUnavailable(
            "the Vulkan loader (libvulkan.so.1) is missing: install libvulkan1 and your GPU's driver, "
            "or mesa-vulkan-drivers, which also runs on the CPU"
        ) from error
