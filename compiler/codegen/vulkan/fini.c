/* The functions that wait for calls and end the use of a context. */
int prefix_wait(prefix_context *context)
{
  if (context == NULL || !context->is_ready)
    return prefix_ERROR_CONTEXT;
  return wait_until(context, context->submitted);
}

void prefix_fini(prefix_context *context)
{
  const VkAllocationCallbacks *allocator;
  VkDevice device;
  VkResult result;
  uint32_t i;
  if (context == NULL)
    return;
  allocator = context->gpu.allocator;
  device = context->gpu.device;
  result = context->result;
  if (context->vk.WaitSemaphores != NULL) {
    if (context->timeline != VK_NULL_HANDLE)
      (void)wait_until(context, context->submitted);
    for (i = 0; i < KERNELS; ++i)
      context->vk.DestroyPipeline(device, context->pipelines[i], allocator);
    for (i = 0; i < LAYOUTS; ++i) {
      context->vk.DestroyPipelineLayout(device, context->layouts[i], allocator);
      context->vk.DestroyDescriptorSetLayout(device, context->set_layouts[i], allocator);
    }
    context->vk.DestroyDescriptorPool(device, context->pool, allocator);
    context->vk.DestroyCommandPool(device, context->commands, allocator);
    context->vk.DestroySemaphore(device, context->timeline, allocator);
    free_buffer(context, &context->memory);
    free_buffer(context, &context->host);
    free_buffer(context, &context->local);
  }
  memset(context, 0, sizeof *context);
  context->result = result;
}
