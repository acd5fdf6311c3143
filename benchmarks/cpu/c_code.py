"""Rows as C of `vm-codegen --style=c`, built by a compiler as a shared library, with one thread.

A call runs the program on the arrays of the row in place. The weights are a file that the process reads.
"""

import ctypes
import re
import subprocess
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from peers import PEERS, Call, lowered
from rows import Program

from orchestrion.schema.dtypes import BY_NAME

COMPILERS = {"C, GCC": "gcc", "C, Clang": "clang"}
FLAGS = ("-std=c99", "-O3", "-march=native", "-ffp-contract=off", "-shared", "-fPIC")
ALIGNMENT = 64


def written(source: Any, folder: Path, weights: str) -> Any:
    """Writes a program as C; returns its only export. `weights`: as the option of `vm-codegen`."""
    from orchestrion.compiler.codegen.c.generate import files_of
    from orchestrion.compiler.codegen.c.program import ProgramText
    from orchestrion.compiler.driver import EMBEDDED, Compilation
    from orchestrion.compiler.sequencer.hl_seq import programs_of

    ir = Compilation(targets=("cpu",)).module(source, EMBEDDED)
    text = ProgramText(programs_of(ir)[0], "model")
    for name, content in files_of(text, "a function of JAX", {"weights": weights}).items():
        (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    return text.interface.exports[0]


def aligned(bytes: int, data: bytes = b"") -> np.ndarray[Any, Any]:
    """An array of bytes at an address that the code accepts, which begins with some data."""
    space = np.zeros(bytes + ALIGNMENT, np.uint8)
    start = -space.ctypes.data % ALIGNMENT
    space[start : start + len(data)] = np.frombuffer(data, np.uint8)
    return space[start : start + bytes]


def c_code(command: str, program: Program, threads: int) -> Call | None:
    """A call of the row as C; None with several threads."""
    if threads > 1:
        return None
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        export = written(lowered(program), folder, "file")
        subprocess.run([command, *FLAGS, "model.c", "-o", "model.so"], cwd=folder, check=True)
        code = ctypes.CDLL(str(folder / "model.so"))
        header = (folder / "model.h").read_text()
        found = {key: int(value) for key, value in re.findall(r"define model_(\w+_BYTES) (\d+)u", header)}
        data = (folder / "model.weights").read_bytes() if found["WEIGHTS_BYTES"] else b""
    memory, weights = aligned(found["MEMORY_BYTES"]), aligned(len(data), data)
    context = (ctypes.c_void_p * 16)()
    inputs = [np.ascontiguousarray(x) for x in program.inputs]
    outputs = [np.empty(row.type.shape, BY_NAME[str(row.seen.element)].numpy) for row in export.outputs]
    given = [(ctypes.c_void_p * len(arrays))(*(x.ctypes.data for x in arrays)) for arrays in (inputs, outputs)]
    size = ctypes.c_size_t(memory.nbytes)
    if code.model_init(context, ctypes.c_void_p(memory.ctypes.data), size, ctypes.c_void_p(weights.ctypes.data)):
        raise RuntimeError("the program refuses its memory or its weights")

    def call(kept: Any = (memory, weights, inputs)) -> Any:
        if code.model_run(context, *given):
            raise RuntimeError("the program refuses its arguments")
        return outputs

    return call


#: like `PEERS`
CODE: dict[str, tuple[tuple[str, ...], Callable[[Program, int], Call | None]]] = {
    name: ((), partial(c_code, command)) for name, command in COMPILERS.items()
}
EVERY = PEERS | CODE
