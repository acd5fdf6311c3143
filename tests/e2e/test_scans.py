"""Cumulative sums and the like, sums of wide windows, and reductions that are split in two: as JAX has them."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from orchestrion import compiler

LoadOn = Callable[[bytes, str], Any]


def _scans(x: Any, y: Any, k: Any) -> Any:
    return [
        jnp.cumsum(x),
        lax.cumsum(x, reverse=True),
        lax.cummax(y, axis=0),
        lax.cumlogsumexp(y, axis=1, reverse=True),
        jnp.cumprod(1 + y / 100, axis=1),
        jnp.cumsum(k),
    ]


def _windows(x: Any, y: Any, k: Any) -> Any:
    return [
        lax.reduce_window(x, np.float32(0), lax.add, (100,), (1,), "SAME"),
        lax.reduce_window(x, np.float32(-np.inf), lax.max, (33,), (7,), "VALID"),
        lax.reduce_window(x, np.float32(np.inf), lax.min, (512,), (3,), ((3, 511),)),
        lax.reduce_window(y, np.float32(0), lax.add, (40, 3), (2, 2), ((20, 10), (1, 0))),
        lax.reduce_window(y, np.float32(0), lax.add, (64, 33), (1, 1), ((63, 0), (0, 5))),
    ]


def _sums(x: Any, y: Any, k: Any) -> Any:
    return [
        jnp.sum(x), jnp.vdot(x, x[::-1]), jnp.sum(jnp.exp(y), 0), jnp.max(y), jnp.mean(y), jnp.argmax(x), jnp.sum(k),
        jnp.dot(k, k),
    ]  # fmt: skip


@pytest.mark.parametrize("device", ["reference", "cpu", "opencl", "vulkan"])
def test_as_jax_has_them(device: str, load_on: LoadOn) -> None:
    random = np.random.default_rng(0)
    x, y = random.normal(size=5003).astype(np.float32), random.normal(size=(3001, 65)).astype(np.float32)
    arguments = x, y, random.integers(-9, 9, 70001).astype(np.int32)

    def every(*given: Any) -> Any:
        # what PoCL builds, half a second each, is kept to a few
        return _scans(*given)[:1] + _windows(*given)[-1:] + _sums(*given)[:2] if device == "opencl" else [
            *_scans(*given), *_windows(*given), *_sums(*given)
        ]  # fmt: skip

    module = compiler.compile(
        jax.jit(every, keep_unused=True).lower(*arguments), targets=["spirv" if device == "vulkan" else device]
    )
    got = load_on(module, device).main(*arguments)
    for number, (mine, want) in enumerate(zip(got, jax.jit(every)(*arguments), strict=True)):
        most = 1e-6 * float(np.max(np.abs(want)))
        np.testing.assert_allclose(np.asarray(mine), want, rtol=2e-5, atol=most, err_msg=str(number))


@pytest.mark.parametrize(("count", "dispatches"), [(31, 1), (64, 2), (4096, 4), (1 << 18, 6)])
def test_a_cumulative_sum_takes_a_dispatch_per_power_of_eight(count: int, dispatches: int, load_on: LoadOn) -> None:
    x = np.ones(count, np.float32)
    program = load_on(compiler.compile(jax.jit(jnp.cumsum).lower(x), targets=["reference"]), "reference")
    np.testing.assert_array_equal(np.asarray(program.main(x)), np.cumsum(x))
    assert program.statistics()["calls"][-1]["dispatches"] == dispatches
