"""The functions `init`, `wait` and `fini` of a program that calls Vulkan."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from orchestrion.compiler.codegen.c.code import indented
from orchestrion.compiler.codegen.c.support import c_text
from orchestrion.schema.quirks import QUIRKS

from .shaders import FEATURES
from .support import DEVICE_FUNCTIONS, INSTANCE_FUNCTIONS, LATER_FUNCTIONS

if TYPE_CHECKING:
    from .program import VulkanProgram

_LOAD: Final = "#define LOAD(name, key) vk->name = (PFN_vk##name)vk->GetDeviceProcAddr(gpu->device, key)\n\n"


def lifetime(program: VulkanProgram, has_file: bool) -> str:
    """The functions. `has_file`: whether the weights are in a file."""
    parts = [program.interface.error_texts(), _load(program), _check(program), _set_up(program)]
    fini, init = (c_text(f"vulkan/{name}.c").replace("{n}", program.name) for name in ("fini", "init"))
    return "\n".join([*parts, fini, _make(program, has_file), init])


def _load(program: VulkanProgram) -> str:
    """The function that loads the functions of Vulkan."""
    n = program.name
    lines = [f'  vk->{name} = (PFN_vk{name})gpu->get_instance_proc_addr(gpu->instance, "vk{name}");'
             for name in INSTANCE_FUNCTIONS]  # fmt: skip
    lines += ["  if (vk->GetDeviceProcAddr == NULL)", f"    return {n}_ERROR_FUNCTION;"]
    lines += [f'  LOAD({name}, "vk{name}");' for name in (*DEVICE_FUNCTIONS, *LATER_FUNCTIONS)]
    for name in LATER_FUNCTIONS:
        lines += [f"  if (vk->{name} == NULL)", f'    LOAD({name}, "vk{name}KHR");']
    names = [f"vk->{name} == NULL" for name in (*INSTANCE_FUNCTIONS[1:], *DEVICE_FUNCTIONS, *LATER_FUNCTIONS)]
    lines += ["  if (" + " ||\n      ".join(" || ".join(names[at : at + 4]) for at in range(0, len(names), 4)) + ")"]
    head = f"static int load(const {n}_gpu *gpu, {n}_functions *vk)"
    return "\n".join([_LOAD + f"{head}\n{{", *lines, f"    return {n}_ERROR_FUNCTION;", f"  return {n}_OK;", "}\n"])


def _check(program: VulkanProgram) -> str:
    """The function that compares the device with what the program needs."""
    n, shaders = program.name, program.shaders
    limits = []
    for row, value in shaders.limits():
        limits += [f"  if (limits->{row.member} < {value}u)", f"    return {n}_{row.error};"]
    features = [f"  if ((context->gpu.features & {n}_{name}) == 0)\n    return {n}_ERROR_{name};"
                for name, bit, _, _ in FEATURES if shaders.required & bit]  # fmt: skip
    kept = " && ".join(f"floats.shaderSignedZeroInfNanPreserveFloat{width}" for width in sorted(shaders.widths))
    special = f"""  if ((context->gpu.features & {n}_FLOAT_CONTROLS) != 0) {{
    VkPhysicalDeviceFloatControlsProperties floats;
    VkPhysicalDeviceProperties2 more;
    memset(&floats, 0, sizeof floats);
    floats.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FLOAT_CONTROLS_PROPERTIES;
    memset(&more, 0, sizeof more);
    more.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2;
    more.pNext = &floats;
    context->vk.GetPhysicalDeviceProperties2(context->gpu.physical_device, &more);
    context->keeps_special = {kept};
  }}
"""
    lines = "\n".join([*features, *limits])
    withheld = "".join(
        f"  if (properties.vendorID == 0x{vendor:x}u) /* {row.doc} */\n    context->gpu.features &= ~{n}_INT64;\n"
        for row in QUIRKS
        if row.api == "vulkan" and "shaderInt64" in row.lacks and "INT64" in shaders.optional
        for vendor in row.vendors
    )
    return f"""/* Compares the device with what the program needs, and notes what recordings have to know. */
static int check({n}_context *context)
{{
  VkPhysicalDeviceProperties properties;
  const VkPhysicalDeviceLimits *const limits = &properties.limits;
  int i;
  context->vk.GetPhysicalDeviceProperties(context->gpu.physical_device, &properties);
  if (properties.apiVersion < VK_API_VERSION_1_1)
    return {n}_ERROR_VERSION;
{withheld}{lines}
  for (i = 0; i < EXECUTABLES; ++i) {{
    if (variant_of(context, (uint32_t)i) == NULL)
      return {n}_ERROR_FEATURES;
  }}
  for (i = 0; i < 3; ++i)
    context->most_groups[i] = limits->maxComputeWorkGroupCount[i];
  context->most_bytes = limits->maxStorageBufferRange;
  context->alignment = limits->minStorageBufferOffsetAlignment;
  context->is_staged = properties.deviceType == VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU ||
                       properties.deviceType == VK_PHYSICAL_DEVICE_TYPE_VIRTUAL_GPU;
{special if kept else ""}  return {n}_OK;
}}
"""


def _set_up(program: VulkanProgram) -> str:
    """The function that runs the initializers, and records the calls whose commands are known."""
    n = program.name
    steps: list[str] = []
    for lines in program.init:
        steps += ["  {", *indented(lines), "  }"] if lines else []
    rehearsals: list[str] = []
    for export in program.rehearsed:
        declared = [f"    {n}_{kind}{export.suffix} {kind};" for kind in export.kinds]
        cleared = [f"    memset(&{kind}, 0, sizeof {kind});" for kind in export.kinds]
        given = ", ".join(["context", *(f"&{kind}" for kind in export.kinds)])
        rehearsals += ["  {", *declared, *cleared, f"    status = call{export.suffix}({given});"]
        rehearsals += [f"    if (status != {n}_OK)", "      return status;", "  }"]
    if rehearsals:
        rehearsals = [f"  if (context->gpu.host_bytes >= {n}_HOST_BYTES) {{", "    context->is_rehearsal = 1;",
                      *indented(rehearsals), "    context->is_rehearsal = 0;", "  }"]  # fmt: skip
    return "\n".join(
        [
            "/* Computes what does not depend on inputs, and records the commands of calls. */",
            f"static int set_up({n}_context *context)\n{{",
            f"  int status = {n}_OK;",
            "  begin_call(context, NULL);",
            *steps,
            "  if (context->pending_count > 0)",
            "    status = complete(context);",
            f"  if (status != {n}_OK)",
            "    return status;",
            *rehearsals,
            "  return status;",
            "}\n",
        ]
    )


def _make(program: VulkanProgram, has_file: bool) -> str:
    n = program.name
    if not program.weights.size:
        given = "  (void)weights;\n"
        upload = ""
    else:
        chosen = "weights" if has_file else "weights != NULL ? weights : &weights_of_program"
        given = f"  if (weights == NULL)\n    return {n}_ERROR_WEIGHTS;\n" if has_file else ""
        upload = f"""  if (status == {n}_OK)
    status = upload(context, (const unsigned char *)({chosen}), &staging);
"""
    scratch = 4 * program.shaders.most_words
    staged = max(min(program.weights.size, 4 << 20), scratch, 4)
    return f"""/* Makes all objects. `staging`: mapped memory until init ends. */
static int make({n}_context *context, const void *weights)
{{
  {n}_buffer staging;
  const VkDeviceSize host_bytes = (context->gpu.host_bytes + 3) / 4 * 4;
  range start = context->gpu.memory;
  int status;
{given}  memset(&staging, 0, sizeof staging);
  if (start.buffer == VK_NULL_HANDLE) {{
    status = make_buffer(context, context->gpu.device_bytes, &context->memory, 0);
    if (status != {n}_OK)
      return status;
    start = context->memory.range;
  }}
  context->unused = start;
  context->weights = at(start, {n}_ALIGNMENT);
  context->arena = at(context->weights, {n}_WEIGHTS_BYTES);
  context->call_bytes = context->gpu.device_bytes - {n}_ALIGNMENT - {n}_WEIGHTS_BYTES;
  status = make_buffer(context, host_bytes + 4, &context->host, 1);
  if (status != {n}_OK)
    return status;
  context->number = at(context->host.range, (int64_t)host_bytes);
  context->mapped_number = (unsigned char *)context->host.mapped + host_bytes;
  if (context->is_staged && host_bytes > 0)
    status = make_buffer(context, host_bytes, &context->local, 0);
  if (status == {n}_OK)
    status = make_commands(context);
  if (status == {n}_OK)
    status = make_layouts(context);
  if (status == {n}_OK && SETS > 0)
    status = make_sets(context);
  if (status == {n}_OK)
    status = make_buffer(context, {staged}u, &staging, 1);
  if (status == {n}_OK)
    status = make_pipelines(context, (uint32_t *)staging.mapped);
{upload}  free_buffer(context, &staging);
  if (status == {n}_OK)
    status = set_up(context);
  return status;
}}
"""
