"""C of `vm-codegen --style=c`: sizes without weights, memory, and the times of init and of the first call from `main`.

The programs are an MLP in floats and the quantized classifier of digits of `examples/microcontroller`. Each first call
is that of a new process; weights are an array of the program, whose pages the call is the first to read. Expected
before measuring: less than 1 ms for init and first call, since init only checks and sets pointers.

    bench_c_size.py [--processes N]
"""

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from math import prod
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent / "cpu"))

from harness import EXAMPLES, machine, unit

MLP = "MLP 784-256-128-10, 32 rows"
PROGRAMS = (MLP, "digits, int8")
#: flags -> what the column says
BUILDS = {"-Os": ("-Os",), "-O3, native": ("-O3", "-march=native")}
COMMON = ("gcc", "-std=c99", "-ffp-contract=off")
_MAIN = """#define _POSIX_C_SOURCE 199309L
#include <stdio.h>
#include <time.h>
#include "model.h"

static double now(void)
{{
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}}

static unsigned char memory[model_MEMORY_BYTES + 1] __attribute__((aligned(64)));
{buffers}

int main(void)
{{
  static model_context context;
  static const void *const inputs[] = {{{inputs}}};
  static void *const outputs[] = {{{outputs}}};
  double start = now(), ready, done, again;
  if (model_init(&context, memory, sizeof memory, NULL))
    return 1;
  ready = now();
  if (model_run(&context, (const void *)inputs, (const void *)outputs))
    return 2;
  done = now();
  if (model_run(&context, (const void *)inputs, (const void *)outputs))
    return 3;
  again = now();
  printf("%.9f %.9f %.9f %u %u %u\\n", ready - start, done - ready, again - done, (unsigned)model_WEIGHTS_BYTES,
         (unsigned)model_MEMORY_BYTES, (unsigned)sizeof context);
  return 0;
}}
"""


def write(name: str, folder: Path) -> None:
    """Writes a program as C with its weights, and a main function."""
    from c_code import written
    from peers import lowered
    from rows import ROWS

    if name == MLP:
        source: Any = next(lowered(row.make()) for row in ROWS if row.name == name)
    else:
        source = (EXAMPLES / "microcontroller" / "digits.mlir").read_text()
    export = written(source, folder, "array")
    buffers, names = [], []
    for letter, fields in (("x", export.inputs), ("y", export.outputs)):
        names.append([f"{letter}{number}" for number in range(len(fields))])
        sizes = [prod(field.seen.shape) * field.itemsize for field in fields]
        buffers += [
            f"static unsigned char {one}[{size}] __attribute__((aligned(64)));"
            for one, size in zip(names[-1], sizes, strict=True)
        ]
    inputs, outputs = map(", ".join, names)
    (folder / "main.c").write_text(_MAIN.format(buffers="\n".join(buffers), inputs=inputs, outputs=outputs))


def row(name: str, processes: int) -> list[str]:
    """The cells of a program."""
    with tempfile.TemporaryDirectory() as text:
        folder = Path(text)
        write(name, folder)
        cells, numbers = [], []
        for flags in BUILDS.values():
            run([*COMMON, *flags, "-c", "model.c"], folder)
            run([*COMMON, *flags, "main.c", "model.o", "-o", "program"], folder)
            numbers = [run(["./program"], folder).split() for _ in range(processes)]
            code = int(run(["size", "model.o"], folder).splitlines()[1].split()[0])
            cells.append(f"{code - int(numbers[0][3]):,}")
    init, first, second = (sorted(float(line[column]) for line in numbers)[processes // 2] for column in range(3))
    weights, memory, context = (int(number) for number in numbers[0][3:])
    return [name, *cells, f"{weights:,}", f"{memory:,} + {context}", *(unit(x) for x in (init, first, second))]


def run(command: Sequence[str], folder: Path) -> str:
    """The output of a command."""
    return subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True).stdout


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--processes", type=int, default=11, help="new processes per build")
    options = parser.parse_args()
    print(machine())
    heads = ["", *(f"code and tables, {build}" for build in BUILDS), "weights", "memory + context"]
    heads += ["init", "first call", "second call"]
    print(f"| {' | '.join(heads)} |\n{'| --- ' * len(heads)}|")
    for name in PROGRAMS:
        print(f"| {' | '.join(row(name, options.processes))} |", flush=True)


if __name__ == "__main__":
    main()
