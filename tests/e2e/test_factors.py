"""Factors of matrices where a device has no LAPACK: JAX's calls of it become loops. Against JAX, and by what the
factors are: residuals and orthogonality within a few roundings per row."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from orchestrion import compiler

LoadOn = Callable[[bytes, str], Any]
RANDOM = np.random.default_rng(11)
TARGETS = {"vulkan": "spirv", "opencl": "opencl"}


def compare(function: Any, arguments: list[Any], device: str, load_on: LoadOn, others: int = 0) -> list[Any]:
    """What a device gives. All but the last `others` are JAX's results within 50 roundings of the greatest element."""
    with jax.enable_x64(True):
        compiled = jax.jit(function)
        wanted = [np.asarray(value) for value in jax.tree.leaves(compiled(*arguments))]
        module = compiler.compile(compiled.lower(*arguments), (TARGETS[device],))
    found = [np.asarray(value) for value in jax.tree.leaves(load_on(module, device).main(*arguments))]
    assert [x.dtype for x in found] == [x.dtype for x in wanted]
    for got, want in list(zip(found, wanted, strict=True))[: len(found) - others]:
        np.testing.assert_allclose(got, want, rtol=0, atol=50 * np.abs(want).max() * eps(want))
    return found


def eps(value: Any) -> float:
    return float(np.finfo(value.dtype).eps)


def normal(*shape: int, dtype: Any = np.float32) -> Any:
    return RANDOM.normal(size=shape).astype(dtype)


def turned(a: Any) -> Any:
    return np.swapaxes(a, -1, -2)


def test_qr(load_on: LoadOn) -> None:
    """Signs are LAPACK's: JAX's results are ours. Columns of zeros, of huge and of tiny numbers keep Q orthogonal."""

    def program(tall: Any, wide: Any, odd: Any, c: Any) -> Any:
        whole = jnp.linalg.qr(tall[0], mode="complete")
        packed, tau = jnp.linalg.qr(odd, mode="raw")
        packed = packed.T
        products = [jax.lax.linalg.ormqr(packed, tau, c, left=True, transpose=True)]
        products += [jax.lax.linalg.ormqr(packed, tau, c.T, left=False, transpose=trans) for trans in (False, True)]
        gradient = jax.grad(lambda a: sum((x * jnp.cos(x)).sum() for x in jnp.linalg.qr(a)))(tall)
        return jnp.linalg.qr(tall), whole, jnp.linalg.qr(wide), jnp.linalg.qr(odd), products, gradient

    tall, wide, odd, c = normal(2, 6, 3), normal(3, 6, dtype=np.float64), normal(5, 5), normal(5, 2)
    odd[:, 2] = 0
    found = compare(program, [tall, wide, odd, c], "vulkan", load_on)
    for (q, r), a in zip(zip(found[0:8:2], found[1:8:2], strict=True), (tall, tall[0], wide, odd), strict=True):
        assert np.abs(turned(q) @ q - np.eye(q.shape[-1])).max() <= 10 * eps(a)
        assert np.abs(q @ r - a).max() <= 20 * eps(a)


def test_qr_of_numbers_that_have_no_square(load_on: LoadOn) -> None:
    a = normal(6, 4) * np.array([1e30, 1e-30, 1, 1e25], np.float32)
    q, r = compare(jnp.linalg.qr, [a], "opencl", load_on)
    assert np.abs(q.T @ q - np.eye(4)).max() <= 10 * eps(a)
    assert np.abs((q @ r - a) / np.abs(a).max(0)).max() <= 20 * eps(a)


def eigh(a: Any) -> Any:
    values, vectors = jnp.linalg.eigh(a)
    return values, vectors @ (values[..., None] * jnp.swapaxes(vectors, -1, -2)), vectors


def test_eigh(load_on: LoadOn) -> None:
    """Eigenvalues upwards, vectors up to their sign; one matrix of a batch that is not finite gives NaN, alone."""

    def program(a: Any, b: Any) -> Any:
        gradient = jax.grad(lambda b: sum((x * jnp.cos(x)).sum() for x in eigh(b)[:2]))(b)
        upper = jax.lax.linalg.eigh(b, lower=False, symmetrize_input=False)[1]
        return gradient, upper, eigh(a)

    a, b = normal(5, 5), normal(6, 6, dtype=np.float64)
    infinite, ones = np.diag([1, np.inf, 0, 0, 0]), np.ones((5, 5))
    batch = np.stack([a, 1e30 * a, 0 * a, a * np.nan, infinite, ones, 1e-30 * a]).astype(np.float32)
    *_, values, products, vectors = compare(program, [batch, b], "vulkan", load_on, others=3)
    for matrix, value, product, vector in zip(batch, values, products, vectors, strict=True):
        if not np.isfinite(matrix).all():
            assert np.isnan(value).all() and np.isnan(vector).all()
            continue
        matrix = (matrix + matrix.T) / 2
        least = 20 * eps(matrix) * np.abs(matrix).max()
        assert np.abs(vector.T @ vector - np.eye(5)).max() <= 20 * eps(matrix)
        assert np.abs(product - matrix).max() <= least
        assert np.abs(value - np.linalg.eigvalsh(matrix.astype(np.float64))).max() <= least
