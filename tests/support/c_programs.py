"""Programs in C that `vm-codegen --style=c` wrote: compiled, and called in a process of their own.

A main function reads the inputs from files, runs the program twice, and writes the outputs of both calls to files.
"""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from orchestrion.compiler.codegen.c.generate import files_of
from orchestrion.compiler.codegen.c.interface import Export, Field
from orchestrion.compiler.codegen.c.program import ProgramText
from orchestrion.compiler.driver import EMBEDDED, Compilation
from orchestrion.compiler.sequencer.hl_seq import programs_of
from orchestrion.schema.dtypes import BY_NAME

Array = npt.NDArray[Any]
#: flags with which generated code must compile, without a warning
STRICT = ("-std=c99", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-ffp-contract=off")
#: flags of C++, without those of C
PLUS_PLUS = ("-x", "c++", "-std=c++11", *STRICT[1:])

_MAIN = """
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "{n}.h"

static void *read_file(const char *name, size_t bytes)
{{
  FILE *file = fopen(name, "rb");
  char *data = (char *)malloc(bytes + 1);
  if (file == NULL || fread(data, 1, bytes, file) != bytes)
    exit(90);
  fclose(file);
  return data;
}}

static void write_file(const char *name, const void *data, size_t bytes)
{{
  FILE *file = fopen(name, "wb");
  if (file == NULL || fwrite(data, 1, bytes, file) != bytes)
    exit(91);
  fclose(file);
}}

static void *aligned(size_t bytes)
{{
  static char *kept[4];
  static int count;
  char *data = kept[count++] = (char *)malloc(bytes + 128);
  return data + (64 - (size_t)data % 64);
}}

{threads}

int main(int argc, char **argv)
{{
  static {n}_context context;
  {inputs}
  {outputs}
  size_t memory_bytes = {n}_MEMORY_BYTES;
  const void *weights = NULL;
  int at = 1, status, call;
  (void)argc; (void)argv; (void)at; (void)read_file; (void)write_file;
{body}
  {n}_fini(&context);
  return 0;
}}
"""

_THREADS = """#include <pthread.h>

typedef struct { {n}_task *task; void *data; size_t begin, end; } part;

static void *run_part(void *data)
{
  const part *p = (const part *)data;
  if (p->begin < p->end)
    p->task(p->data, p->begin, p->end);
  return NULL;
}

static void parallel_for(void *user, size_t count, {n}_task *task, void *data)
{
  pthread_t threads[3];
  part parts[3];
  size_t i;
  ++*(int *)user;
  for (i = 0; i < 3; ++i) {
    parts[i].task = task;
    parts[i].data = data;
    parts[i].begin = count * i / 3;
    parts[i].end = count * (i + 1) / 3;
    pthread_create(&threads[i], NULL, run_part, &parts[i]);
  }
  for (i = 0; i < 3; ++i)
    pthread_join(threads[i], NULL);
}
"""


@dataclass
class CProgram:
    """A program in C in a folder. `threads`: its calls use a `parallel_for` with three threads."""

    folder: Path
    name: str
    files: Mapping[str, str | bytes]
    exports: Sequence[Export]
    threads: bool = False
    binary: Path = field(init=False)

    def write(self) -> None:
        """Writes the generated files."""
        for name, content in self.files.items():
            (self.folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())

    def build(self, *command: str) -> CProgram:
        """Compiles the program and a main function for its only export. Raises CalledProcessError."""
        (self.folder / "main.c").write_text(self._main(self.exports[0]))
        self.write()
        self.binary = self.folder / f"program{len(list(self.folder.glob('program*')))}"
        files = [str(self.folder / "main.c"), str(self.folder / f"{self.name}.c")]
        done = subprocess.run(
            [*command, *files, "-o", str(self.binary), *(["-pthread"] if self.threads else [])],
            capture_output=True, text=True, timeout=600,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr[:4000]
        return self

    def __call__(self, *arrays: Array, runner: Sequence[str] = (), order: str = "<") -> list[Array]:
        """The results of the first call; the second one gave the same. `runner`: a command that runs the binary."""
        export = self.exports[0]
        sizes: list[str] = []
        for number, (given, row) in enumerate(zip(arrays, export.inputs, strict=True)):
            itemsize = row.itemsize
            assert (
                given.dtype == BY_NAME[str(row.seen.element)].numpy
                and given.shape == tuple(row.seen.shape)
                or row.is_dynamic
            )
            swapped = np.ascontiguousarray(given).reshape(-1).view(f"<u{itemsize}").astype(f"{order}u{itemsize}")
            (self.folder / f"in{number}").write_bytes(swapped.tobytes())
            shape = given.shape if row.seen.shape == row.type.shape else (*given.shape, 2)
            sizes += map(str, shape if row.is_dynamic else ())
        done = subprocess.run(
            [*runner, str(self.binary), *sizes], cwd=self.folder, capture_output=True, text=True, timeout=600
        )
        assert done.returncode == 0, (done.returncode, done.stdout[-500:], done.stderr[-3000:])
        shapes = [tuple(map(int, line.split())) for line in done.stdout.splitlines()]
        found = []
        for number, (row, shape) in enumerate(zip(export.outputs, shapes, strict=True)):
            first, second = ((self.folder / f"out{number}_{call}").read_bytes() for call in (0, 1))
            assert first == second, f"the second call gives another result {number}"
            data = np.frombuffer(first, f"{order}u{row.itemsize}").astype(f"<u{row.itemsize}")
            seen = shape if row.seen.shape == row.type.shape else shape[:-1]
            found.append(data.view(BY_NAME[str(row.seen.element)].numpy).reshape(seen))
        return found

    def _main(self, export: Export) -> str:
        n = self.name
        run = ["&context"] + ["&inputs"] * bool(export.inputs) + ["&outputs"] * bool(export.outputs)
        lines = [*(line for number, row in enumerate(export.inputs) for line in _read(number, row))]
        if export.is_dynamic:
            sized = ["&inputs", *["&outputs"] * any(row.is_dynamic for row in export.outputs), "&memory_bytes"]
            lines += [f"if ((status = {n}_sizes({', '.join(sized)})) != 0)", "  return status;"]
        if self.threads:
            lines += [f"memory_bytes += 2 * {n}_PART_BYTES;"]
        for row in export.outputs:
            lines.append(f"outputs.{row.name}.data = ({row.element} *)malloc({_bytes('outputs', row)} + 1);")
            printed = [f"(long)outputs.{row.name}.sizes[{i}]" for i in range(len(row.type.shape))]
            text = " ".join(["%ld"] * len(printed)) if row.is_dynamic else " ".join(map(str, row.type.shape))
            lines.append(
                f"printf({', '.join([f'{chr(34)}{text}{chr(92)}n{chr(34)}', *(printed if row.is_dynamic else [])])});"
            )
        if f"{n}.weights" in self.files:
            lines.append(
                f'weights = memcpy(aligned({n}_WEIGHTS_BYTES), read_file("{n}.weights", {n}_WEIGHTS_BYTES), '
                f"{n}_WEIGHTS_BYTES);"
            )
        lines += [
            "{", "  void *memory = aligned(memory_bytes);", "  memset(memory, 0xA5, memory_bytes);",
            f"  if ((status = {n}_init(&context, memory, memory_bytes, weights)) != 0)", "    return status;", "}",
        ]  # fmt: skip
        lines += ["for (call = 0; call < 2; ++call) {", "  int count = 0;", "  char name[32];"]
        if self.threads:
            lines += [
                f"  if ((status = {n}_use_threads(&context, parallel_for, &count, 3)) != 0)",
                "    return status;",
            ]
        lines += [f"  if ((status = {n}_run({', '.join(run)})) != 0) {{"]
        lines += [f'    fprintf(stderr, "%s\\n", {n}_error_text(status));', "    return status;", "  }"]
        for number, row in enumerate(export.outputs):
            lines += [f'  sprintf(name, "out{number}_%d", call);']
            lines += [f"  write_file(name, outputs.{row.name}.data, {_bytes('outputs', row)});"]
        lines += ["  (void)count; (void)name;", "}"]
        return _MAIN.format(
            n=n,
            threads=_THREADS.replace("{n}", n) if self.threads else "",
            inputs=f"static {n}_inputs inputs;" if export.inputs else "",
            outputs=f"static {n}_outputs outputs;" if export.outputs else "",
            body="\n".join(f"  {line}" for line in lines),
        )


def _read(number: int, row: Field) -> list[str]:
    sizes = range(len(row.type.shape)) if row.is_dynamic else ()
    lines = [f"inputs.{row.name}.sizes[{axis}] = atol(argv[at++]);" for axis in sizes]
    return [*lines, f'inputs.{row.name}.data = ({row.element} *)read_file("in{number}", {_bytes("inputs", row)});']


def _bytes(kind: str, row: Field) -> str:
    factors = [f"{kind}.{row.name}.sizes[{i}]" if row.is_dynamic else str(n) for i, n in enumerate(row.type.shape)]
    return " * ".join([f"sizeof(*{kind}.{row.name}.data)", *(f"(size_t){factor}" for factor in factors)])


def c_program(
    source: Any,
    folder: Path,
    name: str = "model",
    threads: bool = False,
    start: str = "input",
    **options: str,
) -> CProgram:
    """A program as C. `source`: what `compiler.compile` takes, of the phase `start`. Raises CompileError."""
    ir = Compilation(targets=("cpu",), start=start).module(source, EMBEDDED)
    (found,) = (program for program in programs_of(ir) if program.profile == "cpu")
    program = ProgramText(found, name)
    files = files_of(program, f"{name}.mlir", {"weights": "array", **options})
    folder.mkdir(parents=True, exist_ok=True)
    return CProgram(folder, name, files, program.interface.exports, threads)
