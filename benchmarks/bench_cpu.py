"""The device `cpu` beside OpenCL on the same processor, and JAX (XLA) on the CPU: kernels, a small network and loops.

All devices use all cores of the machine. Arguments and results are NumPy arrays, so a call includes the copies of its
results. Expected before measuring: `cpu` is ahead of OpenCL on every row, since both run code of LLVM and a call of
`cpu` makes no launches; ahead of JAX on elementwise work, softmax and short calls; behind it on large products, because
kernels have no fused multiply-add and pack no operands; behind it by 2 to 3 times on loops of scalars, because each
iteration runs two or three commands.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from bench_loops import STEPS, WIDTH, lstm, scalar
from harness import Timing, arguments, measure, need, save, table, versions

DEVICES = ("cpu", "opencl")


def normal(*shape: int) -> np.ndarray:
    """Normally distributed f32 numbers of that shape, the same in every run."""
    return np.random.default_rng(len(shape)).normal(size=shape).astype(np.float32) / 8


def rows() -> dict[str, tuple[Callable[..., Any], list[Any]]]:
    """Title -> function and arguments."""
    import jax
    import jax.numpy as jnp

    def encoder(x: Any, w: Any, v: Any) -> Any:
        """Attention with one head, and a network of two layers, behind layer norms."""
        for _ in range(2):
            y = norm(x)
            x = x + jax.nn.softmax(y @ y.T / 16) @ y
            x = x + jax.nn.gelu(norm(x) @ w) @ v
        return x

    def norm(x: Any) -> Any:
        centred = x - x.mean(axis=-1, keepdims=True)
        return centred * jax.lax.rsqrt((centred * centred).mean(axis=-1, keepdims=True) + 1e-5)

    def conv(x: Any, w: Any) -> Any:
        return jax.lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))

    weights = [normal(STEPS, WIDTH), normal(WIDTH, 4 * WIDTH), normal(WIDTH, 4 * WIDTH), normal(4 * WIDTH)]
    return {
        "x * y, 4 elements": (lambda x, y: x * y, [normal(4), normal(4)]),
        "tanh(x * y + x), 1M elements": (lambda x, y: jnp.tanh(x * y + x), [normal(1 << 20), normal(1 << 20)]),
        "softmax, 1024 x 1024": (jax.nn.softmax, [normal(1024, 1024)]),
        "layer norm, 1024 x 1024": (norm, [normal(1024, 1024)]),
        "matmul, 512 x 512 x 512": (lambda x, y: x @ y, [normal(512, 512), normal(512, 512)]),
        "matrix times vector, 2048 x 2048": (lambda x, y: x @ y, [normal(2048, 2048), normal(2048)]),
        "convolution 3 x 3, 56 x 56, 64 to 64": (conv, [normal(1, 56, 56, 64), normal(3, 3, 64, 64)]),
        "encoder, 2 layers, 64 x 256": (encoder, [normal(64, 256), normal(256, 1024), normal(1024, 256)]),
        "1,000 scalar iterations": (scalar, [np.float32(0)]),
        f"LSTM of {STEPS} steps, width {WIDTH}": (lstm, weights),
    }


def variants(function: Callable[..., Any], values: list[Any]) -> dict[str, Callable[[], object]]:
    """Calls of the function on each device and by JAX, which agree."""
    import jax

    from orchestrion import compiler, vm

    jitted = jax.jit(function)
    blob = compiler.compile(jitted, *values, targets=list(DEVICES))
    found: dict[str, Callable[[], object]] = {}
    for device in DEVICES:
        program = vm.load(blob, device=device)
        np.testing.assert_allclose(program.main(*values), jitted(*values), rtol=2e-3, atol=2e-3)
        found[device] = lambda program=program: program.main(*values)  # type: ignore[misc]
    found["jax"] = lambda: jax.block_until_ready(jitted(*values))
    return found


def main() -> None:
    options = arguments(__doc__ or "")
    need("jax")
    all_timings: dict[str, Timing] = {}
    for title, (function, values) in rows().items():
        timings = measure(variants(function, values), 1, options.rounds)
        table(title, timings, "cpu", [versions("jax", "llvmlite")])
        all_timings |= {f"{title}: {name}": timing for name, timing in timings.items()}
    save(options.json, all_timings)


if __name__ == "__main__":
    main()
