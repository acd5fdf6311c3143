"""Products and convolutions in every order of axes, on devices that compile kernels, against JAX."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from orchestrion import compiler


def programs(x: Any, k: Any, a: Any, c: Any) -> list[Any]:
    """Every order of axes of products and convolutions, at sizes that nothing divides."""
    conv = lax.conv_general_dilated
    first, last = ("NCHW", "OIHW", "NCHW"), ("NHWC", "HWIO", "NHWC")
    image, kernel = jnp.transpose(x, (0, 3, 1, 2)), jnp.transpose(k, (3, 2, 0, 1))
    return [
        conv(x, k, (1, 1), "SAME", dimension_numbers=last),
        conv(x, k, (2, 2), [(1, 2), (0, 1)], rhs_dilation=(2, 1), dimension_numbers=last),
        conv(image, kernel, (1, 2), "SAME", dimension_numbers=first),
        conv(x, k, (1, 1), [(1, 1), (2, 0)], lhs_dilation=(2, 1), dimension_numbers=last),
        conv(x, jnp.reshape(k[..., :18], (3, 3, 6, 18))[:, :, :1], (1, 1), "SAME", dimension_numbers=last,
             feature_group_count=6),
        jnp.einsum("bik,bkj->bij", a, c), jnp.einsum("bik,bjk->bij", a, jnp.transpose(c, (0, 2, 1))),
        jnp.einsum("bki,bkj->bij", jnp.transpose(a, (0, 2, 1)), c), jnp.einsum("bij,bjk->ik", a, c),
    ]  # fmt: skip


@pytest.mark.parametrize("device", ["opencl", "vulkan"])
def test_any_order_of_axes(device: str, load_on: Any) -> None:
    rng = np.random.default_rng(3)
    shapes = ((2, 11, 13, 6), (3, 3, 6, 21), (3, 19, 72), (3, 72, 35))
    arrays = [rng.standard_normal(shape, np.float32) for shape in shapes]
    want = jax.jit(programs)(*arrays)
    target = "spirv" if device == "vulkan" else device
    module = compiler.compile(jax.jit(programs).lower(*arrays), targets=[target])
    for got, expected in zip(load_on(module, device).main(*arrays), want, strict=True):
        np.testing.assert_allclose(np.asarray(got), expected, rtol=1e-5, atol=1e-5)


def attention(q: Any, k: Any, v: Any) -> Any:
    scores = jnp.einsum("bhqd,bhkd->bhqk", q, k) / 8
    scores = jnp.where(jnp.tril(jnp.ones((128, 128), bool)), scores, -jnp.inf)
    return jnp.einsum("bhqk,bhkd->bhqd", jax.nn.softmax(scores), v)


@pytest.mark.parametrize(("device", "dispatches"), [("opencl", 4), ("vulkan", 7)])
def test_attention_is_two_products_and_a_softmax(device: str, dispatches: int, load_on: Any) -> None:
    """Scaling is behind the first product, the mask in the softmax. What else there is packs."""
    rng = np.random.default_rng(4)
    arrays = [rng.standard_normal((1, 2, 128, 64), np.float32) for _ in range(3)]
    target = "spirv" if device == "vulkan" else device
    program = load_on(compiler.compile(jax.jit(attention).lower(*arrays), targets=[target]), device)
    got = np.asarray(program.main(*arrays))
    assert program.statistics()["calls"][-1]["dispatches"] == dispatches
    np.testing.assert_allclose(got, jax.jit(attention)(*arrays), rtol=1e-5, atol=1e-5)
