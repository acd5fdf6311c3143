"""What the driver compiled, kept between processes: one VkPipelineCache per executable, in the user's cache folder.

A row is found by device, driver version, enabled features and content, so it is never fed to a driver that did
not write it; the driver checks the header once more. Drivers that keep nothing give a bare header, which is not stored.
"""

from __future__ import annotations

import hashlib
from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from .api import Handle

if TYPE_CHECKING:
    from .device import VulkanDevice

HEADER_BYTES = 32
#: changes when the words that a driver gets for a payload change, or how its pipelines are bound
REVISION = "3"


def cache_key(device: VulkanDevice, payload: memoryview) -> tuple[str, str, bytes]:
    """All that a driver's pipelines for a payload depend on: device and driver, features and revision, SHA-256."""
    enabled = ",".join([*sorted(device.physical.enabled), REVISION])
    return device.physical.identity, enabled, hashlib.sha256(payload).digest()


@contextmanager
def pipeline_cache(device: VulkanDevice, payload: memoryview) -> Generator[tuple[Handle, bool]]:
    """A VkPipelineCache, and whether anything was known of this payload; what it holds at the end is kept, if that is
    new.
    """
    api, vk = device.api, device.vk
    key = cache_key(device, payload)
    known = device.cache.get(*key) or b""
    info = api.new("VkPipelineCacheCreateInfo", initialDataSize=len(known), pInitialData=api.ffi.new("char[]", known))
    handle = api.create(vk.vkCreatePipelineCache, device.handle, info, "a pipeline cache")
    try:
        yield handle, bool(known)
        data = _data(device, handle)
        if len(data) > HEADER_BYTES and data != known:
            device.cache.put(data, *key)
    finally:
        vk.vkDestroyPipelineCache(device.handle, handle, api.null)


def _data(device: VulkanDevice, handle: Handle) -> bytes:
    api, read = device.api, device.vk.vkGetPipelineCacheData
    size = api.ffi.new("size_t *")
    api.check(read(device.handle, handle, size, api.null), "reading a pipeline cache")
    data = api.ffi.new("char[]", size[0])
    api.check(read(device.handle, handle, size, data), "reading a pipeline cache")
    return bytes(api.ffi.buffer(data, size[0]))
