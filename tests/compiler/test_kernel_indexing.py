"""Slices and updates whose place is known at run time only, on each target's device, against NumPy."""

from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from stablehlo_text import DTYPES, apply, filled, ints, main, tensor

EACH_TARGET = pytest.mark.parametrize("target", ["opencl", "spirv", "cpu"])
SOME = settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
INDICES = ["i8", "i16", "i32", "i64", "ui8", "ui16", "ui32", "ui64"]


def window(data: st.DataObject, shape: list[int], dtype: str) -> tuple[list[int], list[np.ndarray], tuple[slice, ...]]:
    """Sizes of a window, starts of that type (often far outside), and where the window lies then."""
    info = np.iinfo(DTYPES[dtype])
    sizes = [data.draw(st.integers(1, size)) for size in shape]
    near = st.integers(max(-2, info.min), 7)
    starts = [data.draw(st.one_of(near, st.sampled_from([info.min, info.max]))) for _ in shape]
    places = [min(max(start, 0), whole - size) for start, whole, size in zip(starts, shape, sizes, strict=True)]
    slices = tuple(slice(place, place + size) for place, size in zip(places, sizes, strict=True))
    return sizes, [np.array(start, DTYPES[dtype]) for start in starts], slices


@EACH_TARGET
@SOME
@given(data=st.data())
def test_dynamic_slice(computes: Any, target: str, data: st.DataObject) -> None:
    shape = data.draw(st.lists(st.integers(1, 6), min_size=1, max_size=3))
    dtype = data.draw(st.sampled_from(INDICES))
    sizes, starts, slices = window(data, shape, dtype)
    x = filled(shape)
    t, i, r = tensor(shape), tensor((), dtype), tensor(sizes)
    names = "".join(f", %a{k + 1}" for k in range(len(shape)))
    line = apply("dynamic_slice", f"%a0{names}", f"slice_sizes = {ints(sizes)}", [t] + [i] * len(shape), r)
    (got,) = computes(main([t] + [i] * len(shape), [f"%r = {line}"], [("%r", r)]), target, x, *starts)
    np.testing.assert_array_equal(got, x[slices])


@EACH_TARGET
@SOME
@given(data=st.data())
def test_dynamic_update_slice(computes: Any, target: str, data: st.DataObject) -> None:
    shape = data.draw(st.lists(st.integers(1, 6), min_size=1, max_size=3))
    dtype = data.draw(st.sampled_from(INDICES))
    sizes, starts, slices = window(data, shape, dtype)
    x, update = filled(shape), filled(sizes) + 1000
    want = x.copy()
    want[slices] = update
    t, i, u = tensor(shape), tensor((), dtype), tensor(sizes)
    names = "".join(f", %a{k + 2}" for k in range(len(shape)))
    types = [t, u] + [i] * len(shape)
    line = apply("dynamic_update_slice", f"%a0, %a1{names}", "", types, t)
    (got,) = computes(main(types, [f"%r = {line}"], [("%r", t)]), target, x, update, *starts)
    np.testing.assert_array_equal(got, want)


@EACH_TARGET
def test_starts_are_read_once_in_front_of_loops(computes: Any, lowered: Any, target: str) -> None:
    """The rows of a product are found at run time: no load of the start inside its loop."""
    x, w, row = filled((9, 40)).astype(np.float32), filled((40, 8)).astype(np.float32), np.array(3, np.int32)
    types = [tensor((9, 40), "f32"), tensor((40, 8), "f32"), tensor((), "i32")]
    zero = '"stablehlo.constant"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>'
    s, o = tensor((1, 40), "f32"), tensor((1, 8), "f32")
    rows = f"slice_sizes = {ints((1, 40))}"
    dims = "dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>"
    lines = [
        f"%z = {zero}",
        f"%s = {apply('dynamic_slice', '%a0, %a2, %z', rows, [types[0], *types[2:] * 2], s)}",
        f"%r = {apply('dot_general', '%s, %a1', dims, [s, types[1]], o)}",
    ]
    text = main(types, lines, [("%r", o)])
    (got,) = computes(text, target, x, w, row)
    np.testing.assert_allclose(got, x[3:4] @ w, rtol=1e-6)
    entry = lowered(text, target).module
    loads = [op for op in entry.walk() if op.name == "kernel.load" and str(op.results[0].type) == "i32"]
    assert len(loads) == 1 and loads[0].parent_op.name == "ll_seq.entry"


@pytest.mark.sampled
@EACH_TARGET
@pytest.mark.parametrize("dtype", INDICES)
def test_gather(computes: Any, target: str, dtype: str) -> None:
    """A batched axis, a collapsed one, one of which two elements are taken; the index vectors lie along the first."""
    rng, info = np.random.default_rng(5), np.iinfo(DTYPES[dtype])
    x = filled((3, 5, 4))
    chosen = np.array([info.min, info.max, 0, 1, 2, 3, 4, 5], DTYPES[dtype])
    starts = rng.choice(chosen, (2, 6, 3))
    axes = "offset_dims = [1], collapsed_slice_dims = [1], operand_batching_dims = [0], "
    axes += "start_indices_batching_dims = [2], start_index_map = [2, 1], index_vector_dim = 0"
    attributes = f"dimension_numbers = #stablehlo.gather<{axes}>, slice_sizes = {ints((1, 1, 2))}"
    types, out = [tensor(x.shape), tensor(starts.shape, dtype)], tensor((6, 2, 3))
    line = f"%r = {apply('gather', '%a0, %a1', attributes, types, out)}"
    (got,) = computes(main(types, [line], [("%r", out)]), target, x, starts)
    column, row = (np.array([[min(max(int(n), 0), most) for n in line] for line in part])
                   for part, most in zip(starts, (2, 4), strict=True))  # fmt: skip
    want = np.stack([x[np.arange(3)[None], row, column + offset] for offset in (0, 1)], 1)
    np.testing.assert_array_equal(got, want)
