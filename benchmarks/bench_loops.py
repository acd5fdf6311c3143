"""Loops in recordings compared with loops of the host, on the reference device, beside JAX on the CPU.

Expected before measuring: 1,000 scalar iterations are 5 times faster, since a submission and a read per iteration
disappear and three commands of about 1 us stay. An LSTM of 200 steps was one submission before, so its time stays, with
one command more (the counter) and one copy per step. JAX is 50 to 100 times faster than NumPy on scalars.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from harness import Timing, arguments, measure, need, save, table, versions

#: width and steps of the LSTM
WIDTH, STEPS = 64, 200


def scalar(x: Any) -> Any:
    """1,000 iterations on two scalars."""
    import jax
    import jax.numpy as jnp

    return jax.lax.while_loop(lambda s: s[0] < 1000.0, lambda s: (s[0] + 1.0, s[1] * 0.5), (x, jnp.float32(3)))


def lstm(xs: Any, w: Any, u: Any, b: Any) -> Any:
    """`xs` f32[STEPS, WIDTH]; the result is that of every step."""
    import jax
    import jax.numpy as jnp

    def step(state: Any, x: Any) -> Any:
        hidden, cell = state
        i, f, g, o = jnp.split(x @ w + hidden @ u + b, 4)
        cell = jax.nn.sigmoid(f) * cell + jax.nn.sigmoid(i) * jnp.tanh(g)
        hidden = jax.nn.sigmoid(o) * jnp.tanh(cell)
        return (hidden, cell), hidden

    return jax.lax.scan(step, (jnp.zeros(WIDTH), jnp.zeros(WIDTH)), xs)[1]


def variants(function: Callable[..., Any], values: list[Any]) -> dict[str, Callable[[], object]]:
    """Calls of the function: loops of the host, recorded loops, JAX."""
    import jax

    from orchestrion import compiler, vm
    from orchestrion.schema.profiles import PROFILES

    own = PROFILES["reference"]
    found: dict[str, Callable[[], object]] = {}
    for name, control_flow in (("host", False), ("recorded", True)):
        PROFILES["reference"] = replace(own, control_flow=control_flow)
        program = vm.load(compiler.compile(jax.jit(function), *values, targets=["reference"]), "reference")
        found[name] = lambda program=program: program.main(*values)  # type: ignore[misc]
    PROFILES["reference"] = own
    jitted = jax.jit(function)
    found["jax"] = lambda: jax.block_until_ready(jitted(*values))
    return found


def main() -> None:
    options = arguments(__doc__ or "")
    need("jax")
    random = np.random.default_rng(0)
    shapes = (STEPS, WIDTH), (WIDTH, 4 * WIDTH), (WIDTH, 4 * WIDTH), (4 * WIDTH,)
    weights = [random.normal(size=shape).astype(np.float32) / 10 for shape in shapes]
    all_timings: dict[str, Timing] = {}
    for title, function, values in (
        ("1,000 scalar iterations", scalar, [np.float32(0)]),
        (f"LSTM of {STEPS} steps, width {WIDTH}", lstm, weights),
    ):
        timings = measure(variants(function, values), 1, options.rounds)
        table(title, timings, "host", [versions("jax")])
        all_timings |= {f"{title}: {name}": timing for name, timing in timings.items()}
    save(options.json, all_timings)


if __name__ == "__main__":
    main()
