"""Loops in recordings compared with loops of the host, on the reference device, beside JAX on the CPU.

Expected before measuring: 1,000 scalar iterations are 5 times faster, since a submission and a read per iteration
disappear and three commands of about 1 us stay. An LSTM of 200 steps was one submission before, so its time stays, with
one command more (the counter) and one copy per step. JAX is 50 to 100 times faster than NumPy on scalars.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from cpu.loops import STEPS, WIDTH, lstm, scalar
from harness import Timing, arguments, measure, need, save, table, versions


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
    all_timings: dict[str, Timing] = {}
    for title, loop in (("1,000 scalar iterations", scalar()), (f"LSTM of {STEPS} steps, width {WIDTH}", lstm())):
        timings = measure(variants(loop.function, [loop.weights, *loop.inputs]), 1, options.rounds)
        table(title, timings, "host", [versions("jax")])
        all_timings |= {f"{title}: {name}": timing for name, timing in timings.items()}
    save(options.json, all_timings)


if __name__ == "__main__":
    main()
