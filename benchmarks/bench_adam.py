"""50 steps of Adam on a small network, called in three ways, compared with `jax.jit` with donated arguments.

- `out=`: parameters and moments are device arrays made by `put`. Each step writes them in place, and the loss into an
  array made by `empty`. The batch comes from the host in each step, in this way and in the others.
- `on_device`: `program.main.on_device(params, moments, x, y, donate=(0, 1))`, with trees of device arrays.
- `arrays`: NumPy arrays as arguments and results of each step.

Expected before measuring: `on_device` takes at most 1.2 times as long as `out=`. It walks trees of 20 arrays and makes
as many objects, some 50 us per step, while a step of the first network takes milliseconds; the second network shows
this cost with little other work. `arrays` copies 2.8 MB in and out per step of the first network.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from harness import arguments, measure, need, ratio, save, table, versions

STEPS = 50
DEVICES = ("reference", "opencl", "vulkan")
#: the layer widths of the two networks
NETWORKS = ((784, 256, 128, 10), (64, 16, 16))


def step(params: Any, moments: Any, x: Any, y: Any) -> Any:
    """One step of Adam on the mean squared error."""
    import jax
    import jax.numpy as jnp

    def loss_of(params: Any) -> Any:
        hidden = x
        for layer in params[:-1]:
            hidden = jnp.tanh(hidden @ layer["w"] + layer["b"])
        return ((hidden @ params[-1]["w"] + params[-1]["b"] - y) ** 2).mean()

    loss, slopes = jax.value_and_grad(loss_of)(params)
    count = moments["count"] + 1
    mean = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, moments["mean"], slopes)
    square = jax.tree.map(lambda v, g: 0.999 * v + 0.001 * g * g, moments["square"], slopes)
    rate = 1e-3 * jnp.sqrt(1 - 0.999**count) / (1 - 0.9**count)
    params = jax.tree.map(lambda p, m, v: p - rate * m / (jnp.sqrt(v) + 1e-8), params, mean, square)
    return params, {"count": count, "mean": mean, "square": square}, loss


def start(widths: tuple[int, ...]) -> tuple[Any, ...]:
    """Parameters, moments and a batch of 32 rows."""
    import jax

    random = np.random.default_rng(0)

    def normal(*shape: int) -> Any:
        return random.normal(size=shape).astype(np.float32)

    params = [
        {"w": normal(rows, columns) / np.float32(rows**0.5), "b": np.zeros(columns, np.float32)}
        for rows, columns in zip(widths, widths[1:], strict=False)
    ]
    zeros = jax.tree.map(np.zeros_like, params)
    return (
        params,
        {"count": np.float32(0), "mean": zeros, "square": zeros},
        normal(32, widths[0]),
        normal(32, widths[-1]),
    )


def on_device(program: Any, widths: tuple[int, ...]) -> float:
    params, moments, x, y = start(widths)
    for _ in range(STEPS):
        params, moments, loss = program.main.on_device(params, moments, x, y, donate=(0, 1))
    return float(loss)


def in_place(program: Any, widths: tuple[int, ...]) -> float:
    import jax

    params, moments, x, y = start(widths)
    state = [program.put(leaf) for leaf in jax.tree.leaves((params, moments))]
    function = program.main.flat
    loss = program.empty((), np.float32)
    out = (*state, loss)
    for _ in range(STEPS):
        function(*state, x, y, out=out)
    return float(loss)


def arrays(program: Any, widths: tuple[int, ...]) -> float:
    params, moments, x, y = start(widths)
    for _ in range(STEPS):
        params, moments, loss = program.main(params, moments, x, y)
    return float(loss)


def peer(widths: tuple[int, ...]) -> Callable[[], float]:
    import jax

    call = jax.jit(step, donate_argnums=(0, 1))

    def run() -> float:
        params, moments, x, y = jax.tree.map(jax.numpy.array, start(widths))
        for _ in range(STEPS):
            params, moments, loss = call(params, moments, x, y)
        return float(loss)

    return run


def main() -> None:
    options = arguments("50 steps of Adam")
    need("jax")
    import jax

    from orchestrion import compiler, vm

    found = {}
    for widths in NETWORKS:
        size = "-".join(map(str, widths))
        blob = compiler.compile(jax.jit(step, donate_argnums=(0, 1)), *start(widths))
        other = peer(widths)
        expected = other()
        for device in DEVICES:
            with vm.load(blob, device=device, allow_native_code=True) as program:
                ways = {"out=": in_place, "on_device": on_device, "arrays": arrays}
                for name, way in ways.items():
                    np.testing.assert_allclose(way(program, widths), expected, rtol=1e-3, err_msg=f"{device} {name}")
                candidates: dict[str, Callable[[], object]] = {
                    f"{size} {device} {name}": partial(way, program, widths) for name, way in ways.items()
                }
                base = f"{size} {device} out="
                timings = measure(candidates | {"jax.jit": other}, calls=1, rounds=options.rounds, warm_up=1)
                table(f"{STEPS} steps of {size} on {device}", timings, base, [versions("jax")])
                print(f"  on_device / out=: {ratio(timings, f'{size} {device} on_device', base):.2f} (at most 1.2)")
                found |= timings
    save(options.json, found)


if __name__ == "__main__":
    main()
