"""Fourier transforms on every device, against NumPy in double precision, and programs of them against JAX.

Bound: the error of a whole result, in the root mean square, is within `MAX_ERROR` units of rounding.
"""

from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from phase_texts import check_phases_continue

jax = pytest.importorskip("jax")

import jax.numpy as jnp  # noqa: E402

from orchestrion.compiler.driver import Compilation, compile  # noqa: E402
from orchestrion.compiler.errors import CompileError  # noqa: E402

Array = np.ndarray[Any, Any]
TARGETS = {"reference": "reference", "opencl": "opencl", "vulkan": "spirv"}
MAX_ERROR = 4.0


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


#: 1, factors of one pass and of several, primes that are convolved with a chirp, lines that are cut in two
LENGTHS = (1, 2, 3, 7, 12, 31, 67, 131, 1000, 4096)
ELSEWHERE = ((1, "vulkan"), (7, "vulkan"), (67, "vulkan"), (1000, "vulkan"), (4096, "vulkan"), (36, "opencl"))


@pytest.mark.sampled(every=2)
@pytest.mark.parametrize(("length", "device"), [*product(LENGTHS, ("reference",)), *ELSEWHERE])
def test_lines(length: int, device: str, load_on: Callable[..., Any]) -> None:
    ours, exact, arrays = kinds(length)
    got, _ = run(ours, arrays, device, load_on)
    for name, have, want in zip(("FFT", "IFFT", "RFFT", "IRFFT"), got, exact(*arrays), strict=True):
        assert have.shape == want.shape
        assert error(have, want) < MAX_ERROR, f"{name} of length {length}"


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


@pytest.mark.sampled(every=2)
@pytest.mark.parametrize(("name", "device"), [*product(PROGRAMS, ("reference", "vulkan"))])
def test_programs(name: str, device: str, load_on: Callable[..., Any]) -> None:
    function, *arrays = PROGRAMS[name]
    got, _ = run(function, tuple(arrays), device, load_on)
    for ours, theirs in zip(got, jax.tree.leaves(jax.jit(function)(*arrays)), strict=True):
        want = np.asarray(theirs)
        assert (ours.dtype, ours.shape) == (want.dtype, want.shape)
        np.testing.assert_allclose(ours, want, rtol=1e-5, atol=2e-6 * max(1.0, float(np.abs(want).max(initial=0))))


@pytest.mark.parametrize(
    ("shape", "launches"), [((48,), 1), ((3, 2048), 1), ((1, 1 << 16), 2), ((5, 6, 7), 1), ((97,), 3)]
)
def test_a_line_takes_few_launches(shape: tuple[int, ...], launches: int, load_on: Callable[..., Any]) -> None:
    """One where it fits a workgroup, two where it is cut; a convolution is two, and the chirp at its end."""
    z = numbers(*shape)
    got, dispatches = run(jnp.fft.fft, (z,), "vulkan", load_on)
    assert error(got, np.fft.fft(z)) < MAX_ERROR
    assert dispatches == launches


def test_small_lengths(load_on: Callable[..., Any]) -> None:
    """Factors of a pass and of two, along the last axis and another, in one program."""
    lengths = [5, 6, 8, 9, 11, 14, 16, 39]
    arrays = tuple(numbers(3, length) for length in lengths)

    def all_of(*given: Any) -> Any:
        return [jnp.fft.ifft(z.T, axis=0) if z.shape[1] % 3 == 0 else jnp.fft.fft(z) for z in given]

    got, _ = run(all_of, arrays, "vulkan", load_on)
    for z, ours in zip(arrays, got, strict=True):
        want = np.fft.ifft(z.T, axis=0) if z.shape[1] % 3 == 0 else np.fft.fft(z)
        assert error(ours, want) < MAX_ERROR, z.shape


@pytest.mark.parametrize("device", ["reference", "vulkan"])
def test_double_precision(device: str, load_on: Callable[..., Any]) -> None:
    """Half as many numbers fit: 2048 are cut."""
    random = np.random.default_rng(0)
    z = random.normal(size=2048) + 1j * random.normal(size=2048)
    with jax.enable_x64(True):
        got, _ = run(lambda z: (jnp.fft.fft(z), jnp.fft.ifft(z[:60])), (z,), device, load_on)
    for ours, want in zip(got, (np.fft.fft(z), np.fft.ifft(z[:60])), strict=True):
        assert np.linalg.norm(ours - want) / np.linalg.norm(want) / np.finfo(np.float64).eps < MAX_ERROR


def test_text_continues(tmp_path: Path) -> None:
    """From every phase to the same bytes."""
    text = str(jax.jit(lambda z: jnp.fft.irfft(jnp.fft.fft(z) * z, n=8)).lower(numbers(8)).as_text())
    check_phases_continue(text, tmp_path)


def test_what_a_line_may_be() -> None:
    """Text from anybody: lengths, axes, roots, parts."""
    type, roots = "tensor<{}x2xf32>", "tensor<{}x2xf32>"
    cases = {
        (17, 17, 0, 17): "lines of 17 are not of 2 to 2048 numbers with prime factors of 2, 3, 5, 7, 11, 13",
        (4096, 4096, 0, 4096): "lines of 4096 are not of 2 to 2048 numbers with prime factors of 2, 3, 5, 7, 11, 13",
        (8, 8, 1, 8): "dimension 1 is no axis of tensor<8x2xf32> but the last",
        (8, 4, 0, 8): "roots must be tensor<8x2xf32>, are tensor<4x2xf32>",
        (8, 8, 0, 9): "result 0 must be tensor<8x2xf32>, is tensor<9x2xf32>",
    }
    for (length, count, axis, out), said in cases.items():
        x, r, y = type.format(length), roots.format(count), type.format(out)
        op = f'"flow.fft"(%x, %r) <{{dimension = {axis} : i64, inverse = false}}> : ({x}, {r}) -> {y}'
        head = f'"func.func"() <{{function_type = ({x}, {r}) -> {y}, sym_name = "main"}}> ({{\n^bb0(%x: {x}, %r: {r}):'
        text = f'{head}\n%y = {op}\n"func.return"(%y) : ({y}) -> ()\n}}) : () -> ()'
        with pytest.raises(CompileError) as caught:
            Compilation(start="flow").module(f'"builtin.module"() ({{\n{text}\n}}) : () -> ()', "flow")
        assert [one.message for one in caught.value.diagnostics] == [said]
