"""Ops that move or combine elements, alone and fused, on each target's device: against NumPy where data only moves."""

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from stablehlo_text import DTYPES, apply, filled, ints, main, tensor

TARGETS = ["opencl", "spirv", "cpu"]
EACH_TARGET = pytest.mark.parametrize("target", TARGETS)


# Structure: random shapes, one op

SHAPES = st.lists(st.integers(1, 5), min_size=0, max_size=4)
SOME = settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@EACH_TARGET
@SOME
@given(data=st.data())
def test_transpose(computes: Any, target: str, data: st.DataObject) -> None:
    shape = data.draw(SHAPES)
    order = data.draw(st.permutations(range(len(shape))))
    x = filled(shape)
    want = x.transpose(order)
    line = apply("transpose", "%a0", f"permutation = {ints(order)}", [tensor(shape)], tensor(want.shape))
    (got,) = computes(main([tensor(shape)], [f"%r = {line}"], [("%r", tensor(want.shape))]), target, x)
    np.testing.assert_array_equal(got, want)


@EACH_TARGET
@SOME
@given(data=st.data())
def test_slice_and_reverse(computes: Any, target: str, data: st.DataObject) -> None:
    shape = data.draw(st.lists(st.integers(1, 6), min_size=1, max_size=3))
    starts = [data.draw(st.integers(0, size - 1)) for size in shape]
    limits = [data.draw(st.integers(start + 1, size)) for start, size in zip(starts, shape, strict=True)]
    strides = [data.draw(st.integers(1, 3)) for _ in shape]
    axes = data.draw(st.lists(st.sampled_from(range(len(shape))), unique=True))
    x = filled(shape)
    cut = x[tuple(slice(*bounds) for bounds in zip(starts, limits, strides, strict=True))]
    t, c = tensor(shape), tensor(cut.shape)
    attributes = f"start_indices = {ints(starts)}, limit_indices = {ints(limits)}, strides = {ints(strides)}"
    lines = [
        f"%s = {apply('slice', '%a0', attributes, [t], c)}",
        f"%r = {apply('reverse', '%s', f'dimensions = {ints(axes)}', [c], c)}",
    ]
    (got,) = computes(main([t], lines, [("%r", c)]), target, x)
    np.testing.assert_array_equal(got, np.flip(cut, axes))


def padded(x: np.ndarray, value: int, low: list[int], high: list[int], interior: list[int]) -> np.ndarray:
    """StableHLO's pad, element by element."""
    shape = [a + n + max(n - 1, 0) * i + b for a, b, i, n in zip(low, high, interior, x.shape, strict=True)]
    out = np.full(shape, value, x.dtype)
    for place in np.ndindex(*x.shape):
        target = tuple(a + p * (i + 1) for a, p, i in zip(low, place, interior, strict=True))
        if all(0 <= t < n for t, n in zip(target, shape, strict=True)):
            out[target] = x[place]
    return out


@EACH_TARGET
@SOME
@given(data=st.data())
def test_pad(computes: Any, target: str, data: st.DataObject) -> None:
    shape = data.draw(st.lists(st.integers(1, 5), min_size=1, max_size=3))
    low = [data.draw(st.integers(-2, 3)) for _ in shape]
    high = [data.draw(st.integers(-2, 3)) for _ in shape]
    interior = [data.draw(st.integers(0, 2)) for _ in shape]
    sizes = [a + n + (n - 1) * i + b for a, b, i, n in zip(low, high, interior, shape, strict=True)]
    if min(sizes) < 1:
        return
    x = filled(shape)
    want = padded(x, -7, low, high, interior)
    attributes = (
        f"edge_padding_low = {ints(low)}, edge_padding_high = {ints(high)}, interior_padding = {ints(interior)}"
    )
    types = [tensor(shape), "tensor<i32>"]
    line = apply("pad", "%a0, %a1", attributes, types, tensor(want.shape))
    text = main(types, [f"%r = {line}"], [("%r", tensor(want.shape))])
    (got,) = computes(text, target, x, np.array(-7, np.int32))
    np.testing.assert_array_equal(got, want)


@EACH_TARGET
@SOME
@given(data=st.data())
def test_concatenate(computes: Any, target: str, data: st.DataObject) -> None:
    rest = data.draw(st.lists(st.integers(1, 4), min_size=1, max_size=3))
    axis = data.draw(st.integers(0, len(rest) - 1))
    sizes = data.draw(st.lists(st.integers(1, 4), min_size=1, max_size=5))
    arrays = [filled([*rest[:axis], size, *rest[axis + 1 :]]) + 100 * at for at, size in enumerate(sizes)]
    want = np.concatenate(arrays, axis)
    types = [tensor(array.shape) for array in arrays]
    values = ", ".join(f"%a{at}" for at in range(len(arrays)))
    line = apply("concatenate", values, f"dimension = {axis} : i64", types, tensor(want.shape))
    (got,) = computes(main(types, [f"%r = {line}"], [("%r", tensor(want.shape))]), target, *arrays)
    np.testing.assert_array_equal(got, want)


@EACH_TARGET
@SOME
@given(data=st.data())
def test_broadcast_and_reshape(computes: Any, target: str, data: st.DataObject) -> None:
    result = data.draw(st.lists(st.integers(1, 4), min_size=1, max_size=4))
    dims = data.draw(st.lists(st.sampled_from(range(len(result))), unique=True))
    shape = [data.draw(st.sampled_from([1, result[dim]])) for dim in dims]
    x = filled(shape)
    order = np.argsort(dims)
    spread = [1] * len(result)
    for dim, size in zip(dims, shape, strict=True):
        spread[dim] = size
    want = np.broadcast_to(x.transpose(order).reshape(spread), result).reshape(-1)
    attributes = f"broadcast_dimensions = {ints(dims)}"
    flat = tensor([want.size])
    lines = [
        f"%s = {apply('broadcast_in_dim', '%a0', attributes, [tensor(shape)], tensor(result))}",
        f"%r = {apply('reshape', '%s', '', [tensor(result)], flat)}",
    ]
    (got,) = computes(main([tensor(shape)], lines, [("%r", flat)]), target, x)
    np.testing.assert_array_equal(got, want)


@EACH_TARGET
@pytest.mark.parametrize("dtype", ["i32", "i8", "ui64", "f32", "f64"])
def test_iota_and_constants(computes: Any, target: str, dtype: str) -> None:
    t = tensor([3, 200], dtype)
    small = tensor([2, 3], dtype)
    values = "[[1.5, 2.0, 3.0], [4.0, 5.0, 6.0]]" if dtype.startswith("f") else "[[1, 2, 3], [4, 5, 6]]"
    lines = [
        f'%i = "stablehlo.iota"() <{{iota_dimension = 1 : i64}}> : () -> {t}',
        f'%j = "stablehlo.constant"() <{{value = dense<{values}> : {small}}}> : () -> {small}',
    ]
    wide, few = computes(main([], lines, [("%i", t), ("%j", small)]), target)
    np.testing.assert_array_equal(wide, np.broadcast_to(np.arange(200).astype(DTYPES[dtype]), (3, 200)))
    np.testing.assert_array_equal(few, np.array(json.loads(values), DTYPES[dtype]))


@EACH_TARGET
def test_scalar_operands_of_select_and_clamp(computes: Any, target: str) -> None:
    t = tensor([5])
    lines = [
        f'%s = "stablehlo.select"(%a0, %a1, %a2) : (tensor<i1>, {t}, {t}) -> {t}',
        f'%r = "stablehlo.clamp"(%a3, %s, %a4) : (tensor<i32>, {t}, tensor<i32>) -> {t}',
    ]
    types = ["tensor<i1>", t, t, "tensor<i32>", "tensor<i32>"]
    x, y = np.arange(5, dtype=np.int32), np.full(5, 9, np.int32)
    low, high = np.array(1, np.int32), np.array(3, np.int32)
    (got,) = computes(main(types, lines, [("%r", t)]), target, np.array(True), x, y, low, high)
    np.testing.assert_array_equal(got, [1, 1, 2, 3, 3])


@EACH_TARGET
def test_padding_an_empty_tensor(computes: Any, target: str) -> None:
    attributes = "edge_padding_low = array<i64: 2>, edge_padding_high = array<i64: 1>, interior_padding = array<i64: 1>"
    lines = [
        '%e = "stablehlo.broadcast_in_dim"(%a0) <{broadcast_dimensions = array<i64>}> : (tensor<i32>) -> tensor<0xi32>',
        f"%r = {apply('pad', '%e, %a0', attributes, ['tensor<0xi32>', 'tensor<i32>'], 'tensor<3xi32>')}",
    ]
    (got,) = computes(main(["tensor<i32>"], lines, [("%r", "tensor<3xi32>")]), target, np.array(4, np.int32))
    np.testing.assert_array_equal(got, [4, 4, 4])


# Fusion and schedules


@EACH_TARGET
def test_more_than_65535_workgroups(computes: Any, target: str) -> None:
    count = 65536 * 64 + 3
    t = tensor([count], "i8")
    x = (np.arange(count) % 101).astype(np.int8)
    text = main([t], [f'%r = "stablehlo.negate"(%a0) : ({t}) -> {t}'], [("%r", t)])
    (got,) = computes(text, target, x)
    np.testing.assert_array_equal(got, -x)


@EACH_TARGET
@pytest.mark.parametrize("most", [(7, 1 << 20, 1), (5, 3, 1 << 20), (1, 1, 1 << 20)])
def test_a_folded_grid_counts_workgroups_linearly(computes: Any, target: str, most: tuple[int, int, int]) -> None:
    t = tensor([1000])
    x = np.arange(1000, dtype=np.int32)
    text = main([t], [f'%r = "stablehlo.multiply"(%a0, %a0) : ({t}, {t}) -> {t}'], [("%r", t)])
    (got,) = computes(text, target, x, most_groups=most)
    np.testing.assert_array_equal(got, x * x)


@EACH_TARGET
def test_a_chain_of_thousands_of_ops(computes: Any, target: str) -> None:
    t = tensor([3])
    lines = [f'%v0 = "stablehlo.add"(%a0, %a0) : ({t}, {t}) -> {t}']
    for at in range(3000):
        lines.append(f'%v{at + 1} = "stablehlo.add"(%v{at}, %v{max(at - 1, 0)}) : ({t}, {t}) -> {t}')
    x = np.array([1, 2, 3], np.int32)
    older, newer = 2 * x, 4 * x
    with np.errstate(over="ignore"):
        for _ in range(2999):
            older, newer = newer, newer + older
    (got,) = computes(main([t], lines, [("%v3000", t)]), target, x)
    np.testing.assert_array_equal(got, newer)


def test_a_shared_producer_is_emitted_once(lowered: Any) -> None:
    t = tensor([8], "f32")
    lines = [f'%v0 = "stablehlo.exponential"(%a0) : ({t}) -> {t}']
    lines += [f'%v{at + 1} = "stablehlo.multiply"(%v{at}, %v{at}) : ({t}, {t}) -> {t}' for at in range(40)]
    source = lowered(main([t], lines, [("%v40", t)]), "opencl").payload.data.decode()
    assert len(source.splitlines()) < 150


@EACH_TARGET
def test_results_of_different_sizes(computes: Any, target: str) -> None:
    wide, narrow = tensor([100]), tensor([7])
    lines = [
        f'%r = "stablehlo.negate"(%a0) : ({wide}) -> {wide}',
        f'%s = "stablehlo.negate"(%a1) : ({narrow}) -> {narrow}',
        f"%t = {apply('reshape', '%r', '', [wide], tensor([10, 10]))}",
    ]
    results = [("%r", wide), ("%s", narrow), ("%t", tensor([10, 10]))]
    x, y = np.arange(100, dtype=np.int32), np.arange(7, dtype=np.int32)
    r, s, again = computes(main([wide, narrow], lines, results), target, x, y)
    np.testing.assert_array_equal(r, -x)
    np.testing.assert_array_equal(s, -y)
    np.testing.assert_array_equal(again, -x.reshape(10, 10))


@EACH_TARGET
def test_a_hundred_pads_and_concatenates_in_one_another(computes: Any, target: str) -> None:
    """More than the constructs in one another that a device takes."""
    x = np.arange(3, dtype=np.int32)
    value, size, want = "%a0", 3, x
    lines = ['%z = "stablehlo.constant"() <{value = dense<-1> : tensor<i32>}> : () -> tensor<i32>']
    attributes = "edge_padding_low = array<i64: 1>, edge_padding_high = array<i64: 0>, interior_padding = array<i64: 0>"
    for at in range(100):
        before, one, longer = tensor([size]), tensor([size + 1]), tensor([size + 4])
        lines.append(f"%p{at} = {apply('pad', f'{value}, %z', attributes, [before, 'tensor<i32>'], one)}")
        lines.append(
            f"%c{at} = {apply('concatenate', f'%p{at}, %a0', 'dimension = 0 : i64', [one, tensor([3])], longer)}"
        )
        value, size, want = f"%c{at}", size + 4, np.concatenate([[-1], want, x])
    (got,) = computes(main([tensor([3])], lines, [(value, tensor([size]))]), target, x)
    np.testing.assert_array_equal(got, want)
