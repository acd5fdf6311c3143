"""Symbolic sizes on the device `cpu`, beside the same programs exported for one size, and beside XLA's static ones.

Times are the least of rounds in which the candidates take turns, on one thread. `dynamic / static` compares two
programs of ours.

    bench_dynamic_cpu.py [--rounds N] [--cpu-time] [--no-jax] [a part of a row's name ...]

`--cpu-time` counts the seconds of processors instead of those that pass: on a busy machine.
"""

import argparse
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from bench_dynamic import Row, as_tuple, program_of
from harness import machine, measure, unit, versions

sys.path.insert(0, str(Path(__file__).parent / "cpu"))

#: the largest acceptable ratio of dynamic to static times
MAX_RATIO = 1.3
#: seconds of a candidate's block of calls
BLOCK = 0.01
#: largest difference from the static results, relative to the largest magnitude of a result
TOLERANCE = 1e-3


def _row(function: Callable[..., Any], *shapes: str, **sizes: int) -> Row:
    return Row(function, shapes, (sizes,), 0)


def rows() -> dict[str, Row]:
    import jax
    import jax.numpy as jnp
    import networks
    from jax import lax
    from ops import JaxOps

    ops, random = JaxOps(), np.random.default_rng(0)
    weights = random.normal(size=(512, 512)).astype(np.float32) / 8
    kernel = random.normal(size=(3, 3, 64, 64)).astype(np.float32) / 24
    layer = networks.layers(networks.Weights(), 1, 384)

    def scores(q: Any, k: Any) -> Any:
        return jnp.einsum("bqd,bkd->bqk", q, k)

    def weighted(p: Any, v: Any) -> Any:
        return jnp.einsum("bqk,bkd->bqd", p, v)

    def attention(q: Any, k: Any, v: Any) -> Any:
        return weighted(jax.nn.softmax(scores(q, k) / 8), v)

    def norm(x: Any) -> Any:
        return ops.layer_norm(x, np.float32(2), np.float32(1))

    def conv(x: Any) -> Any:
        return jax.nn.relu(
            lax.conv_general_dilated(x, kernel, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
        )

    def encoder(x: Any) -> Any:
        return networks.apply_encoder(ops, layer, x, x.shape, 12)

    def chain(x: Any, y: Any) -> Any:
        return jnp.tanh(x * y + x)

    return {
        "x @ W, m = 128": _row(lambda x: x @ weights, "m, 512", m=128),
        "x @ W.T, m = 128": _row(lambda x: x @ weights.T, "m, 512", m=128),
        "matmul m x 512 x 512, m = 512": _row(jnp.matmul, "m, 512", "512, 512", m=512),
        "matmul 512 x 512 x n, n = 512": _row(jnp.matmul, "512, 512", "512, n", n=512),
        "matmul 512 x k x 512, k = 512": _row(jnp.matmul, "512, k", "k, 512", k=512),
        "matmul m x k x n, 512 each": _row(jnp.matmul, "m, k", "k, n", m=512, k=512, n=512),
        "matmul m x k x n, 500 x 333 x 257": _row(jnp.matmul, "m, k", "k, n", m=500, k=333, n=257),
        "matmul m x k x n, 40 x 20 x 24": _row(jnp.matmul, "m, k", "k, n", m=40, k=20, n=24),
        "x @ y.T, m x 64 x n, 512 each": _row(lambda x, y: x @ y.T, "m, 64", "n, 64", m=512, n=512),
        "x.T @ y, gradient, k = 1024": _row(lambda x, y: x.T @ y, "k, 256", "k, 256", k=1024),
        "matmul b x 128 x 64 x 128, b = 12": _row(jnp.matmul, "b, 128, 64", "b, 64, 128", b=12),
        "Q K^T, 12 x s x 64, s = 128": _row(scores, "12, s, 64", "12, s, 64", s=128),
        "Q K^T, 12 x s x 64, s = 384": _row(scores, "12, s, 64", "12, s, 64", s=384),
        "P V, 12 x s x 64, s = 128": _row(weighted, "12, s, s", "12, s, 64", s=128),
        "P V, 12 x s x 64, s = 384": _row(weighted, "12, s, s", "12, s, 64", s=384),
        "attention 12 x s x 64, s = 33": _row(attention, *["12, s, 64"] * 3, s=33),
        "attention 12 x s x 64, s = 128": _row(attention, *["12, s, 64"] * 3, s=128),
        "attention 12 x s x 64, s = 384": _row(attention, *["12, s, 64"] * 3, s=384),
        "softmax m x n, 1536 x 24": _row(jax.nn.softmax, "m, n", m=1536, n=24),
        "softmax m x n, 1536 x 128": _row(jax.nn.softmax, "m, n", m=1536, n=128),
        "softmax m x n, 1536 x 384": _row(jax.nn.softmax, "m, n", m=1536, n=384),
        "softmax m x n, 1024 x 1024": _row(jax.nn.softmax, "m, n", m=1024, n=1024),
        "layer norm m x n, 512 x 768": _row(norm, "m, n", m=512, n=768),
        "layer norm m x 384, m = 512": _row(norm, "m, 384", m=512),
        "sum of rows, m x n, 1024 x 1024": _row(lambda x: x.sum(1), "m, n", m=1024, n=1024),
        "sum of columns, m x n, 1024 x 1024": _row(lambda x: x.sum(0), "m, n", m=1024, n=1024),
        "tanh(x * y + x), m x n, 512 x 512": _row(chain, "m, n", "m, n", m=512, n=512),
        "x + bias, m x n, 512 x 512": _row(lambda x, y: x + y, "m, n", "n", m=512, n=512),
        "transpose b x s x 12 x 32, 4 x 128": _row(lambda x: x.transpose(0, 2, 1, 3) + 1, "b, s, 12, 32", b=4, s=128),
        "conv 3x3, b x 28 x 28 x 64, b = 2": _row(conv, "b, 28, 28, 64", b=2),
        "conv 3x3, 1 x h x w x 64, 56 x 56": _row(conv, "1, h, w, 64", h=56, w=56),
        "encoder layer b x s x 384, 1 x 128": _row(encoder, "b, s, 384", b=1, s=128),
        "encoder layer b x s x 384, 1 x 384": _row(encoder, "b, s, 384", b=1, s=384),
        "encoder layer b x s x 384, 8 x 21": _row(encoder, "b, s, 384", b=8, s=21),
    }  # fmt: skip


class Found(NamedTuple):
    """Seconds of a call."""

    static: float
    dynamic: float
    jax: float | None


def run(row: Row, rounds: int, clock: Callable[[], float], with_jax: bool) -> Found:
    import jax
    import jax.export
    from peers import best_level

    from orchestrion import compiler, vm

    program = program_of(row)
    ((_, _, values),) = program.cases
    jitted = jax.jit(row.function)
    static = jax.export.export(jitted)(*(jax.ShapeDtypeStruct(x.shape, x.dtype) for x in values)).mlir_module()
    calls: dict[str, Callable[[], Any]] = {}
    for name, one in (("static", static), ("dynamic", program.text)):
        module = compiler.compile(one, targets=["cpu"], target_cpu=best_level())
        main = vm.load(module, "cpu", threads=1, allow_native_code=True).main
        calls[name] = lambda main=main: main(*values)
    if with_jax:
        calls["jax"] = lambda: [np.asarray(x) for x in jax.tree.leaves(jitted(*values))]
    wanted = as_tuple(calls["static"]())
    for got, want in zip(as_tuple(calls["dynamic"]()), wanted, strict=True):
        error = np.abs(np.asarray(got) - np.asarray(want)).max() / (np.abs(np.asarray(want)).max() + 1e-30)
        assert error <= TOLERANCE, f"differs by {error:.1e}"
    start = time.perf_counter()
    for call in calls.values():
        call()
    repeated = max(1, min(1000, int(BLOCK * len(calls) / (time.perf_counter() - start))))
    timings = measure(calls, repeated, rounds, clock=clock)
    least = {name: min(timing.rounds) for name, timing in timings.items()}
    return Found(least["static"], least["dynamic"], least.get("jax"))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("parts", nargs="*", help="parts of names of rows; all by default")
    parser.add_argument("--rounds", type=int, default=15, help="how often each candidate is timed")
    parser.add_argument("--cpu-time", action="store_true", help="seconds of processors, for a busy machine")
    parser.add_argument("--no-jax", action="store_true", help="without XLA")
    options = parser.parse_args()
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:1])
    clock = time.process_time if options.cpu_time else time.perf_counter
    print(f"{machine()}, one thread, {versions('jax')}\n\n| | static | dynamic | dynamic / static | JAX, static |")
    print("| --- " * 5 + "|")
    above = []
    for name, row in rows().items():
        if options.parts and not any(part in name for part in options.parts):
            continue
        found = run(row, options.rounds, clock, not options.no_jax)
        ratio, jax = found.dynamic / found.static, "" if found.jax is None else unit(found.jax)
        print(f"| {name} | {unit(found.static)} | {unit(found.dynamic)} | {ratio:.2f} | {jax} |", flush=True)
        above += [name] if ratio > MAX_RATIO else []
    print(f"\nabove {MAX_RATIO}: {'; '.join(above) or 'none'}")


if __name__ == "__main__":
    main()
