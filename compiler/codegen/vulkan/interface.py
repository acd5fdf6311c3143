"""The header of a program that calls Vulkan: what the app gives, what the device must have, types and functions."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Final

from orchestrion.compiler.codegen.c.interface import ERRORS as C_ERRORS
from orchestrion.compiler.codegen.c.interface import Export, Field
from orchestrion.compiler.codegen.c.support import c_text
from orchestrion.compiler.ir.dims import ceildiv
from orchestrion.compiler.sequencer.arena import ALIGNMENT

from .shaders import FEATURES
from .support import DEVICE_FUNCTIONS, INSTANCE_FUNCTIONS, LATER_FUNCTIONS

if TYPE_CHECKING:
    from .program import VulkanProgram

_LACKS: Final = "the device lacks {0}, or the app did not enable {0}"
#: errors of every program: name, text
ERRORS: Final = (
    *(row for row in C_ERRORS if row[0] not in ("ERROR_MEMORY", "ERROR_DATA")),
    ("ERROR_MEMORY", "the memory of the device is too small or not aligned, or no type of memory fits"),
    ("ERROR_HOST_MEMORY", "gpu.host_bytes are too few for the inputs and outputs of a call"),
    ("ERROR_DATA", "an input or output has no data or no buffer, or is not aligned"),
    ("ERROR_GPU", "gpu lacks a handle"),
    ("ERROR_FUNCTION", "the driver lacks a function"),
    ("ERROR_VULKAN", "a function of Vulkan failed: the context has its result"),
    ("ERROR_SYNC", "a call waits for too many semaphores"),
    ("ERROR_VERSION", "the device has no Vulkan 1.1"),
    ("ERROR_TIMELINE", _LACKS.format("timelineSemaphore")),
    ("ERROR_INT8", _LACKS.format("shaderInt8 and storageBuffer8BitAccess")),
    ("ERROR_INT16", _LACKS.format("shaderInt16 and storageBuffer16BitAccess")),
    ("ERROR_INT64", _LACKS.format("shaderInt64")),
    ("ERROR_FLOAT64", _LACKS.format("shaderFloat64")),
    ("ERROR_FEATURES", "no variant of the code is for the features that are enabled"),
    ("ERROR_STORAGE_BUFFERS", "the device binds fewer storage buffers than the program"),
    ("ERROR_BINDING_BYTES", "the device binds fewer bytes of a storage buffer than the program"),
    ("ERROR_PUSH_CONSTANTS", "the device has fewer push constants than the program"),
    ("ERROR_SHARED_MEMORY", "the device has less shared memory than the program needs"),
    ("ERROR_WORKGROUP_SIZE", "the workgroups of the device are smaller than those of the program"),
    ("ERROR_WORKGROUP_COUNT", "the device dispatches fewer workgroups than the program"),
)


@dataclass(frozen=True, slots=True)
class Sizes:
    """Numbers of the header, in bytes or objects."""

    device: int
    host: int
    weights: int
    tables: int
    slots: int
    sizes: int
    sets: int


def header(program: VulkanProgram, head: str, sizes: Sizes, weights_file: str) -> str:
    """The text of the header. `weights_file`: the name of the file, if any."""
    n = program.name
    return "\n".join(
        [
            _top(n, head, sizes),
            _needs(program),
            program.interface.error_codes(),
            c_text("vulkan/gpu.h").replace("{n}", n),
            _context(program, sizes),
            _functions(n, sizes, weights_file),
            *(_export(program, export) for export in program.interface.exports),
            f"#ifdef __cplusplus\n}}\n#endif\n\n#endif /* {n}_H */\n",
        ]
    )


def _top(n: str, head: str, sizes: Sizes) -> str:
    return f"""{head}
#ifndef {n}_H
#define {n}_H

#include <stddef.h>
#include <stdint.h>
#include <vulkan/vulkan_core.h>

#ifdef __cplusplus
extern "C" {{
#endif

/* Bytes of memory of the device, weights included, without what {n}_sizes adds; and of memory that the host maps for
 * the inputs and outputs of {n}_run. */
#define {n}_DEVICE_BYTES {sizes.device}u
#define {n}_HOST_BYTES {sizes.host}u
#define {n}_WEIGHTS_BYTES {sizes.weights}u
/* The alignment of memory that the app gives, in bytes. */
#define {n}_ALIGNMENT {ALIGNMENT}u
/* Semaphores that a call waits for at most. */
#define {n}_MOST_WAITS 16
"""


def _needs(program: VulkanProgram) -> str:
    """The features and limits of a device."""
    n, shaders = program.name, program.shaders
    features = [f"#define {n}_{name} {bit}u /* {doc} */" for name, bit, _, doc in FEATURES]
    rows = [f" * {limit.member} >= {value}" for limit, value in shaders.limits()]
    limits = "\n".join([" * Limits:", *rows]) if rows else " * Its limits are those that every device has."
    return (
        f"/* Features that an app can enable. */\n{chr(10).join(features)}\n\n"
        "/* What a device must have, and what makes the program faster or more exact where a device has it. The device "
        "has Vulkan\n"
        f" * 1.1.\n{limits} */\n"
        f"#define {n}_REQUIRED_FEATURES {shaders.required}u\n#define {n}_USED_FEATURES {shaders.used}u\n"
    )


def _context(program: VulkanProgram, sizes: Sizes) -> str:
    n, shaders = program.name, program.shaders
    functions = "\n".join(
        f"  PFN_vk{name} {name};" for name in (*INSTANCE_FUNCTIONS, *DEVICE_FUNCTIONS, *LATER_FUNCTIONS)
    )
    kernels, layouts = max(1, len(shaders.kernels)), max(1, len(shaders.layouts))
    return f"""/* Functions of Vulkan. */
typedef struct {n}_functions {{
{functions}
}} {n}_functions;

/* A buffer with memory of its own. */
typedef struct {n}_buffer {{
  {n}_range range;
  VkDeviceMemory memory;
  void *mapped;
}} {n}_buffer;

/* Commands for some slots and sizes; `used`: the last submission with them. */
typedef struct {n}_table {{
  VkCommandBuffer commands;
  uint64_t used;
  int is_recorded;
  {n}_range slots[{max(1, sizes.slots)}];
  int64_t sizes[{max(1, sizes.sizes)}];
}} {n}_table;

/* Commands that copy bytes. */
typedef struct {n}_transfer {{
  VkCommandBuffer commands;
  uint64_t used;
  {n}_range from, to;
  VkDeviceSize bytes;
}} {n}_transfer;

/* The state of one user of the program. Its members belong to the functions below, except for `result`: what Vulkan
 * returned when a function last returned {n}_ERROR_VULKAN. */
typedef struct {n}_context {{
  VkResult result;
  int is_ready, is_staged, is_rehearsal, has_waited, keeps_special;
  {n}_gpu gpu;
  {n}_functions vk;
  {n}_buffer memory, host, local;
  {n}_range weights, arena, unused, number;
  unsigned char *mapped_number;
  VkDeviceSize call_bytes, most_bytes, alignment;
  int64_t most_groups[3];
  VkSemaphore timeline;
  uint64_t submitted, completed;
  const {n}_sync *sync;
  VkCommandPool commands;
  VkCommandBuffer pending[16];
  uint32_t pending_count;
  VkDescriptorPool pool;
  VkDescriptorSetLayout set_layouts[{layouts}];
  VkPipelineLayout layouts[{layouts}];
  VkPipeline pipelines[{kernels}];
  VkDescriptorSet sets[{max(1, sizes.sets)}];
  {n}_table tables[{max(1, sizes.tables)}];
  {n}_transfer transfers[3];
}} {n}_context;
"""


def _functions(n: str, sizes: Sizes, weights_file: str) -> str:
    if weights_file:
        what = f"the {n}_WEIGHTS_BYTES bytes of {weights_file}"
    elif sizes.weights:
        what = f"NULL for those in the program, or {n}_WEIGHTS_BYTES bytes in their layout"
    else:
        what = "NULL, as the program has none"
    return f"""/* Makes everything that calls need, and uploads the weights. After an error nothing is left to free.
 * weights: {what}. */
int {n}_init({n}_context *context, const {n}_gpu *gpu, const void *weights);

/* Waits until all calls are over. */
int {n}_wait({n}_context *context);

/* Waits until all calls are over, and frees everything that the context owns. */
void {n}_fini({n}_context *context);
"""


def _export(program: VulkanProgram, export: Export) -> str:
    n, suffix, interface = program.name, export.suffix, program.interface
    text = interface.types(export)
    for kind, rows in export.kinds.items():
        name, fields = f"{n}_{kind[:-1]}_ranges{suffix}", "".join(_ranges(n, row) for row in rows)
        text += f"/* The same on the device. */\ntypedef struct {name} {{\n{fields}}} {name};\n\n"
    return text + (
        "/* Runs the function and waits for it. Elements are in row-major order. */\n"
        f"int {n}_run{suffix}({interface.parameters(export)});\n\n"
        "/* Submits a call on buffers for storage, whose bytes are multiples of 4, and returns. Outputs overlap no "
        f"inputs.{interface.may_alias(export)}\n"
        " * The call waits for the semaphores of `sync`, which may be NULL, and signals them. Where the host reads a "
        "number to choose\n * what runs next, it is waited for. After an error no semaphore is signalled. */\n"
        f"int {n}_submit{suffix}({range_parameters(n, export)}, const {n}_sync *sync);\n"
    )


def range_parameters(n: str, export: Export) -> str:
    """The parameters of a function of an export whose arguments are on the device."""
    ranges = (f"const {n}_{kind[:-1]}_ranges{export.suffix} *{kind}" for kind in export.kinds)
    return ", ".join([f"{n}_context *context", *ranges])


def _ranges(n: str, row: Field) -> str:
    sizes = f"    int64_t sizes[{len(row.type.shape)}];\n" if row.is_dynamic else ""
    size = "" if row.is_dynamic else f"  /* {ceildiv(prod(row.type.shape) * row.itemsize, 4) * 4} bytes */\n"
    return f"{size}  struct {{\n    {n}_range range;\n{sizes}  }} {row.name};\n"


def range_bytes(kind: str, row: Field) -> str:
    """The bytes of an argument or result of the host, as an expression; -1 if a size is negative."""
    if not row.is_dynamic:
        return str(prod(row.type.shape) * row.itemsize)
    return f"bytes_of({kind}->{row.name}.sizes, {len(row.type.shape)}, {row.itemsize})"
