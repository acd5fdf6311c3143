"""Dots of bytes: sums are exact at any shape, order of axes and size of a slice, and equal on every level.

`computes` runs the image of each level of this machine with bindings between guard pages.
"""

from math import prod
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from dots import Dot, dots, expected, matmul
from hypothesis import HealthCheck, given, settings
from jax import lax
from stablehlo_text import apply, main, tensor

pytest.importorskip("llvmlite")

from orchestrion import compiler, vm
from orchestrion.compiler.driver import Compilation
from orchestrion.compiler.errors import CompileError
from orchestrion.compiler.kernel.dialect import MultiplyAddBytes
from orchestrion.compiler.stablehlo.ops.contraction import DotDimensions
from orchestrion.compiler.targets.cpu import target as cpu
from orchestrion.compiler.targets.cpu.levels import LEVELS, levels_named
from orchestrion.compiler.targets.target import target

pytestmark = pytest.mark.sampled(every=2)


def numbers(shape: tuple[int, ...], dtype: str) -> np.ndarray:
    """All numbers of a type of 8 bits, the least and the greatest often."""
    random, range = np.random.default_rng(prod(shape)), np.iinfo({"i8": np.int8, "ui8": np.uint8}[dtype])
    found = random.integers(range.min, range.max + 1, shape)
    return np.where(
        random.random(shape) < 0.2, range.min, np.where(random.random(shape) < 0.2, range.max, found)
    ).astype(range.dtype)


def words(rows: int, columns: int, depth: int, local: tuple[int, int] = (16, 1)) -> str:
    """A schedule by which a workgroup computes a block from panels of words, in slices of up to `depth` elements."""
    bind = f"bind(m, local, {local[0]}), bind(n, local, {local[1]})"
    return (
        f"[tile(m, {rows}), tile(n, {columns}), bind(grid, workgroup), {bind}, vectorize(n, {min(columns, 16)}), "
        f"stage(out, bytes, {depth}), guard(m, clamp), guard(n, shift)]"
    )


def same(computes: Any, dot: Dot, left: str = "i8", schedule: str | None = None) -> None:
    x, y = numbers(dot.lhs, left), numbers(dot.rhs, "i8")
    (got,) = computes(dot.text([left, "i8", "i32"]), "cpu", x, y, schedule=schedule)
    np.testing.assert_array_equal(got, expected(dot, x, y, "i32"))


@pytest.mark.parametrize("left", ["i8", "ui8"])
@pytest.mark.parametrize("shape", [(16, 3, 16), (130, 65, 35), (1, 130, 1040), (300, 1, 45), (8, 1030, 40)], ids=str)
def test_matrices_of_any_size(computes: Any, shape: tuple[int, int, int], left: str) -> None:
    """By the schedule of the machine."""
    same(computes, matmul(*shape), left)


@pytest.mark.parametrize("schedule", [words(8, 16, 64), words(3, 4, 20, (2, 4)), words(5, 8, 400, (8, 1))])
@pytest.mark.parametrize("shape", [(17, 67, 65), (70, 128, 96)], ids=str)
def test_slices_of_any_size(computes: Any, schedule: str, shape: tuple[int, int, int]) -> None:
    same(computes, matmul(*shape), "i8", schedule)


@pytest.mark.parametrize(("left", "right"), [(0, 0), (0, 1), (1, 1)])
@pytest.mark.parametrize("depth", [70, 300])
def test_transposed_operands(computes: Any, left: int, right: int, depth: int) -> None:
    """The axes of each operand in either order: words are loaded, or joined from bytes."""
    lhs, rhs = (depth, 20) if left == 0 else (20, depth), (depth, 32) if right == 0 else (32, depth)
    equation = f"{'ki' if left == 0 else 'ik'},{'kj' if right == 0 else 'jk'}->ij"
    same(computes, Dot(lhs, rhs, DotDimensions((), (), (left,), (right,)), equation, (20, 32)))


@pytest.mark.parametrize("depth", [16, 260])
def test_slices_of_an_inner_axis(computes: Any, depth: int) -> None:
    """Two contracted axes that are not contiguous in memory; a slice is a part of the inner one, or some places."""
    dot = Dot((3, 20, 130), (3, 130, 48), DotDimensions((), (), (0, 2), (0, 1)), "kil,klj->ij", (20, 48))
    same(computes, dot, "i8", words(8, 16, depth, (8, 1)))


@settings(max_examples=5, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(dot=dots().filter(lambda dot: prod(dot.out) <= 20_000))
def test_any_contraction_by_the_schedule_of_the_machine(computes: Any, dot: Dot) -> None:
    same(computes, dot)


@pytest.mark.parametrize("fill", [-128, 127])
def test_sums_do_not_saturate(computes: Any, fill: int) -> None:
    """Sums of 8192 pairs of equal numbers exceed 16 bits in each step of four products."""
    dot = matmul(8, 8192, 16)
    x, y = np.full(dot.lhs, -128, np.int8), np.full(dot.rhs, fill, np.int8)
    (got,) = computes(dot.text(["i8", "i8", "i32"]), "cpu", x, y)
    np.testing.assert_array_equal(got, np.full(dot.out, -128 * fill * 8192, np.int32))


def test_ops_in_front_and_behind(computes: Any) -> None:
    """Bytes that are computed in front of the dot, and an op on its results."""
    dot = matmul(40, 70, 48)
    left, right, out = tensor(dot.lhs, "i8"), tensor(dot.rhs, "i8"), tensor(dot.out, "i32")
    lines = [
        f"%u = {apply('not', '%a0', '', [left], left)}",
        dot.line("%d", "%u", "%a1", ["i8", "i8", "i32"]),
        f"%r = {apply('negate', '%d', '', [out], out)}",
    ]
    x, y = numbers(dot.lhs, "i8"), numbers(dot.rhs, "i8")
    (got,) = computes(main([left, right], lines, [("%r", out)]), "cpu", x, y)
    np.testing.assert_array_equal(got, -expected(dot, ~x, y, "i32"))


@pytest.mark.parametrize(
    ("size", "channels", "kernel", "stride", "dilation"), [(9, 8, 3, 1, 1), (14, 3, 5, 2, 1), (11, 20, 3, 1, 2)]
)
def test_convolutions(size: int, channels: int, kernel: int, stride: int, dilation: int) -> None:
    """On each level of this machine, with windows that overlap the edges."""
    x, w = numbers((2, size, size, channels), "i8"), numbers((kernel, kernel, channels, 24), "i8")

    def apply(x: jax.Array, w: jax.Array) -> jax.Array:
        return lax.conv_general_dilated(
            x, w, (stride, stride), "SAME", rhs_dilation=(dilation, dilation), preferred_element_type=jnp.int32,
            dimension_numbers=("NHWC", "HWIO", "NHWC"),
        )  # fmt: skip

    lowered, want = jax.jit(apply).lower(x, w), np.asarray(apply(x.astype(np.int32), w.astype(np.int32)))
    text = Compilation(targets=("cpu",)).text(lowered, "hl_seq")
    assert "stage(out, bytes" in text
    assert all("i32>" not in line for line in text.splitlines() if '"stablehlo.pad"' in line)
    for level in levels_named(("host",)):
        try:
            main = vm.load(
                compiler.compile(lowered, targets=["cpu"], target_cpu=level.name), device="cpu", allow_native_code=True
            ).main
        except vm.errors.NoProgram:
            continue
        np.testing.assert_array_equal(main(x, w), want)


@pytest.mark.parametrize("turned", [False, True])
def test_operands_in_tiles(turned: bool) -> None:
    """Words of an encoded operand are no neighbours in memory."""
    x, w = numbers((40, 64), "i8"), numbers((48, 64) if turned else (64, 48), "i8")
    lowered = jax.jit(
        lambda x: jnp.matmul(x, jnp.asarray(w.T if turned else w), preferred_element_type=jnp.int32)
    ).lower(x)
    text = Compilation(targets=("cpu",), encodings="test").text(lowered, "hl_seq")
    assert "stage(out, bytes" in text and "#util.layout" in text
    module = compiler.compile(lowered, targets=["cpu"], encodings="test")
    found = vm.load(module, device="cpu", allow_native_code=True).main(x)
    np.testing.assert_array_equal(found, x.astype(np.int32) @ (w.T if turned else w).astype(np.int32))


def test_each_level_has_its_own_instruction(lowered: Any) -> None:
    entries = cpu.Lowered.of(lowered(matmul(40, 70, 48).text(["i8", "i8", "i32"]), "cpu").module.block.first).entries
    wanted = {"vnni": "@llvm.x86.avx512.vpdpbusd.512(", "dotprod": "@llvm.aarch64.neon.sdot", "pairs": ".pmadd"}
    for level in LEVELS.values():
        ((text, _),) = cpu.texts_of(entries, level)
        found = {name for name, call in wanted.items() if call in text}
        assert found == ({level.byte_products} - {""})
    own = [level for level in LEVELS.values() if not level.pair_products]
    assert len(set(cpu.images(entries, own))) == len(own)


def test_levels_with_the_same_code_have_one_image(lowered: Any) -> None:
    names = [level.name for level in LEVELS.values() if not level.pair_products]
    for dtypes, wanted in ((["f32"] * 3, [n for n in names if not LEVELS[n].base]), (["i8", "i8", "i32"], names)):
        executable = lowered(matmul(40, 70, 48).text(dtypes), "cpu").module.block.first
        assert any(isinstance(op, MultiplyAddBytes) for op in executable.walk()) == (dtypes[0] == "i8")
        payloads = target("cpu").payloads(executable, list(LEVELS))
        assert [max(payload.features & LEVELS.keys()) for payload in payloads] == wanted


@pytest.mark.parametrize("dtypes", [("i8", "ui8", "i32"), ("i16", "i16", "i32"), ("i8", "i8", "i64")])
def test_other_dots_have_other_schedules(computes: Any, lowered: Any, dtypes: tuple[str, ...]) -> None:
    dot = matmul(20, 30, 32)
    x, y = (np.full(shape, 3, {"i8": np.int8, "ui8": np.uint8, "i16": np.int16}[t]) for shape, t in
            zip((dot.lhs, dot.rhs), dtypes[:2], strict=True))  # fmt: skip
    executable = lowered(dot.text(dtypes), "cpu").module.block.first
    assert not any(isinstance(op, MultiplyAddBytes) for op in executable.walk())
    (got,) = computes(dot.text(dtypes), "cpu", x, y)
    np.testing.assert_array_equal(got, np.full(dot.out, 9 * 30))


@pytest.mark.parametrize("name", ["opencl", "spirv"])
def test_other_targets_have_no_op_for_it(lowered: Any, name: str) -> None:
    entry = lowered(matmul(40, 70, 48).text(["i8", "i8", "i32"]), "cpu")
    with pytest.raises(CompileError, match="kernels have no such op"):
        target(name).serialize(entry.module.block.first)
