"""How apps use programs in C that call Vulkan: buffers, semaphores, misuse, devices that lack something, failures."""

from collections.abc import Mapping
from pathlib import Path

import pytest
from c_programs import STRICT
from code_examples import DYNAMIC
from vulkan_programs import VulkanCProgram, said, vulkan_program, with_main

SEVERAL = """
module {
  func.func @double(%x: tensor<4xf32>) -> tensor<4xf32> {
    %y = stablehlo.add %x, %x : tensor<4xf32>
    return %y : tensor<4xf32>
  }
  func.func @count(%x: tensor<?xi32>) -> tensor<i32> {
    %zero = stablehlo.constant dense<0> : tensor<i32>
    %s = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [0]
      : (tensor<?xi32>, tensor<i32>) -> tensor<i32>
    return %s : tensor<i32>
  }
}
"""
CALLS = """
int main(void)
{
  opened o;
  static model_context context;
  float x[4] = {1, 2, 3, 4}, y[4];
  int32_t numbers[5] = {1, 2, 3, 4, 5}, sum;
  model_inputs_double first = {{x}};
  model_outputs_double doubled = {{y}};
  model_inputs_count second = {{numbers, {5}}};
  model_outputs_count counted = {{&sum}};
  VkDeviceSize device, host;
  model_gpu gpu;
  int status;
  open_device(&o);
  gpu = gpu_of(&o);
  status = model_sizes_count(&second, &device, &host);
  if (device > gpu.device_bytes)
    gpu.device_bytes = device;
  if (host > gpu.host_bytes)
    gpu.host_bytes = host;
  status = status || model_init(&context, &gpu, NULL);
  status = status || model_run_double(&context, &first, &doubled) || model_run_count(&context, &second, &counted);
  printf("%g %g %d\\n", (double)y[0], (double)y[3], (int)sum);
  model_fini(NULL);
  model_fini(&context);
  return status != 0 ? 1 : close_device(&o);
}
"""


def test_a_program_with_several_exports(tmp_path: Path) -> None:
    assert said(with_main(vulkan_program(SEVERAL, tmp_path), CALLS)) == ["2 8 15"]


SUBMITTED = """
static VkBuffer buffer;
static float *mapped;

static void make_memory(const opened *o, VkDeviceSize bytes)
{
  VkBufferCreateInfo info = {VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO, NULL, 0, 0, 0, VK_SHARING_MODE_EXCLUSIVE, 0, NULL};
  VkMemoryAllocateInfo memory = {VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO, NULL, 0, 0};
  VkMemoryRequirements needed;
  VkDeviceMemory made;
  void *place;
  info.size = bytes;
  info.usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_TRANSFER_SRC_BIT | VK_BUFFER_USAGE_TRANSFER_DST_BIT;
  must(vkCreateBuffer(o->device, &info, NULL, &buffer), "a buffer");
  vkGetBufferMemoryRequirements(o->device, buffer, &needed);
  memory.allocationSize = needed.size;
  must(vkAllocateMemory(o->device, &memory, NULL, &made), "memory");
  must(vkBindBufferMemory(o->device, buffer, made, 0), "a binding");
  must(vkMapMemory(o->device, made, 0, VK_WHOLE_SIZE, 0, &place), "a mapping");
  mapped = (float *)place;
}

static VkSemaphore timeline(const opened *o)
{
  VkSemaphoreTypeCreateInfo type = {VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO, NULL, VK_SEMAPHORE_TYPE_TIMELINE, 0};
  VkSemaphoreCreateInfo info = {VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO, NULL, 0};
  VkSemaphore made;
  info.pNext = &type;
  must(vkCreateSemaphore(o->device, &info, NULL, &made), "a semaphore");
  return made;
}

static uint64_t value_of(const opened *o, VkSemaphore semaphore)
{
  uint64_t value;
  must(vkGetSemaphoreCounterValue(o->device, semaphore, &value), "a value");
  return value;
}

int main(void)
{
  opened o;
  static model_context context;
  model_gpu gpu;
  VkSemaphore semaphore, other;
  uint64_t wait = 1, signals[2] = {2, 7};
  model_input_ranges inputs;
  model_output_ranges outputs;
  model_sync sync;
  int i, call, status;
  open_device(&o);
  make_memory(&o, 65536);
  semaphore = timeline(&o);
  other = timeline(&o);
  gpu = gpu_of(&o);
  gpu.host_bytes = 0;
  gpu.memory.buffer = buffer;
  gpu.memory.offset = 32768;
  status = model_init(&context, &gpu, NULL);
  /* Six sets of buffers, more than a context records at once; each call adds to what the one before wrote. */
  for (i = 0; i < 4; ++i)
    mapped[i] = (float)i;
  for (call = 0; status == 0 && call < 6; ++call) {
    VkSemaphore two[2];
    VkSemaphoreSignalInfo gate = {VK_STRUCTURE_TYPE_SEMAPHORE_SIGNAL_INFO, NULL, 0, 1};
    two[0] = semaphore;
    two[1] = other;
    inputs.x.range.buffer = inputs.y.range.buffer = outputs.result0.range.buffer = buffer;
    inputs.x.range.offset = inputs.y.range.offset = 512 * (VkDeviceSize)call;
    outputs.result0.range.offset = 512 * (VkDeviceSize)(call + 1);
    memset(&sync, 0, sizeof sync);
    if (call == 0) {
      sync.wait_count = 1;
      sync.wait_semaphores = &semaphore;
      sync.wait_values = &wait;
    }
    if (call == 5) {
      sync.signal_count = 2;
      sync.signal_semaphores = two;
      sync.signal_values = signals;
    }
    status = model_submit(&context, &inputs, &outputs, call % 2 == 0 || call == 5 ? &sync : NULL);
    if (call == 3) {
      printf("%d ", (int)value_of(&o, other));
      gate.semaphore = semaphore;
      must(vkSignalSemaphore(o.device, &gate), "the gate");
    }
  }
  if (status == 0)
    status = model_wait(&context);
  printf("%d %d %g %g %g\\n", (int)value_of(&o, semaphore), (int)value_of(&o, other), (double)mapped[128 * 6 + 1],
         (double)mapped[128 * 6 + 2], (double)mapped[128 * 6 + 3]);
  inputs.x.range.offset = 8;
  printf("%s\\n", model_error_text(model_submit(&context, &inputs, &outputs, NULL)));
  inputs.x.range.offset = 0;
  outputs.result0.range.offset = 0;
  printf("%s\\n", model_error_text(model_submit(&context, &inputs, &outputs, NULL)));
  outputs.result0.range.buffer = VK_NULL_HANDLE;
  printf("%s\\n", model_error_text(model_submit(&context, &inputs, &outputs, NULL)));
  outputs.result0.range.buffer = buffer;
  sync.wait_count = 17;
  printf("%s\\n", model_error_text(model_submit(&context, &inputs, &outputs, &sync)));
  printf("%s\\n", model_error_text(model_run(&context, &in, &out)));
  model_fini(&context);
  exit(status);
}
"""
ADD = """
func.func @main(%x: tensor<4xf32> {orchestrion.name = "x"}, %y: tensor<4xf32> {orchestrion.name = "y"})
    -> tensor<4xf32> {
  %z = stablehlo.add %x, %y : tensor<4xf32>
  return %z : tensor<4xf32>
}
"""


def test_calls_on_buffers_of_the_app_between_semaphores(tmp_path: Path) -> None:
    """In memory of the app, with more sets of buffers than a context records."""
    text = SUBMITTED.replace("int i, call", "static float x[4], y[4], z[4];\n  model_inputs in = {{x}, {y}};\n"
                             "  model_outputs out = {{z}};\n  int i, call")  # fmt: skip
    assert said(with_main(vulkan_program(ADD, tmp_path), text)) == [
        "0 2 7 64 128 192",
        "an input or output has no data or no buffer, or is not aligned",
        "an output overlaps an input or another output",
        "an input or output has no data or no buffer, or is not aligned",
        "a call waits for too many semaphores",
        "gpu.host_bytes are too few for the inputs and outputs of a call",
    ]


MISUSE = """
#define SAY(call) printf("%s\\n", model_error_text(call))

int main(void)
{
  opened o;
  static model_context context;
  float x[12] = {0}, y[16] = {0}, e[12], t[4];
  model_inputs inputs = {{x, {3, 4}}, {y}};
  model_outputs outputs = {{e, {3, 4}}, {t}};
  VkDeviceSize device, host;
  model_gpu gpu, lacking;
  open_device(&o);
  gpu = gpu_of(&o);
  SAY(model_run(&context, &inputs, &outputs));
  SAY(model_wait(&context));
  lacking = gpu;
  lacking.device = VK_NULL_HANDLE;
  SAY(model_init(&context, &lacking, NULL));
  lacking = gpu;
  lacking.device_bytes = model_DEVICE_BYTES - 1;
  SAY(model_init(&context, &lacking, NULL));
  lacking = gpu;
  lacking.features &= ~model_TIMELINE;
  SAY(model_init(&context, &lacking, NULL));
  inputs.arg0.sizes[0] = 0;
  SAY(model_sizes(&inputs, &outputs, &device, &host));
  inputs.arg0.sizes[0] = 3;
  SAY(model_sizes(&inputs, &outputs, &device, &host));
  gpu.device_bytes = device;
  gpu.host_bytes = host;
  SAY(model_init(&context, &gpu, NULL));
  inputs.arg0.sizes[1] = 5;
  SAY(model_run(&context, &inputs, &outputs));
  inputs.arg0.sizes[1] = -4;
  SAY(model_run(&context, &inputs, &outputs));
  inputs.arg0.sizes[1] = 4;
  outputs.result0.sizes[0] = 4;
  SAY(model_run(&context, &inputs, &outputs));
  outputs.result0.sizes[0] = 3;
  outputs.result1.data = (float *)((char *)t + 1);
  SAY(model_run(&context, &inputs, &outputs));
  outputs.result1.data = t;
  SAY(model_run(&context, &inputs, &outputs));
  inputs.arg0.sizes[0] = outputs.result0.sizes[0] = 1 << 20;
  SAY(model_run(&context, &inputs, &outputs));
  inputs.arg0.sizes[0] = outputs.result0.sizes[0] = 3;
  model_fini(&context);
  gpu.device_bytes = device - 512;
  model_init(&context, &gpu, NULL);
  SAY(model_run(&context, &inputs, &outputs));
  model_fini(&context);
  SAY(model_run(&context, &inputs, &outputs));
  SAY(-1);
  return close_device(&o);
}
"""


def test_misuse_gives_errors_with_texts(tmp_path: Path) -> None:
    no_data = "an input or output has no data or no buffer, or is not aligned"
    size, memory = "a size of an input or output is not that of its type", "the memory of the device is too small"
    lines = said(with_main(vulkan_program(DYNAMIC, tmp_path), MISUSE))
    assert [line.partition(" or not aligned, or")[0] for line in lines] == [
        "the context is not initialised",
        "the context is not initialised",
        "gpu lacks a handle",
        memory,
        "the device lacks timelineSemaphore, or the app did not enable timelineSemaphore",
        "condition not met: size d0 is arg0_0, 1 is the least",
        "no error",
        "no error",
        size,
        size,
        size,
        no_data,
        "no error",
        "gpu.host_bytes are too few for the inputs and outputs of a call",
        memory,
        "the context is not initialised",
        "no error of this program",
    ]  # fmt: skip


ALLOCATED = """
static int alive, made;

static VKAPI_ATTR void *VKAPI_CALL allocate(void *user, size_t size, size_t alignment, VkSystemAllocationScope scope)
{
  void *found = NULL;
  (void)user;
  (void)scope;
  if (alignment < sizeof(void *))
    alignment = sizeof(void *);
  if (posix_memalign(&found, alignment, size) != 0)
    return NULL;
  ++alive;
  ++made;
  return found;
}

static VKAPI_ATTR void VKAPI_CALL release(void *user, void *memory)
{
  (void)user;
  alive -= memory != NULL;
  free(memory);
}

static VKAPI_ATTR void *VKAPI_CALL reallocate(void *user, void *memory, size_t size, size_t alignment,
                                              VkSystemAllocationScope scope)
{
  void *found = allocate(user, size, alignment, scope);
  if (memory != NULL && found != NULL) {
    memcpy(found, memory, size);
    release(user, memory);
  }
  return found;
}

int main(void)
{
  static const VkAllocationCallbacks callbacks = {NULL, allocate, reallocate, release, NULL, NULL};
  opened o;
  static model_context context;
  float x[4] = {1, 2, 3, 4}, y[4] = {5, 6, 7, 8}, z[4];
  model_inputs inputs = {{x}, {y}};
  model_outputs outputs = {{z}};
  model_gpu gpu;
  int status;
  open_device(&o);
  gpu = gpu_of(&o);
  gpu.allocator = &callbacks;
  status = model_init(&context, &gpu, NULL);
  if (status == model_OK)
    status = model_run(&context, &inputs, &outputs);
  model_fini(&context);
  printf("%d %d %d %g\\n", status, made > 0, alive, (double)z[3]);
  return close_device(&o);
}
"""


def test_objects_are_made_and_freed_by_the_allocator_of_the_app(tmp_path: Path) -> None:
    program = vulkan_program(ADD, tmp_path)
    text = "#define _POSIX_C_SOURCE 200112L\n" + program.opening() + ALLOCATED
    (tmp_path / "main.c").write_text(text)
    assert said(program.compile("gcc", *STRICT, "-Wno-unused-function")) == ["0 1 0 12"]


INIT = """
int main(void)
{
  opened o;
  static model_context context;
  model_gpu gpu;
  int status;
  open_device(&o);
  pretended = getenv("PRETENDED") ? getenv("PRETENDED") : "";
  failing = getenv("FAILING") ? getenv("FAILING") : "";
  gpu = gpu_of(&o);
  if (getenv("LACKING") != NULL)
    gpu.features &= ~(uint32_t)atoi(getenv("LACKING"));
  status = model_init(&context, &gpu, NULL);
  printf("%s, %d\\n", model_error_text(status), (int)context.result);
  printf("%s\\n", model_error_text(model_wait(&context)));
  if (status == model_OK)
    model_fini(&context);
  return close_device(&o);
}
"""


@pytest.fixture(scope="module")
def started(tmp_path_factory: pytest.TempPathFactory) -> VulkanCProgram:
    """A program with weights that binds more than four buffers in a dispatch, on doubles and 8-bit integers."""
    text = """
func.func @main(%x: tensor<4xf64>, %y: tensor<4xf64>, %z: tensor<4xi8>, %w: tensor<4xi8>)
    -> (tensor<4xf64>, tensor<4xi8>) {
  %k = stablehlo.constant dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf64>
  %g = stablehlo.add %x, %y : tensor<4xf64>
  %a = stablehlo.add %g, %k : tensor<4xf64>
  %b = stablehlo.convert %z : (tensor<4xi8>) -> tensor<4xf64>
  %c = stablehlo.convert %w : (tensor<4xi8>) -> tensor<4xf64>
  %d = stablehlo.multiply %b, %c : tensor<4xf64>
  %e = stablehlo.subtract %a, %d : tensor<4xf64>
  %f = stablehlo.add %z, %w : tensor<4xi8>
  return %e, %f : tensor<4xf64>, tensor<4xi8>
}
"""
    return with_main(vulkan_program(text, tmp_path_factory.mktemp("started")), INIT)


LACKS = "the device lacks {0}, or the app did not enable {0}, 0"


@pytest.mark.parametrize(
    ("environment", "error"),
    [
        ({}, "no error, 0"),
        ({"LACKING": "2"}, "no error, 0"),  # 8-bit integers: a variant of the code does without
        ({"LACKING": "16"}, LACKS.format("shaderFloat64")),
        ({"PRETENDED": "small"}, "the device binds fewer storage buffers than the program, 0"),
        ({"PRETENDED": "old"}, "the device has no Vulkan 1.1, 0"),
    ],
    ids=str,
)
def test_a_device_that_lacks_something_is_refused_by_name(
    environment: Mapping[str, str], error: str, started: VulkanCProgram
) -> None:
    after = "no error" if error.startswith("no error") else "the context is not initialised"
    assert said(started, **environment) == [error, after]


@pytest.mark.parametrize(
    "function",
    """
    CreateBuffer AllocateMemory BindBufferMemory MapMemory CreateSemaphore CreateCommandPool AllocateCommandBuffers
    CreateDescriptorSetLayout CreatePipelineLayout CreateDescriptorPool AllocateDescriptorSets CreateShaderModule
    CreateComputePipelines BeginCommandBuffer EndCommandBuffer QueueSubmit WaitSemaphores
    """.split(),
)
def test_errors_of_vulkan_are_passed_on_and_nothing_is_left(function: str, started: VulkanCProgram) -> None:
    """The validation layer would name objects that are left when the device is destroyed."""
    error = "a function of Vulkan failed: the context has its result, -4"
    assert said(started, FAILING=f"vk{function}") == [error, "the context is not initialised"]
