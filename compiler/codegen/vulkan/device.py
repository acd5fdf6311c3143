"""The functions with which every generated program makes memory and pipelines on a device.

`{n}` is the prefix of public names.
"""

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

DEVICE: Final = """/* The first type of memory that has all flags of the first wish that can be met, and no special
 * ones. */
static int memory_type(const VkPhysicalDeviceMemoryProperties *memory, uint32_t bits,
                       const VkMemoryPropertyFlags *wishes, int count)
{
  int i, t;
  for (i = 0; i < count; ++i) {
    for (t = 0; t < (int)memory->memoryTypeCount; ++t) {
      const VkMemoryPropertyFlags flags = memory->memoryTypes[t].propertyFlags;
      if ((bits >> t & 1) != 0 && (flags & wishes[i]) == wishes[i] && flags < VK_MEMORY_PROPERTY_LAZILY_ALLOCATED_BIT)
        return t;
    }
  }
  return -1;
}

/* Makes a buffer with memory of its own; `mapped` if the host accesses it. */
static int make_buffer({n}_context *context, VkDeviceSize bytes, {n}_buffer *made, int mapped)
{
  static const VkMemoryPropertyFlags wishes[] = {
    VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT | VK_MEMORY_PROPERTY_HOST_CACHED_BIT,
    VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT,
    VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT, 0
  };
  const VkAllocationCallbacks *const allocator = context->gpu.allocator;
  const VkDevice device = context->gpu.device;
  VkPhysicalDeviceMemoryProperties properties;
  VkMemoryRequirements needed;
  VkBufferCreateInfo info;
  VkMemoryAllocateInfo memory;
  int status, type;
  memset(&info, 0, sizeof info);
  info.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO;
  info.size = bytes;
  info.usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_TRANSFER_SRC_BIT | VK_BUFFER_USAGE_TRANSFER_DST_BIT;
  status = failed(context, context->vk.CreateBuffer(device, &info, allocator, &made->range.buffer));
  if (status != {n}_OK)
    return status;
  context->vk.GetBufferMemoryRequirements(device, made->range.buffer, &needed);
  context->vk.GetPhysicalDeviceMemoryProperties(context->gpu.physical_device, &properties);
  type = memory_type(&properties, needed.memoryTypeBits, wishes + (mapped ? 0 : 2), 2);
  if (type < 0)
    return {n}_ERROR_MEMORY;
  memset(&memory, 0, sizeof memory);
  memory.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO;
  memory.allocationSize = needed.size;
  memory.memoryTypeIndex = (uint32_t)type;
  status = failed(context, context->vk.AllocateMemory(device, &memory, allocator, &made->memory));
  if (status == {n}_OK)
    status = failed(context, context->vk.BindBufferMemory(device, made->range.buffer, made->memory, 0));
  if (status == {n}_OK && mapped)
    status = failed(context, context->vk.MapMemory(device, made->memory, 0, VK_WHOLE_SIZE, 0, &made->mapped));
  return status;
}

static void free_buffer({n}_context *context, {n}_buffer *made)
{
  context->vk.DestroyBuffer(context->gpu.device, made->range.buffer, context->gpu.allocator);
  context->vk.FreeMemory(context->gpu.device, made->memory, context->gpu.allocator);
  memset(made, 0, sizeof *made);
}

/* The variant of an executable for the device; NULL if it has none. */
static const variant *variant_of(const {n}_context *context, uint32_t executable)
{
  size_t i;
  for (i = 0; i < sizeof variants / sizeof *variants; ++i) {
    if (variants[i].executable == executable && (variants[i].features & ~context->gpu.features) == 0)
      return &variants[i];
  }
  return NULL;
}

/* Makes the pipelines. `scratch`: mapped memory for words without the mode that keeps NaN. */
static int make_pipelines({n}_context *context, uint32_t *scratch)
{
  const VkAllocationCallbacks *const allocator = context->gpu.allocator;
  const VkDevice device = context->gpu.device;
  uint32_t executable, k;
  for (executable = 0; executable < EXECUTABLES; ++executable) {
    const variant *const code = variant_of(context, executable);
    VkShaderModule module = VK_NULL_HANDLE;
    VkShaderModuleCreateInfo info;
    int status;
    memset(&info, 0, sizeof info);
    info.sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO;
    info.codeSize = 4 * (size_t)code->count;
    info.pCode = code->words;
    if (!context->keeps_special && code->left_out[1] > 0) {
      uint32_t from = 0, to = 0, i;
      for (i = 0; i < 4; ++i) {
        const uint32_t end = i < 3 ? code->left_out[2 * i] : code->count;
        memcpy(scratch + to, code->words + from, 4 * (size_t)(end - from));
        to += end - from;
        from = i < 3 ? code->left_out[2 * i + 1] : end;
      }
      info.codeSize = 4 * (size_t)to;
      info.pCode = scratch;
    }
    status = failed(context, context->vk.CreateShaderModule(device, &info, allocator, &module));
    for (k = 0; status == {n}_OK && k < KERNELS; ++k) {
      VkComputePipelineCreateInfo made;
      if (kernels[k].executable != executable)
        continue;
      memset(&made, 0, sizeof made);
      made.sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO;
      made.stage.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO;
      made.stage.stage = VK_SHADER_STAGE_COMPUTE_BIT;
      made.stage.module = module;
      made.stage.pName = kernels[k].name;
      made.layout = context->layouts[kernels[k].layout];
      status = failed(context, context->vk.CreateComputePipelines(device, context->gpu.pipeline_cache, 1, &made,
                                                                  allocator, &context->pipelines[k]));
    }
    context->vk.DestroyShaderModule(device, module, allocator);
    if (status != {n}_OK)
      return status;
  }
  return {n}_OK;
}

static int make_layouts({n}_context *context)
{
  const VkAllocationCallbacks *const allocator = context->gpu.allocator;
  const VkDevice device = context->gpu.device;
  uint32_t i, b;
  for (i = 0; i < LAYOUTS; ++i) {
    VkDescriptorSetLayoutBinding rows[MOST_BINDINGS];
    VkDescriptorSetLayoutCreateInfo sets;
    VkPushConstantRange constants;
    VkPipelineLayoutCreateInfo info;
    int status;
    memset(rows, 0, sizeof rows);
    for (b = 0; b < layouts[i].bindings; ++b) {
      rows[b].binding = b;
      rows[b].descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER;
      rows[b].descriptorCount = 1;
      rows[b].stageFlags = VK_SHADER_STAGE_COMPUTE_BIT;
    }
    memset(&sets, 0, sizeof sets);
    sets.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO;
    sets.bindingCount = layouts[i].bindings;
    sets.pBindings = rows;
    status = failed(context, context->vk.CreateDescriptorSetLayout(device, &sets, allocator, &context->set_layouts[i]));
    if (status != {n}_OK)
      return status;
    constants.stageFlags = VK_SHADER_STAGE_COMPUTE_BIT;
    constants.offset = 0;
    constants.size = 4 * layouts[i].words;
    memset(&info, 0, sizeof info);
    info.sType = VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO;
    info.setLayoutCount = 1;
    info.pSetLayouts = &context->set_layouts[i];
    info.pushConstantRangeCount = layouts[i].words > 0;
    info.pPushConstantRanges = &constants;
    status = failed(context, context->vk.CreatePipelineLayout(device, &info, allocator, &context->layouts[i]));
    if (status != {n}_OK)
      return status;
  }
  return {n}_OK;
}

/* Makes the descriptor sets of all tables. */
static int make_sets({n}_context *context)
{
  const VkDevice device = context->gpu.device;
  VkDescriptorPoolSize size;
  VkDescriptorPoolCreateInfo info;
  VkDescriptorSetAllocateInfo sets;
  uint32_t i;
  int status;
  size.type = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER;
  size.descriptorCount = 0;
  for (i = 0; i < SETS; ++i)
    size.descriptorCount += layouts[set_layouts[i]].bindings;
  memset(&info, 0, sizeof info);
  info.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO;
  info.maxSets = SETS;
  info.poolSizeCount = 1;
  info.pPoolSizes = &size;
  status = failed(context, context->vk.CreateDescriptorPool(device, &info, context->gpu.allocator, &context->pool));
  memset(&sets, 0, sizeof sets);
  sets.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO;
  sets.descriptorPool = context->pool;
  sets.descriptorSetCount = 1;
  for (i = 0; status == {n}_OK && i < SETS; ++i) {
    sets.pSetLayouts = &context->set_layouts[set_layouts[i]];
    status = failed(context, context->vk.AllocateDescriptorSets(device, &sets, &context->sets[i]));
  }
  return status;
}
"""

LIFETIME: Final = """static int make_commands({n}_context *context)
{
  const VkDevice device = context->gpu.device;
  VkSemaphoreTypeCreateInfo type;
  VkSemaphoreCreateInfo semaphore;
  VkCommandPoolCreateInfo pool;
  VkCommandBufferAllocateInfo info;
  uint32_t i;
  int status;
  memset(&type, 0, sizeof type);
  type.sType = VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO;
  type.semaphoreType = VK_SEMAPHORE_TYPE_TIMELINE;
  memset(&semaphore, 0, sizeof semaphore);
  semaphore.sType = VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO;
  semaphore.pNext = &type;
  status = failed(context, context->vk.CreateSemaphore(device, &semaphore, context->gpu.allocator, &context->timeline));
  if (status != {n}_OK)
    return status;
  memset(&pool, 0, sizeof pool);
  pool.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO;
  pool.flags = VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT;
  pool.queueFamilyIndex = context->gpu.queue_family;
  status = failed(context, context->vk.CreateCommandPool(device, &pool, context->gpu.allocator, &context->commands));
  memset(&info, 0, sizeof info);
  info.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO;
  info.commandPool = context->commands;
  info.commandBufferCount = 1;
  for (i = 0; status == {n}_OK && i < TABLES + TRANSFERS; ++i) {
    VkCommandBuffer *const made = i < TABLES ? &context->tables[i].commands : &context->transfers[i - TABLES].commands;
    status = failed(context, context->vk.AllocateCommandBuffers(device, &info, made));
  }
  return status;
}

/* Copies the weights to the device, in parts through mapped memory. */
static int upload({n}_context *context, const unsigned char *weights, const {n}_buffer *staging)
{
  VkDeviceSize done;
  int status = {n}_OK;
  for (done = 0; status == {n}_OK && done < {n}_WEIGHTS_BYTES; done += STAGING) {
    const VkDeviceSize rest = {n}_WEIGHTS_BYTES - done, bytes = rest < STAGING ? rest : STAGING;
    memcpy(staging->mapped, weights + done, (size_t)bytes);
    status = transfer(context, TRANSFER_IN, staging->range, at(context->weights, (int64_t)done), bytes);
    if (status == {n}_OK)
      status = complete(context);
  }
  context->transfers[TRANSFER_IN].bytes = 0;
  return status;
}
"""
