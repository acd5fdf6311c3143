"""Products, convolutions, norms and two networks on a GPU: code for `--machine=gpu` and `--machine=cpu` on Vulkan and
OpenCL, beside XLA.

Each row is compiled once per device and machine, called with all arrays on the device, and compared with XLA's result
on the CPU first. XLA runs on the GPU where JAX has a CUDA device, else on the CPU: once with f32 products in full
(`highest`), which is what Orchestrion computes, and once as JAX does by default, which may round factors to TF32.

Columns: `call`, the least time of a warm call; `device`, the time of its launches by the timestamps of the device,
measured in calls of their own; GFLOP/s and GB/s of the device's time. The operations are those that XLA counts, the
bytes those of arguments, weights and results. XLA's device time is that of calls that are enqueued one after the other.
The last columns are our time over XLA's in full f32, of the device and of the call.

    bench_gpu.py [--device vulkan,opencl] [--machine gpu,cpu] [--seconds S] [--peak TFLOPS] [--bandwidth GB/s]
                 [--json FILE] [row ...]
"""

import argparse
import json
import os
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from bench_heroes import DEVICES, attention, convolution, layer_norm, matmul, of_numpy
from harness import EXAMPLES, machine, need, unit, versions

Array = np.ndarray[Any, np.dtype[Any]]
TARGETS = {device: target for target, device in DEVICES.items()}
MACHINES = ("gpu", "cpu")
#: profiled calls per row, and calls of XLA that are enqueued one after the other
PROFILED, ENQUEUED = 5, 20


@dataclass(frozen=True)
class Work:
    """A row: a function of arrays that makes one array."""

    title: str
    make: Callable[[], tuple[Callable[..., Any], list[Array]]]


@dataclass
class Found:
    """The times of a candidate, in seconds. `device` is 0 where it is not known."""

    call: float
    device: float = 0.0


@dataclass(frozen=True)
class Prepared:
    """The modules of a row by device and machine, its result by XLA on the CPU, and its operations by XLA's count."""

    title: str
    modules: dict[tuple[str, str], bytes]
    want: Array
    flops: float


def plain(function: Callable[..., Any], *shapes: tuple[int, ...]) -> Callable[[], Any]:
    def make() -> tuple[Callable[..., Any], list[Array]]:
        rng = np.random.default_rng(0)
        return function, [rng.standard_normal(shape, np.float32) for shape in shapes]

    return make


def resnet18(batch: int, width: int, side: int) -> Callable[[], Any]:
    def make() -> tuple[Callable[..., Any], list[Array]]:
        networks, rng = _networks(), np.random.default_rng(0)
        weights = networks.resnet18(rng, width=width)
        images = rng.standard_normal((batch, side, side, 3), np.float32)
        return lambda x: networks.apply_resnet18(weights, x), [images]

    return make


def transformer(layers: int, width: int, tokens: int) -> Callable[[], Any]:
    def make() -> tuple[Callable[..., Any], list[Array]]:
        networks, rng = _networks(), np.random.default_rng(0)
        weights = [networks.transformer_layer(rng, width) for _ in range(layers)]

        def apply(x: Any) -> Any:
            for p in weights:
                x = networks.apply_transformer_layer(p, x, width // 64)
            return x

        return apply, [rng.standard_normal((1, tokens, width), np.float32)]

    return make


def _networks() -> Any:
    if str(EXAMPLES) not in sys.path:
        sys.path.insert(0, str(EXAMPLES))
    import networks

    return networks


WORKS = (
    *(Work(f"matmul {n} x {n} x {n}", plain(matmul, (n, n), (n, n))) for n in (512, 1024, 2048, 4096)),
    Work("matmul 1 x 4096 x 4096", plain(matmul, (1, 4096), (4096, 4096))),
    Work("matmul 12 x 512 x 64 x 512", plain(matmul, (12, 512, 64), (12, 64, 512))),
    Work("convolution 7x7/2, 8 x 224, 3 -> 64", plain(convolution(2), (8, 224, 224, 3), (7, 7, 3, 64))),
    Work("convolution 3x3, 8 x 56, 64 -> 64", plain(convolution(), (8, 56, 56, 64), (3, 3, 64, 64))),
    Work("convolution 3x3, 8 x 14, 256 -> 256", plain(convolution(), (8, 14, 14, 256), (3, 3, 256, 256))),
    Work("attention 1 x 12 x 512 x 64, causal", plain(attention, *((1, 12, 512, 64),) * 3)),
    Work("softmax 4096 x 4096", plain(of_numpy("softmax"), (4096, 4096))),
    Work("layer norm 16384 x 1024", plain(layer_norm, (16384, 1024), (1024,), (1024,))),
    Work("add 67108864", plain(lambda x, y: x + y, (1 << 26,), (1 << 26,))),
    Work("sum 67108864", plain(of_numpy("sum"), (1 << 26,))),
    Work("sort 262144", plain(of_numpy("sort"), (1 << 18,))),
    Work("transformer, 4 layers of 512, 256 tokens", transformer(4, 512, 256)),
    Work("ResNet-18, 1 x 224", resnet18(1, 64, 224)),
    Work("ResNet-18, 8 x 224", resnet18(8, 64, 224)),
)


def least(call: Callable[[], object], seconds: float) -> float:
    """The least time of a call: three or more, until `seconds` are over."""
    end, best, count = time.perf_counter() + seconds, float("inf"), 0
    while count < 3 or time.perf_counter() < end:
        start = time.perf_counter()
        call()
        best, count = min(best, time.perf_counter() - start), count + 1
    return best


def close(got: Array, want: Array) -> bool:
    return np.allclose(got, want, rtol=1e-3, atol=1e-4 * np.abs(want).max())


def ours(module: bytes, device: str, arguments: Sequence[Array], want: Array, seconds: float) -> Found:
    """Times of a module on a device. Raises ValueError if the result differs from XLA's."""
    from orchestrion import vm

    program = vm.load(module, device=device, allow_native_code=True)
    given, out = [program.put(array) for array in arguments], program.put(np.zeros_like(want))
    if not close(np.asarray(program.main(*given, out=out)), want):
        got = np.asarray(out)
        raise ValueError(f"{device} and XLA disagree: by {np.abs(got - want).max()} at most, of {np.abs(want).max()}")
    found = Found(least(lambda: program.main(*given, out=out), seconds))
    profiled = vm.load(module, device=device, allow_native_code=True, profiling=True)
    given, out = [profiled.put(array) for array in arguments], profiled.put(np.zeros_like(want))
    for _ in range(PROFILED):
        profiled.main(*given, out=out)
    rows = profiled.profile().rows("main")
    found.device = sum(row.median_seconds * row.launches / row.calls for row in rows)
    return found


def xla(function: Callable[..., Any], arguments: Sequence[Array], precision: str, seconds: float) -> Found:
    import jax

    with jax.default_matmul_precision(precision):
        compiled = jax.jit(function)
        given = [jax.device_put(array) for array in arguments]
        found = Found(least(lambda: compiled(*given).block_until_ready(), seconds))

        def enqueued() -> None:
            for _ in range(ENQUEUED):
                result = compiled(*given)
            result.block_until_ready()

        found.device = least(enqueued, seconds) / ENQUEUED
    return found


def prepare(work: Work, devices: Sequence[str], machines: Sequence[str]) -> Prepared:
    import jax

    from orchestrion import compiler

    function, arguments = work.make()
    lowered = jax.jit(function).trace(*arguments).lower(lowering_platforms=("cpu",))
    with jax.default_device(jax.devices("cpu")[0]), jax.default_matmul_precision("highest"):
        on_cpu = jax.jit(function).lower(*arguments).compile()
        want = np.asarray(on_cpu(*arguments))
    modules = {
        (device, made_for): compiler.compile(lowered, targets=[TARGETS[device.partition(":")[0]]], machines=(made_for,))
        for device in devices
        for made_for in machines
    }
    return Prepared(work.title, modules, want, float(on_cpu.cost_analysis()["flops"]))


def measure(work: Work, prepared: Prepared, seconds: float) -> dict[str, Any]:
    """The row of a work as data: `flops`, `bytes` and `times`, `failed` with a text per candidate that has none."""
    function, arguments = work.make()
    times, failed = {}, {}
    for (device, made_for), module in prepared.modules.items():
        name = f"{device} {made_for}"
        try:
            times[name] = asdict(ours(module, device, arguments, prepared.want, seconds))
        except Exception as error:  # other candidates are measured
            failed[name] = f"{type(error).__name__}: {error}"
            traceback.print_exc()
    for precision in ("highest", "default"):
        times[f"XLA {precision}"] = asdict(xla(function, arguments, precision, seconds))
    moved = sum(array.nbytes for array in arguments) + prepared.want.nbytes
    return {"title": work.title, "flops": prepared.flops, "bytes": moved, "times": times, "failed": failed}


def share(rate: float, of: float) -> str:
    return f" {rate / of:6.1%}" if of else ""


def report(row: dict[str, Any], peak: float, bandwidth: float) -> None:
    base = row["times"]["XLA highest"]
    for name, found in row["times"].items():
        line = f"{row['title']:<42} {name:<12} call {unit(found['call']):>9}  device {unit(found['device']):>9}"
        if found["device"]:
            rate, moved = row["flops"] / found["device"] / 1e9, row["bytes"] / found["device"] / 1e9
            line += f"  {rate:9.1f} GFLOP/s{share(rate, 1e3 * peak)}  {moved:7.1f} GB/s{share(moved, bandwidth)}"
            line += f"  {found['device'] / base['device']:7.2f}x"
        print(f"{line}  {found['call'] / base['call']:7.2f}x", flush=True)
    for name, text in row["failed"].items():
        print(f"{row['title']:<42} {name:<12} FAILED {text}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description="rows on a GPU beside XLA, f32, device-resident")
    parser.add_argument("rows", nargs="*", help="rows, by a part of their title; all by default")
    parser.add_argument("--device", default=",".join(TARGETS), help="devices, separated by commas: vulkan:1, opencl")
    parser.add_argument("--machine", default=",".join(MACHINES), help="the kinds of code, separated by commas")
    parser.add_argument("--seconds", type=float, default=0.3, help="how long each candidate is timed")
    parser.add_argument("--peak", type=float, default=0.0, metavar="TFLOPS", help="f32 of the device, for shares of it")
    parser.add_argument("--bandwidth", type=float, default=0.0, metavar="GB/S", help="of the device, for shares of it")
    parser.add_argument("--json", metavar="FILE", help="also write the rows as data")
    options = parser.parse_args()
    need("jax")
    import jax

    from orchestrion.hal.registry import find_device

    devices = options.device.split(",")
    print(f"{parser.description}\n{machine()}\n{versions('jax', 'pyopencl', 'vulkan')}, XLA on {jax.devices()[0]}")
    for name in devices:
        info = find_device(name)[1]
        print(f"{name}: {info.name}, {info.version}")
    chosen = [work for work in WORKS if not options.rows or any(part in work.title for part in options.rows)]
    if not chosen:
        raise SystemExit(f"no row is called {' or '.join(options.rows)}")
    rows = []
    for work in chosen:
        rows.append(measure(work, prepare(work, devices, options.machine.split(",")), options.seconds))
        report(rows[-1], options.peak, options.bandwidth)
        if options.json:  # after every row, so that an interrupted run keeps what it measured
            Path(options.json).write_text(json.dumps(rows, indent=2) + os.linesep)


if __name__ == "__main__":
    main()
