"""Convolutions and reductions of windows with any parameters, on every device, against JAX."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from jax import lax

from orchestrion import compiler

LoadOn = Callable[[bytes, str], Any]
#: device -> programs
DEVICES = {"reference": 25, "opencl": 3, "vulkan": 5}
ON_EACH = pytest.mark.parametrize("device", DEVICES)


def some(device: str) -> Callable[[Any], Any]:
    return settings(
        max_examples=DEVICES[device],
        deadline=None,
        derandomize=True,
        suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    )


def small(data: st.DataObject, shape: list[int]) -> np.ndarray:
    """Integers, so that sums are the same in any order; as floats."""
    seed = data.draw(st.integers(0, 99))
    return np.asarray(np.random.default_rng(seed).integers(-8, 9, size=shape), np.float32)


def agree(load_on: LoadOn, device: str, function: Callable[..., Any], *arrays: np.ndarray) -> None:
    want = np.asarray(jax.jit(function)(*arrays))
    module = compiler.compile(
        jax.jit(function, keep_unused=True).lower(*arrays), targets=["spirv" if device == "vulkan" else device]
    )
    np.testing.assert_array_equal(np.asarray(load_on(module, device).main(*arrays)), want)


@ON_EACH
def test_convolution(device: str, load_on: LoadOn) -> None:
    @some(device)
    @given(data=st.data())
    def run(data: st.DataObject) -> None:
        rank = data.draw(st.integers(0, 3))
        per_axis = lambda low, high: [data.draw(st.integers(low, high)) for _ in range(rank)]  # noqa: E731
        sizes, window = per_axis(1, 7), per_axis(1, 3)
        strides, base, spread = per_axis(1, 3), per_axis(1, 3), per_axis(1, 2)
        groups = data.draw(st.sampled_from([(1, 1), (1, 1), (2, 1), (3, 1), (1, 2), (1, 3)]))
        batch = data.draw(st.integers(0 if groups[1] == 1 else 1, 2)) * groups[1]
        features, outputs = data.draw(st.integers(1, 3)), data.draw(st.integers(1, 9)) * groups[0] * groups[1]
        rows = zip(sizes, base, strict=True)
        padding = [(low, max(data.draw(st.integers(-2, 2)), -((n - 1) * d + 1) - low)) for n, d in rows
                   for low in [max(data.draw(st.integers(-2, 2)), -n)]]  # fmt: skip
        orders = [data.draw(st.permutations(range(rank + 2))) for _ in range(3)]
        numbers = lax.ConvDimensionNumbers(*map(tuple, orders))
        images, kernels = [batch, features * groups[0], *sizes], [outputs, features, *window]
        x = small(data, [images[orders[0].index(axis)] for axis in range(rank + 2)])
        y = small(data, [kernels[orders[1].index(axis)] for axis in range(rank + 2)])

        def function(x: Any, y: Any) -> Any:
            return lax.conv_general_dilated(
                x, y, strides, padding, base, spread, numbers, feature_group_count=groups[0],
                batch_group_count=groups[1],
            ) * 2  # fmt: skip

        agree(load_on, device, function, x, y)

    run()


@ON_EACH
def test_reduce_window(device: str, load_on: LoadOn) -> None:
    @some(device)
    @given(data=st.data())
    def run(data: st.DataObject) -> None:
        rank = data.draw(st.integers(1, 4))
        per_axis = lambda low, high: [data.draw(st.integers(low, high)) for _ in range(rank)]  # noqa: E731
        x, window = small(data, per_axis(1, 6)), per_axis(1, 4)
        strides, base, spread = per_axis(1, 3), per_axis(1, 3), per_axis(1, 2)
        padding = [(max(data.draw(st.integers(-2, 2)), -size), data.draw(st.integers(0, 2))) for size in x.shape]
        op, init = data.draw(st.sampled_from([(lax.add, 0), (lax.max, -np.inf), (lax.max, 3), (lax.min, np.inf)]))

        def function(x: Any) -> Any:
            y = lax.reduce_window(x * 2, jnp.float32(init), op, window, strides, padding, base, spread)
            return jnp.maximum(y, -100)

        agree(load_on, device, function, x)

    run()
