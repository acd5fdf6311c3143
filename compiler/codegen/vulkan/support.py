"""The functions of Vulkan that programs call (`support.c`)."""

from __future__ import annotations

from typing import Final

#: functions of the instance, then of the device; those of the second list have a name with KHR before Vulkan 1.2
INSTANCE_FUNCTIONS: Final = (
    "GetDeviceProcAddr", "GetPhysicalDeviceProperties", "GetPhysicalDeviceProperties2",
    "GetPhysicalDeviceMemoryProperties",
)  # fmt: skip
DEVICE_FUNCTIONS: Final = (
    "AllocateCommandBuffers", "AllocateDescriptorSets", "AllocateMemory", "BeginCommandBuffer", "BindBufferMemory",
    "CmdBindDescriptorSets", "CmdBindPipeline", "CmdCopyBuffer", "CmdDispatch", "CmdFillBuffer", "CmdPipelineBarrier",
    "CmdPushConstants", "CreateBuffer", "CreateCommandPool", "CreateComputePipelines", "CreateDescriptorPool",
    "CreateDescriptorSetLayout", "CreatePipelineLayout", "CreateSemaphore", "CreateShaderModule", "DestroyBuffer",
    "DestroyCommandPool", "DestroyDescriptorPool", "DestroyDescriptorSetLayout", "DestroyPipeline",
    "DestroyPipelineLayout", "DestroySemaphore", "DestroyShaderModule", "EndCommandBuffer", "FreeMemory",
    "GetBufferMemoryRequirements", "MapMemory", "QueueSubmit", "QueueWaitIdle", "UpdateDescriptorSets",
)  # fmt: skip
LATER_FUNCTIONS: Final = ("WaitSemaphores",)
