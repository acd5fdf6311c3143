"""Kernels with barriers and shared memory on target cpu: each level of this machine, bindings between guard pages."""

from collections.abc import Callable
from typing import Any

import image_runner
import numpy as np
import pytest

jax = pytest.importorskip("jax")
pytest.importorskip("llvmlite")

import jax.numpy as jnp  # noqa: E402
from guard_pages import guard_pages  # noqa: E402

from orchestrion.compiler.driver import Compilation, compile  # noqa: E402

Array = np.ndarray[Any, Any]
NORMAL = np.random.default_rng(0).normal(size=30_011).astype(np.float32)
#: values of which many are equal, and NaN
REPEATED = np.where(np.arange(30_011) % 501 == 0, np.nan, np.round(NORMAL * 20)).astype(np.float32)
TRIANGLE = (np.tril(NORMAL[: 57 * 57].reshape(57, 57)) / 57 + 2 * np.eye(57)).astype(np.float32)
SIGNAL = (NORMAL[:1080] + 1j * NORMAL[1080:2160]).reshape(3, 360).astype(np.complex64)
PLACES = (np.arange(300) * 7 % 55).astype(np.int32)


def solved(a: Any, b: Any) -> Any:
    return jax.lax.linalg.triangular_solve(a, b, left_side=True, lower=True)


#: name -> function, arguments, what its schedules have, relative error of the whole
CASES: dict[str, tuple[Callable[..., Any], tuple[Array, ...], str, float]] = {
    "fft": (jnp.fft.fft, (SIGNAL,), "library(fft", 1e-6),
    "fft_prime": (jnp.fft.fft, (SIGNAL[:, :59],), "library(fft", 1e-6),
    "rfft": (lambda x: jnp.fft.rfft(x), (NORMAL[:600].reshape(3, 200),), "library(fft", 1e-6),
    "sort": (jnp.sort, (REPEATED[:5003],), "library(merge", 0),
    "sort_pairs": (lambda x: jnp.argsort(x, stable=True), (REPEATED[:4999],), "library(merge", 0),
    "sort_rows": (lambda x: jnp.sort(x, axis=0), (REPEATED[:9009].reshape(3003, 3),), "library(merge", 0),
    "row_solve": (solved, (TRIANGLE, NORMAL[: 57 * 5].reshape(57, 5)), "library(row_solve", 1e-5),
    "sum": (jnp.sum, (NORMAL,), "reduce(k, tree", 1e-5),
    "largest": (lambda x: (jnp.max(x), jnp.argmax(x)), (NORMAL,), "reduce(k, tree", 0),
    "softmax": (jax.nn.softmax, (NORMAL[:9003].reshape(3, 3001),), "reduce(k, tree", 1e-5),
    "scatter": (lambda x, i: jnp.zeros(50).at[i].add(x), (NORMAL[:300], PLACES), "library(scatter", 1e-6),
    "scatter_twice": (lambda x, i: x.at[i].set(x[:300] * 2), (NORMAL[:400], PLACES % 7), "library(scatter", 0),
}


@pytest.mark.parametrize("level", image_runner.levels_here())
@pytest.mark.parametrize("name", CASES)
def test_kernel(name: str, level: str) -> None:
    from orchestrion import vm

    function, arrays, schedule, bound = CASES[name]
    lowered = jax.jit(function).lower(*arrays)
    assert schedule in Compilation(["cpu"]).text(lowered, "ll_seq")
    want = [np.asarray(x) for x in jax.tree.leaves(jax.jit(function)(*arrays))]
    module = compile(lowered, targets=["cpu"], target_cpu=level)
    for at_end in (False, True):
        with guard_pages(at_end):
            program = vm.load(module, device="cpu", allow_native_code=True)
            got = jax.tree.leaves(program.main(*arrays))
            program.close()
        for x, y in zip(got, want, strict=True):
            assert x.dtype == y.dtype
            if bound:
                assert np.linalg.norm(x - y) <= bound * np.linalg.norm(y)
            else:
                np.testing.assert_array_equal(x, y)
