"""Factors of matrices where a device has no LAPACK: JAX's calls of it become loops. Against JAX, and by what the
factors are: residuals and orthogonality within a few roundings per row.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from orchestrion import compiler

LoadOn = Callable[[bytes, str], Any]
RANDOM = np.random.default_rng(11)
TARGETS = {"reference": "reference", "vulkan": "spirv", "opencl": "opencl"}


def compare(function: Any, arguments: list[Any], device: str, load_on: LoadOn, others: int = 0) -> list[Any]:
    """What a device gives. All but the last `others` are JAX's results within 50 roundings of the greatest element."""
    with jax.enable_x64(True):
        compiled = jax.jit(function)
        wanted = [np.asarray(value) for value in jax.tree.leaves(compiled(*arguments))]
        module = compiler.compile(compiled.lower(*arguments), targets=(TARGETS[device],))
    found = [
        np.asarray(value) for value in jax.tree.leaves(load_on(module, device).main.flat(*jax.tree.leaves(arguments)))
    ]
    assert [x.dtype for x in found] == [x.dtype for x in wanted]
    for got, want in list(zip(found, wanted, strict=True))[: len(found) - others]:
        np.testing.assert_allclose(got, want, rtol=0, atol=50 * np.abs(want).max() * eps(want))
    return found


def eps(value: Any) -> float:
    return float(np.finfo(value.dtype).eps) if value.dtype.kind in "fc" else 0.0


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
    odd *= np.array([1e15, 1e-30, 0, 1, 1e10], np.float32)
    found = compare(program, [tall, wide, odd, c], "vulkan", load_on)
    for (q, r), a in zip(zip(found[0:8:2], found[1:8:2], strict=True), (tall, tall[0], wide, odd), strict=True):
        assert np.abs(turned(q) @ q - np.eye(q.shape[-1])).max() <= 10 * eps(a)
        assert (np.abs(q @ r - a) <= 20 * eps(a) * np.abs(a).max(-2, keepdims=True)).all()


@pytest.mark.long
def test_condensed_forms(load_on: LoadOn) -> None:
    """Hessenberg's and tridiagonal forms, with the vectors and factors that LAPACK gives; of triangles with anything
    beside them.
    """

    def program(a: Any, c: Any) -> Any:
        forms = [jax.lax.linalg.tridiagonal(x, lower=lower) for x, lower in ((a, True), (a[0], False), (c, False))]
        return jax.lax.linalg.hessenberg(a), jax.scipy.linalg.hessenberg(c, calc_q=True), forms

    a, c = normal(2, 5, 5), (normal(4, 4) + 1j * normal(4, 4)).astype(np.complex64)
    compare(program, [a, c], "vulkan", load_on)


@pytest.mark.long
def test_opencl(load_on: LoadOn) -> None:
    """One program with all kinds of loops, of numbers that have no square."""

    def program(a: Any) -> Any:
        u, s, vt = jnp.linalg.svd(a, full_matrices=False)
        values, vectors = jnp.linalg.eigh(a[:4])
        return (s, (u * s) @ vt, u.T @ u, vt @ vt.T), (values, (vectors * values) @ vectors.T)

    compare(program, [normal(6, 4) * np.array([1e30, 1e-30, 1, 1e25], np.float32)], "opencl", load_on)


def eigh(a: Any) -> Any:
    values, vectors = jnp.linalg.eigh(a)
    return values, vectors @ (values[..., None] * jnp.swapaxes(vectors, -1, -2)), vectors


@pytest.mark.long
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


@pytest.mark.long
def test_svd(load_on: LoadOn) -> None:
    """Singular values downwards, vectors up to their sign, orthogonal also where values are zero."""

    def program(a: Any, b: Any, batch: Any) -> Any:
        u, s, vt = jnp.linalg.svd(batch, full_matrices=False)
        return jnp.linalg.lstsq(b.T, b.T[:, 0] ** 2), jnp.linalg.pinv(a), jnp.linalg.svd(b), u, s, vt

    a, b = normal(5, 3), normal(3, 4, dtype=np.float64)
    ranks = np.outer(a[:, 0], a[0]), np.diag(np.ones(5))[:, :3] * [1, 0, 1e-20]
    batch = np.stack([a, 1e30 * a, 1e-30 * a, *ranks, 0 * a, a * np.nan]).astype(np.float32)
    *_, left, values, right, u, s, vt = compare(program, [a, b, batch], "vulkan", load_on, others=6)
    decomposed = [(b, left, values, right), *zip(batch, u, s, vt, strict=True)]
    for matrix, one, lengths, other in decomposed[:-1]:
        least = 20 * eps(matrix) * max(np.abs(matrix).max(), np.finfo(matrix.dtype).tiny)
        rank = len(lengths)
        for vectors in (one.T, other):
            assert np.abs(vectors @ vectors.T - np.eye(len(vectors))).max() <= 20 * eps(matrix)
        assert np.abs((one[:, :rank] * lengths) @ other[:rank] - matrix).max() <= least
        assert np.abs(lengths - np.linalg.svd(matrix.astype(np.float64))[1]).max() <= least
    assert np.isnan(u[-1]).all() and np.isnan(s[-1]).all() and np.isnan(vt[-1]).all()


@pytest.mark.sampled(every=2)
@pytest.mark.parametrize("device", ["reference", "vulkan"])
def test_complex_numbers(device: str, load_on: LoadOn) -> None:
    """Loops on every device, for libraries are over real numbers."""

    def program(a: Any, b: Any) -> Any:
        values, v = jnp.linalg.eigh(b[:3] + b[:3].conj().T)
        u, s, vh = jnp.linalg.svd(a, full_matrices=False)
        same = v.conj().T @ v, (v * values) @ v.conj().T, (u * s[:, None]) @ vh, vh @ jnp.swapaxes(vh, 1, 2).conj()
        packed, tau = jnp.linalg.qr(b, mode="raw")
        square = a @ jnp.swapaxes(jnp.conj(a), -1, -2) + jnp.eye(4, dtype=a.dtype)
        products = [jax.lax.linalg.ormqr(packed.T, tau, b, left=True, transpose=True)]
        products += [jax.lax.linalg.ormqr(packed.T, tau, b.T, left=False, transpose=trans) for trans in (False, True)]
        adjoint = jax.lax.linalg.triangular_solve(a, a, conjugate_a=True, transpose_a=True, lower=True)
        factors = jnp.linalg.cholesky(square), jnp.isnan(jnp.linalg.cholesky(-square))
        solved = jnp.linalg.solve(a, a[:, ::-1])
        return jnp.linalg.qr(a), packed, tau, products, adjoint, factors, solved, values, s, same

    a = normal(2, 4, 4) + 1j * normal(2, 4, 4) + 4 * np.eye(4, dtype=np.complex64)
    b = normal(5, 3, dtype=np.float64) + 1j * normal(5, 3, dtype=np.float64)
    compare(program, [a.astype(np.complex64), b], device, load_on)


@pytest.mark.parametrize("device", TARGETS)
def test_three_diagonals(load_on: LoadOn, device: str) -> None:
    """Rows change places where the pivot is the smaller one; one row alone; a system that has no solution is NaN."""

    def program(lower: Any, main: Any, upper: Any, b: Any, wide: Any) -> Any:
        solve = jax.lax.linalg.tridiagonal_solve
        one = solve(lower[:, :1], main[:, :1], upper[:, :1], b[:, :1])
        return solve(lower, main, upper, b), one, solve(*wide), solve(lower * 0, main * 0, upper, b)

    wide = [normal(4, dtype=np.float64) for _ in range(3)] + [normal(4, 1, dtype=np.float64)]
    arguments = [normal(3, 7), normal(3, 7), normal(3, 7), normal(3, 7, 2), wide]
    found = compare(program, arguments, device, load_on, others=1)
    assert np.isnan(found[-1]).all()
