"""Compiled pipelines, stored between processes: one VkPipelineCache per executable, in the user's cache folder.

An entry is found by device, driver version, enabled features and content, so a driver never gets data that it did not
write; it also checks the header. Drivers that store nothing return a bare header, which is not stored. Nothing is
stored for drivers that a quirk keeps from loading pipelines (`Quirk.stores_pipelines`).
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
#: changes whenever the words that a driver gets for a payload change, or the binding of its pipelines
REVISION = "3"


def cache_key(device: VulkanDevice, payload: memoryview) -> tuple[str, str, bytes]:
    """Everything that a driver's pipelines for a payload depend on: device and driver, features and
    revision, SHA-256.
    """
    enabled = ",".join([*sorted(device.physical.enabled), REVISION])
    return device.physical.identity, enabled, hashlib.sha256(payload).digest()


@contextmanager
def pipeline_cache(device: VulkanDevice, payload: memoryview) -> Generator[tuple[Handle, bool]]:
    """A context manager around a VkPipelineCache. Yields its handle, and whether the user's cache had data of this
    payload. At the end the contents are stored if they are new.
    """
    api, vk, stores = device.api, device.vk, device.physical.stores_pipelines
    key = cache_key(device, payload)
    known = (stores and device.cache.get(*key)) or b""
    info = api.new("VkPipelineCacheCreateInfo", initialDataSize=len(known), pInitialData=api.ffi.new("char[]", known))
    handle = api.create(vk.vkCreatePipelineCache, device.handle, info, "a pipeline cache")
    try:
        yield handle, bool(known)
        data = _data(device, handle) if stores else b""
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
