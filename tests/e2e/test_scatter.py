"""Scatters of any dimension numbers against JAX; of several operands, which StableHLO's interpreter and XLA 0.10.2 get
wrong where one depends on another, and of very many updates, against NumPy.
"""

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
DEVICES = {"reference": 12, "cpu": 6, "opencl": 2, "vulkan": 3}
TARGETS = {"reference": "reference", "cpu": "cpu", "opencl": "opencl", "vulkan": "spirv"}
ON_EACH = pytest.mark.parametrize("device", DEVICES)
COMBINERS = (lax.scatter_add, lax.scatter_mul, lax.scatter_min, lax.scatter_max, lax.scatter)


def any_scatter(data: st.DataObject) -> tuple[Callable[..., Any], list[np.ndarray]]:
    """A scatter of windows of any size, in any order of axes, some of them batching, and what it takes."""
    draw, random = data.draw, np.random.default_rng(data.draw(st.integers(0, 99)))
    shape = [draw(st.integers(1, 5)) for _ in range(draw(st.integers(1, 4)))]
    roles = [draw(st.sampled_from("binc")) for _ in shape]  # batching, inserted, not chosen, chosen
    batching, inserted = ([axis for axis, role in enumerate(roles) if role == letter] for letter in "bi")
    chosen = draw(st.permutations([axis for axis, role in enumerate(roles) if role in "ic"]))
    counts = [draw(st.integers(1, 4)) for _ in range(draw(st.integers(0, 2)))]
    of_batch = draw(st.permutations(range(len(batching) + len(counts))))[: len(batching)]
    rest = iter(counts)
    indices = [shape[batching[of_batch.index(at)]] if at in of_batch else next(rest)
               for at in range(len(batching) + len(counts))]  # fmt: skip
    window = [draw(st.integers(1, size)) for axis, size in enumerate(shape) if axis not in batching + inserted]
    rank = len(indices) + len(window)
    places = sorted(draw(st.permutations(range(rank)))[: len(window)])
    sizes, others = iter(window), iter(indices)
    updates = [next(sizes) if axis in places else next(others) for axis in range(rank)]
    axes = (places, inserted, chosen, batching, of_batch)
    numbers = lax.ScatterDimensionNumbers(*map(tuple, axes))
    combiner = draw(st.sampled_from(COMBINERS))
    arrays = [random.integers(-9, 9, shape, np.int32), random.integers(-1, 5, [*indices, len(chosen)], np.int32),
              random.integers(-9, 9, updates, np.int32)]  # fmt: skip
    return lambda x, i, u: combiner(x, i, u, numbers, mode="drop"), arrays


@ON_EACH
def test_any_dimension_numbers(device: str, load_on: LoadOn) -> None:
    @settings(
        max_examples=DEVICES[device],
        deadline=None,
        derandomize=True,
        suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    )
    @given(data=st.data())
    def run(data: st.DataObject) -> None:
        function, arrays = any_scatter(data)
        module = compiler.compile(jax.jit(function, keep_unused=True).lower(*arrays), targets=[TARGETS[device]])
        got = np.asarray(load_on(module, device).main(*arrays))
        np.testing.assert_array_equal(got, np.asarray(jax.jit(function)(*arrays)))

    run()


ROWS = """#stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0],
                            scatter_dims_to_operand_dims = [0], index_vector_dim = 1>"""
#: two operands, the same tensor twice, whose new values each depend on both; of a second scatter one result is used
COUPLED = f"""
func.func @main(%x: tensor<5x2xi32>, %i: tensor<6x1xi32>, %u: tensor<6x2xi32>, %v: tensor<6x2xi32>)
    -> (tensor<5x2xi32>, tensor<5x2xi32>, tensor<5x2xi32>) {{
  %0:2 = "stablehlo.scatter"(%x, %x, %i, %u, %v) <{{scatter_dimension_numbers = {ROWS}}}> ({{
  ^bb0(%a: tensor<i32>, %b: tensor<i32>, %c: tensor<i32>, %d: tensor<i32>):
    %ac = stablehlo.multiply %a, %c : tensor<i32>
    %bd = stablehlo.multiply %b, %d : tensor<i32>
    %re = stablehlo.subtract %ac, %bd : tensor<i32>
    %two = stablehlo.constant dense<2> : tensor<i32>
    %im = stablehlo.add %ac, %two : tensor<i32>
    stablehlo.return %re, %im : tensor<i32>, tensor<i32>
  }}) : (tensor<5x2xi32>, tensor<5x2xi32>, tensor<6x1xi32>, tensor<6x2xi32>, tensor<6x2xi32>)
      -> (tensor<5x2xi32>, tensor<5x2xi32>)
  %zero = stablehlo.constant dense<0> : tensor<5x2xi32>
  %1:2 = "stablehlo.scatter"(%zero, %zero, %i, %v, %u) <{{scatter_dimension_numbers = {ROWS}}}> ({{
  ^bb0(%a: tensor<i32>, %b: tensor<i32>, %c: tensor<i32>, %d: tensor<i32>):
    %s = stablehlo.subtract %b, %c : tensor<i32>
    %t = stablehlo.subtract %a, %d : tensor<i32>
    stablehlo.return %s, %t : tensor<i32>, tensor<i32>
  }}) : (tensor<5x2xi32>, tensor<5x2xi32>, tensor<6x1xi32>, tensor<6x2xi32>, tensor<6x2xi32>)
      -> (tensor<5x2xi32>, tensor<5x2xi32>)
  return %0#0, %0#1, %1#1 : tensor<5x2xi32>, tensor<5x2xi32>, tensor<5x2xi32>
}}"""


def coupled(x: np.ndarray, places: np.ndarray, u: np.ndarray, v: np.ndarray) -> list[np.ndarray]:
    a, b, s, t = x.copy(), x.copy(), np.zeros_like(x), np.zeros_like(x)
    for n, (row,) in enumerate(places):
        if 0 <= row < len(x):
            a[row], b[row] = a[row] * u[n] - b[row] * v[n], a[row] * u[n] + 2
            s[row], t[row] = t[row] - v[n], s[row] - u[n]
    return [a, b, t]


def test_several_operands(load_on: LoadOn) -> None:
    random = np.random.default_rng(5)
    places = np.array([[3], [-1], [3], [0], [5], [3]], np.int32)
    arrays = [random.integers(-9, 9, (5, 2), np.int32), places, *random.integers(-9, 9, (2, 6, 2), np.int32)]
    module = compiler.compile(COUPLED, targets=list(TARGETS.values()))
    for device in TARGETS:
        got = load_on(module, device).main(*arrays)
        for one, want in zip(got, coupled(*arrays), strict=True):
            np.testing.assert_array_equal(np.asarray(one), want)


#: what is scattered into is what is scattered, an argument and a value of the program
ITSELF = """
func.func @main(%a: tensor<4xi32>, %i: tensor<4x1xi64>) -> (tensor<4xi32>, tensor<4xi32>) {
  %n = stablehlo.negate %a : tensor<4xi32>
  %x = "stablehlo.scatter"(%a, %i, %a) <{scatter_dimension_numbers = #stablehlo.scatter<
      inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
  ^bb1(%p: tensor<i32>, %q: tensor<i32>):
    %r = stablehlo.add %p, %q : tensor<i32>
    stablehlo.return %r : tensor<i32>
  }) : (tensor<4xi32>, tensor<4x1xi64>, tensor<4xi32>) -> tensor<4xi32>
  %y = "stablehlo.scatter"(%n, %i, %n) <{scatter_dimension_numbers = #stablehlo.scatter<
      inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
  ^bb1(%p: tensor<i32>, %q: tensor<i32>):
    %r = stablehlo.add %p, %q : tensor<i32>
    stablehlo.return %r : tensor<i32>
  }) : (tensor<4xi32>, tensor<4x1xi64>, tensor<4xi32>) -> tensor<4xi32>
  return %x, %y : tensor<4xi32>, tensor<4xi32>
}
"""


def test_a_tensor_scattered_into_itself(load_on: LoadOn) -> None:
    a, places = np.arange(1, 5, dtype=np.int32), np.array([[3], [1], [3], [0]])
    module = compiler.compile(ITSELF, targets=list(TARGETS.values()))
    for device in TARGETS:
        for got, start in zip(load_on(module, device).main(a, places), (a, -a), strict=True):
            want = start.copy()
            np.add.at(want, places[:, 0], start)
            np.testing.assert_array_equal(np.asarray(got), want)


def test_more_updates_than_an_invocation_has_turns(load_on: LoadOn) -> None:
    """They are for three rows; sums of floats come in the order of the updates, wherever they are made."""
    places = np.random.default_rng(3).integers(0, 3, 270_000).astype(np.uint8)
    values = np.random.default_rng(4).normal(size=270_000).astype(np.float32)
    want = np.zeros(4, np.float32)
    np.add.at(want, places, values)
    program = jax.jit(lambda i, v: jnp.zeros(4, jnp.float32).at[i].add(v)).lower(places, values)
    module = compiler.compile(program, targets=list(TARGETS.values()))
    for device in TARGETS:
        np.testing.assert_array_equal(np.asarray(load_on(module, device).main(places, values)), want)
