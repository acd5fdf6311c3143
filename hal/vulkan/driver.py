"""The Vulkan driver: every device that the loader finds, hardware first."""

from orchestrion.hal.backend import BackendDriver, DeviceInfo
from orchestrion.hal.errors import DriverUnavailable

from .device import VulkanDevice
from .instance import open_instance
from .physical import PhysicalDevice, scan


class VulkanDriver(BackendDriver):
    """Needs the package `vulkan`, a Vulkan loader and a driver (ICD)."""

    name = "vulkan"

    def devices(self) -> list[DeviceInfo]:
        return [physical.info for physical in self._scan()]

    def open(self, info: DeviceInfo) -> VulkanDevice:
        return VulkanDevice(open_instance().api, self._physical(info))

    def open_profiled(self, info: DeviceInfo) -> VulkanDevice:
        from .profiling import ProfiledDevice

        return ProfiledDevice(open_instance().api, self._physical(info))

    def _physical(self, info: DeviceInfo) -> PhysicalDevice:
        found = self._scan()
        if info.index >= len(found):
            raise DriverUnavailable(f"device {info.id} is gone: {len(found)} are left")
        return found[info.index]

    def _scan(self) -> list[PhysicalDevice]:
        found, reasons = scan(open_instance())
        if not found:
            raise DriverUnavailable(f"no Vulkan device can be used: {'; '.join(reasons) or 'the loader lists none'}")
        return found
