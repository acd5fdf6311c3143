"""Programs in C that call Vulkan: what compilers say, what they compute, and how they are used, on the loader's first
device with its validation layer. `tests/e2e/test_vulkan_code.py` has more.
"""

import functools
import os
import re
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from c_programs import STRICT, Array
from vulkan_programs import DEVICE_NAME, LINKED, SUPPORT, VulkanCProgram, vulkan_program

from orchestrion import compiler, vm
from orchestrion.compiler.errors import CompileError

EXAMPLES = Path(__file__).parents[2] / "examples"
PLUS_PLUS = ("-x", "c++", "-std=c++11", *STRICT[1:])
#: example -> shapes of its inputs
SHAPES: dict[str, list[tuple[int, ...]]] = {
    "simple_mul": [(4,), (4,)],
    "mlp": [(8, 32)],
    "matmul_static": [(64, 128)],
    "spectral_norm": [(4, 4)],
}
#: functions that a compiled program may need
ALLOWED = {"memcpy", "memset", "memmove"}

DYNAMIC = """
func.func @main(%x: tensor<?x4xf32>, %y: tensor<4x4xf32>) -> (tensor<?x4xf32>, tensor<4xf32>) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %p = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0]
    : (tensor<?x4xf32>, tensor<4x4xf32>) -> tensor<?x4xf32>
  %e = stablehlo.exponential %p : tensor<?x4xf32>
  %q = stablehlo.dot_general %e, %y, contracting_dims = [1] x [0]
    : (tensor<?x4xf32>, tensor<4x4xf32>) -> tensor<?x4xf32>
  %s = stablehlo.reduce(%e init: %zero) applies stablehlo.add across dimensions = [0]
    : (tensor<?x4xf32>, tensor<f32>) -> tensor<4xf32>
  return %q, %s : tensor<?x4xf32>, tensor<4xf32>
}
"""
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
#: fills of bytes, of patterns that no fill of words makes, and of sizes that depend on a call
FILLS = """
func.func @main(%x: tensor<?xi8>) -> (tensor<5xi8>, tensor<7xi64>, tensor<?xi8>, tensor<3xi16>) {
  %a = stablehlo.constant dense<-7> : tensor<5xi8>
  %b = stablehlo.constant dense<1234567890123> : tensor<7xi64>
  %d = stablehlo.get_dimension_size %x, dim = 0 : (tensor<?xi8>) -> tensor<i32>
  %s = stablehlo.reshape %d : (tensor<i32>) -> tensor<1xi32>
  %three = stablehlo.constant dense<3> : tensor<i8>
  %c = stablehlo.dynamic_broadcast_in_dim %three, %s, dims = [] : (tensor<i8>, tensor<1xi32>) -> tensor<?xi8>
  %e = stablehlo.constant dense<515> : tensor<3xi16>
  return %a, %b, %c, %e : tensor<5xi8>, tensor<7xi64>, tensor<?xi8>, tensor<3xi16>
}
"""


def inputs(name: str) -> list[Array]:
    random = np.random.default_rng(3)
    return [random.normal(size=shape).astype(np.float32) for shape in SHAPES[name]]


def on_device(source: Any, *arrays: Array, machine: str = "cpu") -> list[Array]:
    """The results of the only function of a program on the first device of the HAL's driver."""
    program = vm.load(compiler.compile(source, targets=["spirv"], machines=[machine]), device="vulkan")
    (name,) = program.functions
    found = getattr(program, name)(*arrays)
    return [np.asarray(one) for one in (found if isinstance(found, tuple) else [found])]


def same_bits(got: list[Array], want: list[Array]) -> None:
    assert len(got) == len(want)
    for x, y in zip(got, want, strict=True):
        assert x.dtype == y.dtype and x.shape == y.shape
        assert x.tobytes() == np.ascontiguousarray(y).tobytes()


@pytest.fixture(scope="module")
def wanted() -> Callable[[str], list[Array]]:
    """The results of an example on the HAL's device."""
    return functools.cache(lambda name: on_device(EXAMPLES / f"{name}.mlir", *inputs(name)))


def with_main(program: VulkanCProgram, text: str) -> VulkanCProgram:
    """The program with a main function of its own."""
    (program.folder / "main.c").write_text(program.opening() + text)
    return program.compile("gcc", *STRICT, "-Wno-unused-function", "-O1", "-g")


def said(program: VulkanCProgram, **environment: str) -> list[str]:
    """The lines that the program prints. It succeeds, and the validation layer says nothing."""
    done = subprocess.run(
        [program.binary],
        capture_output=True,
        text=True,
        timeout=300,
        env={**os.environ, "DEVICE_NAME": DEVICE_NAME, **environment},
    )
    assert (done.returncode, done.stderr) == (0, ""), (done.returncode, done.stdout, done.stderr[-3000:])
    return done.stdout.splitlines()


@pytest.mark.parametrize("command", [("gcc", *STRICT), ("g++", *PLUS_PLUS)], ids=["c", "c++"])
@pytest.mark.parametrize("name", SHAPES)
def test_examples_give_the_bits_of_the_device(
    name: str, command: tuple[str, ...], wanted: Callable[[str], list[Array]], tmp_path: Path
) -> None:
    program = vulkan_program(EXAMPLES / f"{name}.mlir", tmp_path, name).build(*command, "-O1")
    same_bits(program(*inputs(name)), wanted(name))


@pytest.mark.parametrize("pretended", ["discrete", "no modes", "1.1", "small"])
def test_other_devices_give_the_same(
    pretended: str, wanted: Callable[[str], list[Array]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Devices with memory of their own, without the mode that keeps NaN, of Vulkan 1.1, and with the least limits."""
    monkeypatch.setenv("PRETENDED", pretended)
    program = vulkan_program(EXAMPLES / "mlp.mlir", tmp_path, limits="least").build("gcc", *STRICT)
    same_bits(program(*inputs("mlp")), wanted("mlp"))


def test_the_machine_is_an_option(tmp_path: Path) -> None:
    program = vulkan_program(EXAMPLES / "matmul_static.mlir", tmp_path, machine="gpu").build("gcc", *STRICT)
    given = inputs("matmul_static")
    same_bits(program(*given), on_device(EXAMPLES / "matmul_static.mlir", *given, machine="gpu"))
    other = vulkan_program(EXAMPLES / "matmul_static.mlir", tmp_path / "cpu", machine="cpu")
    assert other.files["model.c"] != program.files["model.c"]


def test_an_object_file_needs_no_library(tmp_path: Path) -> None:
    """Not even that of Vulkan: its functions come from the app."""
    program = vulkan_program(EXAMPLES / "spectral_norm.mlir", tmp_path, "norm")
    program.write()
    for level in ("-O0", "-O2"):
        object_file = tmp_path / "norm.o"
        subprocess.run(["gcc", *STRICT, level, "-c", tmp_path / "norm.c", "-o", object_file], check=True)
        found = subprocess.run(["nm", "-u", object_file], check=True, capture_output=True, text=True).stdout.split()
        assert set(found) - {"U"} <= ALLOWED
        named = subprocess.run(["nm", "-g", "--defined-only", object_file], check=True, capture_output=True, text=True)
        assert all(line.split()[-1].startswith("norm_") for line in named.stdout.splitlines())


def test_any_number_of_rows(tmp_path: Path) -> None:
    program = vulkan_program(DYNAMIC, tmp_path).build("gcc", *STRICT)
    random = np.random.default_rng(7)
    for rows in (1, 3, 700):
        x, y = random.normal(size=(rows, 4)).astype(np.float32), random.uniform(size=(4, 4)).astype(np.float32)
        same_bits(program(x, y), on_device(DYNAMIC, x, y))


@pytest.mark.parametrize("count", [1, 4, 1001])
def test_fills_of_any_pattern_and_length(count: int, tmp_path: Path) -> None:
    program = vulkan_program(FILLS, tmp_path).build("gcc", *STRICT)
    given = np.zeros(count, np.int8)
    same_bits(program(given), on_device(FILLS, given))


def test_sanitizers_find_nothing(tmp_path: Path) -> None:
    flags = ("-O1", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")
    program = vulkan_program(EXAMPLES / "mlp.mlir", tmp_path).build("gcc", *STRICT, *flags)
    leaks = ("env", "ASAN_OPTIONS=detect_leaks=0")  # of drivers
    program(*inputs("mlp"), runner=leaks)
    dynamic = vulkan_program(DYNAMIC, tmp_path / "dynamic").build("gcc", *STRICT, *flags)
    dynamic(np.ones((3, 4), np.float32), np.ones((4, 4), np.float32), runner=leaks)


def test_weights_in_a_file(wanted: Callable[[str], list[Array]], tmp_path: Path) -> None:
    program = vulkan_program(EXAMPLES / "mlp.mlir", tmp_path, weights="file").build("gcc", *STRICT)
    assert set(program.files) == {"model.h", "model.c", "model.weights"}
    same_bits(program(*inputs("mlp")), wanted("mlp"))


TWO = """
int main(void)
{
  opened o;
  static mlp_context first;
  static simple_mul_context second;
  mlp_gpu gpu;
  simple_mul_gpu other;
  int status;
  open_device(&o);
  gpu = gpu_of(&o);
  memcpy(&other, &gpu, sizeof other);
  other.device_bytes = simple_mul_DEVICE_BYTES;
  other.host_bytes = simple_mul_HOST_BYTES;
  status = mlp_init(&first, &gpu, NULL) || simple_mul_init(&second, &other, NULL);
  mlp_fini(&first);
  simple_mul_fini(&second);
  return status != 0 ? 1 : close_device(&o);
}
"""


def test_two_programs_in_one(tmp_path: Path) -> None:
    vulkan_program(EXAMPLES / "simple_mul.mlir", tmp_path, "simple_mul").write()
    program = vulkan_program(EXAMPLES / "mlp.mlir", tmp_path, "mlp")
    program.write()
    (tmp_path / "main.c").write_text(program.opening() + '#include "simple_mul.h"\n' + TWO)
    files = [tmp_path / name for name in ("main.c", "mlp.c", "simple_mul.c")]
    flags = ("-Wno-unused-function", "-I", SUPPORT)
    subprocess.run(["gcc", *STRICT, *flags, *files, "-o", tmp_path / "program", *LINKED], check=True)
    program.binary = tmp_path / "program"
    said(program)


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
    CreateComputePipelines CreateFence BeginCommandBuffer EndCommandBuffer QueueSubmit WaitForFences ResetFences
    """.split(),
)
def test_errors_of_vulkan_are_passed_on_and_nothing_is_left(function: str, started: VulkanCProgram) -> None:
    """The validation layer would name objects that are left when the device is destroyed."""
    error = "a function of Vulkan failed: the context has its result, -4"
    assert said(started, FAILING=f"vk{function}") == [error, "the context is not initialised"]


def test_variants_for_lacking_types_give_the_same(started: VulkanCProgram, tmp_path: Path) -> None:
    text = """
func.func @main(%x: tensor<5xi64>, %y: tensor<5xi8>) -> (tensor<5xi64>, tensor<5xi8>) {
  %a = stablehlo.multiply %x, %x : tensor<5xi64>
  %b = stablehlo.multiply %y, %y : tensor<5xi8>
  return %a, %b : tensor<5xi64>, tensor<5xi8>
}
"""
    given = np.array([3, -(1 << 40), 5, 1 << 33, -1]), np.array([3, -100, 5, 77, -1], np.int8)
    for lacking in ("0", "2", "8", "14"):
        program = vulkan_program(text, tmp_path / lacking).build("gcc", *STRICT, f"-DLACKING={lacking}")
        same_bits(program(*given), [given[0] * given[0], given[1] * given[1]])


def test_equal_programs_give_equal_files(tmp_path: Path) -> None:
    first, second = (vulkan_program(EXAMPLES / "mlp.mlir", tmp_path, "mlp").files for _ in range(2))
    assert first == second
    for name, text in first.items():
        assert isinstance(text, str) and f"{name}: " in text and "SPDX-License-Identifier: Apache-2.0" in text
        assert not re.search(r"/(home|tmp|work)/", text)


def test_the_least_limits_are_those_of_every_device(tmp_path: Path) -> None:
    network = """
func.func @main(%a: tensor<4xf32>, %b: tensor<4xf32>, %c: tensor<4xf32>, %d: tensor<4xf32>, %e: tensor<4xf32>)
    -> tensor<4xf32> {
  %p = stablehlo.multiply %a, %b : tensor<4xf32>
  %q = stablehlo.multiply %p, %c : tensor<4xf32>
  %r = stablehlo.multiply %q, %d : tensor<4xf32>
  %s = stablehlo.multiply %r, %e : tensor<4xf32>
  return %s : tensor<4xf32>
}
"""
    usual = vulkan_program(network, tmp_path / "usual").files["model.h"]
    program = vulkan_program(network, tmp_path / "least", limits="least").build("gcc", *STRICT)
    assert "maxPerStageDescriptorStorageBuffers >= 6" in str(usual)
    assert "Its limits are those that every device has" in str(program.files["model.h"])
    given = inputs("simple_mul") + inputs("simple_mul") + inputs("simple_mul")[:1]
    same_bits(program(*given), [given[0] * given[1] * given[2] * given[3] * given[4]])


def test_what_has_no_such_code_is_refused_by_name(tmp_path: Path) -> None:
    called = """
module @m {
  func.func private @other.f(tensor<4xf32>) -> tensor<4xf32>
  func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
    %y = call @other.f(%x) : (tensor<4xf32>) -> tensor<4xf32>
    return %y : tensor<4xf32>
  }
}
"""
    with pytest.raises(CompileError, match="ll_seq.imported_call: style vulkan: has no C"):
        vulkan_program(called, tmp_path)
