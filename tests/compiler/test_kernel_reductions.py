"""Reductions and contractions on each target's device: every schedule, exact in integers, bounded in floats."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from stablehlo_text import DTYPES, filled, ints, main, reducer, reduction, tensor

from orchestrion.compiler.errors import CompileError
from orchestrion.compiler.kernel.machine import Machine, Quirks
from orchestrion.compiler.kernel.reduction_limits import max_elements
from orchestrion.schema.quirks import LLVMPIPE_ITERATIONS

EACH_TARGET = pytest.mark.parametrize("target", ["opencl", "spirv", "cpu"])
#: an invocation for each result, with turns of one element and of several; a workgroup for each result
SCHEDULES = [
    "[bind(grid, invocation, 64)]",
    "[bind(grid, invocation, 32), unroll(k, 4)]",
    "[bind(grid, workgroup), reduce(k, tree, 2)]",
    "[bind(grid, workgroup), reduce(k, tree, 16)]",
    "[bind(grid, workgroup), reduce(k, tree, 128)]",
]
EACH_SCHEDULE = pytest.mark.parametrize("schedule", SCHEDULES)

#: shape, reduced axes: short reductions, long ones with few and with many results, none at all
SHAPES: list[tuple[list[int], list[int]]] = [
    ([6], [0]), ([3, 5], [0]), ([3, 5], [1]), ([3, 5], [0, 1]), ([2, 3, 4, 5], [1, 3]), ([4, 300], [1]),
    ([300, 4], [0]), ([5000], [0]), ([2, 40, 50], [1, 2]), ([40, 2, 50], [0, 2]), ([1024, 300], [1]),
    ([257], [0]), ([3, 1], [1]), ([4], []), ([300_000], [0]), ([9_000_000], [0]),
]  # fmt: skip


@pytest.mark.sampled
@EACH_TARGET
@pytest.mark.parametrize(("shape", "dims"), SHAPES, ids=str)
def test_sums_of_integers_from_a_start_that_counts_once(
    computes: Any, target: str, shape: list[int], dims: list[int]
) -> None:
    x = filled(shape)
    (got,) = computes(reduction(shape, dims, "add", "i32", "5"), target, x)
    np.testing.assert_array_equal(got, x.sum(tuple(dims), dtype=np.int32) + 5)


@pytest.mark.sampled
@EACH_TARGET
@EACH_SCHEDULE
@pytest.mark.parametrize(("shape", "dims"), [one for one in SHAPES if np.prod(one[0]) <= 1 << 19], ids=str)
def test_sums_by_each_schedule(computes: Any, target: str, schedule: str, shape: list[int], dims: list[int]) -> None:
    x = filled(shape)
    (got,) = computes(reduction(shape, dims, "add", "i32", "5"), target, x, schedule=schedule)
    np.testing.assert_array_equal(got, x.sum(tuple(dims), dtype=np.int32) + 5)


@pytest.mark.sampled
@EACH_TARGET
@pytest.mark.parametrize("size", [2, 3, 6, 12])
@pytest.mark.parametrize("lanes", [1, 16])
def test_neighbouring_results_of_one_invocation(computes: Any, target: str, size: int, lanes: int) -> None:
    x = filled([70, 5, 12])
    bind = "bind(grid, invocation, 64)" if lanes == 1 else f"bind(grid, workgroup), reduce(k, tree, {lanes})"
    text = reduction([70, 5, 12], [0], "add", "i32", "5")
    (got,) = computes(text, target, x, schedule=f"[tile(e, {size}), {bind}]")
    np.testing.assert_array_equal(got, x.sum(0) + 5)


REDUCERS = [
    ("add", "i8", "0", np.add), ("multiply", "i32", "1", np.multiply), ("maximum", "i32", "-2147483648", np.maximum),
    ("minimum", "ui64", "18446744073709551615", np.minimum), ("and", "i1", "true", np.logical_and),
    ("or", "i1", "false", np.logical_or), ("xor", "i32", "0", np.bitwise_xor),
    ("maximum", "i1", "false", np.logical_or), ("maximum", "f32", "0xFF800000", np.maximum),
    ("minimum", "f64", "0x7FF0000000000000", np.minimum),
]  # fmt: skip


@pytest.mark.sampled
@EACH_TARGET
@pytest.mark.parametrize(("op", "dtype", "start", "ufunc"), REDUCERS, ids=lambda part: str(part)[:12])
@pytest.mark.parametrize("shape", [[3, 50], [2, 700]], ids=str)
def test_reducers(
    computes: Any, target: str, op: str, dtype: str, start: str, ufunc: np.ufunc, shape: list[int]
) -> None:
    x = filled(shape, dtype)
    (got,) = computes(reduction(shape, [1], op, dtype, start), target, x)
    np.testing.assert_array_equal(got, ufunc.reduce(x, axis=1, dtype=x.dtype))


@EACH_TARGET
@pytest.mark.parametrize("size", [50, 700])
def test_a_maximum_with_a_nan_is_nan(computes: Any, target: str, size: int) -> None:
    x = filled([2, size], "f32")
    x[1, size // 2] = np.nan
    (got,) = computes(reduction([2, size], [1], "maximum", "f32", "0xFF800000"), target, x)
    np.testing.assert_array_equal(got, [x[0].max(), np.nan])


@pytest.mark.sampled
@EACH_TARGET
@pytest.mark.parametrize("shape", [[1 << 20], [1025, 5000]], ids=str)
@pytest.mark.parametrize("kind", ["same", "random", "growing"])
def test_long_float_sums_stay_accurate(computes: Any, target: str, shape: list[int], kind: str) -> None:
    rng = np.random.default_rng(1)
    made = {
        "same": np.full(shape, 0.1),
        "random": rng.random(shape),
        "growing": np.arange(np.prod(shape)).reshape(shape),
    }
    x = made[kind].astype(np.float32)
    (got,) = computes(reduction(shape, [len(shape) - 1], "add", "f32", "0.0"), target, x)
    np.testing.assert_allclose(got, x.astype(np.float64).sum(-1), rtol=1e-5)


@EACH_TARGET
@pytest.mark.parametrize("most", [(7, 1 << 20, 1), (1, 1, 1 << 20)])
def test_a_folded_grid_of_reducing_workgroups(computes: Any, target: str, most: tuple[int, int, int]) -> None:
    x = filled([30, 300])
    (got,) = computes(reduction([30, 300], [1], "add", "i32", "0"), target, x, most_groups=most)
    np.testing.assert_array_equal(got, x.sum(1))


# Several operands, and reducers that mind the order


def argmax_text(shape: Sequence[int]) -> str:
    """(maximum, its first position) along the last axis."""
    t, u = tensor(shape, "f32"), tensor(shape, "i32")
    out, where = tensor(shape[:-1], "f32"), tensor(shape[:-1], "i32")
    f, i, b = "tensor<f32>", "tensor<i32>", "tensor<i1>"
    compare = '"stablehlo.compare"({}, {}) <{{comparison_direction = #stablehlo<comparison_direction {}>}}>'
    region = [
        f"^bb0(%x: {f}, %p: {i}, %y: {f}, %q: {i}):",
        f"%gt = {compare.format('%x', '%y', 'GT')} : ({f}, {f}) -> {b}",
        f"%eq = {compare.format('%x', '%y', 'EQ')} : ({f}, {f}) -> {b}",
        f"%first = {compare.format('%p', '%q', 'LT')} : ({i}, {i}) -> {b}",
        f'%tie = "stablehlo.and"(%eq, %first) : ({b}, {b}) -> {b}',
        f'%left = "stablehlo.or"(%gt, %tie) : ({b}, {b}) -> {b}',
        f'%v = "stablehlo.select"(%gt, %x, %y) : ({b}, {f}, {f}) -> {f}',
        f'%w = "stablehlo.select"(%left, %p, %q) : ({b}, {i}, {i}) -> {i}',
        f'"stablehlo.return"(%v, %w) : ({f}, {i}) -> ()',
    ]
    lines = [
        f'%i = "stablehlo.iota"() <{{iota_dimension = {len(shape) - 1} : i64}}> : () -> {u}',
        f'%c = "stablehlo.constant"() <{{value = dense<0xFF800000> : {f}}}> : () -> {f}',
        f'%z = "stablehlo.constant"() <{{value = dense<0> : {i}}}> : () -> {i}',
        f'%r:2 = "stablehlo.reduce"(%a0, %i, %c, %z) <{{dimensions = {ints([len(shape) - 1])}}}> ({{',
        *region,
        f"}}) : ({t}, {u}, {f}, {i}) -> ({out}, {where})",
    ]
    return main([t], lines, [("%r#0", out), ("%r#1", where)])


@EACH_TARGET
@pytest.mark.parametrize("shape", [[4, 60], [3, 5000]], ids=str)
def test_argmax(computes: Any, target: str, shape: list[int]) -> None:
    x = np.round(filled(shape, "f32"), 1)
    value, place = computes(argmax_text(shape), target, x)
    np.testing.assert_array_equal(value, x.max(1))
    np.testing.assert_array_equal(place, x.argmax(1))


def place_text(shape: Sequence[int], direction: str, dtype: str) -> str:
    """The place of the extremum along the last axis, as JAX writes it."""
    t, u = tensor(shape, dtype), tensor(shape, "i32")
    where, f, i, b = tensor(shape[:-1], "i32"), f"tensor<{dtype}>", "tensor<i32>", "tensor<i1>"
    compare = '"stablehlo.compare"({}, {}) <{{comparison_direction = #stablehlo<comparison_direction {}>}}>'
    limits = {"i32": ("-2147483648", "2147483647"), "f32": ("0xFF800000", "0x7F800000")}[dtype]
    region = [
        f"^bb0(%x: {f}, %p: {i}, %y: {f}, %q: {i}):",
        f"%beats = {compare.format('%x', '%y', direction)} : ({f}, {f}) -> {b}",
        f"%nan = {compare.format('%x', '%x', 'NE')} : ({f}, {f}) -> {b}",
        f'%wins = "stablehlo.or"(%beats, %nan) : ({b}, {b}) -> {b}',
        f"%eq = {compare.format('%x', '%y', 'EQ')} : ({f}, {f}) -> {b}",
        f"%first = {compare.format('%p', '%q', 'LT')} : ({i}, {i}) -> {b}",
        f'%tie = "stablehlo.and"(%eq, %first) : ({b}, {b}) -> {b}',
        f'%left = "stablehlo.or"(%wins, %tie) : ({b}, {b}) -> {b}',
        f'%v = "stablehlo.select"(%wins, %x, %y) : ({b}, {f}, {f}) -> {f}',
        f'%w = "stablehlo.select"(%left, %p, %q) : ({b}, {i}, {i}) -> {i}',
        f'"stablehlo.return"(%v, %w) : ({f}, {i}) -> ()',
    ]
    lines = [
        f'%i = "stablehlo.iota"() <{{iota_dimension = {len(shape) - 1} : i64}}> : () -> {u}',
        f'%c = "stablehlo.constant"() <{{value = dense<{limits[direction == "LT"]}> : {f}}}> : () -> {f}',
        f'%z = "stablehlo.constant"() <{{value = dense<0> : {i}}}> : () -> {i}',
        f'%r:2 = "stablehlo.reduce"(%a0, %i, %c, %z) <{{dimensions = {ints([len(shape) - 1])}}}> ({{',
        *region,
        f"}}) : ({t}, {u}, {f}, {i}) -> ({tensor(shape[:-1], dtype)}, {where})",
    ]
    return main([t], lines, [("%r#1", where)])


@EACH_TARGET
@pytest.mark.parametrize("dtype", ["f32", "i32"])
@pytest.mark.parametrize("direction", ["GT", "LT"])
@pytest.mark.parametrize("shape", [[3, 7], [20, 300], [2, 5001]], ids=str)
def test_places_of_extrema(computes: Any, target: str, shape: list[int], direction: str, dtype: str) -> None:
    """The first of equal ones, of zeros of both signs too; the first of several that are no numbers; infinities."""
    rng = np.random.default_rng(5)
    x = rng.integers(-9, 9, shape).astype(dtype.replace("f", "float").replace("i", "int"))
    if dtype == "f32":
        x[0] = np.where(rng.random(shape[1]) < 0.5, -0.0, 0.0)
        x[1] = np.inf if direction == "LT" else -np.inf
        x[-1, rng.random(shape[1]) < 0.3] = np.nan
        x[-1, 0] = 1
    want = np.argmax(x, 1) if direction == "GT" else np.argmin(x, 1)
    (place,) = computes(place_text(shape, direction, dtype), target, x)
    np.testing.assert_array_equal(place, want)


def composition_text(shape: Sequence[int]) -> str:
    """Composes the affine maps x -> a x + b along the last axis: associative, not commutative. Starts from 2 x + 3."""
    t, out, i = tensor(shape), tensor(shape[:-1]), "tensor<i32>"
    lines = [
        f'%c = "stablehlo.constant"() <{{value = dense<2> : {i}}}> : () -> {i}',
        f'%d = "stablehlo.constant"() <{{value = dense<3> : {i}}}> : () -> {i}',
        f'%r:2 = "stablehlo.reduce"(%a0, %a1, %c, %d) <{{dimensions = {ints([len(shape) - 1])}}}> ({{',
        f"^bb0(%a: {i}, %b: {i}, %e: {i}, %f: {i}):",
        f'%m = "stablehlo.multiply"(%a, %e) : ({i}, {i}) -> {i}',
        f'%n = "stablehlo.multiply"(%a, %f) : ({i}, {i}) -> {i}',
        f'%o = "stablehlo.add"(%n, %b) : ({i}, {i}) -> {i}',
        f'"stablehlo.return"(%m, %o) : ({i}, {i}) -> ()',
        f"}}) : ({t}, {t}, {i}, {i}) -> ({out}, {out})",
    ]
    return main([t, t], lines, [("%r#0", out), ("%r#1", out)])


@pytest.mark.sampled
@EACH_TARGET
@pytest.mark.parametrize("schedule", [None, *SCHEDULES])
@pytest.mark.parametrize("shape", [[3, 4], [3, 200], [2, 1000], [1100, 300], [1, 70000]], ids=str)
def test_the_order_of_elements_is_kept(computes: Any, target: str, shape: list[int], schedule: str | None) -> None:
    a, b = 2 * filled(shape) + 1, filled(shape)[::-1].copy()
    with np.errstate(over="ignore"):
        m, n = np.full(shape[:-1], 2, np.int32), np.full(shape[:-1], 3, np.int32)
        for k in range(shape[-1]):
            m, n = m * a[..., k], m * b[..., k] + n
    got = computes(composition_text(shape), target, a, b, schedule=schedule)
    np.testing.assert_array_equal(got, [m, n])


# Fusion around a hero


@pytest.mark.sampled
@EACH_TARGET
@EACH_SCHEDULE
@pytest.mark.parametrize("shape", [[20, 30], [20, 600]], ids=str)
def test_prologue_and_epilogue(computes: Any, target: str, schedule: str, shape: list[int]) -> None:
    """The mean of squares, its root, and the same reshaped: two results behind one reduction."""
    t, f, out = tensor(shape, "f32"), "tensor<f32>", tensor(shape[:1], "f32")
    tall = tensor([4, shape[0] // 4], "f32")
    lines = [
        f'%q = "stablehlo.multiply"(%a0, %a0) : ({t}, {t}) -> {t}',
        f'%c = "stablehlo.constant"() <{{value = dense<0.0> : {f}}}> : () -> {f}',
        f'%n = "stablehlo.constant"() <{{value = dense<{float(shape[1])}> : {out}}}> : () -> {out}',
        '%s = "stablehlo.reduce"(%q, %c) <{dimensions = array<i64: 1>}> ({',
        f'^bb0(%x: {f}, %y: {f}): %z = "stablehlo.add"(%x, %y) : ({f}, {f}) -> {f}',
        f'"stablehlo.return"(%z) : ({f}) -> ()',
        f"}}) : ({t}, {f}) -> {out}",
        f'%m = "stablehlo.divide"(%s, %n) : ({out}, {out}) -> {out}',
        f'%r = "stablehlo.sqrt"(%m) : ({out}) -> {out}',
        f'%w = "stablehlo.reshape"(%r) : ({out}) -> {tall}',
    ]
    x = filled(shape, "f32")
    mean, root = computes(main([t], lines, [("%m", out), ("%w", tall)]), target, x, schedule=schedule)
    want = np.square(x.astype(np.float64)).mean(1)
    np.testing.assert_allclose(mean, want, rtol=1e-6)
    np.testing.assert_allclose(root.reshape(-1), np.sqrt(want), rtol=1e-6)


# dot_general


def dot_text(lhs: Sequence[int], rhs: Sequence[int], numbers: str, out: Sequence[int], dtypes: Sequence[str]) -> str:
    left, right, result = tensor(lhs, dtypes[0]), tensor(rhs, dtypes[1]), tensor(out, dtypes[2])
    call = f'%r = "stablehlo.dot_general"(%a0, %a1) <{{dot_dimension_numbers = #stablehlo.dot<{numbers}>}}>'
    return main([left, right], [f"{call} : ({left}, {right}) -> {result}"], [("%r", result)])


PLAIN = "lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]"

#: shapes, dimension numbers, the same for einsum
DOTS = [
    ([3, 4], [4, 5], PLAIN, "ij,jk->ik"),
    ([3, 4], [5, 4], "lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [1]", "ij,kj->ik"),
    ([4], [4], "lhs_contracting_dimensions = [0], rhs_contracting_dimensions = [0]", "i,i->"),
    ([2], [3], "", "i,j->ij"),
    (
        [2, 3, 4], [2, 4, 5],
        "lhs_batching_dimensions = [0], rhs_batching_dimensions = [0], "
        "lhs_contracting_dimensions = [2], rhs_contracting_dimensions = [1]",
        "bij,bjk->bik",
    ),
    (
        [3, 2, 4, 5], [5, 4, 3, 7],
        "lhs_batching_dimensions = [0], rhs_batching_dimensions = [2], "
        "lhs_contracting_dimensions = [2, 3], rhs_contracting_dimensions = [1, 0]",
        "bixy,yxbk->bik",
    ),
    ([3, 700], [700, 2], PLAIN, "ij,jk->ik"),
    ([40, 300], [300, 41], PLAIN, "ij,jk->ik"),
    ([3, 1], [1, 5], PLAIN, "ij,jk->ik"),
]  # fmt: skip


@pytest.mark.sampled
@EACH_TARGET
@pytest.mark.parametrize("dtype", ["i32", "f32", "i8", "f64"])
@pytest.mark.parametrize(("lhs", "rhs", "numbers", "sum"), DOTS, ids=lambda part: str(part)[:12])
def test_dots(computes: Any, target: str, dtype: str, lhs: list[int], rhs: list[int], numbers: str, sum: str) -> None:
    x, y = filled(lhs, dtype), filled(rhs, dtype)
    exact = np.einsum(sum, x.astype(np.float64), y.astype(np.float64))
    (got,) = computes(dot_text(lhs, rhs, numbers, exact.shape, [dtype] * 3), target, x, y)
    if dtype.startswith("i"):
        np.testing.assert_array_equal(got, exact.astype(np.int64).astype(DTYPES[dtype]))
    else:
        bound = 1e-6 if dtype == "f32" else 1e-14
        np.testing.assert_allclose(got, exact, rtol=10 * bound, atol=bound * np.abs(exact).max())


@EACH_TARGET
def test_a_dot_sums_in_the_type_of_its_result(computes: Any, target: str) -> None:
    x, y = np.full((2, 50), 127, np.int8), np.full((50, 2), -128, np.int8)
    (got,) = computes(dot_text(x.shape, y.shape, PLAIN, (2, 2), ["i8", "i8", "i32"]), target, x, y)
    np.testing.assert_array_equal(got, np.full((2, 2), 50 * 127 * -128))


@EACH_TARGET
@pytest.mark.parametrize("rows", [1, 40])
def test_long_contractions_stay_accurate(computes: Any, target: str, rows: int) -> None:
    rng = np.random.default_rng(3)
    x, y = rng.random((rows, 100_000), np.float32), rng.random((100_000, rows), np.float32)
    (got,) = computes(dot_text(x.shape, y.shape, PLAIN, (rows, rows), ["f32"] * 3), target, x, y)
    np.testing.assert_allclose(got, x.astype(np.float64) @ y.astype(np.float64), rtol=1e-5)


def repeated_sum(count: int, start: str) -> str:
    """The sum of the argument, a scalar, taken `count` times: a reduction longer than any buffer."""
    wide, scalar = tensor([count]), tensor([])
    lines = [
        f'%b = "stablehlo.broadcast_in_dim"(%a0) <{{broadcast_dimensions = {ints([])}}}> : ({scalar}) -> {wide}',
        f'%c = "stablehlo.constant"() <{{value = dense<{start}> : {scalar}}}> : () -> {scalar}',
        f'%r = "stablehlo.reduce"(%b, %c) <{{dimensions = {ints([0])}}}> {reducer("add", "i32")} '
        f": ({wide}, {scalar}) -> {scalar}",
    ]
    return main([scalar], lines, [("%r", scalar)])


LONGEST = max_elements(Machine(quirks=Quirks(max_loop_iterations=LLVMPIPE_ITERATIONS))) * 128


@EACH_TARGET
@pytest.mark.parametrize("start", [0, 5])
def test_the_longest_reduction_is_whole(computes: Any, target: str, start: int) -> None:
    (got,) = computes(repeated_sum(LONGEST, str(start)), target, np.array(1, np.int32))
    assert int(got) == LONGEST + start


def test_a_longer_reduction_is_refused_where_loops_have_a_limit(computes: Any) -> None:
    text, one = repeated_sum(LONGEST + 1, "0"), np.array(1, np.int32)
    with pytest.raises(CompileError, match="would reduce 800001 elements, loops of the machine take 800000 at most"):
        computes(text, "spirv", one)
    (got,) = computes(text, "opencl", one)
    assert int(got) == LONGEST + 1
