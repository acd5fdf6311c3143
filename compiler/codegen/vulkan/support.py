"""The functions with which every generated program records commands and submits them. `{n}` is the prefix of public
names.
"""

from __future__ import annotations

from typing import Final

TYPES: Final = """typedef {n}_range range;

/* SPIR-V of an executable: features that it needs; ranges of words to leave out on a device without the mode that keeps
 * NaN. */
typedef struct {
  const uint32_t *words;
  uint32_t count, executable, features, left_out[6];
} variant;

typedef struct {
  uint32_t bindings, words;
} layout;

typedef struct {
  const char *name;
  uint32_t executable, layout;
} kernel;

/* A recording: its first table and their number, slots and sizes of a table, its first set, and sets of a table. */
typedef struct {
  uint32_t first, count, slots, sizes, first_set, sets;
} recording_row;

typedef struct {
  {n}_context *context;
  {n}_table *table;
  const VkDescriptorSet *sets;
  int status, is_new;
} recorder;
"""

CORE: Final = """static int failed({n}_context *context, VkResult result)
{
  if (result == VK_SUCCESS)
    return {n}_OK;
  context->result = result;
  return {n}_ERROR_VULKAN;
}

static range at(range place, int64_t offset)
{
  place.offset += (VkDeviceSize)offset;
  return place;
}

static int same_place(range x, range y) { return x.buffer == y.buffer && x.offset == y.offset; }

/* Waits for a submission. */
static int wait_until({n}_context *context, uint64_t value)
{
  VkSemaphoreWaitInfo info;
  int status;
  if (value <= context->completed)
    return {n}_OK;
  memset(&info, 0, sizeof info);
  info.sType = VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO;
  info.semaphoreCount = 1;
  info.pSemaphores = &context->timeline;
  info.pValues = &value;
  status = failed(context, context->vk.WaitSemaphores(context->gpu.device, &info, UINT64_MAX));
  if (status == {n}_OK)
    context->completed = value;
  else
    (void)context->vk.QueueWaitIdle(context->gpu.queue); /* what is freed now must not be in use */
  return status;
}

/* Submits what is pending. The first submission of a call waits for the semaphores of the app; the last one signals. */
static int flush({n}_context *context, int is_last)
{
  VkSubmitInfo infos[2];
  VkTimelineSemaphoreSubmitInfo values[2];
  VkPipelineStageFlags stages[{n}_MOST_WAITS];
  const {n}_sync *sync = context->sync;
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
  if (status != {n}_OK)
    return status;
  context->has_waited = 1;
  context->pending_count = 0;
  context->submitted = value;
  return {n}_OK;
}

/* Submits what is pending, and waits for everything. */
static int complete({n}_context *context)
{
  const int status = flush(context, 0);
  return status == {n}_OK ? wait_until(context, context->submitted) : status;
}

/* Adds a command buffer to the next submission, and returns in `used` the number of that. */
static int enqueue({n}_context *context, VkCommandBuffer commands, uint64_t *used)
{
  if (context->is_rehearsal)
    return {n}_OK;
  if (context->pending_count == PENDING) {
    const int status = flush(context, 0);
    if (status != {n}_OK)
      return status;
  }
  context->pending[context->pending_count++] = commands;
  *used = context->submitted + 1;
  return {n}_OK;
}

/* Waits until a command buffer may be recorded again. */
static int wait_for_use({n}_context *context, uint64_t used)
{
  if (used > context->submitted) {
    const int status = flush(context, 0);
    if (status != {n}_OK)
      return status;
  }
  return wait_until(context, used);
}

static int begin_commands({n}_context *context, VkCommandBuffer commands)
{
  VkCommandBufferBeginInfo info;
  memset(&info, 0, sizeof info);
  info.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO;
  info.flags = VK_COMMAND_BUFFER_USAGE_SIMULTANEOUS_USE_BIT;
  return failed(context, context->vk.BeginCommandBuffer(commands, &info));
}

static void order({n}_context *context, VkCommandBuffer commands, VkPipelineStageFlags more)
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
static int end_commands({n}_context *context, VkCommandBuffer commands)
{
  order(context, commands, VK_PIPELINE_STAGE_HOST_BIT);
  return failed(context, context->vk.EndCommandBuffer(commands));
}

/* Adds a copy to the next submission. Copies of the same bytes are recorded once. */
static int transfer({n}_context *context, int number, range from, range to, VkDeviceSize bytes)
{
  {n}_transfer *copy = &context->transfers[number];
  int status = {n}_OK;
  if (bytes == 0)
    return {n}_OK;
  if (copy->bytes != bytes || !same_place(copy->from, from) || !same_place(copy->to, to)) {
    VkBufferCopy region;
    status = wait_for_use(context, copy->used);
    if (status == {n}_OK)
      status = begin_commands(context, copy->commands);
    if (status != {n}_OK)
      return status;
    region.srcOffset = from.offset;
    region.dstOffset = to.offset;
    region.size = bytes;
    context->vk.CmdCopyBuffer(copy->commands, from.buffer, to.buffer, 1, &region);
    status = end_commands(context, copy->commands);
    copy->from = from;
    copy->to = to;
    copy->bytes = status == {n}_OK ? bytes : 0;
  }
  return status == {n}_OK ? enqueue(context, copy->commands, &copy->used) : status;
}
"""

RECORDINGS: Final = """/* Finds the table of a recording for these slots and sizes. A new one replaces the one that
 * was not used for longest. */
static int find({n}_context *context, int number, const range *slots, const int64_t *sizes, recorder *r)
{
  const recording_row *const which = &recordings[number];
  uint32_t t, i, chosen = which->first;
  int status;
  memset(r, 0, sizeof *r);
  r->context = context;
  for (t = which->first; t < which->first + which->count; ++t) {
    const {n}_table *const table = &context->tables[t];
    int same = table->is_recorded;
    for (i = 0; same && i < which->slots; ++i)
      same = same_place(table->slots[i], slots[i]);
    for (i = 0; same && i < which->sizes; ++i)
      same = table->sizes[i] == sizes[i];
    if (same) {
      r->table = &context->tables[t];
      return {n}_OK;
    }
    if (table->is_recorded < context->tables[chosen].is_recorded ||
        (table->is_recorded == context->tables[chosen].is_recorded && table->used < context->tables[chosen].used))
      chosen = t;
  }
  r->table = &context->tables[chosen];
  r->sets = context->sets + which->first_set + (chosen - which->first) * which->sets;
  r->is_new = 1;
  status = wait_for_use(context, r->table->used);
  if (status != {n}_OK)
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
  {n}_context *const context = r->context;
  if (r->is_new) {
    const int status = end_commands(context, r->table->commands);
    if (r->status == {n}_OK)
      r->status = status;
    if (r->status != {n}_OK)
      return r->status;
    r->table->is_recorded = 1;
  }
  return enqueue(context, r->table->commands, &r->table->used);
}
"""

#: name of a function of commands -> its definition
COMMANDS: Final[dict[str, str]] = {
    "launch": """static void launch(recorder *r, int number, const range *places, const int64_t *bytes,
                   const uint32_t *parameters, int64_t groups)
{
  {n}_context *const context = r->context;
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
    r->status = {n}_ERROR_WORKGROUP_COUNT;
    return;
  }
  y = (y + z - 1) / z;
  for (i = 0; i < bound->bindings; ++i) {
    const range place = bytes[i] > 0 ? places[i] : context->unused;
    infos[i].buffer = place.buffer;
    infos[i].offset = place.offset;
    infos[i].range = bytes[i] > 0 ? ((VkDeviceSize)bytes[i] + 3) / 4 * 4 : 4;
    if (infos[i].range > context->most_bytes)
      r->status = {n}_ERROR_BINDING_BYTES;
  }
  if (r->status != {n}_OK)
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
""",
    "barrier": """static void barrier(recorder *r) { order(r->context, r->table->commands, 0); }
""",
    "copy_bytes": """static void copy_bytes(recorder *r, range to, range from, int64_t bytes)
{
  VkBufferCopy region;
  if (bytes <= 0 || same_place(from, to))
    return;
  region.srcOffset = from.offset;
  region.dstOffset = to.offset;
  region.size = (VkDeviceSize)bytes;
  r->context->vk.CmdCopyBuffer(r->table->commands, from.buffer, to.buffer, 1, &region);
}
""",
    "fill": """/* Drivers of NVIDIA fill another range if a long one begins elsewhere than at a multiple of 16. */
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
""",
    "repeat": """/* Copies the same bytes until a range is full. */
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
""",
    "read_number": """/* Reads a number from the device, after everything before. */
static int read_number({n}_context *context, range from, size_t bytes, int32_t *number)
{
  int status = transfer(context, TRANSFER_READ, from, context->number, bytes);
  if (status == {n}_OK)
    status = complete(context);
  if (status != {n}_OK)
    return status;
  if (bytes == 1)
    *number = *context->mapped_number != 0;
  else
    memcpy(number, context->mapped_number, sizeof *number);
  return {n}_OK;
}
""",
    "overlap": """/* Whether an output has bytes of an input that it may not replace, or of another output. */
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
""",
}


def functions_in(text: str) -> dict[str, str]:
    """The functions of a text by name; blank lines separate them."""
    parts = [f"{part.strip()}\n" for part in text.split("\n\n")]
    return {part.partition("(")[0].split()[-1].lstrip("*") if part[0] != "/" else _named(part): part for part in parts}


def _named(part: str) -> str:
    """The name of a function behind its comment."""
    return part.partition("*/")[2].partition("(")[0].split()[-1].lstrip("*")
