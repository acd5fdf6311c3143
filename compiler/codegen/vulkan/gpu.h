/* What an app gives to a program of style vulkan. */
/* A part of a buffer, from an offset in bytes on. */
typedef struct prefix_range {
  VkBuffer buffer;
  VkDeviceSize offset;
} prefix_range;

/* What the app gives. Handles must live until prefix_fini. Calls use the queue: no other thread may use it meanwhile.
 * features: of those above, what is enabled on the device.
 * allocator, pipeline_cache: may be NULL.
 * memory: a buffer for storage and transfers, with device_bytes from its offset on; without one, init allocates them.
 * device_bytes: at least prefix_DEVICE_BYTES.
 * host_bytes: prefix_HOST_BYTES, or 0 if only prefix_submit is called. */
typedef struct prefix_gpu {
  PFN_vkGetInstanceProcAddr get_instance_proc_addr;
  VkInstance instance;
  VkPhysicalDevice physical_device;
  VkDevice device;
  VkQueue queue;
  uint32_t queue_family;
  uint32_t features;
  const VkAllocationCallbacks *allocator;
  VkPipelineCache pipeline_cache;
  prefix_range memory;
  VkDeviceSize device_bytes;
  VkDeviceSize host_bytes;
} prefix_gpu;

/* Semaphores of a call, binary ones or timelines with values. */
typedef struct prefix_sync {
  uint32_t wait_count;
  const VkSemaphore *wait_semaphores;
  const uint64_t *wait_values;
  uint32_t signal_count;
  const VkSemaphore *signal_semaphores;
  const uint64_t *signal_values;
} prefix_sync;
