"""Cholesky factors and solutions with triangles, where a device has no LAPACK: one block, and loops over blocks.

Bound: 16 units of rounding of the largest element.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

jax = pytest.importorskip("jax")

import jax.numpy as jnp  # noqa: E402

from orchestrion.compiler.driver import Compilation, compile  # noqa: E402
from orchestrion.compiler.errors import CompileError  # noqa: E402

Array = np.ndarray[Any, Any]
#: what stands in a triangle that nobody may look at
UNREAD = np.nan


def positive(size: int, dtype: Any) -> Array:
    """Two positive definite matrices, whose upper triangles are something else."""
    random = np.random.default_rng(size)
    g = random.normal(size=(2, size, size))
    lower = np.tril(g @ g.swapaxes(1, 2) / size + np.eye(size))
    return (lower + np.triu(np.full((size, size), UNREAD), 1)).astype(dtype)


def triangles(size: int, dtype: Any) -> tuple[Array, Array]:
    """Lower ones with a strong diagonal, and right-hand sides."""
    random = np.random.default_rng(size + 1)
    lower = np.tril(random.normal(size=(2, size, size)) / size) + 2 * np.eye(size)
    return (lower + np.triu(np.full((size, size), UNREAD), 1)).astype(dtype), random.normal(size=(2, size, 5)).astype(
        dtype
    )


def factors(a: Any) -> Any:
    return jax.lax.linalg.cholesky(a, symmetrize_input=False)


def solutions(a: Any, b: Any) -> Any:
    """Both sides, both directions, with the diagonal or ones in its place."""
    solve = jax.lax.linalg.triangular_solve
    return (
        solve(a, b, left_side=True, lower=True),
        solve(a, b, left_side=True, lower=True, transpose_a=True),
        solve(jnp.swapaxes(a, 1, 2), b, left_side=True, lower=False, unit_diagonal=True),
        solve(a, jnp.swapaxes(b, 1, 2), left_side=False, lower=True),
    )


def run(function: Any, arrays: tuple[Array, ...], device: str, load_on: Callable[..., Any]) -> tuple[list[Array], int]:
    program = load_on(compile(jax.jit(function).lower(*arrays), targets=[device]), device)
    results = jax.tree.leaves(program.main(*arrays))
    dispatches = program.statistics()["calls"][-1]["dispatches"]
    program.close()
    return results, dispatches


@pytest.mark.sampled(every=3)
@pytest.mark.parametrize(
    ("size", "device", "dtype"),
    [
        (1, "vulkan", np.float32), (20, "vulkan", np.float32), (70, "vulkan", np.float32), (70, "vulkan", np.float64),
        (70, "opencl", np.float32), (20, "reference", np.float64), (70, "reference", np.float32),
    ],
)  # fmt: skip
def test_it_gives_what_lapack_gives(size: int, device: str, dtype: Any, load_on: Callable[..., Any]) -> None:
    with jax.enable_x64(True):
        programs = ((factors, (positive(size, dtype),)), (solutions, triangles(size, dtype)))
        for function, arrays in programs[: 1 if device == "opencl" else 2]:  # its compiler takes long
            got, _ = run(function, arrays, device, load_on)
            for ours, want in zip(got, jax.tree.leaves(jax.jit(function)(*arrays)), strict=True):
                assert ours.dtype == dtype
                bound = 16 * np.finfo(dtype).eps
                np.testing.assert_allclose(ours, want, rtol=bound, atol=bound * float(np.abs(want).max()))


@pytest.mark.parametrize(("device", "dtype"), [("vulkan", np.float32), ("reference", np.float64)])
def test_lu_goes_by_panels(device: str, dtype: Any, load_on: Callable[..., Any]) -> None:
    """Five panels, the last of two columns; one matrix is singular in the middle, one is NaN from a place on."""
    size, random = 130, np.random.default_rng(5)
    a = random.normal(size=(3, size, size)).astype(dtype)
    a[1, :, 40] = a[1, :, 39] * 0
    a[2, 70, 70] = np.nan
    with jax.enable_x64(True):
        (lu, pivots, order), _ = run(jax.lax.linalg.lu, (a,), device, load_on)
        _, wanted, _ = jax.lax.linalg.lu(a)
    assert lu.dtype == dtype
    np.testing.assert_array_equal(pivots[:2], wanted[:2])
    lower = np.tril(lu, -1) + np.eye(size, dtype=dtype)
    product = lower[:2].astype(np.float64) @ np.triu(lu[:2]).astype(np.float64)
    np.testing.assert_allclose(product, np.take_along_axis(a, order[..., None], 1)[:2], atol=300 * np.finfo(dtype).eps)
    assert np.abs(lower[:2]).max() <= 1 and lu[1, 40, 40] == 0
    assert np.isnan(lu[2, -1, -1]) and np.isfinite(lu[2, :, :32]).all()


def test_a_block_takes_few_launches(load_on: Callable[..., Any]) -> None:
    """Four a turn, and what is before and behind the loop."""
    _, dispatches = run(factors, (positive(256, np.float32),), "vulkan", load_on)
    assert dispatches <= 4 * 256 // 32 + 4


def test_a_matrix_that_is_not_definite_has_no_factor(load_on: Callable[..., Any]) -> None:
    """From the first pivot that is not positive on all is NaN, as JAX has it; other matrices are none the worse."""
    a = positive(40, np.float32)
    a[1, 35, 35] = -1.0
    (got,), _ = run(factors, (a,), "vulkan", load_on)
    assert np.isfinite(got[0]).all()
    assert np.isnan(got[1, 35, 35])


ROWS = """"builtin.module"() ({{
  "func.func"() <{{function_type = ({0}, {1}) -> {2}, sym_name = "main"}}> ({{
  ^bb0(%m: {0}, %r: {1}):
    %x = "flow.solve_rows"(%m, %r) <{{factor = false}}> : ({0}, {1}) -> {2}
    "func.return"(%x) : ({2}) -> ()
  }}) : () -> ()
}}) : () -> ()
"""


@pytest.mark.parametrize(
    ("types", "said"),
    [
        (("1x33x33xf32", "1x4x33xf32", "1x4x33xf32"), "rows of 33 elements, not of 1 to 32"),
        (("1x3x4xf32", "1x5x4xf32", "1x5x4xf32"), "matrix must be tensor<1x4x4xf32>, is tensor<1x3x4xf32>"),
        (("4x4xf32", "5x4xf32", "5x4xf32"), "takes rows of floats per batch, not tensor<5x4xf32>"),
        (("1x4x4xi32", "1x5x4xi32", "1x5x4xi32"), "takes rows of floats per batch, not tensor<1x5x4xi32>"),
        (("1x4x4xf32", "1x5x4xf32", "1x6x4xf32"), "result 0 must be tensor<1x5x4xf32>, is tensor<1x6x4xf32>"),
    ],
)
def test_what_rows_may_be(types: tuple[str, ...], said: str) -> None:
    with pytest.raises(CompileError) as caught:
        Compilation(start="flow").module(ROWS.format(*(f"tensor<{type}>" for type in types)), "flow")
    assert [one.message for one in caught.value.diagnostics] == [said]
