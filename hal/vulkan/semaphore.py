"""Timeline semaphores.

A submission that could not be made fails its signals: the host advances the value, and waiting for it raises the error.
When the device is lost, every value counts as reached, and waiting raises DeviceLost.
"""

from __future__ import annotations

import time
from typing import Any

from orchestrion.hal.backend import BackendSemaphore
from orchestrion.hal.errors import HalError

from .api import Api, Handle

#: seconds of one wait in the driver, so that Python's signal handlers run in between
SLICE = 0.1
REACHED = 2**63 - 1


class VulkanSemaphore(BackendSemaphore):
    """A VkSemaphore of timeline type. `owned`: by this object; otherwise by the caller."""

    def __init__(self, api: Api, device: Handle, functions: Any, handle: Handle, owned: bool) -> None:
        self._api = api
        self._device = device
        self._vk = functions
        self.handle = handle
        self._owned = owned
        self._failures: list[tuple[int, int, HalError]] = []  # failed values: above the first, up to the second

    @classmethod
    def create(cls, api: Api, device: Handle, functions: Any, initial: int) -> VulkanSemaphore:
        kind = api.new(
            "VkSemaphoreTypeCreateInfo", semaphoreType=api.vk.VK_SEMAPHORE_TYPE_TIMELINE, initialValue=initial
        )
        info = api.new("VkSemaphoreCreateInfo", pNext=kind)
        return cls(api, device, functions, api.create(functions.vkCreateSemaphore, device, info, "a semaphore"), True)

    @classmethod
    def borrow(cls, api: Api, device: Handle, functions: Any, handle: Any) -> VulkanSemaphore:
        """Returns a semaphore over a caller's handle, of cffi or an integer."""
        return cls(api, device, functions, api.borrowed("VkSemaphore", handle), False)

    @property
    def native(self) -> Handle:
        return self.handle

    def value(self) -> int:
        value = self._api.ffi.new("uint64_t *")
        result = self._vk.vkGetSemaphoreCounterValue(self._device, self.handle, value)
        if result == self._api.vk.VK_ERROR_DEVICE_LOST:
            return REACHED
        self._api.check(result, "reading a semaphore")
        return int(value[0])

    def signal(self, value: int) -> None:
        info = self._api.new("VkSemaphoreSignalInfo", semaphore=self.handle, value=value)
        self._api.check(self._vk.vkSignalSemaphore(self._device, info), f"signalling {value}")

    def wait(self, value: int, timeout: float | None) -> bool:
        handles = self._api.ffi.new("VkSemaphore[1]", [self.handle])
        values = self._api.ffi.new("uint64_t[1]", [value])
        info = self._api.new("VkSemaphoreWaitInfo", semaphoreCount=1, pSemaphores=handles, pValues=values)
        end = None if timeout is None else time.monotonic() + timeout
        while True:
            rest = SLICE if end is None else min(SLICE, max(0.0, end - time.monotonic()))
            result = self._vk.vkWaitSemaphores(self._device, info, int(rest * 1e9))
            if result != self._api.vk.VK_TIMEOUT:
                break
            if end is not None and time.monotonic() >= end:
                return False
        self._api.check(result, f"waiting for {value}")
        for above, failed, error in self._failures:
            if above < value <= failed:
                raise type(error)(str(error)) from error
        return True

    def fail(self, value: int, error: HalError) -> None:
        """All submissions that promised lower values are over."""
        reached = self.value()
        self._failures.append((reached, value, error))
        if reached < value:
            self.signal(value)

    def expect_failure(self, value: int, error: HalError) -> None:
        """The value counts as failed when it is reached. The caller has a submission signal it."""
        self._failures.append((value - 1, value, error))

    def release(self) -> None:
        if self._owned:
            self._vk.vkDestroySemaphore(self._device, self.handle, self._api.null)


class Timeline:
    """A queue's own count of submissions: `submitted` so far, and `reached` as last polled."""

    __slots__ = ("reached", "semaphore", "submitted")

    def __init__(self, semaphore: VulkanSemaphore) -> None:
        self.semaphore = semaphore
        self.submitted = 0
        self.reached = 0

    def poll(self) -> int:
        if self.reached < self.submitted:
            self.reached = min(self.semaphore.value(), self.submitted)
        return self.reached

    def wait(self) -> None:
        self.wait_for(self.submitted)

    def wait_for(self, number: int) -> None:
        """Block until a submission, and all before it, are over."""
        if self.reached < number:
            self.semaphore.wait(number, None)
            self.reached = max(self.reached, number)
