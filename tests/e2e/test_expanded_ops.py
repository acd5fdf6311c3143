"""Ops that become others before anything else: batch norm, older forms, collectives of one device, random numbers,
Cholesky factors and triangular solves as loops. Against NumPy, JAX, or their definition; one program for many.
"""

from collections.abc import Callable
from itertools import product
from typing import Any

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest

from orchestrion import compiler

LoadOn = Callable[[bytes, str], Any]
TARGETS = {"reference": "reference", "vulkan": "spirv"}
ON_EACH = pytest.mark.parametrize("device", TARGETS)
X, N, B = "tensor<2x3x4xf32>", "tensor<3xf32>", "{epsilon = 0.01 : f32, feature_index = 1 : i64}"
BATCH_NORM = f"""
func.func @main(%x: {X}, %s: {N}, %o: {N}, %m: {N}, %v: {N}, %g: {X}) -> ({X}, {X}, {N}, {N}, {X}, {N}, {N}) {{
  %0 = "stablehlo.batch_norm_inference"(%x, %s, %o, %m, %v) <{B}> : ({X}, {N}, {N}, {N}, {N}) -> {X}
  %1:3 = "stablehlo.batch_norm_training"(%x, %s, %o) <{B}> : ({X}, {N}, {N}) -> ({X}, {N}, {N})
  %2:3 = "stablehlo.batch_norm_grad"(%x, %s, %1#1, %1#2, %g) <{B}> : ({X}, {N}, {N}, {N}, {X}) -> ({X}, {N}, {N})
  return %0, %1#0, %1#1, %1#2, %2#0, %2#1, %2#2 : {X}, {X}, {N}, {N}, {X}, {N}, {N}
}}"""


def _normal(x: Any, s: Any, o: Any, m: Any, v: Any) -> Any:
    m, v, s, o = (value[None, :, None] for value in (m, v, s, o))
    return s * (x - m) / (v + 0.01) ** 0.5 + o


def _training(x: Any, s: Any, o: Any) -> Any:
    return _normal(x, s, o, x.mean((0, 2)), x.var((0, 2)))


@ON_EACH
def test_batch_norm(device: str, load_on: LoadOn) -> None:
    random = np.random.default_rng(1)
    x, g = random.normal(size=(2, 2, 3, 4)).astype(np.float32)
    s, o, m, v = np.abs(random.normal(size=(4, 3))).astype(np.float32)
    want = [_normal(x, s, o, m, v), _training(x, s, o), x.mean((0, 2)), x.var((0, 2))]
    want += jax.vjp(_training, x, s, o)[1](jnp.asarray(g))
    got = load_on(compiler.compile(BATCH_NORM, targets=[TARGETS[device]]), device).main(x, s, o, m, v, g)
    for one, other in zip(got, want, strict=True):
        np.testing.assert_allclose(np.asarray(one), other, rtol=1e-4, atol=1e-5)


T, G = "tensor<4xf32>", "replica_groups = dense<[[0]]> : tensor<1x1xi64>"
OTHERS = f"""
func.func @main(%a: tensor<2x3x4xf32>, %b: tensor<4x2x5xf32>, %i: tensor<2x5xi32>, %t: {T})
    -> (tensor<5x2x3xf32>, tensor<4x2xf32>, tensor<2x3x5xf32>, tensor<2x3x4xi1>, {T}, {T}, {T}, {T}, {T}, {T},
        tensor<ui32>, tensor<3x4xf32>, tensor<2x3x4xf32>) {{
  %0 = "stablehlo.einsum"(%a, %b) <{{einsum_config = "bij,jbk->kbi"}}>
      : (tensor<2x3x4xf32>, tensor<4x2x5xf32>) -> tensor<5x2x3xf32>
  %1 = "stablehlo.unary_einsum"(%a) <{{einsum_config = "bij->jb"}}> : (tensor<2x3x4xf32>) -> tensor<4x2xf32>
  %2 = "stablehlo.torch_index_select"(%a, %i) <{{dim = 2 : i64, batch_dims = 1 : i64}}>
      : (tensor<2x3x4xf32>, tensor<2x5xi32>) -> tensor<2x3x5xf32>
  %3 = chlo.broadcast_compare %a, %t {{comparison_direction = #chlo<comparison_direction LT>}}
      : (tensor<2x3x4xf32>, {T}) -> tensor<2x3x4xi1>
  %4 = "stablehlo.map"(%t, %t) <{{dimensions = array<i64: 0>}}> ({{
  ^bb0(%x: tensor<f32>, %y: tensor<f32>):
    %c = stablehlo.constant dense<3.0> : tensor<f32>
    %z = stablehlo.multiply %x, %c : tensor<f32>
    %w = stablehlo.subtract %z, %y : tensor<f32>
    stablehlo.return %w : tensor<f32>
  }}) : ({T}, {T}) -> {T}
  %5 = "stablehlo.all_reduce"(%t) <{{{G}}}> ({{
  ^bb0(%x: tensor<f32>, %y: tensor<f32>):
    %z = stablehlo.add %x, %y : tensor<f32>
    stablehlo.return %z : tensor<f32>
  }}) : ({T}) -> {T}
  %6 = "stablehlo.all_gather"(%t) <{{all_gather_dim = 0 : i64, {G}}}> : ({T}) -> {T}
  %7 = "stablehlo.all_to_all"(%t)
      <{{split_dimension = 0 : i64, concat_dimension = 0 : i64, split_count = 1 : i64, {G}}}> : ({T}) -> {T}
  %8 = "stablehlo.collective_permute"(%t) <{{source_target_pairs = dense<> : tensor<0x2xi64>}}> : ({T}) -> {T}
  %9 = "stablehlo.collective_broadcast"(%t) <{{{G}}}> : ({T}) -> {T}
  %10 = stablehlo.partition_id : tensor<ui32>
  %11 = "stablehlo.broadcast"(%t) <{{broadcast_sizes = array<i64: 3>}}> : ({T}) -> tensor<3x4xf32>
  %12 = "chlo.broadcast_next_after"(%a, %t) : (tensor<2x3x4xf32>, {T}) -> tensor<2x3x4xf32>
  %token = "stablehlo.create_token"() : () -> !stablehlo.token
  %after = stablehlo.after_all %token, %token : !stablehlo.token
  return %0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12 : tensor<5x2x3xf32>, tensor<4x2xf32>,
      tensor<2x3x5xf32>, tensor<2x3x4xi1>, {T}, {T}, {T}, {T}, {T}, {T}, tensor<ui32>, tensor<3x4xf32>,
      tensor<2x3x4xf32>
}}"""


@ON_EACH
def test_other_forms(device: str, load_on: LoadOn) -> None:
    random = np.random.default_rng(2)
    a, b, t = (random.integers(-8, 9, shape).astype(np.float32) for shape in ((2, 3, 4), (4, 2, 5), (4,)))
    i = random.integers(0, 4, (2, 5), np.int32)
    selected = np.stack([a[number][:, i[number]] for number in range(2)])
    want = [np.einsum("bij,jbk->kbi", a, b), np.einsum("bij->jb", a), selected, a < t, 3 * t - t]
    want += [t, t, t, 0 * t, t, np.uint32(0), np.stack([t] * 3), np.nextafter(a, t)]
    got = load_on(compiler.compile(OTHERS, targets=[TARGETS[device]]), device).main(a, b, i, t)
    for one, other in zip(got, want, strict=True):
        np.testing.assert_array_equal(np.asarray(one), other)


@ON_EACH
@pytest.mark.parametrize("kind", ["i2", "ui2", "i4", "ui4"])
def test_high_product_of_narrow_integers(kind: str, device: str, load_on: LoadOn) -> None:
    """Of all pairs of numbers."""
    dtype = np.dtype({"i2": ml_dtypes.int2, "ui2": ml_dtypes.uint2, "i4": ml_dtypes.int4, "ui4": ml_dtypes.uint4}[kind])
    limits, bits = ml_dtypes.iinfo(dtype), int(kind[-1])
    x, y = np.array([*product(range(limits.min, limits.max + 1), repeat=2)]).T
    type = f"tensor<{len(x)}x{kind}>"
    text = f"""
func.func @main(%x: {type}, %y: {type}) -> {type} {{
  %0 = "chlo.mulhi"(%x, %y) : ({type}, {type}) -> {type}
  return %0 : {type}
}}"""
    program = load_on(compiler.compile(text, targets=[TARGETS[device]]), device)
    got = np.asarray(program.main(x.astype(dtype), y.astype(dtype)))
    np.testing.assert_array_equal(got.astype(int), (x * y) >> bits)


#: groups of rows, of what is summed over, and of batches; sums from behind, with an op of CHLO in the body
GROUPS = """
func.func @main(%a: tensor<2x7x3xf32>, %b: tensor<4x2x3x5xf32>, %g: tensor<2x4xi32>, %n: tensor<4xi32>)
    -> (tensor<2x7x5xf32>, tensor<4x7x2x7xf32>, tensor<2x7x5xf32>, tensor<2x7x3xf32>, tensor<2x3xf32>) {
  %0 = "chlo.ragged_dot"(%a, %b, %g) <{ragged_dot_dimension_numbers = #chlo.ragged_dot<
      lhs_batching_dimensions = [0], rhs_batching_dimensions = [1], lhs_contracting_dimensions = [2],
      rhs_contracting_dimensions = [2], lhs_ragged_dimensions = [1], rhs_group_dimensions = [0]>}>
      : (tensor<2x7x3xf32>, tensor<4x2x3x5xf32>, tensor<2x4xi32>) -> tensor<2x7x5xf32>
  %1 = stablehlo.transpose %a, dims = [1, 0, 2] : (tensor<2x7x3xf32>) -> tensor<7x2x3xf32>
  %2 = "chlo.ragged_dot"(%1, %a, %n) <{ragged_dot_dimension_numbers = #chlo.ragged_dot<
      lhs_batching_dimensions = [1], rhs_batching_dimensions = [0], lhs_contracting_dimensions = [2],
      rhs_contracting_dimensions = [2], lhs_ragged_dimensions = [1]>}>
      : (tensor<7x2x3xf32>, tensor<2x7x3xf32>, tensor<4xi32>) -> tensor<2x7x7xf32>
  %3 = "chlo.ragged_dot"(%1, %a, %n) <{ragged_dot_dimension_numbers = #chlo.ragged_dot<
      lhs_contracting_dimensions = [2], rhs_contracting_dimensions = [2], lhs_ragged_dimensions = [2]>}>
      : (tensor<7x2x3xf32>, tensor<2x7x3xf32>, tensor<4xi32>) -> tensor<4x7x2x2x7xf32>
  %4 = stablehlo.slice %3 [0:4, 0:7, 0:2, 0:1, 0:7] : (tensor<4x7x2x2x7xf32>) -> tensor<4x7x2x1x7xf32>
  %5 = stablehlo.reshape %4 : (tensor<4x7x2x1x7xf32>) -> tensor<4x7x2x7xf32>
  %6 = stablehlo.slice %2 [0:2, 0:7, 0:5] : (tensor<2x7x7xf32>) -> tensor<2x7x5xf32>
  %7 = stablehlo.constant dense<0.0> : tensor<2x3xf32>
  %8:2 = "chlo.scan"(%a, %7) <{dimension = 1 : i64, is_reverse = true, is_associative = false,
      operandSegmentSizes = array<i32: 1, 1>, resultSegmentSizes = array<i32: 1, 1>}> ({
  ^bb0(%x: tensor<2x3xf32>, %y: tensor<2x3xf32>):
    %z = chlo.square %x : tensor<2x3xf32> -> tensor<2x3xf32>
    %w = stablehlo.add %z, %y : tensor<2x3xf32>
    stablehlo.return %w, %x : tensor<2x3xf32>, tensor<2x3xf32>
  }) : (tensor<2x7x3xf32>, tensor<2x3xf32>) -> (tensor<2x7x3xf32>, tensor<2x3xf32>)
  return %0, %5, %6, %8#0, %8#1
      : tensor<2x7x5xf32>, tensor<4x7x2x7xf32>, tensor<2x7x5xf32>, tensor<2x7x3xf32>, tensor<2x3xf32>
}"""


@ON_EACH
def test_groups_and_scans(device: str, load_on: LoadOn) -> None:
    random = np.random.default_rng(4)
    a, b = (random.integers(-4, 5, shape).astype(np.float32) for shape in ((2, 7, 3), (4, 2, 3, 5)))
    g, n = np.array([[3, 0, 2, 1], [1, 1, 5, 0]], np.int32), np.array([1, 0, 1, 4], np.int32)
    rows, summed = np.zeros((2, 7, 5), np.float32), np.zeros((4, 7, 2, 7), np.float32)
    for batch, sizes in enumerate(g):
        for row, group in enumerate(np.repeat(range(4), sizes)):
            rows[batch, row] = a[batch, row] @ b[group, batch]
    for place, group in enumerate(np.repeat(range(4), n)[:3]):
        summed[group] += np.einsum("bm,n->mbn", a[..., place], a[0, :, place])
    after = np.concatenate([a[:, 1:], np.zeros_like(a[:, :1])], axis=1)
    want = [rows, summed, np.einsum("bmk,bnk->bmn", a, a)[..., :5], a**2 + after, a[:, 0]]
    got = load_on(compiler.compile(GROUPS, targets=[TARGETS[device]]), device).main(a, b, g, n)
    for one, other in zip(got, want, strict=True):
        np.testing.assert_array_equal(np.asarray(one), other)


#: each operand that gives a size is a constant, each result of a static shape
STATIC = """
func.func @main(%x: tensor<2x3xi32>, %p: tensor<i32>, %i: tensor<2xi32>, %a: tensor<1x5x2xf32>, %b: tensor<3x2x4xf32>)
    -> (tensor<4x2x3xi32>, tensor<6xi32>, tensor<5xi32>, tensor<3x4xi32>, tensor<2x2xi32>, tensor<2x3xi32>, tensor<i32>,
        tensor<1x5x4xf32>, tensor<2x3xi32>) {
  %sizes = stablehlo.constant dense<[4, 2, 3]> : tensor<3xi64>
  %six = stablehlo.constant dense<6> : tensor<1xi64>
  %five = stablehlo.constant dense<5> : tensor<1xi64>
  %one = stablehlo.constant dense<[1, 1]> : tensor<2xi64>
  %zero = stablehlo.constant dense<[0, 0]> : tensor<2xi64>
  %first = stablehlo.constant dense<[0, 1]> : tensor<2xi64>
  %limit = stablehlo.constant dense<[2, 3]> : tensor<2xi64>
  %row = stablehlo.constant dense<[1, 3]> : tensor<2xi32>
  %padding = stablehlo.constant dense<[[1, 1]]> : tensor<1x2xi64>
  %0 = stablehlo.dynamic_broadcast_in_dim %x, %sizes, dims = [1, 2]
      : (tensor<2x3xi32>, tensor<3xi64>) -> tensor<4x2x3xi32>
  %1 = stablehlo.dynamic_reshape %x, %six : (tensor<2x3xi32>, tensor<1xi64>) -> tensor<6xi32>
  %2 = stablehlo.dynamic_iota %five, dim = 0 : (tensor<1xi64>) -> tensor<5xi32>
  %3 = stablehlo.dynamic_pad %x, %p, %one, %zero, %zero
      : (tensor<2x3xi32>, tensor<i32>, tensor<2xi64>, tensor<2xi64>, tensor<2xi64>) -> tensor<3x4xi32>
  %4 = stablehlo.real_dynamic_slice %x, %first, %limit, %one
      : (tensor<2x3xi32>, tensor<2xi64>, tensor<2xi64>, tensor<2xi64>) -> tensor<2x2xi32>
  %5 = "stablehlo.dynamic_gather"(%x, %i, %row) <{dimension_numbers = #stablehlo.gather<offset_dims = [1],
      collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>}>
      : (tensor<2x3xi32>, tensor<2xi32>, tensor<2xi32>) -> tensor<2x3xi32>
  %6 = stablehlo.get_dimension_size %x, dim = 1 : (tensor<2x3xi32>) -> tensor<i32>
  %7 = "stablehlo.dynamic_conv"(%a, %b, %padding) <{batch_group_count = 1 : i64, feature_group_count = 1 : i64,
      dimension_numbers = #stablehlo.conv<[b, 0, f]x[0, i, o]->[b, 0, f]>}>
      : (tensor<1x5x2xf32>, tensor<3x2x4xf32>, tensor<1x2xi64>) -> tensor<1x5x4xf32>
  %8 = stablehlo.tuple %p, %x : tuple<tensor<i32>, tensor<2x3xi32>>
  %9 = stablehlo.get_tuple_element %8[1] : (tuple<tensor<i32>, tensor<2x3xi32>>) -> tensor<2x3xi32>
  return %0, %1, %2, %3, %4, %5, %6, %7, %9 : tensor<4x2x3xi32>, tensor<6xi32>, tensor<5xi32>, tensor<3x4xi32>,
      tensor<2x2xi32>, tensor<2x3xi32>, tensor<i32>, tensor<1x5x4xf32>, tensor<2x3xi32>
}"""


def test_dynamic_ops_of_static_shapes(load_on: LoadOn) -> None:
    random = np.random.default_rng(6)
    x, p, i = random.integers(-9, 9, (2, 3), np.int32), np.int32(7), np.array([1, 0], np.int32)
    a, b = (random.integers(-4, 5, shape).astype(np.float32) for shape in ((1, 5, 2), (3, 2, 4)))
    axes = ("NWC", "WIO", "NWC")
    want = [np.stack([x] * 4), x.reshape(6), np.arange(5), np.pad(x, ((1, 0), (1, 0)), constant_values=7), x[:, 1:]]
    want += [x[i], np.int32(3), jax.lax.conv_general_dilated(a, b, (1,), [(1, 1)], dimension_numbers=axes), x]
    got = load_on(compiler.compile(STATIC, targets=["reference"]), "reference").main(x, p, i, a, b)
    for one, other in zip(got, want, strict=True):
        np.testing.assert_array_equal(np.asarray(one), other)


#: what a function takes and gives as tuples, callers give and get one by one
TUPLES = """
func.func private @f(%a: tuple<tensor<4xf32>, tensor<i32>>) -> (tensor<i32>, tuple<tensor<4xf32>, tuple<>>) {
  %0 = stablehlo.get_tuple_element %a[0] : (tuple<tensor<4xf32>, tensor<i32>>) -> tensor<4xf32>
  %1 = stablehlo.get_tuple_element %a[1] : (tuple<tensor<4xf32>, tensor<i32>>) -> tensor<i32>
  %2 = stablehlo.add %0, %0 : tensor<4xf32>
  %3 = stablehlo.tuple : tuple<>
  %4 = stablehlo.tuple %2, %3 : tuple<tensor<4xf32>, tuple<>>
  return %1, %4 : tensor<i32>, tuple<tensor<4xf32>, tuple<>>
}
func.func @main(%x: tensor<4xf32> {tf.aliasing_output = 1 : i32}, %t: tuple<tensor<4xf32>, tensor<i32>>)
    -> (tuple<tensor<4xf32>, tuple<tensor<i32>>>, tensor<4xf32>) {
  %0:2 = func.call @f(%t) : (tuple<tensor<4xf32>, tensor<i32>>) -> (tensor<i32>, tuple<tensor<4xf32>, tuple<>>)
  %1 = stablehlo.get_tuple_element %0#1[0] : (tuple<tensor<4xf32>, tuple<>>) -> tensor<4xf32>
  %2 = stablehlo.add %x, %1 : tensor<4xf32>
  %3 = stablehlo.tuple %0#0 : tuple<tensor<i32>>
  %4 = stablehlo.tuple %2, %3 : tuple<tensor<4xf32>, tuple<tensor<i32>>>
  %5 = stablehlo.get_tuple_element %t[0] : (tuple<tensor<4xf32>, tensor<i32>>) -> tensor<4xf32>
  return %4, %5 : tuple<tensor<4xf32>, tuple<tensor<i32>>>, tensor<4xf32>
}"""


def test_tuples_of_functions(load_on: LoadOn) -> None:
    x, y, n = np.float32([1, 2, 3, 4]), np.float32([10, 20, 30, 40]), np.int32(7)
    got = load_on(compiler.compile(TUPLES, targets=["reference"]), "reference").main(x, y, n)
    for one, other in zip(got, (x + 2 * y, n, y), strict=True):
        np.testing.assert_array_equal(np.asarray(one), other)


def _rng(number: int, distribution: str, element: str) -> str:
    return f"""%r{number} = stablehlo.rng %a{number}, %b{number}, %shape, distribution = {distribution}
        : (tensor<{element}>, tensor<{element}>, tensor<1xi64>) -> tensor<2000x{element}>"""


def test_random_numbers(load_on: LoadOn) -> None:
    """They lie where they should, are others for each op, and the same on each device and in each call."""
    rows = [("UNIFORM", "f32", 2, 5), ("NORMAL", "f32", 1, 3), ("UNIFORM", "i8", -3, 4), ("NORMAL", "f64", 0, 1),
            ("UNIFORM", "f32", 2, 5)]  # fmt: skip
    numbers = range(len(rows))
    body = "\n".join(_rng(at, *row[:2]) for at, row in enumerate(rows))
    types = ", ".join(f"tensor<2000x{row[1]}>" for row in rows)
    takes = ", ".join(f"%a{at}: tensor<{row[1]}>, %b{at}: tensor<{row[1]}>" for at, row in enumerate(rows))
    text = f"""func.func @main({takes}) -> ({types}) {{
      %shape = stablehlo.constant dense<[2000]> : tensor<1xi64>
      {body}
      return {", ".join(f"%r{at}" for at in numbers)} : {types}
    }}"""
    kinds = {"f32": np.float32, "f64": np.float64, "i8": np.int8}
    arguments = [kinds[element](value) for _, element, *both in rows for value in both]
    module = compiler.compile(text, targets=list(TARGETS.values()))
    programs = [load_on(module, device) for device in (*TARGETS, "reference")]
    first, *others = ([np.asarray(x, np.float64) for x in program.main(*arguments)] for program in programs)
    for other in others:
        for one, same in zip(first, other, strict=True):
            np.testing.assert_allclose(one, same, rtol=1e-5, atol=1e-6)
    assert 2 <= first[0].min() and first[0].max() < 5 and set(first[2]) == set(range(-3, 4))
    assert abs(first[1].mean() - 1) < 0.3 and abs(first[1].std() - 3) < 0.3 and abs(first[3].std() - 1) < 0.1
    assert not np.array_equal(first[0], first[4])


SOLVES = tuple(product((True, False), (True, False), ("NO_TRANSPOSE", "TRANSPOSE"), (True, False)))


def test_triangular_solve(load_on: LoadOn) -> None:
    """What stands in the other triangle, and on a unit diagonal, is not read: it is NaN."""
    random = np.random.default_rng(3)
    a = random.normal(size=(2, 4, 4)).astype(np.float32) + 4 * np.eye(4, dtype=np.float32)
    left, right = random.normal(size=(2, 4, 3)).astype(np.float32), random.normal(size=(2, 3, 4)).astype(np.float32)
    given, want, body = [], [], ""
    for at, (is_left, lower, transposed, unit) in enumerate(SOLVES):
        triangle = (np.tril if lower else np.triu)(np.ones((4, 4)), -1 if unit and lower else int(unit)) > 0
        given.append(np.where(triangle, a, np.nan).astype(np.float32))
        matrix = np.where(triangle, a, 0) + unit * np.eye(4)
        matrix = matrix.transpose(0, 2, 1) if transposed == "TRANSPOSE" else matrix
        want.append(np.linalg.inv(matrix) @ left if is_left else right @ np.linalg.inv(matrix))
        b, shape = ("%l", "2x4x3") if is_left else ("%r", "2x3x4")
        flags = f"left_side = {is_left}, lower = {lower}, unit_diagonal = {unit}".lower()
        body += f"""%x{at} = "stablehlo.triangular_solve"(%a{at}, {b}) <{{{flags}, transpose_a = #stablehlo<transpose
            {transposed}>}}> : (tensor<2x4x4xf32>, tensor<{shape}xf32>) -> tensor<{shape}xf32>\n"""
    types = ", ".join(f"tensor<2x{'4x3' if row[0] else '3x4'}xf32>" for row in SOLVES)
    takes = ", ".join(f"%a{at}: tensor<2x4x4xf32>" for at in range(len(SOLVES)))
    text = f"""func.func @main(%l: tensor<2x4x3xf32>, %r: tensor<2x3x4xf32>, {takes}) -> ({types}) {{
      {body} return {", ".join(f"%x{at}" for at in range(len(SOLVES)))} : {types} }}"""
    got = load_on(compiler.compile(text, targets=["reference"]), "reference").main(left, right, *given)
    for one, other in zip(got, want, strict=True):
        np.testing.assert_allclose(np.asarray(one), other, rtol=1e-4, atol=1e-5)


def _algebra(a: Any, b: Any) -> Any:
    s = a @ jnp.swapaxes(a, -1, -2) + 3 * jnp.eye(a.shape[-1])
    upper = jax.scipy.linalg.cholesky(s, lower=False)
    solved = jax.scipy.linalg.solve_triangular(a, b, lower=True, trans=1)
    return jnp.linalg.cholesky(s), upper, solved, jnp.linalg.solve(a, b), jnp.linalg.det(a), jnp.linalg.cholesky(-s)


def test_linear_algebra_without_libraries(load_on: LoadOn) -> None:
    random = np.random.default_rng(4)
    a, b = random.normal(size=(2, 5, 5)), random.normal(size=(2, 5, 2))
    program = jax.jit(_algebra).lower(a, b)
    got = load_on(compiler.compile(program, targets=["spirv"]), "vulkan").main(a, b)
    for one, other in zip(got, jax.jit(_algebra)(a, b), strict=True):
        np.testing.assert_allclose(np.asarray(one), np.asarray(other), rtol=1e-9, atol=1e-9)
