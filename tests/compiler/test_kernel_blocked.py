"""Dots in blocks that a workgroup stages in shared memory: which get them, and that the results are those of tiles,
bit for bit, at any shape and type.
"""

from math import prod
from typing import Any

import numpy as np
import pytest
from dots import PLAIN_DOT, Dot, check, dots, expected, matmul
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from stablehlo_text import DTYPES, apply, filled, ints, main, tensor

from orchestrion.compiler.kernel.blocked import LANES, LEAST_SIZE, MANY_BLOCKS, block, block_of
from orchestrion.compiler.kernel.fold_limits import max_loop_turns
from orchestrion.compiler.kernel.machine import MACHINES, Machine
from orchestrion.compiler.kernel.tiled import MOST_OPS, Extents, Tile
from orchestrion.compiler.stablehlo.ops.contraction import DotGeneral
from orchestrion.compiler.targets.target import TARGETS
from orchestrion.compiler.targets.target import target as target_of

EACH_TARGET = pytest.mark.parametrize("target", ["opencl", "spirv"])
#: bytes of shared memory that every Vulkan device has
SHARED = 16384


def test_every_target_with_machines_has_all() -> None:
    found = [list(target_of(name).machines) for name in TARGETS]
    assert [] in found and list(MACHINES) in found and all(names in ([], list(MACHINES)) for names in found)


# which dots get blocks, and how large


def is_blocked(made: Any) -> bool:
    return bool(made.workgroup_size == (LANES, 1, 1) and "kernel.barrier" in str(made.module))


@pytest.mark.parametrize(
    ("shape", "blocked"),
    [
        ((64, 64, 64), True),
        ((LEAST_SIZE, LEAST_SIZE, LEAST_SIZE), True),
        ((LEAST_SIZE - 1, 64, 64), False),
        ((64, LEAST_SIZE - 1, 64), False),
        ((64, 64, LEAST_SIZE - 1), False),
        ((31, 257, 33), False),  # long and few: a tile, or a workgroup for each
        ((32, 257, 32), True),
    ],
    ids=str,
)
@EACH_TARGET
def test_a_dot_takes_blocks_where_they_serve_it(
    lowered: Any, target: str, shape: tuple[int, int, int], blocked: bool
) -> None:
    text = matmul(*shape).text(["f32"] * 3)
    assert is_blocked(lowered(text, target, "gpu")) is blocked
    assert not is_blocked(lowered(text, target, "cpu"))


@EACH_TARGET
def test_very_long_folds_are_staged_where_loops_have_no_limit(lowered: Any, target: str) -> None:
    machine = target_of(target).row("gpu")
    for depth in (1 << 14, (1 << 14) + 1):
        text = matmul(64, depth, 64).text(["f32"] * 3)
        assert is_blocked(lowered(text, target, "gpu")) is (depth <= max_loop_turns(machine) // 2)


@pytest.mark.parametrize(
    ("shape", "tile"),
    [((512, 512), (8, 4)), ((4096, 16), (8, 1)), ((16, 4096), (2, 4)), ((64, 64), (2, 1)), ((9, 9), (2, 1))],
    ids=str,
)
def test_a_block_leaves_work_for_many(entry: Any, shape: tuple[int, int], tile: tuple[int, int]) -> None:
    hero = next(
        op for op in entry(matmul(shape[0], 64, shape[1]).text(["f32"] * 3)).walk() if isinstance(op, DotGeneral)
    )
    found = block_of(hero, 10, Machine(block=(8, 4)))
    assert found == Tile(*tile)
    assert prod(block(found).grid(Extents.of(hero))) >= MANY_BLOCKS or found == Tile(2, 1)
    assert block_of(hero, MOST_OPS, Machine(block=(8, 4))) is None
    assert block_of(hero, 10, Machine()) is None


@EACH_TARGET
@pytest.mark.parametrize("dtype", ["f32", "f64", "i64", "i32", "i8", "i1"])
def test_slices_fit_the_shared_memory_of_every_device(lowered: Any, target: str, dtype: str) -> None:
    made = lowered(matmul(1024, 64, 1024).text([dtype] * 3), target, "gpu")
    assert is_blocked(made)
    assert 1024 <= made.payload.shared_memory_bytes <= SHARED


# what blocks compute


def sums_in_blocks(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The product of two matrices of f32, added in the order that kernels keep: blocks of 64, one after the other."""
    total = np.zeros((x.shape[0], y.shape[1]), np.float32)
    for first in range(0, x.shape[1], 64):
        part = np.zeros_like(total)
        for at in range(first, min(first + 64, x.shape[1])):
            part += x[:, at : at + 1] * y[at : at + 1]
        total += part
    return total


#: around the sizes of a block, a slice and a block of sums
SHAPES = [(16, 16, 16), (15, 8, 17), (33, 65, 31), (8, 145, 40), (130, 64, 70)]


@pytest.mark.parametrize(
    ("target", "shape"), [("spirv", shape) for shape in SHAPES] + [("opencl", shape) for shape in SHAPES[1:3]], ids=str
)
def test_sums_have_the_order_of_their_elements(computes: Any, target: str, shape: tuple[int, int, int]) -> None:
    dot = matmul(*shape)
    x, y = filled(dot.lhs, "f32"), filled(dot.rhs, "f32")
    (got,) = computes(dot.text(["f32"] * 3), target, x, y, machine="gpu", most_groups=(3, 1 << 20, 1))
    assert got.tobytes() == sums_in_blocks(x, y).tobytes()


@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    dot=dots(least=3).filter(lambda dot: _has_blocks(dot)),
    dtype=st.sampled_from(["f32", "f32", "f64", "i32", "i8", "i1"]),
)
def test_any_contraction_has_the_bits_of_tiles(computes: Any, dot: Dot, dtype: str) -> None:
    x, y = filled(dot.lhs, dtype), filled(dot.rhs, dtype)
    text = dot.text([dtype] * 3)
    (blocks,), (tiles,) = (computes(text, "spirv", x, y, machine=machine) for machine in ("gpu", "cpu"))
    assert blocks.tobytes() == tiles.tobytes()
    if dtype != "i1":
        check(blocks, expected(dot, x, y, dtype), dtype)


def _has_blocks(dot: Dot) -> bool:
    batch, left = len(dot.dims.lhs_batch), len(dot.dims.free(len(dot.lhs), True))
    rows, columns = prod(dot.out[batch : batch + left]), prod(dot.out[batch + left :])
    depth = prod(dot.lhs[axis] for axis in dot.dims.lhs_contract)
    return min(rows, columns, depth) >= LEAST_SIZE and prod(dot.out) <= 20_000


@EACH_TARGET
def test_what_is_fused_before_and_behind(computes: Any, lowered: Any, target: str) -> None:
    """relu(|x| @ transpose(w) + bias) where w is converted, at sizes that no block divides."""
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
    assert is_blocked(lowered(text, target, "gpu"))
    relu, sums = computes(text, target, *given, machine="gpu")
    want = sums_in_blocks(np.abs(given[0]), given[1].T.astype(DTYPES["f32"])) + given[2]
    np.testing.assert_array_equal(sums, want)
    np.testing.assert_array_equal(relu, np.maximum(want, 0))
