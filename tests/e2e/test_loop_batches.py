"""Loops that the host submits in batches on OpenCL and Vulkan: JAX's results, those of the loop of the host to the bit,
how many submissions they take, how limits end them, and which loops stay with the host.
"""

import functools
import threading
from collections.abc import Callable
from math import ceil, log2
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
from orchestrion.compiler.placement import Report
from orchestrion.compiler.targets.passes.loops.mark_kernel_loops import MAX_BATCH
from orchestrion.vm.errors import Cancelled, DeadlineExceeded, FuelExhausted

F = np.float32
RANDOM = np.random.default_rng(0)
VECTOR = RANDOM.normal(size=256).astype(F)
#: a matrix that keeps the length of vectors: a reflection, then a rotation of the axes
MATRIX = np.roll(np.eye(256) - 2 * np.outer(VECTOR, VECTOR) / (VECTOR @ VECTOR), 1, axis=0).astype(F)


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch, loop_device: str) -> Callable[..., None]:
    """Changes the machines of later compilations."""
    return functools.partial(change_machines, loop_device, monkeypatch)


def power(x: Any, n: Any) -> Any:
    """A product of a matrix in each of `n` iterations, which only the device knows."""
    return jax.lax.while_loop(lambda s: s[1] < n, lambda s: (MATRIX @ s[0] + 1, s[1] + 1), (x, jnp.int32(0)))


@pytest.mark.sampled(every=3)
@pytest.mark.parametrize("turns", [0, 1, 2, 3, 7, 8, 63, 64, 127, 128, 200])
def test_iterations(turns: int, loop_programs: Programs, machine: Any) -> None:
    """Submissions of 1, 2, 4 iterations and so on, and iterations behind the end that change nothing."""
    program = loop_programs(power, VECTOR, np.int32(1))
    got = program.main(VECTOR, np.int32(turns))
    assert int(got[1]) == turns
    assert submissions(program) <= 2 + ceil(log2(turns + 1)) + turns // MAX_BATCH
    np.testing.assert_allclose(got[0], jax.jit(power)(VECTOR, turns)[0], rtol=2e-3, atol=2e-3)
    machine(merged_ops=0)
    host = loop_programs(power, VECTOR, np.int32(1))
    np.testing.assert_array_equal(got[0], host.main(VECTOR, np.int32(turns))[0])
    assert submissions(host) >= turns


def branches(x: Any, n: Any) -> Any:
    """Small branches, on a predicate and on an index, between large commands."""

    def body(state: Any) -> Any:
        v, i = state
        v = MATRIX @ v
        scale = jax.lax.cond(v[0] > 0, lambda w: jnp.cumsum(w[:4]).sum(), lambda w: jnp.sin(w[4]) * 3, v)
        shift = jax.lax.switch(i % 3, [lambda w: w[:3].max(), lambda w: w[1] - i, lambda w: jnp.exp(-w[2])], v)
        return MATRIX @ v * jnp.tanh(scale) + jnp.tanh(shift), i + 1

    return jax.lax.while_loop(lambda s: s[1] < n, body, (x, jnp.int32(0)))


def large_state(x: Any, n: Any) -> Any:
    """A state whose values take an entry each to copy, and a fill of the same size."""
    big = jnp.tile(x, 200)

    def body(state: Any) -> Any:
        a, b, i = state
        return b[::-1] * 0.5 + i, jnp.where(i % 2 == 0, a[::-1], b) + 1, i + 1

    a, b, i = jax.lax.while_loop(lambda s: s[2] < n, body, (big, big + 1, jnp.int32(0)))
    return a[:999], b[-999:], i


def fills(x: Any, n: Any) -> Any:
    """An array that starts anew in each iteration, before several updates in place."""

    def body(state: Any) -> Any:
        v, i = state
        fresh = jnp.zeros(40_000, jnp.int32).at[(jnp.abs(v) * 999).astype(jnp.int32) % 40_000].add(i + 1)
        return MATRIX @ v + fresh[:256] + fresh[20_000:20_256], i + 1

    return jax.lax.while_loop(lambda s: s[1] < n, body, (x, jnp.int32(0)))


def flags(x: Any, n: Any) -> Any:
    """A predicate that the body computes, with masks, bytes and words of 64 bits in the state."""

    def body(state: Any) -> Any:
        v, mask, count, _ = state
        v = jnp.where(mask, MATRIX @ v, v)
        count = count + (v > 0).sum().astype(count.dtype)
        return v, ~mask, count, count < n.astype(count.dtype) * 100

    return jax.lax.while_loop(lambda s: s[3], body, (x, x > 0, jnp.int8(0).astype(jnp.int32), n > 0))


def nested(x: Any, n: Any) -> Any:
    """A loop in batches inside of a loop that the host follows."""

    def outer(state: Any) -> Any:
        v, i = state
        v, _ = jax.lax.while_loop(lambda s: s[1] < i, lambda s: (MATRIX @ s[0] + 1, s[1] + 1), (v, jnp.int32(0)))
        return v / (1 + jnp.abs(v).max()), i + 1

    return jax.lax.while_loop(lambda s: s[1] < n, outer, (x, jnp.int32(0)))


def several(x: Any, n: Any) -> Any:
    """Two loops, one after the other, with one entry in both and outside of them."""
    first, _ = power(MATRIX @ x + 1, n)
    return power(first / 3, n // 2)


def large_branches(x: Any, n: Any) -> Any:
    """Branches with large commands, one inside the other, whose arms write what the others read."""

    def body(state: Any) -> Any:
        v, w, i = state

        def inner(v: Any, w: Any) -> Any:
            return jax.lax.cond(v[3] > w[3], lambda v, w: (MATRIX @ w, v + 1), lambda v, w: (w, MATRIX.T @ v), v, w)

        arms = [lambda v, w: (MATRIX @ v, w * 0.5), inner, lambda v, w: (v - w, MATRIX.T @ w), inner]
        v, w = jax.lax.switch(i % 5, arms, v, w)
        return MATRIX @ v + 1, w, i + 1

    return jax.lax.while_loop(lambda s: s[2] < n, body, (x, x[::-1], jnp.int32(0)))


CASES = [branches, large_branches, large_state, fills, flags, nested, several]


@pytest.mark.sampled(every=2)
@pytest.mark.parametrize("kind", ["cpu", "gpu"])
@pytest.mark.parametrize("function", CASES, ids=[case.__name__ for case in CASES])
def test_bits(function: Any, kind: str, loop_programs: Programs, machine: Any) -> None:
    """The results are those of the loop of the host, to the bit, with fewer submissions, also with code for a GPU."""
    merged = loop_programs(function, VECTOR, np.int32(1), machines=[kind])
    machine(merged_ops=0)
    host = loop_programs(function, VECTOR, np.int32(1), machines=[kind])
    for turns in (0, 1, 2, 5, 11):
        want = jax.tree.leaves(host.main(VECTOR, np.int32(turns)))
        for one, other in zip(want, jax.tree.leaves(merged.main(VECTOR, np.int32(turns))), strict=True):
            np.testing.assert_array_equal(np.asarray(one), np.asarray(other))
    assert submissions(merged) < submissions(host)
    for one, other in zip(jax.tree.leaves(jax.jit(function)(VECTOR, 11)), want, strict=True):
        np.testing.assert_allclose(np.asarray(other), np.asarray(one), rtol=2e-3, atol=2e-3)


@pytest.mark.sampled(every=6)
@pytest.mark.parametrize("merged_ops", [1, 40])
@pytest.mark.parametrize("name", [name for name, _, _ in PROGRAMS])
def test_small_programs(name: str, merged_ops: int, loop_programs: Programs, machine: Any) -> None:
    """No loop becomes one kernel, and nearly every command is an entry with a predicate."""
    (function, shapes) = next((row[1], row[2]) for row in PROGRAMS if row[0] == name)
    random = np.random.default_rng(1)
    arguments = [np.asarray(random.integers(0, 4, shape)).astype(dtype) for shape, dtype in shapes]
    machine(loop_ops=0, merged_ops=merged_ops)
    batches = loop_programs(function, *arguments)
    machine(merged_ops=0)
    host = loop_programs(function, *arguments)
    want, got = (jax.tree.leaves(program.main(*arguments)) for program in (host, batches))
    for one, two in zip(want, got, strict=True):
        np.testing.assert_array_equal(np.asarray(one), np.asarray(two))


@pytest.mark.parametrize("without", [{"int8", "int16"}, {"int8", "int16", "int64", "float64"}], ids=["int8", "int64"])
def test_devices_without_integers(without: set[str], needs_vulkan: None) -> None:
    """The predicate is a byte of a word there."""
    module = compile(jax.jit(flags), VECTOR, np.int32(1), targets=["spirv"])
    with open_named("llvmpipe", without=frozenset(without)) as device, vm.load(module, device=device) as program:
        for one, other in zip(jax.jit(flags)(VECTOR, 5), program.main(VECTOR, np.int32(5)), strict=True):
            np.testing.assert_allclose(np.asarray(other), np.asarray(one), rtol=2e-3, atol=2e-3)


def endless(x: Any) -> Any:
    return jax.lax.while_loop(lambda s: s[1] >= 0, lambda s: (MATRIX @ s[0], s[1] * 0.5), (x, x[0]))


class TestEndless:
    """The host looks at limits between the batches of a loop that never ends."""

    def ends(self, program: vm.Program, error: type[Exception]) -> None:
        for call in (lambda: program.main(VECTOR + 9), lambda: program.main.submit(VECTOR + 9).result()):
            with pytest.raises(error):
                call()
        assert program.main(-VECTOR - 9)[1] < 0  # the context stays usable

    def test_deadline(self, loop_programs: Programs) -> None:
        self.ends(loop_programs(endless, VECTOR, deadline=0.3), DeadlineExceeded)

    def test_fuel(self, loop_programs: Programs) -> None:
        self.ends(loop_programs(endless, VECTOR, fuel=5000), FuelExhausted)

    def test_cancel(self, loop_programs: Programs) -> None:
        program = loop_programs(endless, VECTOR)
        timer = threading.Timer(0.3, program.cancel)
        timer.start()
        with pytest.raises(Cancelled):
            program.main(VECTOR + 9)
        timer.join()
        assert program.main(-VECTOR - 9)[1] < 0


def test_the_report_says_why(loop_device: str) -> None:
    """Loops around loops, and loops with iterations of some ms, stay with the host."""

    def large(x: Any) -> Any:
        return jax.lax.while_loop(lambda v: v[0] < 1, lambda v: v * 2, x)

    for function, argument, words in (
        (large, np.ones(1 << 24, F), "ops, "),
        (lambda x: nested(x, 3), VECTOR, "it contains a loop"),
    ):
        report = Report()
        compile(jax.jit(function), argument, targets=[TARGETS[loop_device]], report=report)
        reasons = [row.reason for row in report.not_taken if row.what == "batches of a loop"]
        assert len(reasons) == 1 and words in reasons[0]
