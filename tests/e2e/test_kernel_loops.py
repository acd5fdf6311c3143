"""Loops that are one kernel on OpenCL and Vulkan: JAX's results, those of the loop of the host to the bit, how many
submissions they take, how limits end them, and which loops stay with the host.
"""

import threading
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from control_flow import PROGRAMS
from loop_programs import TARGETS, Programs, change_machines, submissions
from named_devices import open_named

from orchestrion import vm
from orchestrion.compiler import compile
from orchestrion.compiler.kernel.loop_entry import MAX_ITERATIONS
from orchestrion.compiler.placement import Report
from orchestrion.vm.errors import Cancelled, DeadlineExceeded, FuelExhausted

F = np.float32


def until(x: Any, n: Any) -> Any:
    """`n` iterations on scalars, which only the device knows."""
    return jax.lax.while_loop(lambda s: s[0] < n, lambda s: (s[0] + 1, s[1] * 0.5 + 1.25), (jnp.int32(0), x))


@pytest.mark.sampled
@pytest.mark.parametrize("turns", [0, 1, 2, 1000, 4095, 4096, 4097, 70_000])
def test_iterations(turns: int, loop_programs: Programs) -> None:
    """A submission runs `MAX_ITERATIONS`, also on llvmpipe, which ends longer loops without an error."""
    program = loop_programs(until, F(3), np.int32(1))
    for one, other in zip(jax.jit(until)(F(3), turns), program.main(F(3), np.int32(turns)), strict=True):
        assert one == other
    assert submissions(program) <= 2 + turns // MAX_ITERATIONS


@pytest.mark.parametrize("turns", [12, 1000, 70_000])
def test_known_length(turns: int, loop_programs: Programs) -> None:
    """The whole call is one submission."""

    def counted(x: Any) -> Any:
        return jax.lax.fori_loop(0, turns, lambda i, v: v * 0.5 + i, x)

    x = np.arange(3, dtype=F)
    program = loop_programs(counted, x)
    np.testing.assert_array_equal(program.main(x), jax.jit(counted)(x))
    assert submissions(program) == 1


def test_loops_in_loops(loop_programs: Programs) -> None:
    """Loops of known length, a branch on the device and an index, all in one kernel."""

    def body(i: Any, v: Any) -> Any:
        v = jax.lax.fori_loop(0, 11, lambda j, w: (w @ w.T) / (1 + jnp.abs(w).max()) + j, v)
        v = jax.lax.cond(v.sum() > 30, lambda w: jnp.sin(w) @ w, lambda w: w @ w + 1, v)
        return jax.lax.switch(i % 4, [lambda w: w.T @ w, lambda w: w @ w, lambda w: jnp.tanh(w) @ w], v) / 99

    def nested(x: Any) -> Any:
        return jax.lax.fori_loop(0, 30, body, x)

    x = np.random.default_rng(0).normal(size=(4, 4)).astype(F)
    program = loop_programs(nested, x)
    np.testing.assert_allclose(program.main(x), jax.jit(nested)(x), rtol=1e-4, atol=1e-5)
    assert submissions(program) == 1


def test_large_state(loop_programs: Programs) -> None:
    """A state of more than 16 KiB alternates between its two buffers, for any number of iterations."""

    def swapped(x: Any, n: Any) -> Any:
        return jax.lax.while_loop(lambda s: s[1] < n, lambda s: (s[0][::-1] * 0.5, s[1] + 1), (x, jnp.int32(0)))

    x = np.random.default_rng(0).normal(size=5000).astype(F)
    program = loop_programs(swapped, x, np.int32(0))
    for turns in range(6):
        for one, other in zip(jax.jit(swapped)(x, turns), program.main(x, np.int32(turns)), strict=True):
            np.testing.assert_array_equal(one, other)
        assert submissions(program) <= 2


@pytest.mark.sampled(every=3)
@pytest.mark.parametrize("name", [name for name, _, _ in PROGRAMS])
def test_bits(name: str, loop_programs: Programs, monkeypatch: pytest.MonkeyPatch) -> None:
    """The results are those of the loop of the host, to the bit, and a call submits at most as often."""
    (function, shapes) = next((row[1], row[2]) for row in PROGRAMS if row[0] == name)
    random = np.random.default_rng(1)
    arguments = [np.asarray(random.integers(0, 4, shape)).astype(dtype) for shape, dtype in shapes]
    merged = loop_programs(function, *arguments)
    change_machines(loop_programs.device, monkeypatch, merged_ops=0)  # all loops stay with the host
    other = loop_programs(function, *arguments)
    want, got = (jax.tree.leaves(program.main(*arguments)) for program in (other, merged))
    for one, two in zip(want, got, strict=True):
        np.testing.assert_array_equal(np.asarray(one), np.asarray(two))
    assert submissions(merged) <= submissions(other)


LACKING = [frozenset({"int8", "int16"}), frozenset({"int8", "int16", "int64", "float64"})]


@pytest.mark.parametrize("without", LACKING, ids=["no int8", "no int64"])
def test_devices_without_integers(without: frozenset[str], needs_vulkan: None) -> None:
    """Predicates are bytes of words there, and counters of 64 bits are pairs."""

    def masked(x: Any, m: Any, n: Any) -> Any:
        def body(s: Any) -> Any:
            i, v, mask = s
            return i + 1, jnp.where(mask, v + i.astype(v.dtype), v), ~mask

        return jax.lax.while_loop(lambda s: s[0] < n, body, (jnp.int64(0), x, m))

    with jax.enable_x64(True):
        arguments = np.arange(9, dtype=np.int32), np.arange(9) % 2 == 0, np.int64(7)
        module = compile(jax.jit(masked), *arguments, targets=["spirv"])
        want = jax.jit(masked)(*arguments)
    with open_named("llvmpipe", without=without) as device, vm.load(module, device=device) as program:
        for one, other in zip(want, program.main(*arguments), strict=True):
            np.testing.assert_array_equal(one, other)
        assert submissions(program) <= 2


def endless(x: Any) -> Any:
    return jax.lax.while_loop(lambda s: s[0] >= 0, lambda s: (s[0] * 0.5, s[1] + 1.0), (x, jnp.float32(0)))


class TestEndless:
    """The host looks at limits between the dispatches of a loop that never ends."""

    def ends(self, program: vm.Program, error: type[Exception]) -> None:
        for call in (lambda: program.main(F(1)), lambda: program.main.submit(F(1)).result()):
            with pytest.raises(error):
                call()
        assert program.main(F(-1))[0] == -1  # the context stays usable

    def test_deadline(self, loop_programs: Programs) -> None:
        self.ends(loop_programs(endless, F(1), deadline=0.3), DeadlineExceeded)

    def test_fuel(self, loop_programs: Programs) -> None:
        self.ends(loop_programs(endless, F(1), fuel=2000), FuelExhausted)

    def test_cancel(self, loop_programs: Programs) -> None:
        program = loop_programs(endless, F(1))
        timer = threading.Timer(0.3, program.cancel)
        timer.start()
        with pytest.raises(Cancelled):
            program.main(F(1))
        timer.join()
        assert program.main(F(-1))[0] == -1


def test_the_report_says_why(loop_device: str) -> None:
    """Loops with large commands, and of unknown length around others of unknown length, stay with the host."""

    def large(x: Any) -> Any:
        return jax.lax.while_loop(lambda v: v[0] < 1, lambda v: v * 2, x)

    report = Report()
    compile(jax.jit(large), np.ones(1 << 20, F), targets=[TARGETS[loop_device]], report=report)
    (row,) = [row for row in report.not_taken if row.what == "one kernel for a loop"]
    assert "ops" in row.reason and "are the most" in row.reason
