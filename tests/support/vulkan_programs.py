"""Programs in C that `vm-codegen --style=vulkan` wrote: compiled, and called in a process of their own, on the first
device of the loader and with its validation layer.

A main function reads the inputs from files, runs the program twice, submits it twice on buffers of its own, between
timeline semaphores, and writes the outputs to files. It fails if the validation layer says anything.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from c_programs import _MAIN, STRICT, Array, CProgram, _bytes, _read

from orchestrion.compiler.codegen.c.interface import Export
from orchestrion.compiler.codegen.subject import Subject
from orchestrion.compiler.codegen.vulkan.generate import chosen, files_of
from orchestrion.compiler.codegen.vulkan.program import VulkanProgram
from orchestrion.compiler.driver import EMBEDDED, Compilation
from orchestrion.schema.module import Module

SUPPORT = Path(__file__).parent
#: part of the name of the device that is used; the HAL's device vulkan:0 is the same
DEVICE_NAME = "llvmpipe"
#: what the linker needs
LINKED = ("-l:libvulkan.so.1",)

_OPEN = """
#include "vulkan_device.h"
#if !defined(LACKING)
#define LACKING 0
#endif
#include "{n}.h"

/* Bits of the features that the device has. */
static uint32_t features_of(const opened *o)
{{
  return ({n}_TIMELINE | {n}_FLOAT_CONTROLS |
         (o->features12.shaderInt8 && o->features12.storageBuffer8BitAccess ? {n}_INT8 : 0) |
         (o->features.features.shaderInt16 && o->features11.storageBuffer16BitAccess ? {n}_INT16 : 0) |
         (o->features.features.shaderInt64 ? {n}_INT64 : 0) | (o->features.features.shaderFloat64 ? {n}_FLOAT64 : 0)) &
         ~(uint32_t)LACKING;
}}

static {n}_gpu gpu_of(const opened *o)
{{
  {n}_gpu gpu;
  memset(&gpu, 0, sizeof gpu);
  gpu.get_instance_proc_addr = instance_function;
  gpu.instance = o->instance;
  gpu.physical_device = o->physical;
  gpu.device = o->device;
  gpu.queue = o->queue;
  gpu.queue_family = o->family;
  gpu.features = features_of(o);
  gpu.device_bytes = {n}_DEVICE_BYTES;
  gpu.host_bytes = {n}_HOST_BYTES;
  return gpu;
}}

"""


@dataclass
class VulkanCProgram(CProgram):
    """A program in C that calls Vulkan, in a folder. `device`: part of the name of the device that runs it."""

    device: str = DEVICE_NAME

    def __call__(self, *arrays: Array, runner: Sequence[str] = (), order: str = "<") -> list[Array]:
        named = ("env", f"DEVICE_NAME={self.device}")
        return super().__call__(*arrays, runner=(*named, *runner), order=order)

    def opening(self) -> str:
        """The text of functions that open a device for the program."""
        return _OPEN.format(n=self.name)

    def build(self, *command: str) -> VulkanCProgram:
        (self.folder / "main.c").write_text(self._main(self.exports[0]))
        return self.compile(*command)

    def compile(self, *command: str) -> VulkanCProgram:
        """Compiles the program and `main.c`. Raises CalledProcessError."""
        self.write()
        self.binary = self.folder / f"program{len(list(self.folder.glob('program*')))}"
        files = [str(self.folder / "main.c"), str(self.folder / f"{self.name}.c"), "-I", str(SUPPORT)]
        done = subprocess.run(
            [*command, *files, "-o", str(self.binary), *LINKED], capture_output=True, text=True, timeout=600
        )
        assert done.returncode == 0, done.stderr[:4000]
        return self

    def _main(self, export: Export) -> str:
        n = self.name
        run = ["&context"] + ["&inputs"] * bool(export.inputs) + ["&outputs"] * bool(export.outputs)
        lines = [*(line for number, row in enumerate(export.inputs) for line in _read(number, row))]
        lines += ["opened o;", f"{n}_gpu gpu;", "(void)memory_bytes; (void)aligned;", "open_device(&o);"]
        lines += ["gpu = gpu_of(&o);", 'pretended = getenv("PRETENDED") ? getenv("PRETENDED") : "";']
        if export.is_dynamic:
            sized = ["&inputs", *["&outputs"] * any(row.is_dynamic for row in export.outputs)]
            sized += ["&gpu.device_bytes", "&gpu.host_bytes"]
            lines += [f"if ((status = {n}_sizes({', '.join(sized)})) != 0)", "  return status;"]
        for row in export.outputs:
            lines.append(f"outputs.{row.name}.data = ({row.element} *)malloc({_bytes('outputs', row)} + 1);")
            printed = [f"(long)outputs.{row.name}.sizes[{i}]" for i in range(len(row.type.shape))]
            text = " ".join(["%ld"] * len(printed)) if row.is_dynamic else " ".join(map(str, row.type.shape))
            lines.append(
                f"printf({', '.join([f'{chr(34)}{text}{chr(92)}n{chr(34)}', *(printed if row.is_dynamic else [])])});"
            )
        if f"{n}.weights" in self.files:
            lines.append(f'weights = read_file("{n}.weights", {n}_WEIGHTS_BYTES);')
        lines += [f"if ((status = {n}_init(&context, &gpu, weights)) != 0) {{", *_failed(n)]
        lines += ["for (call = 0; call < 2; ++call) {", "  char name[32];"]
        lines += [f"  if ((status = {n}_run({', '.join(run)})) != 0) {{", *_failed(n)]
        for number, row in enumerate(export.outputs):
            lines += [f'  sprintf(name, "out{number}_%d", call);']
            lines += [f"  write_file(name, outputs.{row.name}.data, {_bytes('outputs', row)});"]
        lines += ["  (void)name;", "}"]
        text = _MAIN.format(
            n=n,
            threads=_OPEN.format(n=n),
            inputs=f"static {n}_inputs inputs;" if export.inputs else "",
            outputs=f"static {n}_outputs outputs;" if export.outputs else "",
            body="\n".join(f"  {line}" for line in lines),
        )
        return text.replace(
            f"{n}_fini(&context);\n  return 0;", f"{n}_fini(&context);\n  return close_device(&o);"
        ).replace(f"size_t memory_bytes = {n}_MEMORY_BYTES;", "size_t memory_bytes = 0;")


def _failed(n: str) -> Sequence[str]:
    return (
        f'  fprintf(stderr, "%s, %d\\n", {n}_error_text(status), (int)context.result);',
        "  return status;",
        "}",
    )


def _no_module() -> Module:
    raise AssertionError("style vulkan renders IR")


def vulkan_program(
    source: Any, folder: Path, name: str = "model", start: str = "input", machine: str = "cpu", **options: str
) -> VulkanCProgram:
    """A program as C that calls Vulkan. `source`: what `compiler.compile` takes, of the phase `start`.

    Raises CompileError.
    """
    if not Path("/usr/include/vulkan/vulkan.h").exists() or shutil.which("gcc") is None:
        pytest.skip("gcc or the headers of Vulkan are not installed")
    job = Compilation(targets=("spirv",), start=start, machines=(machine,))
    given = {"weights": "array", "limits": "usual", "machine": machine, **options}
    subject = Subject(f"{name}.mlir", _no_module, lambda: job.module(source, EMBEDDED))
    program = VulkanProgram(chosen(subject, given), name)
    files = files_of(program, subject.source, given)
    folder.mkdir(parents=True, exist_ok=True)
    return VulkanCProgram(folder, name, files, program.interface.exports)


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
