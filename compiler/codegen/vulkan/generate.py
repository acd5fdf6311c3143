"""Style vulkan: the program for target `spirv` as C99 that calls Vulkan, NAME.h and NAME.c (docs/codegen.md)."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import Final

from orchestrion.compiler.codegen.c.generate import weights_file, whole_files
from orchestrion.compiler.codegen.c.interface import Export
from orchestrion.compiler.codegen.c.support import c_text, used_functions
from orchestrion.compiler.codegen.subject import Subject
from orchestrion.compiler.sequencer.arena import ALIGNMENT
from orchestrion.compiler.sequencer.hl_seq import Program

from .interface import Sizes, header, range_bytes, range_parameters
from .lifetime import lifetime
from .program import VulkanProgram, checked
from .shaders import table

_PROLOGUE: Final = """
#include "{name}.h"

#include <string.h>

#if defined(__GNUC__) || defined(__clang__)
#define ALIGNED __attribute__((aligned(64)))
/* Comparisons that the numbers of the program make constant. */
#pragma GCC diagnostic ignored "-Wtautological-compare"
#pragma GCC diagnostic ignored "-Wtype-limits"
#else
#define ALIGNED
#endif
#define INLINE static
#if defined({name}_WEIGHTS_SECTION)
#define SECTION __attribute__((section({name}_WEIGHTS_SECTION)))
#else
#define SECTION
#endif

#define STAGES (VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_TRANSFER_BIT)
/* Bytes of the mapped memory through which weights are uploaded. */
#define STAGING 4194304u

enum {{
  PENDING = 16, TRANSFER_IN = 0, TRANSFER_OUT, TRANSFER_READ, TRANSFERS, EXECUTABLES = {executables},
  KERNELS = {kernels}, LAYOUTS = {layouts}, MOST_BINDINGS = {bindings}, SETS = {sets}, TABLES = {tables}
}};
"""


def generate(subject: Subject, name: str, options: Mapping[str, str]) -> dict[str, str | bytes]:
    """The files of a program. Raises CompileError for what has no such code, with the reason."""
    return files_of(VulkanProgram(chosen(subject, options), name), subject.source, options)


def chosen(subject: Subject, options: Mapping[str, str]) -> Program:
    """The program of a subject for the machine and the limits that the options state."""
    return subject.program("spirv", options["machine"], "spirv_least" if options["limits"] == "least" else "")


def files_of(program: VulkanProgram, source: str, options: Mapping[str, str]) -> dict[str, str | bytes]:
    """The files of a rendered program. `source`: the name of what it was compiled from."""
    name, file = program.name, weights_file(program, options)
    sizes = Sizes(
        device=program.weights.size + program.allocations.size + ALIGNMENT,
        host=program.host_bytes,
        weights=program.weights.size,
        tables=sum(row.count for row in program.tables),
        slots=max([row.slots for row in program.tables], default=0),
        sizes=max([row.sizes for row in program.tables], default=0),
        sets=sum(row.count * len(row.layouts) for row in program.tables),
    )
    own = "\n".join([*program.texts, *program.functions, *(_calls(program, e) for e in program.interface.exports)])
    own += "\n" + lifetime(program, bool(file))
    used = used_functions(own, name, "c/sizes.c", "vulkan/support.c")
    types = c_text("vulkan/types.h").replace("{n}", name)
    return whole_files(
        program, file, {"source": source, "target": "spirv", "what": "a compiled program for Vulkan"},
        lambda head: header(program, head, sizes, file), _prologue(program, sizes),
        [types, program.shaders.text(), _tables(program), used, own],
    )  # fmt: skip


def _prologue(program: VulkanProgram, sizes: Sizes) -> str:
    shaders = program.shaders
    return _PROLOGUE.format(
        name=program.name, executables=len(shaders.executables), kernels=len(shaders.kernels),
        layouts=len(shaders.layouts), bindings=max([bindings for bindings, _ in shaders.layouts], default=1),
        sets=sizes.sets, tables=sizes.tables,
    )  # fmt: skip


def _tables(program: VulkanProgram) -> str:
    """The tables of recordings, and of the layouts of descriptor sets."""
    rows: list[str] = []
    layouts: list[str] = []
    first = 0
    known = program.shaders.layouts
    for row in program.tables:
        values = (first, row.count, row.slots, row.sizes, len(layouts), len(row.layouts))
        rows.append(f"  {{{', '.join(map(str, values))}}}")
        layouts += [str(known.index(layout)) for layout in row.layouts] * row.count
        first += row.count
    parts = [table("recording_row recordings", rows)] if rows else []
    parts += ["/* The layout of each descriptor set. */"]
    return "\n".join([*parts, table("uint32_t set_layouts", [f"  {', '.join(layouts)}"] if layouts else ["  0"])])


def _calls(program: VulkanProgram, export: Export) -> str:
    """The functions that the app calls for an export."""
    n, suffix, given = program.name, export.suffix, program.interface.parameters(export)
    checks = "\n".join(program._checks(export))
    return f"""{_call(program, export, f"static int call{suffix}({given})")}
int {n}_run{suffix}({given})
{{
{checks}
  return call{suffix}({", ".join(["context", *export.kinds])});
}}

{_submit(program, export)}"""


def _call(program: VulkanProgram, export: Export, head: str) -> str:
    """The function that copies inputs to memory of the device, executes, and copies outputs back."""
    n, lines = program.name, list[str]()
    place = {"inputs": "in", "outputs": "out"}
    for kind, row in export.fields:
        bytes, at = range_bytes(kind, row), f"{place[kind]}.{row.name}"
        if kind == "outputs" and "inputs_end" not in "\n".join(lines):
            lines.append("  inputs_end = end;")
        lines.append(f"  {checked(n, f'reserve(context, &end, {bytes}, &{at}.range)')}")
        if row.is_dynamic:
            lines.append(f"  memcpy({at}.sizes, {kind}->{row.name}.sizes, sizeof {at}.sizes);")
        if kind == "inputs":
            lines.append(f"  give(context, {at}.range, {kind}->{row.name}.data, {bytes});")
    if not export.outputs:
        lines.append("  inputs_end = end;")
    declared = [f"  {n}_{one[:-1]}_ranges{export.suffix} {place[one]};" for one in export.kinds]
    given = ", ".join(["context", *(f"&{place[kind]}" for kind in export.kinds)])
    lines += [
        "  if (context->is_staged && !context->is_rehearsal)",
        "    status = transfer(context, TRANSFER_IN, context->host.range, context->local.range, inputs_end);",
        f"  if (status == {n}_OK)", f"    status = execute{export.suffix}({given});",
        "  if (context->is_rehearsal)", "    return status;",
        f"  if (status == {n}_OK && context->is_staged)",
        "    status = transfer(context, TRANSFER_OUT, at(context->local.range, (int64_t)inputs_end),",
        "                      at(context->host.range, (int64_t)inputs_end), end - inputs_end);",
        f"  if (status == {n}_OK)", "    status = complete(context);",
        f"  if (status != {n}_OK)", "    return status;",
    ]  # fmt: skip
    lines += [
        f"  take(context, out.{row.name}.range, outputs->{row.name}.data, {range_bytes('outputs', row)});"
        for row in export.outputs
    ]
    begin = ["  VkDeviceSize end = 0, inputs_end;", f"  int status = {n}_OK;", "  begin_call(context, NULL);"]
    return "\n".join([f"{head}\n{{", *declared, *begin, *lines, f"  return {n}_OK;", "}\n"])


def _submit(program: VulkanProgram, export: Export) -> str:
    n, suffix = program.name, export.suffix
    given = f"{range_parameters(n, export)}, const {n}_sync *sync"
    lines = ["  int status;", "  if (context == NULL || !context->is_ready)", f"    return {n}_ERROR_CONTEXT;"]
    lines += [f"  if (sync != NULL && sync->wait_count > {n}_MOST_WAITS)", f"    return {n}_ERROR_SYNC;"]
    for kind in export.kinds:
        lines += [f"  if ({kind} == NULL)", f"    return {n}_ERROR_DATA;"]
    for kind, row in export.fields:
        if not row.is_dynamic and not prod(row.type.shape):
            continue
        at = f"{kind}->{row.name}.range"
        lines += [f"  if ({at}.buffer == VK_NULL_HANDLE || {at}.offset % context->alignment != 0)"]
        lines += [f"    return {n}_ERROR_DATA;"]
    call = f"execute{suffix}({', '.join(['context', *export.kinds])})"
    lines += ["  begin_call(context, sync);", f"  status = {call};"]
    lines += [f"  if (status == {n}_OK)", "    status = flush(context, 1);", "  context->sync = NULL;"]
    return "\n".join([f"int {n}_submit{suffix}({given})\n{{", *lines, "  return status;", "}\n"])
