"""Types of fewer bits than devices compute with: every conversion and what is computed, on every device."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

jax = pytest.importorskip("jax")
ml_dtypes = pytest.importorskip("ml_dtypes")

import jax.numpy as jnp  # noqa: E402

from orchestrion.compiler.driver import compile  # noqa: E402
from orchestrion.schema.dtypes import BY_NAME  # noqa: E402

Array = np.ndarray[Any, Any]
DEVICES = ("reference", "opencl", "vulkan")


def mlp(x: Any, w1: Any, b1: Any, w2: Any) -> Any:
    """A layer with a bias and tanh, one without, a softmax: bf16 between all of them."""
    hidden = jnp.tanh(x @ w1 + b1)
    return jax.nn.softmax(hidden @ w2), jnp.max(hidden, axis=0), jnp.sort(hidden, axis=1)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", ["bf16", "f16"])
def test_a_network(dtype: str, device: str, load_on: Callable[..., Any]) -> None:
    random, kind = np.random.default_rng(3), BY_NAME[dtype].numpy
    arrays = [random.standard_normal(shape).astype(kind) for shape in ((4, 8), (8, 16), (16,), (16, 5))]
    program = load_on(compile(jax.jit(mlp).lower(*arrays)), device)
    got = program.main(*arrays)
    program.close()
    unit = float(ml_dtypes.finfo(kind).eps)
    for ours, theirs in zip(got, jax.jit(mlp)(*arrays), strict=True):
        assert ours.dtype == kind
        want = np.asarray(theirs).astype(np.float32)
        np.testing.assert_allclose(ours.astype(np.float32), want, rtol=4 * unit, atol=unit * np.abs(want).max())
