"""Matrix products of f32 with arguments on the device: tiled, untiled, and by JAX and IREE on the CPU.

"untiled" is the same program with a schedule of one result per invocation, as all dots were compiled before there were
tiles.

Expected before the tiles were written: a sixth to a tenth of the untiled time on PoCL, a quarter to a third on lavapipe
(which loads lane by lane, so that only fewer loads help); JAX, which multiplies and adds in one instruction and packs
its operands, is two to five times as fast as PoCL.
"""

import re
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from harness import Timing, arguments, measure, need, ratio, save, table, versions

#: rows, depth, columns -> calls in a block: enough that the peers' thread pools are idle during most of them
SHAPES = {(128, 128, 128): 20, (512, 512, 512): 3, (1000, 37, 513): 5}

#: an invocation computes one result
UNTILED = "schedules = [#kernel.schedule<[bind(grid, invocation, 64)]>]"
#: profile, device
DEVICES = (("opencl", "opencl"), ("spirv", "vulkan"), ("reference", "reference"))


def text(rows: int, depth: int, columns: int) -> str:
    left, right, out = f"tensor<{rows}x{depth}xf32>", f"tensor<{depth}x{columns}xf32>", f"tensor<{rows}x{columns}xf32>"
    numbers = "#stablehlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>"
    return f"""
"func.func"() <{{sym_name = "dot", function_type = ({left}, {right}) -> {out}}}> ({{
^bb0(%x: {left}, %y: {right}):
  %r = "stablehlo.dot_general"(%x, %y) <{{dot_dimension_numbers = {numbers}}}> : ({left}, {right}) -> {out}
  "func.return"(%r) : ({out}) -> ()
}}) : () -> ()
"""


def ours(source: str, profile: str, device: str, x: np.ndarray, y: np.ndarray, tiled: bool) -> Callable[[], Any]:
    from orchestrion import vm
    from orchestrion.compiler import Compilation

    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "dot.fb"
        if tiled:
            Compilation(targets=(profile,)).write(source, path)
        else:
            lines = Compilation(targets=(profile,), encodings="none").text(source, "hl_seq")
            Compilation(start="hl_seq").write(re.sub(r"schedules = \[.*?>\]", UNTILED, lines), path)
        program = vm.load(path, device=device, allow_native_code=True)
    out = program.put(np.zeros((x.shape[0], y.shape[1]), np.float32))
    left, right, function = program.put(x), program.put(y), program.dot
    np.testing.assert_allclose(np.asarray(function(left, right, out=out)), x @ y, rtol=1e-4)
    return lambda: function(left, right, out=out)


def jax(x: np.ndarray, y: np.ndarray) -> Callable[[], Any]:
    import jax

    left, right = jax.device_put(x), jax.device_put(y)
    dot = jax.jit(lambda a, b: jax.numpy.matmul(a, b, precision="highest"))
    return lambda: dot(left, right).block_until_ready()


def iree(source: str, x: np.ndarray, y: np.ndarray) -> Callable[[], Any]:
    """A call in all threads (local-task). The synchronous export returns when the result is ready."""
    import iree.compiler
    import iree.runtime as rt

    blob = iree.compiler.compile_str(
        source,
        target_backends=["llvm-cpu"],
        input_type="stablehlo",
        extra_args=["--iree-llvmcpu-target-cpu=host", "--iree-opt-level=O3"],
    )
    config = rt.Config("local-task")
    context = rt.SystemContext(config=config)
    context.add_vm_module(rt.VmModule.copy_buffer(context.instance, blob))
    left, right = (rt.asdevicearray(config.device, array) for array in (x, y))
    function = context.modules.module.dot
    np.testing.assert_allclose(function(left, right).to_host(), x @ y, rtol=1e-4)
    return lambda: function(left, right)


def main() -> None:
    options = arguments("matrix products, f32, device-resident")
    need("jax", "iree-base-compiler", "iree-base-runtime")
    every: dict[str, Timing] = {}
    for shape, calls in SHAPES.items():
        rows, depth, columns = shape
        source, rng = text(*shape), np.random.default_rng(0)
        x, y = rng.random((rows, depth), np.float32), rng.random((depth, columns), np.float32)
        candidates = {"JAX, CPU": jax(x, y), "IREE, llvm-cpu, local-task": iree(source, x, y)}
        for profile, device in DEVICES:
            candidates[device] = ours(source, profile, device, x, y, tiled=True)
        for profile, device in DEVICES[:2]:
            candidates[f"{device}, untiled"] = ours(source, profile, device, x, y, tiled=False)
        timings = measure(candidates, calls=calls, rounds=options.rounds)
        name = " x ".join(map(str, shape))
        table(name, timings, "JAX, CPU", [versions("jax", "iree-base-runtime", "pyopencl", "vulkan")])
        for _, device in DEVICES[:2]:
            least = min(timings[device].rounds) / min(timings["JAX, CPU"].rounds)
            print(f"  {device}: {least:.2f} times as long as JAX, least against least")
            print(f"  {device}: untiled takes {ratio(timings, f'{device}, untiled', device):.1f} times as long")
        every |= {f"{name}: {label}": timing for label, timing in timings.items()}
    save(options.json, every)


if __name__ == "__main__":
    main()
