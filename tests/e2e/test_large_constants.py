"""Constants that are longer than a binding of a device are split, at an artificially low limit.

`ORCHESTRION_REAL_PROGRAMS=all` also runs one constant of more than 128 MiB on a device with the least limits.
"""

import os
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from orchestrion import compiler, vm
from orchestrion.hal.vulkan.device_profile import PROFILE_VARIABLE
from orchestrion.schema.decoder import read_module
from orchestrion.vm.errors import NoProgram

Array = np.ndarray[Any, Any]
LIMIT = 20_000
RANDOM = np.random.default_rng(7)


def floats(*shape: int) -> Array:
    return RANDOM.standard_normal(shape).astype(np.float32)


TABLE, STACK, SCALES = floats(300, 70), floats(6, 40, 50), floats(1, 200)
BYTES = RANDOM.integers(-100, 100, (300, 200)).astype(np.int8)
HEADS = floats(12, 20, 30)


def looped(x: Any) -> Any:
    """Layers whose weights are one constant."""

    def step(carry: Any, weights: Any) -> Any:
        return jnp.tanh(carry[:, :40] @ weights), None

    return jax.lax.scan(step, x, jnp.asarray(STACK))[0]


def rows_at(x: Any, i: Any) -> Any:
    """Single rows, and ones behind the ends, which are clamped."""
    return x + jax.lax.dynamic_slice(jnp.asarray(TABLE), (i, jnp.zeros_like(i)), (1, 70))


#: name -> function, arguments, and the bytes of its long constant
CASES: dict[str, tuple[Callable[..., Any], tuple[Array, ...], int]] = {
    "dot, free axis": (lambda x: x @ TABLE.T, (floats(3, 70),), TABLE.nbytes),
    "dot, last axis": (lambda x: x @ TABLE, (floats(3, 300),), TABLE.nbytes),
    "dot, weights first": (lambda x: TABLE @ x, (floats(70, 5),), TABLE.nbytes),
    "dots of a batch": (lambda x: jnp.einsum("hij,hjk->hik", HEADS, x), (floats(12, 30, 4),), HEADS.nbytes),
    "embedding": (
        lambda i: jnp.asarray(TABLE)[i],
        (np.array([[0, 299], [151, -1]], np.int32),),
        TABLE.nbytes,
    ),
    "embedding of bytes": (lambda i: jnp.asarray(BYTES)[i], (np.array([0, 299, 100], np.int32),), BYTES.nbytes),
    "embedding and head": (
        lambda i: jnp.tanh(jnp.asarray(TABLE)[i]) @ jnp.asarray(TABLE).T,
        (np.array([0, 299, 151, -3], np.int32),),
        TABLE.nbytes,
    ),
    "quantised weights": (
        lambda x: x @ (jnp.asarray(BYTES).astype(jnp.float32) * SCALES),
        (floats(4, 300),),
        BYTES.nbytes,
    ),
    "weights of layers": (looped, (floats(2, 50),), STACK.nbytes),
    "a row": (rows_at, (floats(1, 70), np.array(299, np.int32)), TABLE.nbytes),
    "a row behind the end": (rows_at, (floats(1, 70), np.array(1000, np.int32)), TABLE.nbytes),
    "a row before the start": (rows_at, (floats(1, 70), np.array(-5, np.int32)), TABLE.nbytes),
    "a slice": (lambda x: jnp.asarray(TABLE)[100:160] * x, (np.array(2, np.float32),), TABLE.nbytes),
}


@pytest.fixture
def short_bindings(least_vulkan: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """The id of a Vulkan device with the least limits and with bindings of LIMIT bytes."""
    monkeypatch.setenv(PROFILE_VARIABLE, f"least,max_binding_length={LIMIT}")
    return least_vulkan


@pytest.mark.sampled(every=4)
@pytest.mark.parametrize("name", CASES)
def test_a_program(name: str, short_bindings: str) -> None:
    function, arguments, size = CASES[name]
    module = compiler.compile(function, *arguments, targets=("spirv", "reference"), max_allocation=LIMIT)
    with vm.load(module, "reference") as program:
        expected = np.asarray(program.main(*arguments))
    with vm.load(module, short_bindings) as program:
        result = np.asarray(program.main(*arguments))
    np.testing.assert_allclose(expected, np.asarray(function(*arguments)), rtol=1e-4, atol=1e-3)
    if expected.dtype.kind == "f" and ("dot" in name or "head" in name or "weights" in name):
        np.testing.assert_allclose(result, expected, rtol=1e-4, atol=1e-3)
    else:
        np.testing.assert_array_equal(result, expected)
    segments = {row.segment for row in read_module(module).constants}
    stored = sum(read_module(module).segments[segment].size for segment in segments)
    assert stored <= 1.1 * size + SCALES.nbytes, "parts are stored once for all programs; tiles of a dot have padding"


def test_without_a_target_of_short_bindings_constants_stay_whole() -> None:
    module = read_module(
        compiler.compile(lambda x: x @ TABLE, floats(3, 300), targets="spirv", levels="first", max_allocation=LIMIT)
    )
    assert max(row.length for row in module.bindings) == TABLE.nbytes


@pytest.mark.parametrize(
    ("function", "arguments"),
    [
        (lambda x: jnp.asarray(TABLE) * x, (np.array(2, np.float32),)),
        (lambda x: jnp.sort(jnp.asarray(TABLE) * x[None], axis=0)[3], (floats(70),)),
    ],
    ids=["a long result", "an op over all axes"],
)
def test_what_is_refused(function: Callable[..., Any], arguments: tuple[Array, ...], short_bindings: str) -> None:
    module = compiler.compile(function, *arguments, targets="spirv", max_allocation=LIMIT)
    with pytest.raises(NoProgram, match=rf"\d+ bytes in one binding, the device's limit is {LIMIT}"):
        vm.load(module, short_bindings)


@pytest.mark.skipif(os.environ.get("ORCHESTRION_REAL_PROGRAMS") != "all", reason="140 MB of weights: make programs")
def test_more_than_128_mib(least_vulkan: str) -> None:
    """An embedding table that is also the last layer, at the limits of the specification."""
    table = RANDOM.standard_normal((36_000, 1_024), np.float32)
    indices = np.array([0, 35_999, 17, 32_768, 32_767], np.int32)

    def function(i: Any) -> Any:
        return jnp.asarray(table)[i] @ jnp.asarray(table).T

    module = compiler.compile(function, indices, targets="spirv")
    assert table.nbytes > 128 << 20 and len(module) < 1.05 * table.nbytes
    with vm.load(module, least_vulkan) as program:
        result = np.asarray(program.main(indices))
    np.testing.assert_allclose(result, table[indices] @ table.T, rtol=1e-3, atol=1e-2)
