"""Functions of JAX over a batch of symbolic size, which it exports with shapes that are computed: one module for all
sizes, on every device, beside JAX itself.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

from orchestrion import compiler

jax = pytest.importorskip("jax")
from jax import export, lax  # noqa: E402
from jax import numpy as jnp  # noqa: E402
from jax.scipy import special  # noqa: E402

LoadOn = Callable[[bytes, str], Any]
TARGETS = {"reference": "reference", "vulkan": "spirv", "opencl": "opencl"}
#: sizes of the batch
SIZES = (1, 5, 2)


class Case(NamedTuple):
    """A function of a tensor of that shape, and the devices that it runs on: PoCL builds many kernels for minutes."""

    function: Callable[[Any], Any]
    shape: str
    dtype: Any = np.float32
    devices: tuple[str, ...] = tuple(TARGETS)


def unit(x: Any, order: Any) -> Any:
    return jnp.eye(order, dtype=x.dtype)


def of_chlo(x: Any) -> Any:
    """JAX writes most of these as calls, with shapes measured inside."""
    small, positive = jnp.tanh(x) * 0.9, jnp.abs(x) + 0.5
    smooth = (
        special.erf(x),
        special.erfinv(small),
        jax.nn.gelu(x, approximate=False),
        jnp.arctan(x),
        jnp.nextafter(x, 0 * x),
    )
    return (
        *smooth,
        special.gammaln(positive),
        special.digamma(positive),
        special.i1e(x),
        special.zeta(positive + 1, 1.5),
    )


def drawn(x: Any) -> Any:
    """Of a symbolic number; by loops, by bits of `rng_bit_generator`; those with the greatest logits."""
    keys = [jax.random.key(7, impl=name) for name in ("threefry2x32", "rbg", "unsafe_rbg")]
    normal = [jax.random.normal(key, x.shape) for key in keys]
    return *normal, jax.random.bits(keys[1], x.shape), jax.random.categorical(keys[0], x)


def largest(x: Any) -> Any:
    """Of a number that is a size, too."""
    count = x.shape[0]
    return lax.top_k(x.T, count), lax.top_k(x.T, (count + 1) // 2), lax.approx_max_k(x, 2), lax.approx_min_k(x, 1)


def recast(x: Any) -> Any:
    """Into more elements, into fewer, and of as many bits."""
    half = x.astype(np.float16).reshape(-1, 3, 2)
    return (
        lax.bitcast_convert_type(x, np.uint8),
        lax.bitcast_convert_type(half, np.uint32),
        lax.bitcast_convert_type(x, np.int32),
    )


def of_complex(x: Any) -> Any:
    positive = x @ jnp.conj(jnp.swapaxes(x, 1, 2)) + 9 * unit(x, 4)
    return (
        jnp.exp(x),
        jnp.abs(x),
        x.sum(0),
        jnp.fft.fft(x),
        jnp.linalg.cholesky(positive),
        jnp.linalg.solve(positive, x),
    )


def solved(x: Any) -> Any:
    """Factors, solutions and determinants of matrices of one block, and of more; their gradients."""
    small = x[:, :4, :4] @ jnp.swapaxes(x[:, :4, :4], 1, 2) + 4 * unit(x, 4)
    large = x @ jnp.swapaxes(x, 1, 2) + 40 * unit(x, 40)
    right = lax.linalg.triangular_solve(large, x, left_side=False, lower=False)

    def total(a: Any) -> Any:
        return jnp.linalg.slogdet(a)[1].sum() + jnp.linalg.solve(a, x[:, :4, :4]).sum() + jnp.linalg.cholesky(a).sum()

    return (
        jnp.linalg.inv(small),
        jax.grad(total)(small),
        jnp.linalg.cholesky(large),
        jnp.linalg.solve(large, x[..., :2]),
        right,
    )


def factored(x: Any) -> Any:
    symmetric = x[:, :3] + jnp.swapaxes(x[:, :3], 1, 2)
    values = jnp.linalg.eigh(symmetric)[0], jnp.linalg.svd(x, compute_uv=False), jnp.linalg.qr(x)[1]
    diagonals = x[:, :, 0], 9 + x[:, :, 1], x[:, :, 2]
    return *values, lax.linalg.hessenberg(symmetric), lax.linalg.tridiagonal_solve(*diagonals, x), jnp.linalg.pinv(x)


def of_none(x: Any) -> Any:
    """Of a batch that is empty where there is one matrix."""
    few = x[1:] + jnp.swapaxes(x[1:], 1, 2) + 9 * unit(x, 3)
    return jnp.linalg.cholesky(few), jnp.linalg.eigh(few)[0], jnp.linalg.qr(few)[1]


CASES = {
    "chlo": Case(of_chlo, "b, 6"),
    "drawn": Case(drawn, "b, 6"),
    "largest": Case(largest, "b, 6"),
    "recast": Case(recast, "b, 6"),
    "complex": Case(of_complex, "b, 4, 4", np.complex64, ("reference", "vulkan")),
    "solved": Case(solved, "b, 40, 40"),
    "factored": Case(factored, "b, 5, 3", devices=("reference", "vulkan")),
    "none": Case(of_none, "b, 3, 3", devices=("reference", "vulkan")),
    "rows": Case(lambda x: jnp.linalg.svd(x, compute_uv=False), "b + 2, 3", devices=("reference",)),
    "two batches": Case(lambda x: jnp.linalg.inv(x + 4 * unit(x, 3)), "b, c, 3, 3"),
    "an order": Case(
        lambda x: jnp.linalg.solve(x + 9 * unit(x, x.shape[0]), x), "b, b", devices=("reference", "vulkan")
    ),
}


def exported(case: Case) -> bytes:
    shape = export.symbolic_shape(case.shape)
    made: bytes = export.export(jax.jit(case.function))(jax.ShapeDtypeStruct(shape, case.dtype)).mlir_module_serialized
    return made


@pytest.mark.sampled(every=2)
@pytest.mark.parametrize(
    ("name", "device"), [(name, device) for name, case in CASES.items() for device in case.devices]
)
def test_it_gives_what_jax_gives(name: str, device: str, load_on: LoadOn) -> None:
    case = CASES[name]
    program = load_on(compiler.compile(exported(case), targets=[TARGETS[device]]), device)
    for size in SIZES:
        shape = [eval(part, {"b": size, "c": 2}) for part in case.shape.split(", ")]
        random = np.random.default_rng(size)
        x = random.normal(size=shape)
        x = (x + 1j * random.normal(size=shape) if case.dtype == np.complex64 else x).astype(case.dtype)
        found, wanted = jax.tree.leaves(program.main(x)), jax.tree.leaves(jax.jit(case.function)(x))
        for index, (got, want) in enumerate(zip(found, map(np.asarray, wanted), strict=True)):
            assert (got.shape, got.dtype) == (want.shape, want.dtype), index
            np.testing.assert_allclose(got, want, rtol=2e-4, atol=2e-5, err_msg=f"{index} of a batch of {size}")
