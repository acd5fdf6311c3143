"""The main operations of real programs on Vulkan, compared with IREE's Vulkan output for the same StableHLO text.

They are called heroes, as in docs/architecture.md. A row of `ROWS` is a JAX function with the arguments it is called
with. Its StableHLO text, as JAX writes it, is compiled by us (SPIR-V and OpenCL) and by IREE (`vulkan-spirv`, with
every set of `FLAGS`, of which the fastest counts). Weights are arguments, as in what JAX exports, so each call includes
the work that changes their layout. All arrays are on the device.

IREE runs as `iree-benchmark-module`, in a process of its own between our rounds, also without transfers. The time per
call that it reports counts; like ours it lasts from submission until the result is ready. Ratios are of the least
times. XLA on the CPU is shown next to PoCL for orientation: both run on the same two cores. All results are compared
with XLA's first. If no set of flags gives IREE the right result, it has no time (lavapipe leaves loops,
docs/decisions/loop-iterations.md).

    bench_heroes.py [--rounds N] [--no-iree] [group or row ...]
"""

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from harness import machine, measure, need, unit, versions

BIN = Path(sys.executable).parent
#: the sets of flags for iree-compile; the fastest counts
FLAGS = ((), ("--iree-opt-level=O3",), ("--iree-opt-level=O3", "--iree-opt-data-tiling"))
#: how often our block of rounds and IREE's alternate
ALTERNATIONS = 3
#: profile -> device
DEVICES = {"spirv": "vulkan", "opencl": "opencl"}

Array = np.ndarray[Any, np.dtype[Any]]
Shape = tuple[int, ...]


@dataclass(frozen=True)
class Row:
    """One benchmark: a JAX function of f32 arguments with these shapes."""

    group: str
    name: str
    function: Callable[..., Any]
    shapes: tuple[Shape, ...]

    @property
    def title(self) -> str:
        return f"{self.group} {self.name}"

    def arguments(self) -> list[Array]:
        rng = np.random.default_rng(0)
        return [rng.standard_normal(shape, np.float32) for shape in self.shapes]


def matmul(x: Any, y: Any) -> Any:
    return x @ y


def convolution(stride: int = 1, groups: int = 1) -> Callable[[Any, Any], Any]:
    """A convolution of NHWC images with HWIO weights, the order of Flax and of TensorFlow."""

    def apply(x: Any, w: Any) -> Any:
        from jax import lax

        order = ("NHWC", "HWIO", "NHWC")
        return lax.conv_general_dilated(
            x, w, (stride, stride), "SAME", dimension_numbers=order, feature_group_count=groups
        )

    return apply


def attention(q: Any, k: Any, v: Any) -> Any:
    """Scaled dot product attention with a causal mask, of batch x heads x tokens x width."""
    import jax
    import jax.numpy as jnp

    scores = jnp.einsum("bhqd,bhkd->bhqk", q, k) / jnp.sqrt(jnp.float32(q.shape[-1]))
    tokens = q.shape[-2]
    scores = jnp.where(jnp.tril(jnp.ones((tokens, tokens), bool)), scores, -jnp.inf)
    return jnp.einsum("bhqk,bhkd->bhqd", jax.nn.softmax(scores), v)


def of_numpy(name: str) -> Callable[..., Any]:
    """The function of `jax.numpy` (or softmax) with this name, looked up when it is called."""

    def apply(*arguments: Any, **options: Any) -> Any:
        import jax

        return getattr(jax.nn if name == "softmax" else jax.numpy, name)(*arguments, **options)

    return apply


def layer_norm(x: Any, scale: Any, offset: Any) -> Any:
    import jax.numpy as jnp

    mean, variance = jnp.mean(x, -1, keepdims=True), jnp.var(x, -1, keepdims=True)
    return (x - mean) / jnp.sqrt(variance + 1e-5) * scale + offset


ROWS = (
    Row("matmul", "128 x 128 x 128", matmul, ((128, 128), (128, 128))),
    Row("matmul", "512 x 512 x 512", matmul, ((512, 512), (512, 512))),
    Row("matmul", "1000 x 37 x 513", matmul, ((1000, 37), (37, 513))),
    Row("matmul", "1 x 768 x 3072", matmul, ((1, 768), (768, 3072))),
    Row("matmul", "12 x 128 x 64 x 128", matmul, ((12, 128, 64), (12, 64, 128))),
    Row("convolution", "ResNet 7x7/2, 224, 3 -> 64", convolution(2), ((1, 224, 224, 3), (7, 7, 3, 64))),
    Row("convolution", "ResNet 3x3, 56, 64 -> 64", convolution(), ((1, 56, 56, 64), (3, 3, 64, 64))),
    Row("convolution", "ResNet 3x3/2, 56, 64 -> 128", convolution(2), ((1, 56, 56, 64), (3, 3, 64, 128))),
    Row("convolution", "ResNet 1x1/2, 56, 64 -> 128", convolution(2), ((1, 56, 56, 64), (1, 1, 64, 128))),
    Row("convolution", "ResNet 3x3, 14, 256 -> 256", convolution(), ((1, 14, 14, 256), (3, 3, 256, 256))),
    Row("convolution", "MobileNet depthwise 3x3, 56, 128", convolution(1, 128), ((1, 56, 56, 128), (3, 3, 1, 128))),
    Row("convolution", "MobileNet 1x1, 56, 128 -> 128", convolution(), ((1, 56, 56, 128), (1, 1, 128, 128))),
    Row("attention", "1 x 12 x 128 x 64, causal", attention, ((1, 12, 128, 64),) * 3),
    Row("softmax", "128 x 1024", of_numpy("softmax"), ((128, 1024),)),
    Row("softmax", "12 x 128 x 128", of_numpy("softmax"), ((12, 128, 128),)),
    Row("layer norm", "512 x 768", layer_norm, ((512, 768), (768,), (768,))),
    Row("sort", "16384", of_numpy("sort"), ((1 << 14,),)),
    Row("sort", "262144", of_numpy("sort"), ((1 << 18,),)),
    Row("sort", "1000 x 100, rows", of_numpy("sort"), ((1000, 100),)),
    Row("scan", "cumsum 262144", of_numpy("cumsum"), ((1 << 18,),)),
    Row("reduce", "sum 10000000", of_numpy("sum"), ((10_000_000,),)),
    Row("reduce", "argmax 1000 x 1000", lambda x: of_numpy("argmax")(x, axis=-1), ((1000, 1000),)),
)


def close(got: Array, want: Array) -> bool:
    return np.allclose(got, want, rtol=1e-4, atol=1e-5 * np.abs(want).max())


class Peer:
    """A row by IREE: the module of the fastest flags whose result is right. `least` is infinite if there is none."""

    def __init__(self, text: str, arguments: Sequence[Array], want: Array, folder: Path) -> None:
        import iree.compiler

        self.inputs = [folder / f"{number}.npy" for number in range(len(arguments))]
        for path, array in zip(self.inputs, arguments, strict=True):
            np.save(path, array)
        found = []
        for number, flags in enumerate(FLAGS):
            self.module = folder / f"{number}.vmfb"
            self.module.write_bytes(
                iree.compiler.compile_str(
                    text, target_backends=["vulkan-spirv"], input_type="stablehlo", extra_args=list(flags)
                )
            )
            if close(self.result(folder / "result.npy"), want):
                found.append((self.seconds(), self.module))
        self.least, self.module = min(found, default=(float("inf"), self.module))

    def run(self, tool: str, *options: str) -> str:
        command = [BIN / tool, f"--module={self.module}", "--device=vulkan", "--function=main"]
        inputs = [f"--input=@{path}" for path in self.inputs]
        return subprocess.run([*command, *inputs, *options], capture_output=True, text=True, check=True).stdout

    def result(self, path: Path) -> Array:
        self.run("iree-run-module", f"--output=@{path}")
        result: Array = np.load(path)
        return result

    def seconds(self) -> float:
        """The least time of a call in two repetitions."""
        how = ["--benchmark_min_time=0.1s", "--benchmark_repetitions=2", "--benchmark_format=json"]
        text = self.run("iree-benchmark-module", *how)
        found = json.loads(text[text.index("{") :])["benchmarks"]
        scale = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0}
        return min(row["real_time"] * scale[row["time_unit"]] for row in found if row["run_type"] == "iteration")

    def measure(self) -> None:
        if self.least != float("inf"):
            self.least = min(self.least, self.seconds())


def candidates(
    row: Row, text: str, arguments: Sequence[Array], folder: Path
) -> tuple[dict[str, Callable[[], Any]], Array]:
    """A call on each of our devices and XLA's, all results checked against XLA's, and that result."""
    import jax

    from orchestrion import compiler, vm

    on_cpu, compiled = [jax.device_put(array) for array in arguments], jax.jit(row.function)
    want = np.asarray(compiled(*on_cpu))
    compiler.compile_to_file(text, folder / "row.fb", targets=list(DEVICES))
    found: dict[str, Callable[[], Any]] = {}
    for device in DEVICES.values():
        program = vm.load(folder / "row.fb", device=device, allow_native_code=True)
        given, out = [program.put(array) for array in arguments], program.put(np.zeros_like(want))
        if not close(np.asarray(program.main(*given, out=out)), want):
            raise SystemExit(f"{row.title}: {device} and XLA disagree")
        found[device] = lambda function=program.main, given=given, out=out: function(*given, out=out)
    found["xla"] = lambda: compiled(*on_cpu).block_until_ready()
    return found, want


def run(row: Row, rounds: int, with_iree: bool) -> dict[str, float]:
    """The least seconds of a call, by device. `iree` is infinite where IREE's result is wrong."""
    import jax

    arguments = row.arguments()
    text = jax.jit(row.function).lower(*arguments).as_text()
    with tempfile.TemporaryDirectory() as name:
        calls, want = candidates(row, text, arguments, Path(name))
        peer = Peer(text, arguments, want, Path(name)) if with_iree else None
        least = dict.fromkeys(calls, float("inf"))
        for _ in range(ALTERNATIONS):
            if peer is not None:
                peer.measure()
            for key, timing in measure(calls, calls=1, rounds=max(rounds // ALTERNATIONS, 1), warm_up=1).items():
                least[key] = min(least[key], *timing.rounds)
    if peer is None:
        return least
    return {**least, "iree": peer.least}


def selected(names: Sequence[str]) -> list[Row]:
    rows = [row for row in ROWS if not names or any(name in row.title for name in names)]
    if not rows:
        raise SystemExit(f"no row is called {' or '.join(names)}; groups are {', '.join({row.group for row in ROWS})}")
    return rows


def report(row: Row, least: dict[str, float]) -> None:
    vulkan, opencl, xla = least["vulkan"], least["opencl"], least["xla"]
    line = f"{row.title:<48} vulkan {unit(vulkan):>9}"
    if least.get("iree") == float("inf"):
        line += "  IREE wrong result"
    elif "iree" in least:
        line += f"  IREE {unit(least['iree']):>9}  ahead {least['iree'] / vulkan:6.2f}x"
    print(f"{line}   opencl {unit(opencl):>9}  XLA {unit(xla):>9}  {opencl / xla:6.2f}x of XLA", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description="heroes of real programs, f32, device-resident")
    parser.add_argument("rows", nargs="*", help="groups or rows, by a part of their title; all by default")
    parser.add_argument("--rounds", type=int, default=30, help="how often each candidate is timed")
    parser.add_argument("--json", metavar="FILE", help="also write the least times, in seconds")
    parser.add_argument("--no-iree", action="store_true", help="leave IREE out")
    options = parser.parse_args()
    need("jax", *(() if options.no_iree else ("iree-base-compiler", "iree-base-runtime")))
    print(f"{parser.description}\n{machine()}\n{versions('jax', 'iree-base-compiler', 'pyopencl', 'vulkan')}")
    every = {}
    for row in selected(options.rows):
        every[row.title] = run(row, options.rounds, not options.no_iree)
        report(row, every[row.title])
    if options.json:
        Path(options.json).write_text(json.dumps(every, indent=2) + "\n")


if __name__ == "__main__":
    main()
