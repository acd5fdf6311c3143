/* The function that begins the use of a context. */
int prefix_init(prefix_context *context, const prefix_gpu *gpu, const void *weights)
{
  int status;
  if (context == NULL)
    return prefix_ERROR_CONTEXT;
  memset(context, 0, sizeof *context);
  if (gpu == NULL || gpu->get_instance_proc_addr == NULL || gpu->instance == VK_NULL_HANDLE ||
      gpu->physical_device == VK_NULL_HANDLE || gpu->device == VK_NULL_HANDLE || gpu->queue == VK_NULL_HANDLE)
    return prefix_ERROR_GPU;
  if (gpu->device_bytes < prefix_DEVICE_BYTES || gpu->memory.offset % prefix_ALIGNMENT != 0)
    return prefix_ERROR_MEMORY;
  context->gpu = *gpu;
  status = load(gpu, &context->vk);
  if (status == prefix_OK)
    status = check(context);
  if (status == prefix_OK)
    status = make(context, weights);
  if (status != prefix_OK) {
    prefix_fini(context);
    return status;
  }
  context->is_ready = 1;
  return prefix_OK;
}
