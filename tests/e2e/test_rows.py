"""Softmax, norms and what else reduces rows and computes on with them: one dispatch, the same numbers as JAX."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from orchestrion import compiler

LoadOn = Callable[[bytes, str], Any]
DEVICES = ("reference", "opencl", "vulkan")


def _softmax(x: Any) -> Any:
    return jax.nn.softmax(x, axis=-1)


def _layer_norm(x: Any, scale: Any, offset: Any) -> Any:
    mean, variance = jnp.mean(x, -1, keepdims=True), jnp.var(x, -1, keepdims=True)
    return (x - mean) / jnp.sqrt(variance + 1e-5) * scale + offset


def _residual_norm(x: Any, y: Any) -> Any:
    z = x + y
    return z, z * jax.lax.rsqrt(jnp.mean(z * z, -1, keepdims=True) + 1e-6), jnp.max(z, -1)


def _ordered(x: Any) -> Any:
    """A reducer of several values, of which the order matters and no neutral ones are known."""
    return jnp.argmax(x, -1, keepdims=True) + x


def _backwards(x: Any) -> Any:
    """What turns over the row read at its place, and at another."""
    y = x + 1
    return (y + y[:, ::-1]) * jnp.sum(y * y, -1, keepdims=True) - jnp.max(y, -1, keepdims=True)


def _long_and_short(x: Any, y: Any) -> Any:
    """A fold of fewer elements than invocations share the row."""
    return jnp.sum(jnp.exp(y - jnp.max(x, -1, keepdims=True)), -1)


def _loss(x: Any, y: Any) -> Any:
    return jax.value_and_grad(lambda x: -jnp.mean(jnp.sum(jax.nn.log_softmax(x) * y, -1)))(x)


def _moments(x: Any) -> Any:
    """Rows of more than one axis, results of three sizes."""
    mean = jnp.mean(x, (1, 2))
    centred = x - mean[:, None, None]
    return mean, jnp.mean(centred**2, (1, 2)), jnp.max(jnp.abs(centred), 2), jnp.exp(centred)


#: function, shapes, dispatches; the lengths of rows take every number of invocations, even ones and odd
PROGRAMS: dict[str, tuple[Callable[..., Any], list[tuple[int, ...]], int]] = {
    "softmax, short rows": (_softmax, [(70, 10)], 1),
    "softmax, 16 invocations": (_softmax, [(5, 3, 37)], 1),
    "softmax, fewer fours than invocations": (_softmax, [(5, 3, 36)], 1),
    "softmax, fours and a rest": (_softmax, [(4, 100)], 1),
    "softmax, 16 elements each": (_softmax, [(3, 251)], 1),
    "softmax, 64 invocations": (_softmax, [(3, 1000)], 1),
    "softmax, 128 invocations": (_softmax, [(16, 2049)], 1),
    "softmax, in loops": (_softmax, [(16, 2800)], 1),
    "softmax, in loops, not kept": (_softmax, [(16, 5000)], 1),
    "softmax, one row": (_softmax, [(300,)], 1),
    "softmax, few and long rows": (_softmax, [(2, 3000)], 4),
    "layer norm": (_layer_norm, [(9, 768), (768,), (768,)], 1),
    "layer norm, many rows": (_layer_norm, [(1024, 20), (20,), (20,)], 1),
    "residual norm": (_residual_norm, [(4, 130), (4, 130)], 1),
    "ordered": (_ordered, [(6, 83)], 1),
    "ordered, fours": (_ordered, [(6, 84)], 1),
    "backwards": (_backwards, [(6, 100)], 1),
    "long and short": (_long_and_short, [(16, 2800), (16, 5)], 1),
    "loss and gradient": (_loss, [(8, 20), (8, 20)], 2),
    "moments": (_moments, [(5, 4, 33)], 2),
}


#: what PoCL builds, at half a second and more each
ON_OPENCL = (
    "softmax, short rows",
    "softmax, 16 elements each",
    "softmax, in loops",
    "layer norm, many rows",
    "ordered",
    "moments",
)


@pytest.mark.parametrize("device", DEVICES)
def test_results_are_jax_s(device: str, load_on: LoadOn) -> None:
    """The programs as one function: one compilation, one call."""
    programs = {name: row for name, row in PROGRAMS.items() if device != "opencl" or name in ON_OPENCL}
    random = np.random.default_rng(5)
    arrays = [random.normal(size=shape).astype(np.float32) for _, given, _ in programs.values() for shape in given]

    def every(*arrays: Any) -> Any:
        rest = list(arrays)
        return [function(*[rest.pop(0) for _ in given]) for function, given, _ in programs.values()]

    module = compiler.compile(jax.jit(every).lower(*arrays), targets=["spirv" if device == "vulkan" else device])
    got = iter(load_on(module, device).main.flat(*arrays))
    for name, (function, given, _) in programs.items():
        arguments, arrays = arrays[: len(given)], arrays[len(given) :]
        for want in jax.tree.leaves(jax.jit(function)(*arguments)):
            np.testing.assert_allclose(np.asarray(next(got)), want, rtol=2e-5, atol=2e-6, err_msg=name)


@pytest.mark.parametrize("name", PROGRAMS)
def test_dispatches(name: str, load_on: LoadOn) -> None:
    function, given, dispatches = PROGRAMS[name]
    arrays = [np.ones(shape, np.float32) for shape in given]
    program = load_on(compiler.compile(jax.jit(function).lower(*arrays), targets=["reference"]), "reference")
    program.main(*arrays)
    assert program.statistics()["calls"][-1]["dispatches"] == dispatches
