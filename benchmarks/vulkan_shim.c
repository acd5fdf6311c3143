/* Opens the first device of Vulkan with the features that `bench_vulkan_code.py` needs, for a program called `model`. */
#include <stdlib.h>
#include <string.h>

#include <vulkan/vulkan.h>

#include "model.h"

static model_context context;

/* Opens a device with DEVICE in its name, and initialises the program. Returns an error of the program, or -1. */
int shim_open(const char *name, uint64_t device_bytes, uint64_t host_bytes)
{
  static const float priority = 1.0f;
  VkApplicationInfo application;
  VkInstanceCreateInfo instance;
  VkPhysicalDeviceFeatures2 features;
  VkPhysicalDeviceVulkan11Features features11;
  VkPhysicalDeviceVulkan12Features features12;
  VkDeviceQueueCreateInfo queue;
  VkDeviceCreateInfo device;
  VkPhysicalDevice found[8];
  VkPhysicalDeviceProperties properties;
  uint32_t count = 8, i;
  model_gpu gpu;
  memset(&application, 0, sizeof application);
  memset(&instance, 0, sizeof instance);
  memset(&features, 0, sizeof features);
  memset(&features11, 0, sizeof features11);
  memset(&features12, 0, sizeof features12);
  memset(&queue, 0, sizeof queue);
  memset(&device, 0, sizeof device);
  memset(&gpu, 0, sizeof gpu);
  application.sType = VK_STRUCTURE_TYPE_APPLICATION_INFO;
  application.apiVersion = VK_API_VERSION_1_2;
  instance.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO;
  instance.pApplicationInfo = &application;
  if (vkCreateInstance(&instance, NULL, &gpu.instance) != VK_SUCCESS ||
      vkEnumeratePhysicalDevices(gpu.instance, &count, found) < 0)
    return -1;
  for (i = 0; i < count && gpu.physical_device == VK_NULL_HANDLE; ++i) {
    vkGetPhysicalDeviceProperties(found[i], &properties);
    if (strstr(name, properties.deviceName) != NULL)
      gpu.physical_device = found[i];
  }
  if (gpu.physical_device == VK_NULL_HANDLE)
    return -1;
  features.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2;
  features.pNext = &features11;
  features11.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_FEATURES;
  features11.pNext = &features12;
  features12.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES;
  vkGetPhysicalDeviceFeatures2(gpu.physical_device, &features);
  queue.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO;
  queue.queueCount = 1; /* of family 0, which computes on every device of this benchmark */
  queue.pQueuePriorities = &priority;
  device.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO;
  device.pNext = &features;
  device.queueCreateInfoCount = 1;
  device.pQueueCreateInfos = &queue;
  if (vkCreateDevice(gpu.physical_device, &device, NULL, &gpu.device) != VK_SUCCESS)
    return -1;
  vkGetDeviceQueue(gpu.device, 0, 0, &gpu.queue);
  gpu.get_instance_proc_addr = vkGetInstanceProcAddr;
  gpu.features = model_USED_FEATURES;
  gpu.device_bytes = device_bytes;
  gpu.host_bytes = host_bytes;
  return model_init(&context, &gpu, NULL);
}

int shim_run(const model_inputs *inputs, const model_outputs *outputs) { return model_run(&context, inputs, outputs); }
