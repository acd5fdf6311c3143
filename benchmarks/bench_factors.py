"""Matrix factorisations compared with JAX on the CPU, in one run. JAX calls LAPACK; here they are loops.

Each row shows the time to compile, the launches of a call, the least time of a call here and in JAX (both with host
arrays), and the error of the matrix A rebuilt from its factors, here and in JAX, divided by A's norm and the machine
epsilon. `python benchmarks/bench_factors.py [--device=vulkan] [qr eigh svd]`. Needs jax.
"""

import argparse
from collections.abc import Callable
from time import perf_counter
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from harness import measure

from orchestrion import compiler, vm

Array = np.ndarray[Any, Any]
SIZES = (16, 64, 128)

#: name -> the function that factors a symmetric matrix, and the one that rebuilds the matrix from the factors
ROWS: dict[str, tuple[Callable[..., Any], Callable[..., Array]]] = {
    "qr": (jnp.linalg.qr, lambda q, r: q @ r),
    "eigh": (jnp.linalg.eigh, lambda values, vectors: (vectors * values) @ vectors.T),
    "svd": (jnp.linalg.svd, lambda u, s, vt: (u * s) @ vt),
}


def matrix(size: int) -> Array:
    """A symmetric matrix, size x size, f32."""
    a = np.random.default_rng(size).normal(size=(size, size)).astype(np.float32)
    return a + a.T


def error(a: Array, built: Array) -> float:
    """The error of `built` divided by the norm of `a` and the machine epsilon."""
    return float(np.abs(built - a).max() / np.linalg.norm(a.astype(np.float64), 2) / np.finfo(a.dtype).eps)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="rows to run, all of them unless given")
    parser.add_argument("--device", default="vulkan")
    parser.add_argument("--repeats", type=int, default=10)
    given = parser.parse_args()
    print(f"{'factors':12} {'compile s':>9} {'launches':>8} {given.device + ' ms':>10} {'JAX ms':>8} {'errors':>12}")
    for name in given.names or ROWS:
        function, rebuilt = ROWS[name]
        for size in SIZES:
            a = matrix(size)
            compiled = jax.jit(function)
            lowered, start = compiled.lower(a), perf_counter()
            program = vm.load(compiler.compile(lowered), device=given.device, allow_native_code=True)
            taken = perf_counter() - start
            candidates: dict[str, Callable[[], object]] = {
                "ours": lambda p=program, a=a: p.main(a),
                "theirs": lambda f=compiled, a=a: jax.block_until_ready(f(a)),
            }
            timings = measure(candidates, calls=1, rounds=given.repeats)
            ours, theirs = (min(timings[name].rounds) * 1e3 for name in ("ours", "theirs"))
            launches = program.statistics()["calls"][-1]["dispatches"]
            found, wanted = (
                error(a, rebuilt(*(np.asarray(x, np.float64) for x in factors)))
                for factors in (program.main(a), compiled(a))
            )
            program.close()
            errors = f"{found:.1f} / {wanted:.1f}"
            print(f"{name + ' ' + str(size):12} {taken:9.2f} {launches:8} {ours:10.2f} {theirs:8.2f} {errors:>12}")


if __name__ == "__main__":
    main()
