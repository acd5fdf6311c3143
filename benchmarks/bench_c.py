"""Programs as C (`vm-codegen --style=c`), built by GCC and Clang, beside the device `cpu`, all with one thread.

Arguments and results are NumPy arrays. Expected before measuring: the same times within a third, since the kernels and
schedules are the same; C ahead on short calls, which cost no more than their kernels; GCC behind where Clang vectorizes
more.
"""

import ctypes
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ["ORCHESTRION_THREADS"] = "1"

import numpy as np
from bench_cpu import rows
from harness import Timing, arguments, measure, need, save, table, versions

COMPILERS = ("gcc", "clang")
FLAGS = ("-std=c99", "-O3", "-march=native", "-ffp-contract=off", "-shared", "-fPIC")


def generated(jitted: Any, values: list[Any], folder: Path) -> int:
    """Writes a program as C; returns the bytes of its memory."""
    from orchestrion.compiler.codegen.c.generate import files_of
    from orchestrion.compiler.codegen.c.program import ProgramText
    from orchestrion.compiler.driver import EMBEDDED, Compilation
    from orchestrion.compiler.sequencer.hl_seq import programs_of

    ir = Compilation(targets=("cpu",)).module(jitted.lower(*values), EMBEDDED)
    files = files_of(ProgramText(programs_of(ir)[0], "model"), "a function of JAX", {"weights": "array"})
    for name, text in files.items():
        assert isinstance(text, str)
        (folder / name).write_text(text)
    found = re.search(r"MEMORY_BYTES (\d+)", str(files["model.h"]))
    assert found is not None
    return int(found[1])


def built(command: str, folder: Path, memory_bytes: int, values: list[Any], like: list[Any]) -> Callable[[], Any]:
    """A call of a program that a compiler built; returns its results. `like`: arrays of their types."""
    library = folder / f"{command}.so"
    subprocess.run([command, *FLAGS, str(folder / "model.c"), "-o", str(library)], check=True)
    code = ctypes.CDLL(str(library))
    space = np.zeros(memory_bytes + 64, np.uint8)
    memory = ctypes.c_void_p((space.ctypes.data + 63) // 64 * 64)
    context = (ctypes.c_void_p * 16)()
    assert code.model_init(context, memory, ctypes.c_size_t(memory_bytes), None) == 0
    given = [np.ascontiguousarray(value) for value in values]
    results = [np.empty(one.shape, one.dtype) for one in like]
    inputs = (ctypes.c_void_p * len(given))(*(value.ctypes.data for value in given))
    outputs = (ctypes.c_void_p * len(results))(*(result.ctypes.data for result in results))

    def call() -> Any:
        assert code.model_run(context, inputs, outputs) == 0
        return results

    call.kept = (space, given, inputs, outputs)  # type: ignore[attr-defined]  # alive as long as the call
    return call


def variants(function: Callable[..., Any], values: list[Any], folder: Path) -> dict[str, Callable[[], object]]:
    """Calls of the function on the device and as C, which agree."""
    import jax

    from orchestrion import compiler, vm

    jitted = jax.jit(function)
    program = vm.load(compiler.compile(jitted, *values, targets=["cpu"]), device="cpu")
    found_results = program.main(*values)
    want = list(found_results) if isinstance(found_results, tuple) else [found_results]
    found: dict[str, Callable[[], object]] = {"cpu": lambda: program.main(*values)}
    memory_bytes = generated(jitted, values, folder)
    for command in filter(shutil.which, COMPILERS):
        call = built(command, folder, memory_bytes, values, want)
        for got, wanted in zip(call(), want, strict=True):
            np.testing.assert_array_equal(got, wanted)
        found[command] = call
    return found


def main() -> None:
    options = arguments(__doc__ or "")
    need("jax")
    all_timings: dict[str, Timing] = {}
    for title, (function, values) in rows().items():
        with tempfile.TemporaryDirectory() as folder:
            timings = measure(variants(function, values, Path(folder)), 1, options.rounds)
        table(title, timings, "cpu", [versions("jax", "llvmlite")])
        all_timings |= {f"{title}: {name}": timing for name, timing in timings.items()}
    save(options.json, all_timings)


if __name__ == "__main__":
    main()
