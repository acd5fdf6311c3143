"""Dots of bf16: the same bits from pairs as from widened operands, with any numbers, on every level of this machine.

`computes` runs the image of each level with bindings between guard pages, and compares them bit by bit.
"""

from math import prod
from typing import Any

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest
from dots import Dot, check, dots, expected, matmul, panels
from hypothesis import HealthCheck, given, settings
from jax import lax
from stablehlo_text import main, tensor

pytest.importorskip("llvmlite")

from orchestrion import compiler, vm
from orchestrion.compiler.driver import Compilation
from orchestrion.compiler.errors import CompileError
from orchestrion.compiler.kernel.panels.pairs import LEAST_EXPONENTS
from orchestrion.compiler.stablehlo.ops.contraction import DotDimensions
from orchestrion.compiler.targets.cpu import target as cpu
from orchestrion.compiler.targets.cpu.levels import LEVELS
from orchestrion.compiler.targets.target import target

pytestmark = pytest.mark.sampled(every=2)

PAIRS = "x86-64-v4-bf16"
#: exponent of 1 as a bf16 stores it, and that of infinities and NaN
ONE, SPECIAL = 127, 255


def text(dot: Dot) -> str:
    """A dot of two arguments of bits, which are widened in front of it."""
    given, lines = [tensor(shape, "ui16") for shape in (dot.lhs, dot.rhs)], []
    for number, shape in enumerate((dot.lhs, dot.rhs)):
        types = f"({given[number]}) -> {tensor(shape, 'f32')}"
        lines.append(f'%w{number} = "flow.decode_bf16"(%a{number}) : {types}')
    lines.append(dot.line("%r", "%w0", "%w1", ["f32"] * 3))
    return main(given, lines, [("%r", tensor(dot.out, "f32"))])


def numbers(shape: tuple[int, ...], least: int = ONE - 20, most: int = ONE + 4, zeros: float = 0.1) -> np.ndarray:
    """Bits of numbers with exponents in a range, as a bf16 stores them, and of zeros."""
    random = np.random.default_rng(prod(shape) + least)
    fraction, exponent = random.integers(0, 128, shape), random.integers(least, most + 1, shape)
    magnitude = np.where(random.random(shape) < zeros, 0, exponent << 7 | fraction)
    return (magnitude | random.integers(0, 2, shape) << 15).astype(np.uint16)


def wide(bits: np.ndarray) -> np.ndarray:
    return (bits.astype(np.uint32) << 16).view(np.float32)


def pairs(rows: int, columns: int, depth: int, local: tuple[int, int] = (16, 1)) -> str:
    """A schedule by which a workgroup computes a block from panels of pairs, in slices of up to `depth` elements."""
    return panels(rows, columns, depth, "", local).replace("stage(out, panel", "stage(out, pairs")


def same(
    computes: Any, dot: Dot, x: np.ndarray, y: np.ndarray, schedule: str | None = None, depth: int = 64
) -> np.ndarray:
    """Checks that pairs give the bits of widened operands, in slices of `depth`. Returns the results."""
    (got,) = computes(text(dot), "cpu", x, y, schedule=schedule)
    (want,) = computes(text(dot), "cpu", x, y, schedule=panels(4, 16, depth, "lhs rhs", (8, 1)))
    np.testing.assert_array_equal(np.isnan(got), np.isnan(want))
    np.testing.assert_array_equal(got.view(np.uint32)[~np.isnan(got)], want.view(np.uint32)[~np.isnan(got)])
    return np.asarray(got)


@pytest.mark.parametrize("shape", [(16, 4, 16), (64, 64, 64), (130, 70, 48), (300, 1030, 40), (5, 2050, 600)], ids=str)
def test_matrices_of_any_size(computes: Any, lowered: Any, shape: tuple[int, int, int]) -> None:
    """By the schedule of the machine."""
    dot = matmul(*shape)
    x, y = numbers(dot.lhs), numbers(dot.rhs)
    assert "stage(out, pairs" in lowered(text(dot), "cpu").schedule
    check(same(computes, dot, x, y), expected(dot, wide(x), wide(y), "f32"), "f32")


@pytest.mark.parametrize(
    "schedule",
    [
        pairs(8, 16, 64),
        pairs(3, 16, 128, (2, 4)),
        pairs(5, 48, 64, (8, 1)),
        pairs(4, 32, 256, (8, 2)),
        pairs(2, 16, 256),
    ],
)
@pytest.mark.parametrize("shape", [(17, 200, 67), (70, 128, 96)], ids=str)
def test_slices_of_any_size(computes: Any, schedule: str, shape: tuple[int, int, int]) -> None:
    dot = matmul(*shape)
    same(computes, dot, numbers(dot.lhs), numbers(dot.rhs), schedule)


@pytest.mark.parametrize(("left", "right"), [(0, 0), (0, 1), (1, 1)])
@pytest.mark.parametrize("depth", [70, 300])
def test_transposed_operands(computes: Any, left: int, right: int, depth: int) -> None:
    """The axes of each operand in either order: words are loaded, or joined from two elements."""
    lhs, rhs = (depth, 20) if left == 0 else (20, depth), (depth, 32) if right == 0 else (32, depth)
    equation = f"{'ki' if left == 0 else 'ik'},{'kj' if right == 0 else 'jk'}->ij"
    dot = Dot(lhs, rhs, DotDimensions((), (), (left,), (right,)), equation, (20, 32))
    same(computes, dot, numbers(lhs), numbers(rhs))


@pytest.mark.parametrize("depth", [64, 260])
def test_slices_of_an_inner_axis(computes: Any, depth: int) -> None:
    """Two contracted axes that are not contiguous in memory; a slice is a part of the inner one, or some places."""
    dot = Dot((3, 20, 130), (3, 130, 48), DotDimensions((), (), (0, 2), (0, 1)), "kil,klj->ij", (20, 48))
    same(computes, dot, numbers(dot.lhs), numbers(dot.rhs), pairs(4, 16, depth, (8, 1)), depth)


@settings(max_examples=5, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(dot=dots().filter(lambda dot: prod(dot.out) <= 20_000))
def test_any_contraction_by_the_schedule_of_the_machine(computes: Any, dot: Dot) -> None:
    x, y = numbers(dot.lhs), numbers(dot.rhs)
    (got,) = computes(text(dot), "cpu", x, y)
    check(got, expected(dot, wide(x), wide(y), "f32"), "f32")


@pytest.mark.parametrize("most", [None, 0, 6])
def test_exponents_at_the_edge(computes: Any, most: int | None) -> None:
    """Blocks of 8 rows with exponents of their own. Without `most`, a sum of two products is as small as a sum can be:
    157 * 133 - 144 * 145, of fractions.
    """
    sums = range(LEAST_EXPONENTS - 5, LEAST_EXPONENTS + 4)
    dot, own = matmul(8 * len(sums), 70, 16), LEAST_EXPONENTS // 2
    x = np.concatenate([numbers((8, 70), sum - own, sum - own + (most or 0), 0.3) for sum in sums])
    y = numbers(dot.rhs, own, own + (most or 0), 0) | 1  # no powers of two, of which the test takes half
    if most is None:
        x[:, 2:], y[:2] = 0, own << 7 | np.array([[133], [145]]) % 128
        x[:, 0] = np.repeat(np.array(sums) - own << 7, 8)
        x[:, 1] = x[:, 0] | 0x8000 | 144 % 128
        x[:, 0] |= 157 % 128
    got = same(computes, dot, x, y, pairs(4, 16, 64, (2, 1)))
    if most is None:
        np.testing.assert_array_equal(got[::8, 0], np.float32(2) ** (np.array(sums) - 254 - 14))


@pytest.mark.parametrize("side", [0, 1])
def test_subnormal_elements_are_kept(computes: Any, side: int) -> None:
    """Two subnormal numbers among zeros, in slices of their own, times numbers that make the products normal."""
    dot = matmul(8, 70, 16)
    given = [numbers(dot.lhs, ONE + 100, ONE + 110, 0), numbers(dot.rhs, ONE + 100, ONE + 110, 0)]
    along = given[1] if side else given[0].T
    along[:] = 0
    along[0, 3], along[69, 4] = 1, 0x8001
    got = same(computes, dot, *given, pairs(4, 16, 64, (2, 1)))
    assert np.count_nonzero(got) == 2 * got.size // along.shape[1] and np.abs(got[got != 0]).min() > 1e-12


def test_products_and_sums_that_are_subnormal_are_kept(computes: Any) -> None:
    dot = matmul(8, 64, 16)
    x, y = numbers(dot.lhs, 59, 61, 0), numbers(dot.rhs, 60, 62, 0)
    got = same(computes, dot, x, y)
    assert 0 < np.abs(got[got != 0]).min() < np.finfo(np.float32).tiny


@pytest.mark.parametrize("depth", [64, 300])
def test_infinities_and_nan(computes: Any, depth: int) -> None:
    """Infinities beside numbers, zeros and each other, and NaN; sums that overflow, also only between."""
    dot = matmul(16, depth, 32)
    x, y = numbers(dot.lhs), numbers(dot.rhs)
    x[1, 5], x[2, 6], x[3, [7, 8]] = 0x7F80, 0x7FC0, (0x7F80, 0xFF80)
    y[9, 4], y[10, 5], y[5, ::2] = 0xFF80, 0x7FA0, 0
    x[4, :4], y[:4] = (0x7F7F, 0x7F7F, 0xFF7F, 0xFF7F), 0x3F80
    with np.errstate(invalid="ignore"):
        want = expected(dot, wide(x), wide(y), "f32")
    got = same(computes, dot, x, y)
    np.testing.assert_array_equal(np.isnan(got[:4]), np.isnan(want[:4]))
    assert np.isinf(got).any() and np.isnan(got).any() and np.isfinite(got).any()


def test_slices_are_tested_apart(computes: Any) -> None:
    """Subnormal elements in some slices and blocks of a dot of several."""
    dot = matmul(40, 320, 48)
    x, y = numbers(dot.lhs), numbers(dot.rhs)
    x[3, 70], y[200, 40], x[:, 256:] = 3, 0x8005, numbers((40, 64), 20, 40)
    same(computes, dot, x, y, pairs(8, 16, 64, (2, 1)))


def test_only_one_level_multiplies_pairs(lowered: Any) -> None:
    executable = lowered(text(matmul(40, 70, 48)), "cpu").module.block.first
    entries = cpu.Lowered.of(executable).entries
    for level in LEVELS.values():
        ((found, _),) = cpu.texts_of(entries, level)
        assert (found.count("@llvm.x86.avx512bf16.dpbf16ps.512(") > 0) == (level.name == PAIRS) == level.pair_products
    wanted = [PAIRS, *(name for name, level in LEVELS.items() if not level.base)]
    payloads = target("cpu").payloads(executable, list(LEVELS))
    assert [max(payload.features & LEVELS.keys()) for payload in payloads] == wanted


@pytest.mark.parametrize("shape", [(16, 71, 32), (3, 64, 32), (16, 64, 12)], ids=str)
def test_other_dots_have_other_schedules(computes: Any, lowered: Any, shape: tuple[int, int, int]) -> None:
    """An odd number of products, few rows, few columns."""
    dot = matmul(*shape)
    assert "pairs" not in lowered(text(dot), "cpu").schedule
    x, y = numbers(dot.lhs), numbers(dot.rhs)
    (got,) = computes(text(dot), "cpu", x, y)
    check(got, expected(dot, wide(x), wide(y), "f32"), "f32")


@pytest.mark.parametrize(
    ("rows", "turned", "way"),
    [(1, False, "stream, 4"), (3, False, "stream, 4"), (1, True, "lanes"), (3, True, "lanes")],
)
def test_few_rows_are_widened_where_they_are_read(
    computes: Any, lowered: Any, rows: int, turned: bool, way: str
) -> None:
    """One to three rows, times columns in either order: vectors are widened behind their loads."""
    dot = matmul(rows, 204, 272)
    if turned:
        dot = Dot(dot.lhs, (272, 204), DotDimensions((), (), (1,), (1,)), "ik,jk->ij", dot.out)
    x, y = numbers(dot.lhs), numbers(dot.rhs)
    y[5, ::3] = 0x8003
    entry = lowered(text(dot), "cpu")
    assert f"stage(out, {way})" in entry.schedule
    (found, _), *_ = cpu.texts_of(cpu.Lowered.of(entry.module.block.first).entries, LEVELS[PAIRS])
    assert "<16 x i16>" in found
    (got,) = computes(text(dot), "cpu", x, y)
    check(got, expected(dot, wide(x), wide(y), "f32"), "f32")
    if not turned:
        (want,) = computes(text(dot), "cpu", x, y, schedule=panels(rows, 16, 64, "lhs rhs", (16, 1)))
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("name", ["opencl", "spirv"])
def test_other_targets_have_no_op_for_it(lowered: Any, name: str) -> None:
    entry = lowered(text(matmul(40, 70, 48)), "cpu")
    with pytest.raises(CompileError, match="kernels have no such op"):
        target(name).serialize(entry.module.block.first)


def product_of(*shapes: tuple[int, ...]) -> tuple[Any, list[np.ndarray]]:
    """A product of bf16 in f32, with arguments."""
    random = np.random.default_rng(1)
    arguments = [random.standard_normal(shape, np.float32).astype(ml_dtypes.bfloat16) for shape in shapes]
    return jax.jit(lambda x, w: jnp.matmul(x, w, preferred_element_type=jnp.float32)).lower(*arguments), arguments


@pytest.mark.parametrize(("targets", "fused"), [(("cpu",), True), (("opencl",), False), (("opencl", "cpu"), True)])
def test_operands_are_widened_in_the_dispatch_of_the_dot(targets: tuple[str, ...], fused: bool) -> None:
    """Where a target multiplies pairs; else they are widened in dispatches of their own."""
    found = Compilation(targets=targets).text(product_of((64, 96), (96, 48))[0], "flow")
    assert found.count("flow.dispatch") // found.count("stablehlo.dot_general") == (1 if fused else 3)


@pytest.mark.parametrize("constant", [False, True])
def test_programs(constant: bool) -> None:
    """The operands of two products of one argument, with constants in tiles or with arguments."""
    lowered, (x, w) = product_of((64, 128), (128, 96))
    other = w[::-1].copy()

    def apply(x: jax.Array, w: jax.Array, v: jax.Array) -> tuple[jax.Array, jax.Array]:
        return x @ w, jnp.matmul(x, v, preferred_element_type=jnp.float32)

    made = jax.jit(lambda x: apply(x, jnp.asarray(w), jnp.asarray(other))) if constant else jax.jit(apply)
    arguments = [x] if constant else [x, w, other]
    lowered = made.lower(*arguments)
    assert Compilation(targets=("cpu",)).text(lowered, "hl_seq").count("stage(out, pairs") == 2
    module = compiler.compile(lowered, targets=["cpu"])
    narrow, found = vm.load(module, device="cpu", allow_native_code=True).main(*arguments)
    exact, of_other = (x.astype(np.float64) @ right.astype(np.float64) for right in (w, other))
    np.testing.assert_allclose(np.asarray(narrow).astype(np.float64), exact, rtol=2**-8, atol=1e-5)
    check(np.asarray(found), of_other, "f32")


def test_convolutions() -> None:
    random = np.random.default_rng(2)
    x, w = (random.standard_normal(shape, np.float32).astype(ml_dtypes.bfloat16)
            for shape in ((2, 12, 12, 32), (3, 3, 32, 48)))  # fmt: skip

    def apply(x: jax.Array, w: jax.Array) -> jax.Array:
        return lax.conv_general_dilated(
            x, w, (2, 2), "VALID", preferred_element_type=jnp.float32, dimension_numbers=("NHWC", "HWIO", "NHWC")
        )

    lowered = jax.jit(apply).lower(x, w)
    assert "stage(out, pairs" in Compilation(targets=("cpu",)).text(lowered, "hl_seq")
    main = vm.load(compiler.compile(lowered, targets=["cpu"]), device="cpu", allow_native_code=True).main
    want = np.asarray(apply(x.astype(np.float32), w.astype(np.float32)))
    np.testing.assert_allclose(np.asarray(main(x, w)), want, rtol=1e-4, atol=1e-5 * np.abs(want).max())
