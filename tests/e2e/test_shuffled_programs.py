"""Threads call small programs of several sizes on the device cpu in any order: every result has the bits of the first.

`ORCHESTRION_CPU_SUBMISSIONS` is the number of calls, of which one is a submission or more (`make stress`: a million).
"""

import os
import random
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from cpu_devices import best_level, open_cpu
from watchdog import run_together

from orchestrion import compiler, vm

pytestmark = pytest.mark.skipif(not best_level(), reason="no device cpu")

CALLS = int(os.environ.get("ORCHESTRION_CPU_SUBMISSIONS", "20000"))
#: threads of the device of each caller
THREADS = (1, 2, 3, 7)
SIZES = (1, 5, 33, 64)
#: seconds for all callers, far more than they take
PATIENCE = 60.0 + 0.005 * CALLS
#: submitted calls of a caller that are not over
PENDING = 8


def chain(x: Any) -> Any:
    return jnp.tanh(x * x) + 1


def product(x: Any) -> Any:
    return x @ x + x


def softmax(x: Any) -> Any:
    return jax.nn.softmax(x)


def loop(x: Any) -> Any:
    """A loop whose length depends on the numbers."""
    return jax.lax.while_loop(lambda v: v[1] < 9, lambda v: (v[0] * 0.5, v[1] + 2 + v[0].max()), (x, 0.0))[0]


def caller(number: int, made: list[tuple[bytes, int]], calls: int) -> None:
    """Calls the programs in any order, blocking or not, and compares each result."""
    chance = random.Random(number)
    with open_cpu(THREADS[number]) as device:
        cases = []
        for module, size in made:
            function = vm.load(module, device=device)["main"]
            for seed in range(3):
                x = np.random.default_rng(seed).random((size, size), np.float32)
                cases.append((function, x, np.array(function(x))))
        pending: list[tuple[Any, Any]] = []
        for _ in range(calls):
            function, x, want = chance.choice(cases)
            if chance.random() < 0.2:
                pending.append((function.submit(x), want))
                if len(pending) == PENDING:
                    finish(pending)
            else:
                assert np.array_equal(function(x), want)
        finish(pending)


def finish(pending: list[tuple[Any, Any]]) -> None:
    for future, want in pending:
        assert np.array_equal(future.result(), want)
    pending.clear()


def test_shuffled_programs() -> None:
    made = [
        (compiler.compile(function, np.zeros((size, size), np.float32), targets="cpu", target_cpu=best_level()), size)
        for function in (chain, product, softmax, loop)
        for size in SIZES
    ]
    callers = [partial(caller, number, made, CALLS // len(THREADS)) for number in range(len(THREADS))]
    run_together(callers, PATIENCE)
