"""Executables: SPIR-V words compiled to compute pipelines, one per entry.

Before the driver gets the words, they are verified (`spirv_check`), the features they need are compared with the
device's, missing protections are added (`spirv_harden`), parameters move into a buffer (`spirv_parameters`), defects of
the driver are avoided (`spirv_selections`, `spirv_conversions`), and the driver is told to keep NaN
(`schema/spirv_floats.py`) and not to unroll many loops (`spirv_unrolling`). Binding `i` of an entry is set 0, binding
`i`; its parameters are set 1. The driver's pipelines are stored in the user's cache by content, device and driver
version.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from orchestrion.hal.backend import BackendExecutable, Entry
from orchestrion.hal.errors import Unsupported
from orchestrion.schema.spirv_floats import preserve_special

from .api import Api, Handle
from .pipeline_cache import pipeline_cache
from .recording import DESCRIPTOR_STORAGE_BUFFER, SHADER_STAGE_COMPUTE, WORD
from .spirv_check import Summary, verify
from .spirv_conversions import halve_conversions
from .spirv_harden import harden
from .spirv_limits import check_limits
from .spirv_parameters import buffer_parameters
from .spirv_selections import split_selections
from .spirv_unrolling import keep_loops

if TYPE_CHECKING:
    from .device import VulkanDevice


class Layout:
    """How an entry is bound: `sets` is its VkDescriptorSetLayout array, `pipeline` its VkPipelineLayout.

    `parameters` is the VkDescriptorSetLayout of set 1, which the caller owns; None for entries without parameters.
    """

    def __init__(self, api: Api, device: Handle, functions: Any, bindings: int, parameters: Handle | None) -> None:
        self._api = api
        self._device = device
        self._vk = functions
        self.sets = set_layout(api, device, functions, DESCRIPTOR_STORAGE_BUFFER, bindings)
        sets = [self.sets] if parameters is None else [self.sets, parameters]
        info = api.new(
            "VkPipelineLayoutCreateInfo",
            setLayoutCount=len(sets),
            pSetLayouts=api.ffi.new("VkDescriptorSetLayout[]", sets),
        )
        self.pipeline = api.create(functions.vkCreatePipelineLayout, device, info, "a pipeline layout")

    def release(self) -> None:
        self._vk.vkDestroyPipelineLayout(self._device, self.pipeline, self._api.null)
        self._vk.vkDestroyDescriptorSetLayout(self._device, self.sets, self._api.null)


def set_layout(api: Api, device: Handle, functions: Any, kind: int, bindings: int) -> Handle:
    """Returns a VkDescriptorSetLayout with bindings 0 to `bindings - 1`, each one descriptor of type `kind`."""
    rows = api.ffi.new("VkDescriptorSetLayoutBinding[]", bindings)
    for index in range(bindings):
        rows[index].binding = index
        rows[index].descriptorType = kind
        rows[index].descriptorCount = 1
        rows[index].stageFlags = SHADER_STAGE_COMPUTE
    info = api.new("VkDescriptorSetLayoutCreateInfo", bindingCount=bindings, pBindings=rows)
    return api.create(functions.vkCreateDescriptorSetLayout, device, info, "a descriptor set layout")


class VulkanExecutable(BackendExecutable):
    """A pipeline and a layout per entry."""

    def __init__(self, device: VulkanDevice, payload: memoryview, entries: tuple[Entry, ...]) -> None:
        self.entries = entries
        self.launched: set[int] = set()  #: entries that were launched, so their code is compiled
        self._device = device
        check_limits(np.frombuffer(payload[: payload.nbytes // 4 * 4], "<u4"))
        summary = verify(payload, entries)
        _check_needs(device, summary, entries)
        enabled = device.physical.enabled
        clamped = "robustBufferAccess2" not in enabled
        #: per entry and binding: the least length of a non-empty binding
        self.least_bytes = [summary.element_bytes[entry.name] if clamped else () for entry in entries]
        #: per entry and binding: whether it holds elements of whole words
        self.in_words = [tuple(size >= WORD for size in summary.element_bytes[entry.name]) for entry in entries]
        code = harden(
            payload,
            null_initializers="shaderZeroInitializeWorkgroupMemory" in enabled,
            clamp_buffers=clamped,
            shared=any(summary.shared_bytes.values()),
        )
        if any([entry.parameter_words for entry in entries]):
            code = buffer_parameters(code, device.physical.uniform_parameters)
        if device.physical.splits_selections:
            code = split_selections(code)
        if device.physical.halves_conversions:
            code = halve_conversions(code)
        if device.physical.special_floats:
            code = preserve_special(code, device.physical.special_floats)
        code = keep_loops(code)
        self.layouts = [device.layout(len(entry.bindings), bool(entry.parameter_words)) for entry in entries]
        self.pipelines: list[Handle] = []
        try:
            self._build(payload, code)
        except BaseException:
            self.release()
            raise

    def release(self) -> None:
        device = self._device
        for pipeline in self.pipelines:
            device.vk.vkDestroyPipeline(device.handle, pipeline, device.api.null)

    def _build(self, payload: memoryview, code: bytes) -> None:
        """Build the pipelines of the hardened `code`. The entry of the pipeline cache is found by the digest of
        `payload`.
        """
        device, api = self._device, self._device.api
        words = api.ffi.new("uint32_t[]", len(code) // 4)
        api.ffi.memmove(words, code, len(code))
        info = api.new("VkShaderModuleCreateInfo", codeSize=len(code), pCode=words)
        out = api.ffi.new("VkShaderModule[1]")
        api.check_build(device.vk.vkCreateShaderModule(device.handle, info, api.null, out), "a shader module")
        module = out[0]
        try:
            with pipeline_cache(device, payload) as (cache, known):
                self.cached = known
                for entry, layout in zip(self.entries, self.layouts, strict=True):
                    self.pipelines.append(self._pipeline(module, cache, entry.name, layout))
        finally:
            device.vk.vkDestroyShaderModule(device.handle, module, api.null)

    def _pipeline(self, module: Handle, cache: Handle, name: str, layout: Layout) -> Handle:
        device, api = self._device, self._device.api
        text = api.ffi.new("char[]", name.encode())
        stage = api.new("VkPipelineShaderStageCreateInfo", stage=SHADER_STAGE_COMPUTE, module=module, pName=text)
        info = api.new("VkComputePipelineCreateInfo", stage=stage[0], layout=layout.pipeline)
        out = api.ffi.new("VkPipeline[1]")
        result = device.vk.vkCreateComputePipelines(device.handle, cache, 1, info, api.null, out)
        api.check_build(result, f"building entry {name}")
        return out[0]


def _check_needs(device: VulkanDevice, summary: Summary, entries: tuple[Entry, ...]) -> None:
    """Raises Unsupported, which names what the module needs and the device lacks."""
    info = device.info
    for feature in sorted(summary.features - info.features):
        raise Unsupported(f"the code needs feature {feature}, which {info.name} lacks{info.why_withheld([feature])}")
    for entry in entries:
        for axis, size, limit in zip("xyz", entry.workgroup_size, device.physical.max_workgroup, strict=True):
            if size > limit:
                raise Unsupported(f"entry {entry.name}: workgroup size {size} in {axis}, the device's limit is {limit}")
        used, limit = summary.shared_bytes[entry.name], info.limits.shared_memory_bytes
        if used > limit:
            raise Unsupported(f"entry {entry.name}: {used} bytes of shared memory, the device's limit is {limit}")
