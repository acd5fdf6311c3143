"""Loops on the device compared with loops of the host, beside JAX on the CPU: in recordings on the reference device, in
one kernel or in batches on OpenCL and Vulkan.

Expected before measuring: on the reference device, 1,000 scalar iterations are 5 times faster, since a submission and a
read per iteration disappear and three commands of about 1 us stay. An LSTM of 200 steps was one submission before, so
its time stays, with one command more (the counter) and one copy per step. JAX is 50 to 100 times faster than NumPy on
scalars. On OpenCL and Vulkan an iteration on scalars costs tens of ns instead of a submission of 50 to 150 us. An
iteration of conjugate gradient is too large for one kernel. In a batch it costs a product and a kernel of the small
commands, instead of 8 dispatches, a submission and a read: half the time on OpenCL, a third on Vulkan.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from typing import Any

from cpu.loops import STEPS, WIDTH, Loop, conjugate_gradient, lstm, scalar
from harness import Timing, arguments, measure, need, save, table, versions

from orchestrion.schema.profiles import PROFILE_NAMES, PROFILES

DEVICES = ("reference", "opencl", "vulkan")


def conjugate_gradient_until() -> Loop:
    """Conjugate gradient until the residual is small, which takes all of the 50 iterations that are allowed."""

    def run(matrix: Any, b: Any) -> Any:
        import jax

        def step(state: Any) -> Any:
            x, r, p, squared, i = state
            moved = matrix @ p
            alpha = squared / (p @ moved)
            x, r = x + alpha * p, r - alpha * moved
            now = r @ r
            return x, r, r + now / squared * p, now, i + 1

        return jax.lax.while_loop(lambda s: (s[3] > 1e-9) & (s[4] < 50), step, (b * 0, b, b, b @ b, 0))[0]

    counted = conjugate_gradient()
    return Loop(counted.inputs, run, counted.weights)


@contextmanager
def loops_of_the_host(device: str) -> Iterator[None]:
    """Compiles programs for a device without loops in recordings, in kernels and in batches."""
    from orchestrion.compiler.targets.target import target

    profile = PROFILE_NAMES.get(device, device)
    row, made_for = PROFILES[profile], target(profile)
    machines = type(made_for).machines
    PROFILES[profile] = replace(row, control_flow=False)
    type(made_for).machines = {name: replace(one, merged_ops=0) for name, one in machines.items()}
    yield
    PROFILES[profile], type(made_for).machines = row, machines


def variants(
    function: Callable[..., Any], values: list[Any], device: str, machines: list[str]
) -> dict[str, Callable[[], object]]:
    """Calls of the function on a device: loops of the host, loops of the device, JAX."""
    import jax

    from orchestrion import compiler, vm

    found: dict[str, Callable[[], object]] = {}
    for name in ("host", "device"):
        with loops_of_the_host(device) if name == "host" else nullcontext():
            target = PROFILE_NAMES.get(device, device)
            module = compiler.compile(jax.jit(function), *values, targets=[target], machines=machines)
        program = vm.load(module, device)
        found[name] = lambda program=program: program.main(*values)  # type: ignore[misc]
    jitted = jax.jit(function)
    found["jax"] = lambda: jax.block_until_ready(jitted(*values))
    return found


def main() -> None:
    options = arguments(__doc__ or "", device=",".join(DEVICES), machine="cpu")
    need("jax")
    all_timings: dict[str, Timing] = {}
    rows = {
        "1,000 scalar iterations": scalar(),
        f"LSTM of {STEPS} steps, width {WIDTH}": lstm(),
        "conjugate gradient, 256x256, until it ends": conjugate_gradient_until(),
    }
    for device in options.device.split(","):
        for name, loop in rows.items():
            title = f"{name}, {device}"
            found = variants(loop.function, [loop.weights, *loop.inputs], device, options.machine.split(","))
            timings = measure(found, 1, options.rounds)
            table(title, timings, "host", [versions("jax")])
            all_timings |= {f"{title}: {variant}": timing for variant, timing in timings.items()}
    save(options.json, all_timings)


if __name__ == "__main__":
    main()
