/* Classifies rows of 32 numbers from standard input with the network of examples/mlp.mlir on a device of Vulkan, eight
 * rows at a time.
 *
 * The network is mlp.c, which vm-codegen writes (Makefile). This file does what an app does anyway: it opens a device. */

#include <stdio.h>
#include <string.h>

#include <vulkan/vulkan.h>

#include "mlp.h"

enum { ROWS = 8, FEATURES = 32, CLASSES = 10, MOST_DEVICES = 8 };

/* The program needs timeline semaphores, and keeps NaN exactly where the device can. */
static int has_features(VkPhysicalDevice physical)
{
  VkPhysicalDeviceTimelineSemaphoreFeatures timeline;
  VkPhysicalDeviceFeatures2 features;
  VkPhysicalDeviceProperties properties;
  memset(&timeline, 0, sizeof timeline);
  memset(&features, 0, sizeof features);
  timeline.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_TIMELINE_SEMAPHORE_FEATURES;
  features.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2;
  vkGetPhysicalDeviceProperties(physical, &properties);
  if (properties.apiVersion < VK_API_VERSION_1_2)
    return 0;
  features.pNext = &timeline;
  vkGetPhysicalDeviceFeatures2(physical, &features);
  return timeline.timelineSemaphore != 0;
}

static int compute_family(VkPhysicalDevice physical)
{
  VkQueueFamilyProperties families[16];
  uint32_t count = 16, i;
  vkGetPhysicalDeviceQueueFamilyProperties(physical, &count, families);
  for (i = 0; i < count; ++i) {
    if ((families[i].queueFlags & VK_QUEUE_COMPUTE_BIT) != 0)
      return (int)i;
  }
  return -1;
}

/* Opens the first device that has the features; 0 if there is none. */
static int open_device(mlp_gpu *gpu)
{
  const float priority = 1.0f;
  VkApplicationInfo application;
  VkInstanceCreateInfo instance;
  VkPhysicalDeviceTimelineSemaphoreFeatures timeline;
  VkDeviceQueueCreateInfo queue;
  VkDeviceCreateInfo device;
  VkPhysicalDevice found[MOST_DEVICES];
  uint32_t count = MOST_DEVICES, i;
  memset(&application, 0, sizeof application);
  memset(&instance, 0, sizeof instance);
  memset(&timeline, 0, sizeof timeline);
  memset(&queue, 0, sizeof queue);
  memset(&device, 0, sizeof device);
  application.sType = VK_STRUCTURE_TYPE_APPLICATION_INFO;
  instance.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO;
  timeline.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_TIMELINE_SEMAPHORE_FEATURES;
  queue.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO;
  device.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO;
  application.apiVersion = VK_API_VERSION_1_2;
  instance.pApplicationInfo = &application;
  if (vkCreateInstance(&instance, NULL, &gpu->instance) != VK_SUCCESS)
    return 0;
  if (vkEnumeratePhysicalDevices(gpu->instance, &count, found) < 0)
    return 0;
  for (i = 0; i < count; ++i) {
    const int family = compute_family(found[i]);
    if (family < 0 || !has_features(found[i]))
      continue;
    timeline.timelineSemaphore = VK_TRUE;
    queue.queueFamilyIndex = (uint32_t)family;
    queue.queueCount = 1;
    queue.pQueuePriorities = &priority;
    device.pNext = &timeline;
    device.queueCreateInfoCount = 1;
    device.pQueueCreateInfos = &queue;
    if (vkCreateDevice(found[i], &device, NULL, &gpu->device) != VK_SUCCESS)
      continue;
    gpu->physical_device = found[i];
    gpu->queue_family = (uint32_t)family;
    vkGetDeviceQueue(gpu->device, gpu->queue_family, 0, &gpu->queue);
    return 1;
  }
  return 0;
}

static int report(const mlp_context *context, int status)
{
  fprintf(stderr, "classify: %s", mlp_error_text(status));
  fprintf(stderr, status == mlp_ERROR_VULKAN ? " (%d)\n" : "\n", (int)context->result);
  return 1;
}

/* Reads at most ROWS rows; returns how many, or -1 for a row that is not complete. */
static int read_rows(float *rows)
{
  int count;
  for (count = 0; count < ROWS * FEATURES; ++count) {
    const int found = scanf("%f", &rows[count]);
    if (found != 1)
      return found == EOF && count % FEATURES == 0 ? count / FEATURES : -1;
  }
  return ROWS;
}

static void print_classes(const float *probabilities, int rows)
{
  int row, i;
  for (row = 0; row < rows; ++row) {
    const float *p = probabilities + row * CLASSES;
    int best = 0;
    for (i = 1; i < CLASSES; ++i)
      best = p[i] > p[best] ? i : best;
    printf("class %d, probability %.4f\n", best, (double)p[best]);
  }
}

int main(void)
{
  static float rows[ROWS * FEATURES], probabilities[ROWS * CLASSES];
  static mlp_context context;
  mlp_inputs inputs;
  mlp_outputs outputs;
  mlp_gpu gpu;
  int status, count;
  memset(&gpu, 0, sizeof gpu);
  gpu.get_instance_proc_addr = vkGetInstanceProcAddr;
  gpu.features = mlp_TIMELINE | mlp_FLOAT_CONTROLS;
  gpu.device_bytes = mlp_DEVICE_BYTES;
  gpu.host_bytes = mlp_HOST_BYTES;
  if (!open_device(&gpu)) {
    fprintf(stderr, "classify: no device of Vulkan 1.2 with timeline semaphores\n");
    return 1;
  }
  inputs.x.data = rows;
  outputs.result.data = probabilities;
  status = mlp_init(&context, &gpu, NULL);
  if (status != mlp_OK)
    return report(&context, status);
  while ((count = read_rows(rows)) > 0) {
    status = mlp_run(&context, &inputs, &outputs);
    if (status != mlp_OK)
      return report(&context, status);
    print_classes(probabilities, count);
  }
  mlp_fini(&context);
  vkDestroyDevice(gpu.device, NULL);
  vkDestroyInstance(gpu.instance, NULL);
  if (count < 0) {
    fprintf(stderr, "classify: a row has %d numbers\n", FEATURES);
    return 1;
  }
  return 0;
}
