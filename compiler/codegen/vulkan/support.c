/* The functions with which every program that style vulkan writes makes memory and pipelines on a device, records
 * commands and submits them. A program has those that it uses, with the prefix of its public names for `prefix`.
 * Blank lines separate functions; there are none inside of one. */

static int failed(prefix_context *context, VkResult result)
{
  if (result == VK_SUCCESS)
    return prefix_OK;
  context->result = result;
  return prefix_ERROR_VULKAN;
}

static range at(range place, int64_t offset)
{
  place.offset += (VkDeviceSize)offset;
  return place;
}

static int same_place(range x, range y) { return x.buffer == y.buffer && x.offset == y.offset; }

/* Waits for a submission. */
static int wait_until(prefix_context *context, uint64_t value)
{
  VkSemaphoreWaitInfo info;
  int status;
  if (value <= context->completed)
    return prefix_OK;
  memset(&info, 0, sizeof info);
  info.sType = VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO;
  info.semaphoreCount = 1;
  info.pSemaphores = &context->timeline;
  info.pValues = &value;
  status = failed(context, context->vk.WaitSemaphores(context->gpu.device, &info, UINT64_MAX));
  if (status == prefix_OK)
    context->completed = value;
  else
    (void)context->vk.QueueWaitIdle(context->gpu.queue); /* what is freed now must not be in use */
  return status;
}

/* Submits what is pending. The first submission of a call waits for the semaphores of the app; the last one signals. */
static int flush(prefix_context *context, int is_last)
{
  VkSubmitInfo infos[2];
  VkTimelineSemaphoreSubmitInfo values[2];
  VkPipelineStageFlags stages[prefix_MOST_WAITS];
  const prefix_sync *sync = context->sync;
  const uint32_t own = sync != NULL && is_last && sync->signal_count > 0; /* the batch that signals the timeline */
  const uint64_t value = context->submitted + 1;
  uint32_t i;
  int status;
  memset(infos, 0, sizeof infos);
  memset(values, 0, sizeof values);
  for (i = 0; i < 2; ++i) {
    infos[i].sType = VK_STRUCTURE_TYPE_SUBMIT_INFO;
    infos[i].pNext = &values[i];
    values[i].sType = VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO;
  }
  infos[0].commandBufferCount = context->pending_count;
  infos[0].pCommandBuffers = context->pending;
  if (sync != NULL && !context->has_waited) {
    for (i = 0; i < sync->wait_count; ++i)
      stages[i] = STAGES;
    infos[0].waitSemaphoreCount = values[0].waitSemaphoreValueCount = sync->wait_count;
    infos[0].pWaitSemaphores = sync->wait_semaphores;
    infos[0].pWaitDstStageMask = stages;
    values[0].pWaitSemaphoreValues = sync->wait_values;
  }
  if (own > 0) {
    infos[0].signalSemaphoreCount = values[0].signalSemaphoreValueCount = sync->signal_count;
    infos[0].pSignalSemaphores = sync->signal_semaphores;
    values[0].pSignalSemaphoreValues = sync->signal_values;
  }
  infos[own].signalSemaphoreCount = values[own].signalSemaphoreValueCount = 1;
  infos[own].pSignalSemaphores = &context->timeline;
  values[own].pSignalSemaphoreValues = &value;
  status = failed(context, context->vk.QueueSubmit(context->gpu.queue, own + 1, infos, VK_NULL_HANDLE));
  if (status != prefix_OK)
    return status;
  context->has_waited = 1;
  context->pending_count = 0;
  context->submitted = value;
  return prefix_OK;
}

/* Submits what is pending, and waits for everything. */
static int complete(prefix_context *context)
{
  const int status = flush(context, 0);
  return status == prefix_OK ? wait_until(context, context->submitted) : status;
}

/* Adds a command buffer to the next submission, and returns in `used` the number of that. */
static int enqueue(prefix_context *context, VkCommandBuffer commands, uint64_t *used)
{
  if (context->is_rehearsal)
    return prefix_OK;
  if (context->pending_count == PENDING) {
    const int status = flush(context, 0);
    if (status != prefix_OK)
      return status;
  }
  context->pending[context->pending_count++] = commands;
  *used = context->submitted + 1;
  return prefix_OK;
}

/* Waits until a command buffer may be recorded again. */
static int wait_for_use(prefix_context *context, uint64_t used)
{
  if (used > context->submitted) {
    const int status = flush(context, 0);
    if (status != prefix_OK)
      return status;
  }
  return wait_until(context, used);
}

static int begin_commands(prefix_context *context, VkCommandBuffer commands)
{
  VkCommandBufferBeginInfo info;
  memset(&info, 0, sizeof info);
  info.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO;
  info.flags = VK_COMMAND_BUFFER_USAGE_SIMULTANEOUS_USE_BIT;
  return failed(context, context->vk.BeginCommandBuffer(commands, &info));
}

static void order(prefix_context *context, VkCommandBuffer commands, VkPipelineStageFlags more)
{
  VkMemoryBarrier memory;
  memset(&memory, 0, sizeof memory);
  memory.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER;
  memory.srcAccessMask = VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_TRANSFER_WRITE_BIT;
  memory.dstAccessMask = memory.srcAccessMask | VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_TRANSFER_READ_BIT;
  if (more != 0)
    memory.dstAccessMask |= VK_ACCESS_HOST_READ_BIT;
  context->vk.CmdPipelineBarrier(commands, STAGES, STAGES | more, 0, 1, &memory, 0, NULL, 0, NULL);
}

/* Ends a command buffer. What comes after it, on the host too, sees what it wrote. */
static int end_commands(prefix_context *context, VkCommandBuffer commands)
{
  order(context, commands, VK_PIPELINE_STAGE_HOST_BIT);
  return failed(context, context->vk.EndCommandBuffer(commands));
}

/* Adds a copy to the next submission. Copies of the same bytes are recorded once. */
static int transfer(prefix_context *context, int number, range from, range to, VkDeviceSize bytes)
{
  prefix_transfer *copy = &context->transfers[number];
  int status = prefix_OK;
  if (bytes == 0)
    return prefix_OK;
  if (copy->bytes != bytes || !same_place(copy->from, from) || !same_place(copy->to, to)) {
    VkBufferCopy region;
    status = wait_for_use(context, copy->used);
    if (status == prefix_OK)
      status = begin_commands(context, copy->commands);
    if (status != prefix_OK)
      return status;
    region.srcOffset = from.offset;
    region.dstOffset = to.offset;
    region.size = bytes;
    context->vk.CmdCopyBuffer(copy->commands, from.buffer, to.buffer, 1, &region);
    status = end_commands(context, copy->commands);
    copy->from = from;
    copy->to = to;
    copy->bytes = status == prefix_OK ? bytes : 0;
  }
  return status == prefix_OK ? enqueue(context, copy->commands, &copy->used) : status;
}

/* Finds the table of a recording for these slots and sizes. A new one replaces the one that
 * was not used for longest. */
static int find(prefix_context *context, int number, const range *slots, const int64_t *sizes, recorder *r)
{
  const recording_row *const which = &recordings[number];
  uint32_t t, i, chosen = which->first;
  int status;
  memset(r, 0, sizeof *r);
  r->context = context;
  for (t = which->first; t < which->first + which->count; ++t) {
    const prefix_table *const table = &context->tables[t];
    int same = table->is_recorded;
    for (i = 0; same && i < which->slots; ++i)
      same = same_place(table->slots[i], slots[i]);
    for (i = 0; same && i < which->sizes; ++i)
      same = table->sizes[i] == sizes[i];
    if (same) {
      r->table = &context->tables[t];
      return prefix_OK;
    }
    if (table->is_recorded < context->tables[chosen].is_recorded ||
        (table->is_recorded == context->tables[chosen].is_recorded && table->used < context->tables[chosen].used))
      chosen = t;
  }
  r->table = &context->tables[chosen];
  r->sets = context->sets + which->first_set + (chosen - which->first) * which->sets;
  r->is_new = 1;
  status = wait_for_use(context, r->table->used);
  if (status != prefix_OK)
    return status;
  r->table->is_recorded = 0;
  for (i = 0; i < which->slots; ++i)
    r->table->slots[i] = slots[i];
  for (i = 0; i < which->sizes; ++i)
    r->table->sizes[i] = sizes[i];
  return begin_commands(context, r->table->commands);
}

/* Ends a new recording, and adds it to the next submission. */
static int finish(recorder *r)
{
  prefix_context *const context = r->context;
  if (r->is_new) {
    const int status = end_commands(context, r->table->commands);
    if (r->status == prefix_OK)
      r->status = status;
    if (r->status != prefix_OK)
      return r->status;
    r->table->is_recorded = 1;
  }
  return enqueue(context, r->table->commands, &r->table->used);
}

/* The first type of memory that has all flags of the first wish that can be met, and no special
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
static int make_buffer(prefix_context *context, VkDeviceSize bytes, prefix_buffer *made, int mapped)
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
  if (status != prefix_OK)
    return status;
  context->vk.GetBufferMemoryRequirements(device, made->range.buffer, &needed);
  context->vk.GetPhysicalDeviceMemoryProperties(context->gpu.physical_device, &properties);
  type = memory_type(&properties, needed.memoryTypeBits, wishes + (mapped ? 0 : 2), 2);
  if (type < 0)
    return prefix_ERROR_MEMORY;
  memset(&memory, 0, sizeof memory);
  memory.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO;
  memory.allocationSize = needed.size;
  memory.memoryTypeIndex = (uint32_t)type;
  status = failed(context, context->vk.AllocateMemory(device, &memory, allocator, &made->memory));
  if (status == prefix_OK)
    status = failed(context, context->vk.BindBufferMemory(device, made->range.buffer, made->memory, 0));
  if (status == prefix_OK && mapped)
    status = failed(context, context->vk.MapMemory(device, made->memory, 0, VK_WHOLE_SIZE, 0, &made->mapped));
  return status;
}

static void free_buffer(prefix_context *context, prefix_buffer *made)
{
  context->vk.DestroyBuffer(context->gpu.device, made->range.buffer, context->gpu.allocator);
  context->vk.FreeMemory(context->gpu.device, made->memory, context->gpu.allocator);
  memset(made, 0, sizeof *made);
}

/* The variant of an executable for the device; NULL if it has none. */
static const variant *variant_of(const prefix_context *context, uint32_t executable)
{
  size_t i;
  for (i = 0; i < sizeof variants / sizeof *variants; ++i) {
    if (variants[i].executable == executable && (variants[i].features & ~context->gpu.features) == 0)
      return &variants[i];
  }
  return NULL;
}

/* Makes the pipelines. `scratch`: mapped memory for words without the mode that keeps NaN. */
static int make_pipelines(prefix_context *context, uint32_t *scratch)
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
    for (k = 0; status == prefix_OK && k < KERNELS; ++k) {
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
    if (status != prefix_OK)
      return status;
  }
  return prefix_OK;
}

static int make_layouts(prefix_context *context)
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
    if (status != prefix_OK)
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
    if (status != prefix_OK)
      return status;
  }
  return prefix_OK;
}

/* Makes the descriptor sets of all tables. */
static int make_sets(prefix_context *context)
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
  for (i = 0; status == prefix_OK && i < SETS; ++i) {
    sets.pSetLayouts = &context->set_layouts[set_layouts[i]];
    status = failed(context, context->vk.AllocateDescriptorSets(device, &sets, &context->sets[i]));
  }
  return status;
}

static int make_commands(prefix_context *context)
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
  if (status != prefix_OK)
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
  for (i = 0; status == prefix_OK && i < TABLES + TRANSFERS; ++i) {
    VkCommandBuffer *const made = i < TABLES ? &context->tables[i].commands : &context->transfers[i - TABLES].commands;
    status = failed(context, context->vk.AllocateCommandBuffers(device, &info, made));
  }
  return status;
}

/* Copies the weights to the device, in parts through mapped memory. */
static int upload(prefix_context *context, const unsigned char *weights, const prefix_buffer *staging)
{
  VkDeviceSize done;
  int status = prefix_OK;
  for (done = 0; status == prefix_OK && done < prefix_WEIGHTS_BYTES; done += STAGING) {
    const VkDeviceSize rest = prefix_WEIGHTS_BYTES - done, bytes = rest < STAGING ? rest : STAGING;
    memcpy(staging->mapped, weights + done, (size_t)bytes);
    status = transfer(context, TRANSFER_IN, staging->range, at(context->weights, (int64_t)done), bytes);
    if (status == prefix_OK)
      status = complete(context);
  }
  context->transfers[TRANSFER_IN].bytes = 0;
  return status;
}

static void launch(recorder *r, int number, const range *places, const int64_t *bytes,
                   const uint32_t *parameters, int64_t groups)
{
  prefix_context *const context = r->context;
  const kernel *const used = &kernels[number];
  const layout *const bound = &layouts[used->layout];
  const VkCommandBuffer commands = r->table->commands;
  const VkDescriptorSet set = *r->sets++;
  VkDescriptorBufferInfo infos[MOST_BINDINGS];
  VkWriteDescriptorSet write;
  const int64_t *const most = context->most_groups;
  int64_t y, z;
  uint32_t i;
  if (groups <= 0)
    return;
  /* Kernels know the number of a workgroup only as x + nx * (y + ny * z), and guard against excess. */
  y = (groups + most[0] - 1) / most[0];
  z = (y + most[1] - 1) / most[1];
  if (z > most[2]) {
    r->status = prefix_ERROR_WORKGROUP_COUNT;
    return;
  }
  y = (y + z - 1) / z;
  for (i = 0; i < bound->bindings; ++i) {
    const range place = bytes[i] > 0 ? places[i] : context->unused;
    infos[i].buffer = place.buffer;
    infos[i].offset = place.offset;
    infos[i].range = bytes[i] > 0 ? ((VkDeviceSize)bytes[i] + 3) / 4 * 4 : 4;
    if (infos[i].range > context->most_bytes)
      r->status = prefix_ERROR_BINDING_BYTES;
  }
  if (r->status != prefix_OK)
    return;
  memset(&write, 0, sizeof write);
  write.sType = VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET;
  write.dstSet = set;
  write.descriptorCount = bound->bindings;
  write.descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER;
  write.pBufferInfo = infos;
  context->vk.UpdateDescriptorSets(context->gpu.device, 1, &write, 0, NULL);
  context->vk.CmdBindPipeline(commands, VK_PIPELINE_BIND_POINT_COMPUTE, context->pipelines[number]);
  context->vk.CmdBindDescriptorSets(commands, VK_PIPELINE_BIND_POINT_COMPUTE, context->layouts[used->layout], 0, 1,
                                    &set, 0, NULL);
  if (bound->words > 0)
    context->vk.CmdPushConstants(commands, context->layouts[used->layout], VK_SHADER_STAGE_COMPUTE_BIT, 0,
                                 4 * bound->words, parameters);
  context->vk.CmdDispatch(commands, (uint32_t)((groups + y * z - 1) / (y * z)), (uint32_t)y, (uint32_t)z);
}

static void barrier(recorder *r) { order(r->context, r->table->commands, 0); }

static void copy_bytes(recorder *r, range to, range from, int64_t bytes)
{
  VkBufferCopy region;
  if (bytes <= 0 || same_place(from, to))
    return;
  region.srcOffset = from.offset;
  region.dstOffset = to.offset;
  region.size = (VkDeviceSize)bytes;
  r->context->vk.CmdCopyBuffer(r->table->commands, from.buffer, to.buffer, 1, &region);
}

/* Drivers of NVIDIA fill another range if a long one begins elsewhere than at a multiple of 16. */
static void fill(recorder *r, range to, uint32_t word, int64_t bytes)
{
  const int64_t head = (int64_t)((16 - to.offset % 16) % 16);
  if (bytes > 4096 && head > 0) {
    r->context->vk.CmdFillBuffer(r->table->commands, to.buffer, to.offset, (VkDeviceSize)head, word);
    to.offset += (VkDeviceSize)head;
    bytes -= head;
  }
  if (bytes > 0)
    r->context->vk.CmdFillBuffer(r->table->commands, to.buffer, to.offset, (VkDeviceSize)bytes, word);
}

/* Copies the same bytes until a range is full. */
static void repeat(recorder *r, range to, range from, int64_t step, int64_t bytes)
{
  VkBufferCopy regions[16];
  uint32_t count = 0;
  int64_t start;
  for (start = 0; start < bytes; start += step) {
    regions[count].srcOffset = from.offset;
    regions[count].dstOffset = to.offset + (VkDeviceSize)start;
    regions[count].size = (VkDeviceSize)(bytes - start < step ? bytes - start : step);
    if (++count == 16 || start + step >= bytes) {
      r->context->vk.CmdCopyBuffer(r->table->commands, from.buffer, to.buffer, count, regions);
      count = 0;
    }
  }
}

/* Reads a number from the device, after everything before. */
static int read_number(prefix_context *context, range from, size_t bytes, int32_t *number)
{
  int status = transfer(context, TRANSFER_READ, from, context->number, bytes);
  if (status == prefix_OK)
    status = complete(context);
  if (status != prefix_OK)
    return status;
  if (bytes == 1)
    *number = *context->mapped_number != 0;
  else
    memcpy(number, context->mapped_number, sizeof *number);
  return prefix_OK;
}

/* Whether an output has bytes of an input that it may not replace, or of another output. */
static int overlap(const range *places, const int64_t *bytes, const int *may, int inputs, int count)
{
  int i, j;
  for (i = inputs; i < count; ++i) {
    for (j = 0; j < i; ++j) {
      const VkDeviceSize x = places[i].offset, y = places[j].offset;
      if (j != may[i - inputs] && places[i].buffer == places[j].buffer && x < y + (VkDeviceSize)bytes[j] &&
          y < x + (VkDeviceSize)bytes[i])
        return 1;
    }
  }
  return 0;
}

/* Bytes of an argument; -1 if a size is negative, or all are too many. */
static int64_t bytes_of(const int64_t *sizes, int rank, int64_t itemsize)
{
  int64_t bytes = itemsize;
  int i;
  for (i = 0; i < rank; ++i) {
    if (sizes[i] < 0 || (sizes[i] > 0 && bytes > INT64_MAX / sizes[i]))
      return -1;
    bytes *= sizes[i];
  }
  return bytes;
}

/* Gives an argument of a call a place, in memory that the host maps. */
static int reserve(prefix_context *context, VkDeviceSize *end, int64_t bytes, range *place)
{
  if (bytes < 0)
    return prefix_ERROR_SIZE;
  if ((VkDeviceSize)bytes > context->gpu.host_bytes - *end)
    return prefix_ERROR_HOST_MEMORY;
  *place = context->is_staged ? context->local.range : context->host.range;
  place->offset = *end;
  *end += ((VkDeviceSize)bytes + prefix_ALIGNMENT - 1) / prefix_ALIGNMENT * prefix_ALIGNMENT;
  if (*end > context->gpu.host_bytes)
    *end = context->gpu.host_bytes;
  return prefix_OK;
}

static void give(prefix_context *context, range place, const void *data, int64_t bytes)
{
  if (bytes > 0 && !context->is_rehearsal)
    memcpy((unsigned char *)context->host.mapped + place.offset, data, (size_t)bytes);
}

static void take(prefix_context *context, range place, void *data, int64_t bytes)
{
  if (bytes > 0)
    memcpy(data, (const unsigned char *)context->host.mapped + place.offset, (size_t)bytes);
}

static void begin_call(prefix_context *context, const prefix_sync *sync)
{
  context->pending_count = 0;
  context->has_waited = 0;
  context->sync = sync;
}
