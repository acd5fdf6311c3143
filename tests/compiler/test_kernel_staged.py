"""Dots whose operands a workgroup stages in shared memory: the results are those of tiles, bit for bit, at any shape,
type and size of the tile.
"""

from math import prod
from typing import Any

import numpy as np
import pytest
from dots import PLAIN_DOT, Dot, check, dots, expected, matmul, staged, tiled
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from stablehlo_text import DTYPES, apply, filled, ints, main, tensor

EACH_TARGET = pytest.mark.parametrize("target", ["opencl", "spirv", "cpu"])
#: bytes of shared memory that every Vulkan device has
SHARED = 16384
#: tiles of one result and of several; flat and deep slices; workgroups that are square, wide and small
SCHEDULES = [
    staged(2, 1, 16),
    staged(8, 4, 16),
    staged(1, 2, 8, (16, 8)),
    staged(4, 4, 4, (4, 8)),
    staged(2, 2, 2, (2, 2)),
]
EACH_SCHEDULE = pytest.mark.parametrize("schedule", SCHEDULES, ids=range(len(SCHEDULES)))
#: each result by itself
THREAD = "[bind(grid, invocation, 64)]"


def sums_in_blocks(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The product of two matrices of f32, added in the order that kernels keep: blocks of 64, one after the other."""
    total = np.zeros((x.shape[0], y.shape[1]), np.float32)
    for first in range(0, x.shape[1], 64):
        part = np.zeros_like(total)
        for at in range(first, min(first + 64, x.shape[1])):
            part += x[:, at : at + 1] * y[at : at + 1]
        total += part
    return total


#: around the sizes of tiles, slices and blocks of sums
SHAPES = [(16, 16, 16), (15, 8, 17), (33, 65, 31), (8, 145, 40), (130, 64, 70), (1, 1, 1)]


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("target", "shape"), [("spirv", shape) for shape in SHAPES] + [("opencl", shape) for shape in SHAPES[1:3]], ids=str
)
@EACH_SCHEDULE
def test_sums_have_the_order_of_their_elements(
    computes: Any, target: str, shape: tuple[int, int, int], schedule: str
) -> None:
    dot = matmul(*shape)
    x, y = filled(dot.lhs, "f32"), filled(dot.rhs, "f32")
    (got,) = computes(dot.text(["f32"] * 3), target, x, y, schedule=schedule, most_groups=(3, 1 << 20, 1))
    assert got.tobytes() == sums_in_blocks(x, y).tobytes()


@settings(max_examples=5, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    dot=dots().filter(lambda dot: prod(dot.out) <= 20_000 and bool(dot.dims.lhs_contract)),
    dtype=st.sampled_from(["f32", "f32", "f64", "i32", "i8", "i1"]),
    schedule=st.sampled_from(SCHEDULES),
)
def test_any_contraction_has_the_bits_of_tiles(computes: Any, dot: Dot, dtype: str, schedule: str) -> None:
    x, y = filled(dot.lhs, dtype), filled(dot.rhs, dtype)
    text = dot.text([dtype] * 3)
    if dtype == "f64":  # twice the bytes, half as many places in a slice
        schedule = schedule.replace("shared, 16", "shared, 8")
    blocks, tiles, each = (
        computes(text, "spirv", x, y, schedule=one)[0] for one in (schedule, tiled(4, 4, "unroll(k, 4)"), THREAD)
    )
    assert blocks.tobytes() == tiles.tobytes() == each.tobytes()
    if dtype != "i1":
        check(blocks, expected(dot, x, y, dtype), dtype)


@pytest.mark.sampled
@pytest.mark.parametrize("target", ["opencl", "spirv"])
@pytest.mark.parametrize("dtype", ["f32", "f64", "i64", "i32", "i8", "i1"])
def test_slices_fit_the_shared_memory_of_every_device(lowered: Any, target: str, dtype: str) -> None:
    made = lowered(matmul(1024, 64, 1024).text([dtype] * 3), target, "gpu")
    assert "stage(lhs, shared, " in made.schedule
    assert 1024 <= made.payload.shared_memory_bytes <= SHARED


@pytest.mark.sampled
@EACH_TARGET
@EACH_SCHEDULE
def test_what_is_fused_before_and_behind(computes: Any, target: str, schedule: str) -> None:
    """relu(|x| @ transpose(w) + bias) where w is converted, at sizes that no tile divides."""
    rows, depth, columns = 18, 21, 35
    dot = Dot((rows, depth), (depth, columns), PLAIN_DOT, "ij,jk->ik", (rows, columns))
    x, w, b = tensor(dot.lhs, "f32"), tensor((columns, depth), "i8"), tensor((columns,), "f32")
    wide, turned, out = tensor((columns, depth), "f32"), tensor(dot.rhs, "f32"), tensor(dot.out, "f32")
    lines = [
        "%p = " + apply("abs", "%a0", "", [x], x),
        "%c = " + apply("convert", "%a1", "", [w], wide),
        "%t = " + apply("transpose", "%c", f"permutation = {ints([1, 0])}", [wide], turned),
        dot.line("%r", "%p", "%t", ["f32"] * 3),
        "%b = " + apply("broadcast_in_dim", "%a2", f"broadcast_dimensions = {ints([1])}", [b], out),
        "%s = " + apply("add", "%r, %b", "", [out, out], out),
        f'%z = "stablehlo.constant"() <{{value = dense<0.0> : {out}}}> : () -> {out}',
        "%m = " + apply("maximum", "%s, %z", "", [out, out], out),
    ]
    text = main([x, w, b], lines, [("%m", out), ("%s", out)])
    given = [filled(dot.lhs, "f32"), filled((columns, depth), "i8"), filled((columns,), "f32")]
    relu, sums = computes(text, target, *given, schedule=schedule)
    want = sums_in_blocks(np.abs(given[0]), given[1].T.astype(DTYPES["f32"])) + given[2]
    if target == "cpu":  # it may round a product and its sum once
        np.testing.assert_allclose(sums, want, rtol=1e-6)
        want = computes(text, target, *given, schedule=THREAD)[1]
    np.testing.assert_array_equal(sums, want)
    np.testing.assert_array_equal(relu, np.maximum(want, 0))
