"""The process's connection to the Vulkan loader, with the validation layer if requested.

`ORCHESTRION_VULKAN_VALIDATION=1` enables VK_LAYER_KHRONOS_validation with its synchronisation checks. Its messages are
logged (`orchestrion.hal.vulkan`) and stored in `Instance.messages`, which tests assert to be empty. There is one
instance per process and setting. It is never destroyed, because drivers keep threads for it.
"""

import logging
import os
from functools import cache
from typing import Any

from orchestrion.hal.errors import DriverUnavailable

from .api import Api, load

_log = logging.getLogger("orchestrion.hal.vulkan")

VALIDATION_VARIABLE = "ORCHESTRION_VULKAN_VALIDATION"
VALIDATION_LAYER = "VK_LAYER_KHRONOS_validation"
LEAST_VERSION = (1, 1)
#: the requested version: 1.2 has timeline semaphores in the core; 1.1 devices have them as an extension
WANTED_VERSION = (1, 2)


def pack_version(version: tuple[int, int]) -> int:
    return version[0] << 22 | version[1] << 12


def unpack_version(packed: int) -> tuple[int, int]:
    return packed >> 22 & 0x7F, packed >> 12 & 0x3FF


class Instance:
    """A VkInstance: `handle`, the `messages` of the validation layer, and the Vulkan `version` that devices may use."""

    def __init__(self, api: Api, validation: bool) -> None:
        self.api = api
        self.messages: list[str] = []
        self.version = min(_loader_version(api), WANTED_VERSION)
        if self.version < LEAST_VERSION:
            raise DriverUnavailable(f"the Vulkan loader is version {self.version}, needed is {LEAST_VERSION}")
        if validation:
            _require_layer(api)
        self.handle = self._create(validation)

    def _create(self, validation: bool) -> Any:
        api, vk = self.api, self.api.vk
        application = api.new("VkApplicationInfo", apiVersion=pack_version(self.version))
        present = {api.string(row.extensionName) for row in _extensions(api)}
        extensions = ["VK_EXT_debug_utils"] if validation else []
        flags = 0
        if "VK_KHR_portability_enumeration" in present:
            extensions.append("VK_KHR_portability_enumeration")
            flags = vk.VK_INSTANCE_CREATE_ENUMERATE_PORTABILITY_BIT_KHR
        layers = [VALIDATION_LAYER] if validation else []
        info = api.new(
            "VkInstanceCreateInfo",
            pNext=self._validation() if validation else api.null,
            flags=flags,
            pApplicationInfo=application,
            enabledLayerCount=len(layers),
            ppEnabledLayerNames=api.strings(layers),
            enabledExtensionCount=len(extensions),
            ppEnabledExtensionNames=api.strings(extensions),
        )
        out = api.ffi.new("VkInstance *")
        result = api.lib.vkCreateInstance(info, api.null, out)
        if result == vk.VK_ERROR_INCOMPATIBLE_DRIVER:
            raise DriverUnavailable(
                "the Vulkan loader finds no driver: install your GPU's driver, or mesa-vulkan-drivers, "
                "which also runs on the CPU"
            )
        api.check(result, "vkCreateInstance")
        if validation:
            self._collect(out[0])
        return out[0]

    def _validation(self) -> Any:
        """The structs chained into the instance: synchronisation checks, and messages from creation on."""
        enabled = self.api.ffi.new("VkValidationFeatureEnableEXT[]", [_ENABLE_SYNCHRONIZATION])
        self._messenger_info = self.api.new(
            "VkDebugUtilsMessengerCreateInfoEXT",
            messageSeverity=_SEVERITY_WARNING | _SEVERITY_ERROR,
            messageType=_TYPE_VALIDATION | _TYPE_PERFORMANCE,
            pfnUserCallback=self._callback(),
        )
        return self.api.new(
            "VkValidationFeaturesEXT",
            pNext=self._messenger_info,
            enabledValidationFeatureCount=1,
            pEnabledValidationFeatures=enabled,
        )

    def _callback(self) -> Any:
        api, messages = self.api, self.messages

        def collect(severity: int, kinds: int, data: Any, user: Any) -> int:
            message = api.string(data.pMessage)
            messages.append(message)
            _log.warning("%s", message)
            return 0

        self._kept_callback = api.ffi.callback("PFN_vkDebugUtilsMessengerCallbackEXT", collect, error=0)
        return self._kept_callback

    def _collect(self, instance: Any) -> None:
        ffi = self.api.ffi
        address = self.api.lib.vkGetInstanceProcAddr(instance, b"vkCreateDebugUtilsMessengerEXT")
        create = ffi.cast("PFN_vkCreateDebugUtilsMessengerEXT", address)
        self._messenger = self.api.create(create, instance, self._messenger_info, "vkCreateDebugUtilsMessengerEXT")


_SEVERITY_WARNING, _SEVERITY_ERROR = 0x100, 0x1000
_TYPE_VALIDATION, _TYPE_PERFORMANCE = 0x2, 0x4
_ENABLE_SYNCHRONIZATION = 4


def _loader_version(api: Api) -> tuple[int, int]:
    packed = api.ffi.new("uint32_t *")
    api.check(api.lib.vkEnumerateInstanceVersion(packed), "vkEnumerateInstanceVersion")
    return unpack_version(packed[0])


def _extensions(api: Api) -> Any:
    return api.enumerate("vkEnumerateInstanceExtensionProperties", "VkExtensionProperties", api.null)


def _require_layer(api: Api) -> None:
    layers = api.enumerate("vkEnumerateInstanceLayerProperties", "VkLayerProperties")
    if VALIDATION_LAYER not in {api.string(row.layerName) for row in layers}:
        raise DriverUnavailable(
            f"{VALIDATION_VARIABLE}=1 asks for {VALIDATION_LAYER}, which is not installed: "
            "install vulkan-validationlayers or unset the variable"
        )


def open_instance() -> Instance:
    """Returns the instance for the environment's setting. Raises DriverUnavailable, which states what is missing."""
    setting = os.environ.get(VALIDATION_VARIABLE, "0")
    if setting not in ("", "0", "1"):
        raise DriverUnavailable(f"{VALIDATION_VARIABLE} is {setting!r}; it takes 0 or 1")
    return _shared(setting == "1")


@cache
def _shared(validation: bool) -> Instance:
    return Instance(load(), validation)
