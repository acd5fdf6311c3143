"""Loops and branches inside recordings: one submission on the reference device, JAX's results, and what stays a loop of
the host. Limits end recorded loops; devices that record none run the same modules.
"""

import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from alarms import Alarm
from loop_programs import Programs, submissions

from orchestrion import vm
from orchestrion.compiler import compile
from orchestrion.compiler.placement import Report
from orchestrion.vm.errors import Cancelled, DeadlineExceeded, FuelExhausted

F = np.float32
R = np.random.default_rng(0)
#: an example of a matrix, and one whose state is too large to be copied in each iteration
SMALL, LARGE = (R.normal(size=(n, n)).astype(F) / n for n in (4, 80))


def turns(x: Any) -> Any:
    """1,000 scalar iterations."""
    return jax.lax.while_loop(lambda s: s[0] < 1000.0, lambda s: (s[0] + 1.0, s[1] * 0.5 + s[0]), (x, jnp.float32(3)))


def repeat(x: Any, n: Any) -> Any:
    """The state is swapped: the whole old value is read for each element of the new one."""
    return jax.lax.while_loop(lambda s: s[1] < n, lambda s: (s[0] @ s[0].T + 0.5, s[1] + 1), (x, jnp.int32(0)))


def fibonacci(n: Any) -> Any:
    start = (jnp.int32(0), jnp.int32(1), jnp.int32(0))
    return jax.lax.while_loop(lambda s: s[2] < n, lambda s: (s[1], s[0] + s[1], s[2] + 1), start)


def nested(x: Any, n: Any) -> Any:
    def inner(v: Any, count: Any) -> Any:
        return jax.lax.while_loop(lambda t: t[1] < count, lambda t: (t[0] @ t[0].T, t[1] + 1), (v, jnp.int32(0)))[0]

    def body(s: Any) -> Any:
        y = jax.lax.cond(s[1] % 2 == 0, lambda v: inner(v, s[1]), lambda v: v @ v, s[0])
        z = jax.lax.switch(s[1], [lambda v: v.T @ v, lambda v: v @ v, lambda v: jnp.tanh(v) @ v], y)
        return z / (1 + jnp.abs(z).max()), s[1] + 1

    return jax.lax.while_loop(lambda s: s[1] < n, body, (x, jnp.int32(0)))


def stacked(x: Any, ys: Any) -> Any:
    def step(carry: Any, y: Any) -> Any:
        carry = carry @ carry.T + y
        return carry, (carry.sum(), carry[0])

    return jax.lax.scan(step, x, ys)


def counted(x: Any) -> Any:
    def outer(i: Any, v: Any) -> Any:
        return jax.lax.fori_loop(0, 11, lambda _, w: (w @ w.T) / (1 + jnp.abs(w).max()), v) + i

    return jax.lax.fori_loop(0, 30, outer, x)


def early(x: Any) -> Any:
    """Ends as soon as a value is found."""
    return jax.lax.while_loop(lambda s: (s[0] < 64) & (x[s[0]] <= 0), lambda s: (s[0] + 1, x[s[0]] + s[1]), (0, F(0)))


CASES: list[tuple[Callable[..., Any], list[tuple[Any, ...]]]] = [
    (turns, [(F(0),), (F(999.5),), (F(2000),)]),
    (repeat, [(SMALL, np.int32(n)) for n in range(5)]),
    (repeat, [(LARGE, np.int32(n)) for n in range(5)]),
    (fibonacci, [(np.int32(n),) for n in (0, 1, 2, 7, 20)]),
    (nested, [(SMALL, np.int32(n)) for n in (0, 1, 2, 5)]),
    (stacked, [(SMALL, R.normal(size=(25, 4, 4)).astype(F) / 30)]),
    (counted, [(SMALL,)]),
    (early, [(np.where(np.arange(64) == at, F(1), F(-1)),) for at in (0, 1, 63, 70)]),
]
IDS = [f"{function.__name__}-{number}" for number, (function, _) in enumerate(CASES)]


@pytest.fixture
def programs() -> Iterator[Callable[..., vm.Program]]:
    """Loads programs, which the end of the test closes."""
    programs = Programs("reference")
    yield programs.load
    programs.close()


def submitted(program: vm.Program, *arguments: Any) -> Any:
    """The results of a submitted call."""
    return getattr(program.main, "flat", program.main).submit(*arguments).result()


@pytest.mark.parametrize(("function", "calls"), CASES, ids=IDS)
def test_one_submission(function: Callable[..., Any], calls: list[tuple[Any, ...]], programs: Any) -> None:
    """A call is one submission, blocking and submitted, and gives what JAX gives."""
    program = programs(compile(jax.jit(function), *calls[0], targets=["reference"]))
    for arguments in calls:
        want = jax.tree.leaves(jax.jit(function)(*arguments))
        for results in (program.main(*arguments), submitted(program, *arguments)):
            for one, other in zip(want, jax.tree.leaves(results), strict=True):
                np.testing.assert_allclose(other, one, rtol=1e-4, atol=1e-6)
            assert submissions(program) == 1


@pytest.mark.parametrize(("function", "calls"), CASES, ids=IDS)
def test_a_device_that_records_none(function: Callable[..., Any], calls: list[tuple[Any, ...]], programs: Any) -> None:
    """The host follows the loops of the recordings on a profiled device, with the same results to the bit."""
    module = compile(jax.jit(function), *calls[0], targets=["reference"])
    program, profiled = programs(module), programs(module, profiling=True)
    assert program.device.info.control_flow and not profiled.device.info.control_flow
    for arguments in calls:
        want = jax.tree.leaves(program.main(*arguments))
        for results in (profiled.main(*arguments), submitted(profiled, *arguments)):
            for one, other in zip(want, jax.tree.leaves(results), strict=True):
                np.testing.assert_array_equal(other, one)
    assert submissions(profiled) > 1
    assert len([row for row in profiled.profile().calls if row.kind != "initializer"]) == 2 * len(calls)


@pytest.mark.parametrize("build", ["eager", "lazy"])
def test_deferred_recordings(build: str, programs: Any) -> None:
    module = compile(jax.jit(repeat), SMALL, np.int32(3), targets=["reference"])
    for profiling in (False, True):
        program = programs(module, profiling=profiling, build=build)
        np.testing.assert_allclose(program.main(SMALL, np.int32(3))[0], repeat(SMALL, 3)[0], rtol=1e-5)


def test_what_depends_on_sizes_stays_with_the_host(programs: Any) -> None:
    """The number of iterations is a size of the call. The report says why; loops with a predicate are recorded."""

    def scanned(x: Any) -> Any:
        return jax.lax.scan(lambda c, y: (jnp.sin(c) + y, c), F(0), x)

    def halved(x: Any) -> Any:
        return jax.lax.while_loop(lambda v: v.sum() > 1, lambda v: v / 2, x)

    (rows,) = jax.export.symbolic_shape("n")
    spec = jax.ShapeDtypeStruct((rows,), F)
    x = np.linspace(1, 2, 9).astype(F)
    for function, recorded in ((scanned, False), (halved, True)):
        report = Report()
        program = programs(compile(jax.jit(function), spec, targets=["reference"], report=report))
        (loop,) = [row for row in report.ops if row.op == "stablehlo.while"]
        assert ("recording in main" in [place.what for place in loop.places]) == recorded
        notes = [row.reason for row in report.not_taken if row.what == "a loop or branch in a recording"]
        assert ["depends on sizes" in note or "number depends" in note for note in notes] == [True] * (not recorded)
        for one, other in zip(jax.tree.leaves(function(x)), jax.tree.leaves(program.main(x)), strict=True):
            np.testing.assert_allclose(other, one, rtol=1e-6)
        assert submissions(program) == 1


def test_other_targets_keep_the_loop_of_the_host() -> None:
    """Their drivers record no loops, so their programs do not contain any."""
    module = compile(jax.jit(fibonacci), np.int32(1), targets=["spirv"])
    assert b"hal.recording.begin_loop" not in bytes(module)


def endless(x: Any) -> Any:
    return jax.lax.while_loop(lambda s: s[0] >= 0, lambda s: (s[0] * 0.5, s[1] + 1.0), (x, jnp.float32(0)))


@pytest.fixture(scope="module")
def endless_module() -> Any:
    return compile(jax.jit(endless), F(1), targets=["reference"])


@pytest.mark.parametrize("profiling", [False, True])
class TestEndless:
    """A recorded loop that never ends, on a device that records it and on one where the host follows it."""

    def ends(self, program: vm.Program, error: type[Exception], match: str) -> None:
        for call in (lambda: program.main(F(1)), lambda: submitted(program, F(1))):
            with pytest.raises(error, match=match):
                call()
        assert program.main(F(-1))[0] == -1  # the context stays usable

    def test_deadline(self, profiling: bool, endless_module: Any, programs: Any) -> None:
        self.ends(
            programs(endless_module, profiling=profiling, deadline=0.2), DeadlineExceeded, "0.2 s|exceeded its deadline"
        )

    def test_fuel(self, profiling: bool, endless_module: Any, programs: Any) -> None:
        """One unit for each microsecond."""
        started = time.monotonic()
        self.ends(programs(endless_module, profiling=profiling, fuel=200_000), FuelExhausted, "200000")
        assert 2 * 0.15 < time.monotonic() - started < 20

    def test_cancel(self, profiling: bool, endless_module: Any, programs: Any) -> None:
        program = programs(endless_module, profiling=profiling)
        for call in (lambda: program.main(F(1)), lambda: submitted(program, F(1))):
            timer = threading.Timer(0.2, program.cancel)
            timer.start()
            with pytest.raises(Cancelled):
                call()
            timer.join()
        assert program.main(F(-1))[0] == -1

    def test_interrupt(self, profiling: bool, endless_module: Any, programs: Any) -> None:
        """Ctrl-C ends a blocking call."""
        program = programs(endless_module, profiling=profiling)
        with pytest.raises(KeyboardInterrupt), Alarm(0.2):
            program.main(F(1))
        assert program.main(F(-1))[0] == -1
