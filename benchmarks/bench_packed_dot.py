"""Matrix products of f32 with packed operands (in tiles), compared with row-major order and with IREE's output for
Vulkan.

All arrays are on the device. "packed" encodes both operands in every call (`encodings="always"`); "weights" has the
right operand as a constant, which is encoded at load; "default" is what the compiler chooses. IREE runs as
`iree-benchmark-module`, in a process of its own between our rounds, also without transfers. The time per call that it
reports counts; like ours it lasts from submission until the result is ready. Ratios are of the least times.
"""

import json
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from harness import Timing, arguments, measure, need, save, table, versions

SHAPES = {(128, 128, 128): 20, (512, 512, 512): 3, (1000, 37, 513): 5}
#: profile, device
DEVICES = (("spirv", "vulkan"), ("opencl", "opencl"))
#: name -> the compiler's option `encodings`, and whether the right operand is a constant
KINDS = {
    "row-major": ("none", False),
    "packed": ("always", False),
    "default": ("default", False),
    "packed, weights": ("always", True),
}
#: the sets of flags for iree-compile; the fastest is printed
FLAGS = ((), ("--iree-opt-level=O3",), ("--iree-opt-level=O3", "--iree-opt-data-tiling"))
NUMBERS = "#stablehlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>"


def text(rows: int, depth: int, columns: int, constant: bool) -> str:
    left, right, out = f"tensor<{rows}x{depth}xf32>", f"tensor<{depth}x{columns}xf32>", f"tensor<{rows}x{columns}xf32>"
    flat = f"tensor<{depth * columns}xf32>"
    weights = f"""
  %i = "stablehlo.iota"() <{{iota_dimension = 0 : i64}}> : () -> {flat}
  %s = "stablehlo.sine"(%i) : ({flat}) -> {flat}
  %y = "stablehlo.reshape"(%s) : ({flat}) -> {right}"""
    given, extra = (f"(%x: {left})", weights) if constant else (f"(%x: {left}, %y: {right})", "")
    types = left if constant else f"{left}, {right}"
    return f"""
"func.func"() <{{sym_name = "dot", function_type = ({types}) -> {out}}}> ({{
^bb0{given}:{extra}
  %r = "stablehlo.dot_general"(%x, %y) <{{dot_dimension_numbers = {NUMBERS}}}> : ({left}, {right}) -> {out}
  "func.return"(%r) : ({out}) -> ()
}}) : () -> ()
"""


def operands(shape: tuple[int, int, int]) -> list[Any]:
    """The left and the right operand, f32."""
    rows, depth, columns = shape
    rng = np.random.default_rng(0)
    return [rng.random((rows, depth), np.float32), rng.random((depth, columns), np.float32)]


def ours(
    shape: tuple[int, int, int], profile: str, device: str, encodings: str, constant: bool = False
) -> Callable[[], Any]:
    from orchestrion import compiler, vm

    rows, depth, columns = shape
    x, y = operands(shape)
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "dot.fb"
        compiler.compile_to_file(text(*shape, constant), path, targets=[profile], encodings=encodings)
        program = vm.load(path, device=device, allow_native_code=True)
    out = program.put(np.zeros((rows, columns), np.float32))
    given = [program.put(x)] if constant else [program.put(x), program.put(y)]
    function = program.dot
    if constant:
        y = np.sin(np.arange(depth * columns, dtype=np.float32)).reshape(depth, columns)
    np.testing.assert_allclose(np.asarray(function(*given, out=out)), x @ y, rtol=1e-3, atol=1e-3)
    return lambda: function(*given, out=out)


def iree_seconds(module: Path, shape: tuple[int, int, int]) -> float:
    """The least time of a call in three repetitions."""
    rows, depth, columns = shape
    done = subprocess.run(
        [
            "iree-benchmark-module", f"--module={module}", "--device=vulkan", "--function=dot",
            f"--input={rows}x{depth}xf32=1", f"--input={depth}x{columns}xf32=1", "--benchmark_min_time=0.2s",
            "--benchmark_repetitions=3", "--benchmark_format=json",
        ],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    found = json.loads(done.stdout[done.stdout.index("{") :])["benchmarks"]
    scale = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0}
    return min(row["real_time"] * scale[row["time_unit"]] for row in found if row["run_type"] == "iteration")


def iree(shape: tuple[int, int, int], folder: Path) -> tuple[tuple[str, ...], Path]:
    """The flags whose module is fastest, and that module."""
    import iree.compiler

    best: tuple[float, tuple[str, ...], Path] | None = None
    for number, flags in enumerate(FLAGS):
        path = folder / f"{'x'.join(map(str, shape))}-{number}.vmfb"
        source = text(*shape, constant=False)
        path.write_bytes(
            iree.compiler.compile_str(
                source, target_backends=["vulkan-spirv"], input_type="stablehlo", extra_args=list(flags)
            )
        )
        seconds = iree_seconds(path, shape)
        if best is None or seconds < best[0]:
            best = seconds, flags, path
    assert best is not None
    return best[1], best[2]


def main() -> None:
    options = arguments("packed matrix products, f32, device-resident")
    need("iree-base-compiler", "iree-base-runtime")
    every: dict[str, Timing] = {}
    with tempfile.TemporaryDirectory() as folder:
        for shape, calls in SHAPES.items():
            flags, module = iree(shape, Path(folder))
            candidates = {}
            for profile, device in DEVICES:
                for kind, (encodings, constant) in KINDS.items():
                    candidates[f"{device}, {kind}"] = ours(shape, profile, device, encodings, constant)
            before = iree_seconds(module, shape)
            timings = measure(candidates, calls=calls, rounds=options.rounds)
            peer = min(before, iree_seconds(module, shape))
            name = " x ".join(map(str, shape))
            table(name, timings, "vulkan, row-major", [versions("iree-base-runtime", "pyopencl", "vulkan")])
            report(timings, peer, flags)
            every |= {f"{name}: {label}": timing for label, timing in timings.items()}
    save(options.json, every)


def report(timings: dict[str, Timing], peer: float, flags: tuple[str, ...]) -> None:
    """Print the ratios of the least times."""
    least = {name: min(timing.rounds) for name, timing in timings.items()}
    print(f"  IREE, vulkan-spirv, {' '.join(flags) or 'default flags'}: least {peer * 1e3:.3f} ms")
    for _, device in DEVICES:
        base = least[f"{device}, row-major"]
        for kind in list(KINDS)[1:]:
            print(f"  {device}, {kind}: {base / least[f'{device}, {kind}']:.2f} times as fast as row-major")
    for kind in KINDS:
        print(f"  vulkan, {kind}: {peer / least[f'vulkan, {kind}']:.2f} times as fast as IREE")


if __name__ == "__main__":
    main()
