"""Dots with panels: every result is written once and right at any shape, order of axes, type, and size of a slice."""

import re
from math import prod
from typing import Any

import numpy as np
import pytest
from dots import Dot, check, dots, expected, matmul, panels
from hypothesis import HealthCheck, given, settings
from stablehlo_text import apply, filled, main, tensor

pytest.importorskip("llvmlite")

from orchestrion import compiler, vm
from orchestrion.compiler.driver import Compilation
from orchestrion.compiler.errors import CompileError
from orchestrion.compiler.kernel.body import Body
from orchestrion.compiler.kernel.choose import choose
from orchestrion.compiler.kernel.elements.loops import BLOCK
from orchestrion.compiler.sequencer.ll_seq import Entry
from orchestrion.compiler.stablehlo.ops.contraction import DotDimensions
from orchestrion.compiler.targets.cpu import target as cpu
from orchestrion.compiler.targets.cpu.levels import LEVELS, levels_named
from orchestrion.compiler.targets.target import target
from orchestrion.vm.errors import NoProgram

#: tiles of several sizes, panels of no, one and both operands, one slice and several, workgroups divided along a side
SCHEDULES = [
    panels(8, 16, 512, "rhs"),
    panels(5, 8, 64, "lhs rhs"),
    panels(3, 4, 100, "lhs", (2, 4)),
    panels(8, 8, 5000, "", (8, 1)),
    panels(16, 2, 128, "lhs", (1, 8), "m"),
    panels(3, 16, 8, "", (2, 1), how="stream"),
    panels(2, 8, 64, "rhs", (8, 2)),
]
#: one tile, its edges, several blocks of rows, one product; more products than a slice and than a block of 64
SHAPES = [(16, 3, 16), (17, 5, 32), (130, 65, 16), (33, 200, 17), (300, 1, 45), (16, 4160, 31)]


@pytest.mark.sampled(every=2)
@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_matrices_of_any_size(computes: Any, schedule: str, shape: tuple[int, int, int]) -> None:
    dtype = "f64" if shape[1] == 65 else "f32"
    dot = matmul(*shape)
    x, y = filled(dot.lhs, dtype), filled(dot.rhs, dtype)
    (got,) = computes(dot.text([dtype] * 3), "cpu", x, y, schedule=schedule)
    check(got, expected(dot, x, y, dtype), dtype)


@pytest.mark.parametrize("dtype", ["i32", "i64"])
@pytest.mark.parametrize("shape", [(7, 33, 70), (130, 65, 48), (1, 100, 300), (40, 200, 3)], ids=str)
def test_integers_have_panels_and_wrap(computes: Any, shape: tuple[int, int, int], dtype: str) -> None:
    """By the schedule of the machine, with products that exceed their type."""
    dot, random = matmul(*shape), np.random.default_rng(3)
    most = np.iinfo(dtype.replace("i", "int"))
    x, y = (random.integers(most.min, most.max, size, most.dtype) for size in (dot.lhs, dot.rhs))
    (got,) = computes(dot.text([dtype] * 3), "cpu", x, y)
    np.testing.assert_array_equal(got, x @ y)
    assert "stage(out, panel" in Compilation(targets=("cpu",)).text(dot.text([dtype] * 3), "hl_seq")


#: several blocks of columns, one whose last block is moved back, and few columns, for one row to sixteen
FEW_ROWS = [(1, 130, 2048), (2, 65, 300), (3, 70, 100), (3, 7, 1100), (4, 128, 256), (9, 31, 400), (16, 200, 300)]


@pytest.mark.sampled(every=2)
@pytest.mark.parametrize("shape", [*FEW_ROWS, (2048, 130, 1), (259, 1300, 1), (300, 70, 3)], ids=str)
@pytest.mark.parametrize("turned", [False, True])
def test_few_rows_and_few_columns(computes: Any, shape: tuple[int, int, int], turned: bool) -> None:
    """By the schedule of the machine; also with the columns of the right operand in the order of memory."""
    rows, depth, columns = shape
    dims, rhs = DotDimensions((), (), (1,), (1 if turned else 0,)), (columns, depth) if turned else (depth, columns)
    dot = Dot((rows, depth), rhs, dims, f"ik,{'jk' if turned else 'kj'}->ij", (rows, columns))
    x, y = filled(dot.lhs, "f32"), filled(dot.rhs, "f32")
    (got,) = computes(dot.text(["f32"] * 3), "cpu", x, y)
    check(got, expected(dot, x, y, "f32"), "f32")


@pytest.mark.sampled(every=2)
@pytest.mark.parametrize("along", ["m", "n"])
@pytest.mark.parametrize("depth", [16, 17, 150])
@pytest.mark.parametrize("dtype", ["f32", "f64"])
def test_lanes_of_sums_along_the_reduction(computes: Any, along: str, depth: int, dtype: str) -> None:
    """Three rows of a result, with tiles of the other dimension that are moved back, and with a rest of the depth."""
    shape = (70, 3) if along == "m" else (3, 70)
    dot = Dot((shape[0], depth), (shape[1], depth), DotDimensions((), (), (1,), (1,)), "ik,jk->ij", shape)
    schedule = (
        f"[tile(m, {8 if along == 'm' else 3}), tile(n, {3 if along == 'm' else 8}), bind(grid, workgroup), "
        f"bind({along}, local, 4), vectorize(k, 16), stage(out, lanes), guard({along}, shift)]"
    )
    x, y = filled(dot.lhs, dtype), filled(dot.rhs, dtype)
    (got,) = computes(dot.text([dtype] * 3), "cpu", x, y, schedule=schedule)
    check(got, expected(dot, x, y, dtype), dtype)


@pytest.mark.sampled(every=2)
@pytest.mark.parametrize("shape", [(4, 65, 32), (4, 300, 128), (1, 4000, 64), (1, 4000, 512), (11, 65, 256)], ids=str)
@pytest.mark.parametrize(
    "schedule", [None, panels(4, 16, 64, "rhs"), panels(4, 16, 192, ""), panels(2, 16, 16, "", (2, 2), how="stream")]
)
def test_sums_have_the_bits_of_other_schedules(
    computes: Any, shape: tuple[int, int, int], schedule: str | None
) -> None:
    """Slices of one block, and of several: products are added in blocks of 64."""
    dot, random = matmul(*shape), np.random.default_rng(1)
    x, y = (random.standard_normal(shape).astype(np.float32) for shape in (dot.lhs, dot.rhs))
    plain = "[tile(m, 1), tile(n, 1), bind(grid, invocation, 64)]"
    got, want = (computes(dot.text(["f32"] * 3), "cpu", x, y, schedule=steps)[0] for steps in (schedule, plain))
    np.testing.assert_array_equal(got, want)


#: passes of a copy that end with a block, and behind the last row; blocks of columns that are moved back; two rows of
#: tiles, of which the second has clamped rows; columns of the left operand
COPIED = [(4, 128, 256), (5, 70, 300), (8, 75, 768), (16, 200, 400), (11, 90, 272), (300, 70, 6)]


@pytest.mark.sampled(every=2)
@pytest.mark.parametrize("shape", COPIED, ids=str)
@pytest.mark.parametrize("dtype", ["f32", "f64"])
def test_copied_columns_give_the_same_bits(computes: Any, shape: tuple[int, int, int], dtype: str) -> None:
    """On each level that this processor has, with and without a copy of the columns of few rows."""
    dot = matmul(*shape)
    text, random = dot.text([dtype] * 3), np.random.default_rng(2)
    x, y = (random.standard_normal(size).astype({"f32": "f4", "f64": "f8"}[dtype]) for size in (dot.lhs, dot.rhs))
    (want,) = computes(text, "cpu", x, y, schedule="[tile(m, 1), tile(n, 1), bind(grid, invocation, 64)]")
    for level in (level for level in levels_named(("host",)) if level.fused):
        try:
            module = compiler.compile(text, targets=["cpu"], target_cpu=level.name)
            main = vm.load(module, device="cpu", allow_native_code=True).main
        except NoProgram:
            continue
        np.testing.assert_array_equal(main(x, y), want)


def test_only_some_levels_copy_columns_of_few_rows(lowered: Any) -> None:
    """The others have no array for the copy."""
    dot = matmul(16, 200, 512)
    entries = cpu.Lowered.of(lowered(dot.text(["f32"] * 3), "cpu").module.block.first).entries
    sizes: dict[bool, set[int]] = {True: set(), False: set()}
    for level in LEVELS.values():
        ((found, _),) = cpu.texts_of(entries, level)
        sizes[level.prefers_panels].add(sum(map(int, re.findall(r"alloca \[(\d+) x float\]", found))))
    (with_copy,), (without,) = sizes[True], sizes[False]
    assert with_copy == without + BLOCK * without // 16


@pytest.mark.parametrize(
    ("shape", "wanted"),
    [
        ((1, 768, 3072), "[tile(m, 1), tile(n, 48), bind(grid, workgroup), bind(n, local, 16), vectorize(n, 16), "
                         "stage(out, stream, 8)]"),
        ((3, 100, 768), "bind(n, local, 8), vectorize(n, 16), stage(out, stream, 4)]"),
        ((16, 768, 3072), "[tile(m, 8), tile(n, 48), bind(grid, workgroup), bind(m, local, 2), bind(n, local, 16), "),
        ((2048, 768, 1), "[tile(m, 4), tile(n, 1), bind(grid, workgroup), bind(m, local, 16), vectorize(k, 16), "
                         "stage(out, lanes)]"),
        ((16, 768, 200), "stage(lhs, panel), stage(out, panel, 64)"),
        ((17, 768, 3072), "stage(rhs, panel)"),
    ],
)  # fmt: skip
def test_blocks_of_few_rows_give_two_threads_equal_work(entry: Any, shape: tuple[int, int, int], wanted: str) -> None:
    (body,) = (Body.of_entry(op) for op in entry(matmul(*shape).text(["f32"] * 3)).walk() if isinstance(op, Entry))
    assert wanted in str(choose(body, cpu.MACHINES["cpu"]).schedule)


#: columns, and the tile that the machine takes: whole vectors, and a last one that is half behind the one before
WIDTHS = {16: (8, 16), 20: (8, 16), 24: (8, 24), 40: (8, 40), 48: (8, 48), 72: (5, 72), 80: (5, 80), 144: (8, 48)}


@pytest.mark.sampled(every=2)
@pytest.mark.parametrize("columns", WIDTHS)
@pytest.mark.parametrize("depth", [70, 900])
def test_tiles_of_the_width_of_the_results(computes: Any, entry: Any, columns: int, depth: int) -> None:
    dot, random, tile = matmul(160, depth, columns), np.random.default_rng(1), WIDTHS[columns]
    text = dot.text(["f32"] * 3)
    (body,) = (Body.of_entry(op) for op in entry(text).walk() if isinstance(op, Entry))
    assert f"[tile(m, {tile[0]}), tile(n, {tile[1]}), " in str(choose(body, cpu.MACHINES["cpu"]).schedule)
    x, y = (random.standard_normal(shape).astype(np.float32) for shape in (dot.lhs, dot.rhs))
    plain = "[tile(m, 1), tile(n, 1), bind(grid, invocation, 64)]"
    got, want = (computes(text, "cpu", x, y, schedule=steps)[0] for steps in (None, plain))
    np.testing.assert_array_equal(got, want)


def test_a_sum_in_the_place_of_an_operand_is_added_once() -> None:
    """Columns that two vectors of a tile compute are written once."""
    random = np.random.default_rng(2)
    x, y, w = (random.standard_normal(shape).astype(np.float32) for shape in ((130, 30), (130, 20), (50, 40)))
    text = """
    func.func @main(%x: tensor<130x30xf32>, %y: tensor<130x20xf32>, %v: tensor<30x40xf32>, %w: tensor<20x40xf32>)
        -> tensor<130x40xf32> {
      %a = stablehlo.dot_general %x, %v, contracting_dims = [1] x [0]
        : (tensor<130x30xf32>, tensor<30x40xf32>) -> tensor<130x40xf32>
      %b = stablehlo.dot_general %y, %w, contracting_dims = [1] x [0]
        : (tensor<130x20xf32>, tensor<20x40xf32>) -> tensor<130x40xf32>
      %c = stablehlo.add %a, %b : tensor<130x40xf32>
      return %c : tensor<130x40xf32>
    }"""
    program = vm.load(compiler.compile(text, targets=["cpu"]), device="cpu", allow_native_code=True)
    got = np.asarray(program.main(x, y, w[:30], w[30:]))
    want = x.astype(np.float64) @ w[:30] + y.astype(np.float64) @ w[30:]
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("schedule", [SCHEDULES[0], SCHEDULES[1], SCHEDULES[4]])
@pytest.mark.parametrize(("left", "right"), [(0, 0), (0, 1), (1, 1)])
def test_transposed_operands(computes: Any, schedule: str, left: int, right: int) -> None:
    """The axes of each operand in either order."""
    lhs, rhs = (70, 20) if left == 0 else (20, 70), (70, 32) if right == 0 else (32, 70)
    equation = f"{'ki' if left == 0 else 'ik'},{'kj' if right == 0 else 'jk'}->ij"
    dot = Dot(lhs, rhs, DotDimensions((), (), (left,), (right,)), equation, (20, 32))
    x, y = filled(dot.lhs, "f32"), filled(dot.rhs, "f32")
    (got,) = computes(dot.text(["f32"] * 3), "cpu", x, y, schedule=schedule)
    check(got, expected(dot, x, y, "f32"), "f32")


@pytest.mark.sampled(every=2)
@pytest.mark.parametrize("depth", [40, 64, 100, 260])
@pytest.mark.parametrize("operands", ["", "rhs", "lhs rhs"])
def test_slices_of_an_inner_axis(computes: Any, depth: int, operands: str) -> None:
    """Two contracted axes that are not contiguous in memory, as in a convolution; a slice is a part of the inner one,
    or some places of the outer one.
    """
    dot = Dot((3, 20, 130), (3, 130, 48), DotDimensions((), (), (0, 2), (0, 1)), "kil,klj->ij", (20, 48))
    x, y = filled(dot.lhs, "f32"), filled(dot.rhs, "f32")
    schedule = panels(8, 16, depth, operands, (2, 1))
    if depth < BLOCK:
        with pytest.raises(CompileError, match="a block of a sum of 390 products has more elements"):
            computes(dot.text(["f32"] * 3), "cpu", x, y, schedule=schedule)
        return
    (got,) = computes(dot.text(["f32"] * 3), "cpu", x, y, schedule=schedule)
    check(got, expected(dot, x, y, "f32"), "f32")


@pytest.mark.sampled(every=2)
@pytest.mark.parametrize("width", [8, 64, 128, 24])
@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("schedule", [None, panels(8, 16, 64, "rhs"), panels(8, 16, 200, "lhs rhs", (2, 1))])
def test_contracted_axis_that_joins_axes_of_memory(
    computes: Any, width: int, turned: bool, schedule: str | None
) -> None:
    """The heads of attention: 5 heads of some width in front of 20 rows. The sums have the bits of other schedules."""
    shapes = [tensor(shape, "f32") for shape in ((5, 20, width), (5 * width, 16), (20, 5, width), (20, 5 * width))]
    dims = DotDimensions((), (), (0,), (1,)) if turned else DotDimensions((), (), (1,), (0,))
    dot = Dot((5 * width, 16) if turned else (20, 5 * width), (20, 5 * width) if turned else (5 * width, 16), dims,
              "", (16, 20) if turned else (20, 16))  # fmt: skip
    lines = [
        f"%t = {apply('transpose', '%a0', 'permutation = array<i64: 1, 0, 2>', shapes[:1], shapes[2])}",
        f"%x = {apply('reshape', '%t', '', shapes[2:3], shapes[3])}",
        dot.line("%d", *(("%a1", "%x") if turned else ("%x", "%a1")), ["f32"] * 3),
    ]
    random = np.random.default_rng(1)
    x, y = (random.standard_normal(shape).astype(np.float32) for shape in ((5, 20, width), (5 * width, 16)))
    program = main(shapes[:2], lines, [("%d", tensor(dot.out, "f32"))])
    plain = "[tile(m, 1), tile(n, 1), bind(grid, invocation, 64)]"
    got, want = (computes(program, "cpu", x, y, schedule=steps)[0] for steps in (schedule, plain))
    np.testing.assert_array_equal(got, want)
    exact = x.transpose(1, 0, 2).reshape(20, -1).astype(np.float64) @ y
    check(got, exact.T if turned else exact, "f32")


@settings(max_examples=6, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(dot=dots().filter(lambda dot: prod(dot.out) <= 20_000))
def test_any_contraction_by_the_schedule_of_the_machine(computes: Any, dot: Dot) -> None:
    x, y = filled(dot.lhs, "f32"), filled(dot.rhs, "f32")
    (got,) = computes(dot.text(["f32"] * 3), "cpu", x, y)
    check(got, expected(dot, x, y, "f32"), "f32")


#: rows of an image, the first by the second of them; columns of the weights, and the steps that they lead to
WEIGHTS = {(128, 1, 1000): "tile(n, 32)", (131, 2, 40): "tile(n, 40)", (131, 2, 112): "tile(n, 32)"}


@pytest.mark.parametrize("sizes", WEIGHTS, ids=str)
def test_weights_in_tiles_whose_width_need_not_divide_their_columns(sizes: tuple[int, int, int]) -> None:
    """Constants lie in tiles, also beside a left operand that is a slice. Caches are asked for the next tile."""
    (rows, apart, columns), depth, random = sizes, 160, np.random.default_rng(3)
    x, w = (random.standard_normal(shape).astype(np.float32) for shape in ((rows, depth), (depth, columns)))
    taken, number = len(range(0, rows, apart)), f"dense<{w.tolist()}> : tensor<{depth}x{columns}xf32>"
    text = f"""
    func.func @main(%x: tensor<{rows}x{depth}xf32>) -> tensor<{taken}x{columns}xf32> {{
      %w = stablehlo.constant {number}
      %s = stablehlo.slice %x [0:{rows}:{apart}, 0:{depth}]
        : (tensor<{rows}x{depth}xf32>) -> tensor<{taken}x{depth}xf32>
      %d = stablehlo.dot_general %s, %w, contracting_dims = [1] x [0]
        : (tensor<{taken}x{depth}xf32>, tensor<{depth}x{columns}xf32>) -> tensor<{taken}x{columns}xf32>
      return %d : tensor<{taken}x{columns}xf32>
    }}"""
    compilation = Compilation(targets=("cpu",))
    schedules = compilation.text(text, "hl_seq")
    assert WEIGHTS[sizes] in schedules
    assert "stage(rhs" not in schedules
    assert ("guard(n, pad)" in schedules) == (columns > 40)
    assert ("kernel.prefetch" in compilation.text(text, "executables")) == (columns > 40)
    program = vm.load(compiler.compile(text, targets=["cpu"]), device="cpu")
    np.testing.assert_allclose(program.main(x), x[::apart].astype(np.float64) @ w, rtol=1e-5, atol=2e-5)


@pytest.mark.parametrize("schedule", [*SCHEDULES[:3], None])
def test_ops_in_front_and_behind(computes: Any, schedule: str | None) -> None:
    """Ops in front of the dot are computed when elements are fetched, ops behind it when results are written."""
    dot = matmul(40, 70, 48)
    shapes = [tensor(shape, "f32") for shape in (dot.lhs, dot.rhs, dot.out)]
    lines = [
        f"%u = {apply('cosine', '%a0', '', shapes[:1], shapes[0])}",
        f"%v = {apply('negate', '%a1', '', shapes[1:2], shapes[1])}",
        dot.line("%d", "%u", "%v", ["f32"] * 3),
        f"%r = {apply('abs', '%d', '', shapes[2:], shapes[2])}",
    ]
    x, y = filled(dot.lhs, "f32"), filled(dot.rhs, "f32")
    found = computes(main(shapes[:2], lines, [("%r", shapes[2])]), "cpu", x, y, schedule=schedule)
    check(found[0], np.abs(expected(dot, np.cos(x), -y, "f32")), "f32")


def test_products_are_added_by_one_instruction_where_a_level_has_it(lowered: Any) -> None:
    entry = lowered(matmul(40, 70, 48).text(["f32"] * 3), "cpu")
    entries = cpu.Lowered.of(entry.module.block.first).entries
    for level in LEVELS.values():
        ((text, _),) = cpu.texts_of(entries, level)
        assert ("@llvm.fma." in text) == (level.name != "x86-64-v2")


@pytest.mark.parametrize("name", ["opencl", "spirv"])
def test_other_targets_have_no_op_for_it(lowered: Any, name: str) -> None:
    entry = lowered(matmul(40, 70, 48).text(["f32"] * 3), "cpu")
    with pytest.raises(CompileError, match="kernels have no such op"):
        target(name).serialize(entry.module.block.first)
