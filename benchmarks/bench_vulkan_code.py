"""A warm call of what `vm-codegen --style=vulkan` writes, beside the same call through the VM on the device vulkan.

Arguments and results are NumPy arrays. Both replay command buffers that were recorded before, so they differ in what
the host does before and after. Expected before measuring: C takes some microseconds less, which shows in small
programs; the work of the device is the same.
"""

import ctypes
import os
import re
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from harness import EXAMPLES, Timing, arguments, measure, save, table

PROGRAMS: dict[str, list[tuple[int, ...]]] = {
    "simple_mul": [(4,), (4,)],
    "mlp": [(8, 32)],
    "matmul_static": [(64, 128)],
    "spectral_norm": [(4, 4)],
}
#: C compiler and flags; `VULKAN` names the library to link
COMMAND = ("gcc", "-std=c99", "-O2", "-shared", "-fPIC")


def built(name: str, folder: Path) -> tuple[ctypes.CDLL, str]:
    """The program as a shared library, and its header."""
    from orchestrion.tools.codegen import main

    source = str(EXAMPLES / f"{name}.mlir")
    main([source, "--style=vulkan", "--machine=cpu", "--name=model", "-o", str(folder), "--quiet"])
    shim = Path(__file__).parent / "vulkan_shim.c"
    files = [str(shim), str(folder / "model.c"), "-I", str(folder), "-o", str(folder / "model.so")]
    subprocess.run([*COMMAND, *files, os.environ.get("VULKAN", "-lvulkan")], check=True)
    return ctypes.CDLL(str(folder / "model.so")), (folder / "model.h").read_text()


def number(header: str, name: str) -> ctypes.c_uint64:
    """A constant of a header."""
    found = re.search(rf"model_{name} (\d+)", header)
    assert found is not None
    return ctypes.c_uint64(int(found[1]))


def candidates(name: str, folder: Path) -> tuple[str, dict[str, Callable[[], Any]]]:
    """The name of the device, and the calls, which give equal bits."""
    from orchestrion import compiler, vm

    random = np.random.default_rng(0)
    arrays = [random.normal(size=shape).astype(np.float32) for shape in PROGRAMS[name]]
    program = vm.load(compiler.compile(EXAMPLES / f"{name}.mlir", targets=["spirv"]), device="vulkan")
    (export,) = program.functions
    function = program[export]
    found = function(*arrays)
    want = [np.asarray(one) for one in (found if isinstance(found, tuple) else [found])]
    code, header = built(name, folder)
    device = program.device.info.name
    status = code.shim_open(device.encode(), number(header, "DEVICE_BYTES"), number(header, "HOST_BYTES"))
    assert status == 0, status
    results = [np.empty_like(one) for one in want]
    inputs = (ctypes.c_void_p * len(arrays))(*(one.ctypes.data for one in arrays))
    outputs = (ctypes.c_void_p * len(results))(*(one.ctypes.data for one in results))

    def call() -> None:
        assert code.shim_run(inputs, outputs) == 0

    call.kept = results  # type: ignore[attr-defined]  # alive as long as the call
    call()
    for got, wanted in zip(results, want, strict=True):
        np.testing.assert_array_equal(got, wanted)
    return device, {"VM": lambda: function(*arrays), "C": call}


def main() -> None:
    options = arguments(__doc__ or "")
    found: dict[str, Timing] = {}
    for name in PROGRAMS:
        with tempfile.TemporaryDirectory() as place:
            device, calls = candidates(name, Path(place))
            timings = measure(calls, 200, rounds=options.rounds)
        table(f"{name} on {device}", timings, "VM")
        found |= {f"{name} {candidate}": timing for candidate, timing in timings.items()}
    save(options.json, found)


if __name__ == "__main__":
    main()
