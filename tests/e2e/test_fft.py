"""Fourier transforms on every device, against NumPy in double precision, and programs of them against JAX.

Bound: the error of a whole result, in the root mean square, is within `MOST` units of rounding.
"""

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest

jax = pytest.importorskip("jax")

import jax.numpy as jnp  # noqa: E402

from orchestrion.compiler.driver import compile  # noqa: E402

Array = np.ndarray[Any, Any]
TARGETS = {"reference": "reference", "opencl": "opencl", "vulkan": "spirv"}
MOST = 4.0


def numbers(*shape: int) -> Array:
    random = np.random.default_rng(shape)
    return (random.normal(size=shape) + 1j * random.normal(size=shape)).astype(np.complex64)


def kinds(length: int) -> tuple[Callable[..., Any], Callable[..., Any], tuple[Array, ...]]:
    """The four kinds at a length, in JAX and in NumPy, and their arguments: two lines each."""

    def of(fft: Any) -> Callable[..., Any]:
        return lambda z, h: (fft.fft(z), fft.ifft(z), fft.rfft(z.real), fft.irfft(h, n=length))

    return of(jnp.fft), of(np.fft), (numbers(2, length), numbers(2, length // 2 + 1))


def error(got: Array, want: Array) -> float:
    """In units of rounding of f32, relative to the whole."""
    return float(np.linalg.norm(got - want) / np.linalg.norm(want) / np.finfo(np.float32).eps)


def run(function: Callable[..., Any], arrays: tuple[Array, ...], device: str, load_on: Callable[..., Any]) -> Any:
    program = load_on(compile(jax.jit(function).lower(*arrays), targets=[TARGETS[device]]), device)
    results = program.main(*arrays)
    dispatches = program.statistics()["calls"][-1]["dispatches"]
    program.close()
    return results, dispatches


#: 1, small factors, primes with a matrix and with a chirp, two and three factors
LENGTHS = (1, 2, 3, 7, 12, 31, 67, 131, 1000, 4096)
ELSEWHERE = ((1, "vulkan"), (7, "vulkan"), (67, "vulkan"), (131, "vulkan"), (4096, "vulkan"), (36, "opencl"))


@pytest.mark.parametrize(("length", "device"), [*product(LENGTHS, ("reference",)), *ELSEWHERE])
def test_lines(length: int, device: str, load_on: Callable[..., Any]) -> None:
    ours, exact, arrays = kinds(length)
    got, _ = run(ours, arrays, device, load_on)
    for name, have, want in zip(("FFT", "IFFT", "RFFT", "IRFFT"), got, exact(*arrays), strict=True):
        assert have.shape == want.shape
        assert error(have, want) < MOST, f"{name} of length {length}"


def several(z: Any, x: Any) -> Any:
    """Two and three axes, a batch without lines, a line without elements to halve."""
    planes = jnp.fft.fft2(z[0]), jnp.fft.ifftn(z), jnp.fft.rfftn(x), jnp.fft.irfft2(z, s=(4, 6))
    return *planes, jnp.fft.fft(z[:0]), jnp.fft.rfft(x, axis=0)


def filtered(x: Any, w: Any) -> Any:
    """A convolution by transforms."""
    return jnp.fft.irfft(jnp.fft.rfft(x) * jnp.fft.rfft(w), n=x.shape[-1])


def convolution(x: Any, w: Any) -> Any:
    loss = lambda x, w: (filtered(x, w) ** 2).sum()  # noqa: E731
    return filtered(x, w), *jax.grad(loss, (0, 1))(x, w)


def spectrum(z: Any) -> Any:
    return jax.grad(lambda z: jnp.abs(jnp.fft.fft(z)).sum())(z)[None], jax.vmap(jnp.fft.ifft)(z)


PROGRAMS = {
    "several": (several, numbers(3, 4, 6), numbers(3, 4, 5).real.copy()),
    "convolution": (convolution, numbers(2, 24).real.copy(), numbers(24).real.copy()),
    "spectrum": (spectrum, numbers(3, 10)),
}


@pytest.mark.parametrize(("name", "device"), [*product(PROGRAMS, ("reference", "vulkan"))])
def test_programs(name: str, device: str, load_on: Callable[..., Any]) -> None:
    function, *arrays = PROGRAMS[name]
    got, _ = run(function, tuple(arrays), device, load_on)
    for ours, theirs in zip(got, jax.tree.leaves(jax.jit(function)(*arrays)), strict=True):
        want = np.asarray(theirs)
        assert (ours.dtype, ours.shape) == (want.dtype, want.shape)
        np.testing.assert_allclose(ours, want, rtol=1e-5, atol=2e-6 * max(1.0, float(np.abs(want).max(initial=0))))


def test_a_long_line_takes_few_launches(load_on: Callable[..., Any]) -> None:
    """Four factors, three twiddles, parts side by side at last; large tables were made when it was loaded."""
    z = numbers(1 << 16)
    got, dispatches = run(jnp.fft.fft, (z,), "vulkan", load_on)
    assert error(got, np.fft.fft(z)) < MOST
    assert dispatches <= 8
