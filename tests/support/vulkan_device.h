/* Opens the device of Vulkan with DEVICE_NAME in its name, for programs in C, with the validation layer and its checks of synchronisation. Messages of
 * the layer are printed and counted. The functions that generated code gets can be changed: a device then seems to be
 * another one, or to fail. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <vulkan/vulkan.h>

static int messages;
static const char *pretended = "";  /* what the functions below pretend */
static const char *failing = "";    /* the function that fails */

static VKAPI_ATTR VkBool32 VKAPI_CALL on_message(VkDebugUtilsMessageSeverityFlagBitsEXT severity,
                                                 VkDebugUtilsMessageTypeFlagsEXT kinds,
                                                 const VkDebugUtilsMessengerCallbackDataEXT *data, void *user)
{
  (void)severity; (void)kinds; (void)user;
  ++messages;
  fprintf(stderr, "%s\n", data->pMessage);
  return VK_FALSE;
}

static void must(VkResult result, const char *what)
{
  if (result != VK_SUCCESS) {
    fprintf(stderr, "%s: %d\n", what, (int)result);
    exit(92);
  }
}

typedef struct {
  VkInstance instance;
  VkDebugUtilsMessengerEXT messenger;
  VkPhysicalDevice physical;
  VkDevice device;
  VkQueue queue;
  uint32_t family;
  VkPhysicalDeviceFeatures2 features;
  VkPhysicalDeviceVulkan11Features features11;
  VkPhysicalDeviceVulkan12Features features12;
} opened;

static void open_device(opened *o)
{
  static const char *const layers[] = {"VK_LAYER_KHRONOS_validation"};
  static const char *const extensions[] = {VK_EXT_DEBUG_UTILS_EXTENSION_NAME};
  static const VkValidationFeatureEnableEXT checks[] = {VK_VALIDATION_FEATURE_ENABLE_SYNCHRONIZATION_VALIDATION_EXT};
  static const float priority = 1.0f;
  VkApplicationInfo application;
  VkValidationFeaturesEXT validation;
  VkDebugUtilsMessengerCreateInfoEXT messenger;
  VkInstanceCreateInfo instance;
  VkDeviceQueueCreateInfo queue;
  VkDeviceCreateInfo device;
  VkQueueFamilyProperties families[8];
  VkPhysicalDevice found[8];
  VkPhysicalDeviceProperties properties;
  const char *const wanted = getenv("DEVICE_NAME") != NULL ? getenv("DEVICE_NAME") : "";
  uint32_t count = 8, i;
  memset(o, 0, sizeof *o);
  memset(&application, 0, sizeof application);
  application.sType = VK_STRUCTURE_TYPE_APPLICATION_INFO;
  application.apiVersion = VK_API_VERSION_1_2;
  memset(&messenger, 0, sizeof messenger);
  messenger.sType = VK_STRUCTURE_TYPE_DEBUG_UTILS_MESSENGER_CREATE_INFO_EXT;
  messenger.messageSeverity =
      VK_DEBUG_UTILS_MESSAGE_SEVERITY_WARNING_BIT_EXT | VK_DEBUG_UTILS_MESSAGE_SEVERITY_ERROR_BIT_EXT;
  messenger.messageType = VK_DEBUG_UTILS_MESSAGE_TYPE_VALIDATION_BIT_EXT;
  messenger.pfnUserCallback = on_message;
  memset(&validation, 0, sizeof validation);
  validation.sType = VK_STRUCTURE_TYPE_VALIDATION_FEATURES_EXT;
  validation.pNext = &messenger;
  validation.enabledValidationFeatureCount = 1;
  validation.pEnabledValidationFeatures = checks;
  memset(&instance, 0, sizeof instance);
  instance.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO;
  instance.pApplicationInfo = &application;
  if (getenv("WITHOUT_VALIDATION") == NULL) {
    instance.pNext = &validation;
    instance.enabledLayerCount = instance.enabledExtensionCount = 1;
    instance.ppEnabledLayerNames = layers;
    instance.ppEnabledExtensionNames = extensions;
  }
  must(vkCreateInstance(&instance, NULL, &o->instance), "vkCreateInstance");
  if (instance.pNext != NULL)
    must(((PFN_vkCreateDebugUtilsMessengerEXT)vkGetInstanceProcAddr(o->instance, "vkCreateDebugUtilsMessengerEXT"))(
             o->instance, &messenger, NULL, &o->messenger), "a messenger");
  if (vkEnumeratePhysicalDevices(o->instance, &count, found) < 0)
    exit(93);
  for (i = 0; i < count && o->physical == VK_NULL_HANDLE; ++i) {
    vkGetPhysicalDeviceProperties(found[i], &properties);
    if (strstr(properties.deviceName, wanted) != NULL)
      o->physical = found[i];
  }
  if (o->physical == VK_NULL_HANDLE) {
    fprintf(stderr, "no device is called %s\n", wanted);
    exit(93);
  }
  count = 8;
  vkGetPhysicalDeviceQueueFamilyProperties(o->physical, &count, families);
  for (i = 0; i < count && (families[i].queueFlags & VK_QUEUE_COMPUTE_BIT) == 0; ++i)
    ;
  o->family = i;
  o->features.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2;
  o->features.pNext = &o->features11;
  o->features11.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_FEATURES;
  o->features11.pNext = &o->features12;
  o->features12.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES;
  vkGetPhysicalDeviceFeatures2(o->physical, &o->features);
  memset(&queue, 0, sizeof queue);
  queue.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO;
  queue.queueFamilyIndex = o->family;
  queue.queueCount = 1;
  queue.pQueuePriorities = &priority;
  memset(&device, 0, sizeof device);
  device.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO;
  device.pNext = &o->features;
  device.queueCreateInfoCount = 1;
  device.pQueueCreateInfos = &queue;
  must(vkCreateDevice(o->physical, &device, NULL, &o->device), "vkCreateDevice");
  vkGetDeviceQueue(o->device, o->family, 0, &o->queue);
}

/* Ends with 94 if there were messages, of objects that are left as well. */
static int close_device(opened *o)
{
  vkDestroyDevice(o->device, NULL);
  if (o->messenger != VK_NULL_HANDLE)
    ((PFN_vkDestroyDebugUtilsMessengerEXT)vkGetInstanceProcAddr(o->instance, "vkDestroyDebugUtilsMessengerEXT"))(
        o->instance, o->messenger, NULL);
  vkDestroyInstance(o->instance, NULL);
  return messages > 0 ? 94 : 0;
}

/* Functions that pretend. */

static VKAPI_ATTR void VKAPI_CALL pretend_properties(VkPhysicalDevice device, VkPhysicalDeviceProperties *found)
{
  vkGetPhysicalDeviceProperties(device, found);
  if (strcmp(pretended, "discrete") == 0)
    found->deviceType = VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU;
  if (strcmp(pretended, "old") == 0)
    found->apiVersion = VK_API_VERSION_1_0;
  if (strcmp(pretended, "small") == 0) {
    found->limits.maxPerStageDescriptorStorageBuffers = 4;
    found->limits.maxComputeWorkGroupInvocations = 128;
    found->limits.maxComputeSharedMemorySize = 16384;
    found->limits.maxComputeWorkGroupCount[0] = 65535;
  }
  if (strcmp(pretended, "tiny ranges") == 0)
    found->limits.maxStorageBufferRange = 1024;
}

static VKAPI_ATTR void VKAPI_CALL pretend_no_modes(VkPhysicalDevice device, VkPhysicalDeviceProperties2 *found)
{
  (void)device;
  (void)found;
}

static VKAPI_ATTR VkResult VKAPI_CALL fail(void) { return VK_ERROR_DEVICE_LOST; }

static PFN_vkVoidFunction VKAPI_CALL device_function(VkDevice device, const char *name)
{
  if (strcmp(name, failing) == 0)
    return (PFN_vkVoidFunction)fail;
  if (strcmp(pretended, "1.1") == 0 && strcmp(name, "vkWaitSemaphores") == 0)
    return NULL;
  if (strcmp(pretended, "1.1") == 0 && strcmp(name, "vkWaitSemaphoresKHR") == 0)
    name = "vkWaitSemaphores";
  return vkGetDeviceProcAddr(device, name);
}

static PFN_vkVoidFunction VKAPI_CALL instance_function(VkInstance instance, const char *name)
{
  if (strcmp(name, "vkGetDeviceProcAddr") == 0)
    return (PFN_vkVoidFunction)device_function;
  if (strcmp(name, "vkGetPhysicalDeviceProperties") == 0)
    return (PFN_vkVoidFunction)pretend_properties;
  if (strcmp(name, "vkGetPhysicalDeviceProperties2") == 0 && strcmp(pretended, "no modes") == 0)
    return (PFN_vkVoidFunction)pretend_no_modes;
  return vkGetInstanceProcAddr(instance, name);
}
