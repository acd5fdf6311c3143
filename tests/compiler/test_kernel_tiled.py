"""Dots in tiles: every result is written once and right at any shape, type and size of the tile."""

from math import prod
from typing import Any

import numpy as np
import pytest
from dots import Dot, check, dots, expected, matmul, tiled
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from stablehlo_text import apply, filled, ints, main, tensor

EACH_TARGET = pytest.mark.parametrize("target", ["opencl", "spirv", "cpu"])
#: target -> a schedule of plain tiles, of wide ones with what its machine has, of ones that count rows faster
SCHEDULES = {
    "opencl": [tiled(8, 8), tiled(4, 16, "vectorize(n, 16)"), tiled(2, 4, "unroll(k, 2)", rows_faster=True)],
    "spirv": [tiled(8, 8), tiled(8, 4, "unroll(k, 4)"), tiled(3, 5, rows_faster=True)],
    "cpu": [tiled(8, 8), tiled(4, 16, "vectorize(n, 16)"), tiled(3, 5, rows_faster=True)],
}
EACH_SCHEDULE = pytest.mark.parametrize(
    ("target", "schedule"),
    [
        pytest.param(target, schedule, id=f"{target} {number}")
        for target, schedules in SCHEDULES.items()
        for number, schedule in enumerate(schedules)
    ],
)
#: around the sizes of a tile: one less, just so, one more, several; single rows and columns; long reductions
SHAPES = [
    (8, 3, 8),
    (7, 5, 9),
    (9, 5, 7),
    (16, 70, 24),
    (17, 64, 8),
    (8, 65, 17),
    (1, 130, 33),
    (33, 9, 4),
    (25, 1, 31),
    (1, 3, 1),
]


@pytest.mark.sampled
@EACH_SCHEDULE
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_matrices_of_any_size(computes: Any, target: str, schedule: str, shape: tuple[int, int, int]) -> None:
    dot = matmul(*shape)
    x, y = filled(dot.lhs, "f32"), filled(dot.rhs, "f32")
    (got,) = computes(dot.text(["f32"] * 3), target, x, y, schedule=schedule)
    check(got, expected(dot, x, y, "f32"), "f32")


@pytest.mark.sampled
@EACH_TARGET
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_matrices_of_integers(computes: Any, target: str, shape: tuple[int, int, int]) -> None:
    dot = matmul(*shape)
    x, y = filled(dot.lhs), filled(dot.rhs)
    (got,) = computes(dot.text(["i32"] * 3), target, x, y, schedule=tiled(8, 8))
    np.testing.assert_array_equal(got, x @ y)


@pytest.mark.sampled
@EACH_TARGET
@pytest.mark.parametrize("shape", [(8, 5, 8), (9, 5, 8), (8, 5, 15), (16, 5, 17), (30, 70, 33)], ids=str)
def test_a_last_tile_that_is_moved_back(computes: Any, target: str, shape: tuple[int, int, int]) -> None:
    """It has the bits of one that stays, and writes no result that the tile before has written."""
    dot = matmul(*shape)
    x, y = filled(dot.lhs, "f32"), filled(dot.rhs, "f32")
    shifted, clamped = (
        computes(dot.text(["f32"] * 3), target, x, y, schedule=tiled(8, 8, guard=guard))[0]
        for guard in ("shift", "clamp")
    )
    check(shifted, expected(dot, x, y, "f32"), "f32")
    assert shifted.tobytes() == clamped.tobytes()


@pytest.mark.sampled(every=3)
@EACH_SCHEDULE
@settings(max_examples=4, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(dot=dots().filter(lambda dot: prod(dot.out) <= 20_000), dtype=st.sampled_from(["f32", "i32", "i8", "f64"]))
def test_any_contraction(computes: Any, target: str, schedule: str, dot: Dot, dtype: str) -> None:
    x, y = filled(dot.lhs, dtype), filled(dot.rhs, dtype)
    (got,) = computes(dot.text([dtype] * 3), target, x, y, schedule=schedule)
    check(got, expected(dot, x, y, dtype), dtype)


@EACH_TARGET
@pytest.mark.parametrize("most", [(3, 1 << 20, 1), (1, 1, 1 << 20)])
def test_a_folded_grid_of_tiles(computes: Any, target: str, most: tuple[int, int, int]) -> None:
    dot = matmul(130, 5, 70)
    x, y = filled(dot.lhs), filled(dot.rhs)
    (got,) = computes(dot.text(["i32"] * 3), target, x, y, schedule=tiled(8, 8), most_groups=most)
    np.testing.assert_array_equal(got, x @ y)


@pytest.mark.sampled
@EACH_SCHEDULE
@pytest.mark.parametrize("shape", [(16, 12, 24), (15, 12, 25)], ids=str)
def test_what_is_fused_before_and_behind(
    computes: Any, target: str, schedule: str, shape: tuple[int, int, int]
) -> None:
    """relu(|x| @ transpose(w) + bias), and the sum without relu in another shape, of the same loop."""
    rows, depth, columns = shape
    dot = matmul(*shape)
    tx, tw, ty, tb = (tensor(s, "f32") for s in (dot.lhs, (columns, depth), dot.rhs, (columns,)))
    out, flat = tensor(dot.out, "f32"), tensor((rows * columns,), "f32")
    lines = [
        "%p = " + apply("abs", "%a0", "", [tx], tx),
        "%t = " + apply("transpose", "%a1", f"permutation = {ints([1, 0])}", [tw], ty),
        dot.line("%r", "%p", "%t", ["f32"] * 3),
        "%b = " + apply("broadcast_in_dim", "%a2", f"broadcast_dimensions = {ints([1])}", [tb], out),
        "%s = " + apply("add", "%r, %b", "", [out, out], out),
        f'%c = "stablehlo.constant"() <{{value = dense<0.0> : {out}}}> : () -> {out}',
        "%m = " + apply("maximum", "%s, %c", "", [out, out], out),
        "%f = " + apply("reshape", "%s", "", [out], flat),
    ]
    text = main([tx, tw, tb], lines, [("%m", out), ("%f", flat)])
    x, w, bias = filled(dot.lhs, "f32"), filled((columns, depth), "f32"), filled((columns,), "f32")
    relu, sums = computes(text, target, x, w, bias, schedule=schedule)
    want = np.abs(x).astype(np.float64) @ w.T.astype(np.float64) + bias
    check(sums.reshape(dot.out), want, "f32")
    np.testing.assert_array_equal(relu, np.maximum(sums.reshape(dot.out), 0))
