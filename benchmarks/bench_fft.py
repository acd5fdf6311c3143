"""Fourier transforms compared with JAX on the CPU (XLA, which calls a hand-written library), in one run.

Each row shows the launches of a call, the least time of a call here and in JAX (both with host arrays), and the
module's size. `python benchmarks/bench_fft.py [--device=vulkan]`. Needs jax.
"""

import argparse
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from harness import measure

from orchestrion import compiler, vm

Array = np.ndarray[Any, Any]

#: name, function, and the shape of its complex argument
ROWS: tuple[tuple[str, Callable[..., Any], tuple[int, ...]], ...] = (
    ("fft", jnp.fft.fft, (64,)),
    ("fft", jnp.fft.fft, (1024,)),
    ("fft", jnp.fft.fft, (64, 1024)),
    ("fft", jnp.fft.fft, (4096,)),
    ("fft", jnp.fft.fft, (65536,)),
    ("fft", jnp.fft.fft, (1009,)),
    ("rfft", lambda z: jnp.fft.rfft(z.real), (4096,)),
    ("fft2", jnp.fft.fft2, (256, 256)),
)


def argument(shape: tuple[int, ...]) -> Array:
    random = np.random.default_rng(0)
    return (random.normal(size=shape) + 1j * random.normal(size=shape)).astype(np.complex64)


def title(name: str, shape: tuple[int, ...]) -> str:
    return f"{name} {'x'.join(map(str, shape))}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="vulkan")
    parser.add_argument("--repeats", type=int, default=20)
    given = parser.parse_args()
    print(f"{'transform':22} {'launches':>8} {given.device + ' ms':>12} {'JAX ms':>10} {'ratio':>7} {'module kB':>10}")
    for name, function, shape in ROWS:
        z = argument(shape)
        compiled = jax.jit(function)
        module = compiler.compile(compiled.lower(z))
        program = vm.load(module, device=given.device, allow_native_code=True)
        candidates: dict[str, Callable[[], object]] = {
            "ours": lambda p=program, z=z: p.main(z),
            "theirs": lambda f=compiled, z=z: np.asarray(f(z)),
        }
        timings = measure(candidates, calls=1, rounds=given.repeats)
        ours, theirs = (min(timings[name].rounds) * 1e3 for name in ("ours", "theirs"))
        launches = program.statistics()["calls"][-1]["dispatches"]
        program.close()
        times = f"{ours:12.3f} {theirs:10.3f} {ours / theirs:7.1f}"
        print(f"{title(name, shape):22} {launches:8} {times} {len(module) / 1e3:10.0f}")


if __name__ == "__main__":
    main()
