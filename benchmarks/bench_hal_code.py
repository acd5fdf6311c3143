"""A warm call of what `vm-codegen --style=hal` writes, compared with the same call through the VM, on every device.

Arguments and results are on the device in both cases. Both calls make one submission and one wait, so they differ in
what the host does before and after. Expected before measuring: the code takes some microseconds less, since the VM
checks its limits, logs the call and finds the slots of arguments.
"""

import importlib.util
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from harness import EXAMPLES, arguments, measure, save, table

PROGRAMS = {"simple_mul": ("simple_mul", [(4,), (4,)]), "mlp": ("main", [(8, 32)])}
DEVICES = ("reference", "cpu", "opencl", "vulkan")


def generated(module: Path, name: str, folder: Path) -> Any:
    """The module that the command writes, imported."""
    subprocess.run(
        [sys.executable, "-m", "orchestrion.tools.codegen", module, "--style=hal", "-o", folder, "--quiet"], check=True
    )
    spec = importlib.util.spec_from_file_location(name, folder / f"{name}.py")
    assert spec is not None and spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


def candidates(module: Path, code: Any, export: str, arrays: list[Any], device: Any) -> dict[str, Callable[[], Any]]:
    """The same call through the VM and through the code, which give equal bits."""
    from orchestrion import vm

    loaded = vm.load(module, device=device.info.id, allow_native_code=True)
    function = loaded[export]
    inputs, out = [loaded.put(x) for x in arrays], loaded.empty(function(*arrays).shape, np.float32)
    program = code.create(device)
    method, views = getattr(program, export), [code.upload(device, x, code.F32) for x in arrays]
    result = method(*views)
    np.testing.assert_array_equal(result.read(), np.asarray(function(*inputs, out=out)))
    return {"VM": lambda: function(*inputs, out=out), "HAL code": lambda: method(*views, result)}


def main() -> None:
    options = arguments("warm call of generated HAL code and of the VM, arguments and results on the device")
    from orchestrion import compiler
    from orchestrion.hal.errors import DriverUnavailable
    from orchestrion.hal.policy import Policy
    from orchestrion.hal.registry import open_device

    random = np.random.default_rng(0)
    found = {}
    with tempfile.TemporaryDirectory() as place:
        for name, (export, shapes) in PROGRAMS.items():
            module = Path(place) / f"{name}.fb"
            compiler.compile_to_file(EXAMPLES / f"{name}.mlir", module)
            code = generated(module, name, Path(place) / name)
            arrays = [random.normal(size=shape).astype(np.float32) for shape in shapes]
            for kind in DEVICES:
                try:
                    device = open_device(kind, policy=Policy(allow_native_code=True))
                except DriverUnavailable as error:
                    print(f"\n{name} on {kind}: {error}")
                    continue
                timings = measure(candidates(module, code, export, arrays, device), 500, rounds=options.rounds)
                table(f"{name} on {kind} ({device.info.name})", timings, "VM")
                found |= {f"{name} {kind} {candidate}": timing for candidate, timing in timings.items()}
    save(options.json, found)


if __name__ == "__main__":
    main()
