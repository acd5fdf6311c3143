"""Dots in tiles: which dots get them, that every result is written once and right at any shape, within bounded code."""

from math import prod
from typing import Any

import numpy as np
import pytest
from dots import Dot, check, dots, expected, matmul
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from stablehlo_text import apply, filled, ints, main, tensor

from orchestrion.compiler.ir.core import Operation
from orchestrion.compiler.kernel.fold_limits import FEW_FOLDS, max_elements
from orchestrion.compiler.kernel.machine import PLAIN
from orchestrion.compiler.kernel.schedule import LONG_FOLD, LONG_TILED_FOLD, SCHEDULES
from orchestrion.compiler.kernel.tiled import MOST_OPS, Extents, Tile, tile_of
from orchestrion.compiler.stablehlo.ops.contraction import DotGeneral
from orchestrion.compiler.targets.opencl.target import MACHINES as OPENCL
from orchestrion.compiler.targets.spirv.target import MACHINES as SPIRV
from orchestrion.compiler.targets.target import target as target_of

EACH_TARGET = pytest.mark.parametrize("target", ["opencl", "spirv"])
MACHINES = {"opencl": OPENCL["cpu"], "spirv": SPIRV["cpu"]}


def schedule_of(made: Any) -> str:
    """A schedule of plain operands by its workgroup size, which differ."""
    plain = [SCHEDULES[name] for name in ("thread", "workgroup_of_128", "tiled")]
    (name,) = [row.name for row in plain if row.workgroup_size == made.workgroup_size[0]]
    return name


# which dots get tiles


@pytest.mark.parametrize(
    ("shape", "schedule"),
    [
        ((64, 64, 64), "tiled"),
        ((1, 64, 2048), "tiled"),
        ((2048, 64, 1), "thread"),
        ((3, 4, 3), "thread"),
        ((1, LONG_FOLD, 8), "tiled"),
        ((1, LONG_FOLD + 1, 8), "tiled"),
        ((30, 2 * LONG_TILED_FOLD, 30), "tiled"),
        ((1, 16_000, 16), "tiled"),
        ((20, LONG_FOLD + 1, 1), "workgroup_of_128"),
        ((3, 9_000_000, 3), "workgroup_of_128"),
        ((40, 30_000, 40), "tiled"),
        ((40, 900_000, 40), "tiled"),
    ],
    ids=str,
)
@EACH_TARGET
def test_a_dot_takes_the_schedule_that_measured_best(
    lowered: Any, target: str, shape: tuple[int, int, int], schedule: str
) -> None:
    made = lowered(matmul(*shape).text(["f32"] * 3), target)
    if shape[1] > max_elements(target_of(target).row("cpu")):
        schedule = "workgroup_of_128"
    assert schedule_of(made) == schedule
    if schedule == "tiled" and shape[1] <= 4096:  # longer code takes smaller tiles
        rows, _, columns = shape
        most_rows, most_columns = MACHINES[target].tile
        tile = Tile(min(most_rows, rows), 8 if columns == 8 else most_columns)
        assert made.workload == (-(-rows // tile.rows) * -(-columns // tile.columns), 1, 1)


@pytest.mark.parametrize(
    ("shape", "tiled"),
    [
        ((1, LONG_FOLD, 8), True),
        ((1, LONG_FOLD + 1, 8), False),
        ((1, LONG_FOLD + 1, FEW_FOLDS), True),
        ((30, LONG_TILED_FOLD, 30), True),
        ((30, LONG_TILED_FOLD + 1, 30), False),
    ],
    ids=str,
)
@EACH_TARGET
def test_a_gpu_has_a_workgroup_for_each_of_few_long_dots(
    lowered: Any, target: str, shape: tuple[int, int, int], tiled: bool
) -> None:
    made = lowered(matmul(*shape).text(["f32"] * 3), target, "gpu")
    assert (schedule_of(made) == "tiled") == tiled


def dot_op(module: Any) -> Operation:
    return next(op for op in module.walk() if isinstance(op, DotGeneral))


@pytest.mark.parametrize("shape", [(64, 64), (5, 64), (1, 64), (64, 5), (64, 1), (2, 3), (1, 1), (7, 7)], ids=str)
@pytest.mark.parametrize("ops", [1, 40, 300, MOST_OPS])
def test_a_tile_fits_its_dot_and_bounds_its_code(entry: Any, shape: tuple[int, int], ops: int) -> None:
    hero = dot_op(entry(matmul(shape[0], 8, shape[1]).text(["f32"] * 3)))
    tile, extents = tile_of(hero, ops, PLAIN.tile), Extents.of(hero)
    assert (extents.rows, extents.columns) == shape
    if tile is not None:
        assert tile.rows <= shape[0] and tile.columns <= shape[1] and tile.rows * tile.columns * ops <= MOST_OPS
    else:
        assert shape[1] < 4 or 4 * ops > MOST_OPS


@EACH_TARGET
@pytest.mark.parametrize("ops", [["sine", "tan", "cosine"], ["tanh"], ["power"]], ids=str)
def test_the_code_stays_bounded_behind_expensive_ops(lowered: Any, target: str, ops: list[str]) -> None:
    dot, last, lines = matmul(65, 40, 67), "%r", []
    t = tensor(dot.out, "f32")
    for at, op in enumerate(ops):
        values = [last, last] if op == "power" else [last]
        lines.append(f"%z{at} = " + apply(op, ", ".join(values), "", [t] * len(values), t))
        last = f"%z{at}"
    arguments = [tensor(dot.lhs, "f32"), tensor(dot.rhs, "f32")]
    made = lowered(main(arguments, [dot.line("%r", "%a0", "%a1", ["f32"] * 3), *lines], [(last, t)]), target)
    assert schedule_of(made) == "tiled"
    assert sum(1 for _ in made.module.walk()) < 1.5 * MOST_OPS


# what tiles compute


#: around the sizes of a tile: one less, just so, one more, several; single rows and columns; long folds
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
]


@EACH_TARGET
@pytest.mark.parametrize("dtype", ["f32", "i32"])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_matrices_of_any_size(computes: Any, target: str, dtype: str, shape: tuple[int, int, int]) -> None:
    dot = matmul(*shape)
    x, y = filled(dot.lhs, dtype), filled(dot.rhs, dtype)
    (got,) = computes(dot.text([dtype] * 3), target, x, y)
    check(got, expected(dot, x, y, dtype), dtype)


@EACH_TARGET
@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(dot=dots().filter(lambda dot: prod(dot.out) <= 20_000), dtype=st.sampled_from(["f32", "i32", "i8", "f64"]))
def test_any_contraction(computes: Any, target: str, dot: Dot, dtype: str) -> None:
    x, y = filled(dot.lhs, dtype), filled(dot.rhs, dtype)
    (got,) = computes(dot.text([dtype] * 3), target, x, y)
    check(got, expected(dot, x, y, dtype), dtype)


@EACH_TARGET
@pytest.mark.parametrize("most", [(3, 1 << 20, 1), (1, 1, 1 << 20)])
def test_a_folded_grid_of_tiles(computes: Any, target: str, most: tuple[int, int, int]) -> None:
    dot = matmul(130, 5, 70)
    x, y = filled(dot.lhs), filled(dot.rhs)
    (got,) = computes(dot.text(["i32"] * 3), target, x, y, most_groups=most)
    np.testing.assert_array_equal(got, x @ y)


@EACH_TARGET
@pytest.mark.parametrize("shape", [(16, 12, 24), (15, 12, 25)], ids=str)
def test_what_is_fused_before_and_behind(computes: Any, target: str, shape: tuple[int, int, int]) -> None:
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
    relu, sums = computes(text, target, x, w, bias)
    want = np.abs(x).astype(np.float64) @ w.T.astype(np.float64) + bias
    check(sums.reshape(dot.out), want, "f32")
    np.testing.assert_array_equal(relu, np.maximum(sums.reshape(dot.out), 0))
