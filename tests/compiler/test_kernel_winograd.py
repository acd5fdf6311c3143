"""Convolutions in squares of 2 x 2 results: right at any size, at every level, and where numbers are not finite."""

from typing import Any

import numpy as np
import pytest
from stablehlo_text import apply, main, tensor

pytest.importorskip("llvmlite")

from orchestrion.compiler.errors import CompileError
from orchestrion.compiler.kernel.body import Body
from orchestrion.compiler.kernel.choose import choose
from orchestrion.compiler.sequencer.ll_seq import Entry
from orchestrion.compiler.targets.cpu.target import MACHINES

#: batch, rows and columns of the image, channels, columns of the kernel: whole squares and halves along either side,
#: one block and several, more columns than a tile, fewer
SHAPES = [(1, 10, 10, 16, 32), (1, 9, 12, 32, 32), (2, 16, 9, 48, 40), (1, 31, 30, 16, 16), (4, 5, 5, 64, 100)]


def schedule(rows: int, columns: int, depth: int, *, local: int = 16, guards: str = "guard(m, clamp)") -> str:
    return (
        f"[tile(m, {rows}), tile(n, {columns}), bind(grid, workgroup), bind(m, local, {local}), vectorize(n, 16), "
        f"stage(out, winograd, {depth}), {guards}]"
    )


def convolution(image: tuple[int, ...], columns: int, stride: int = 1, dtype: str = "f32") -> str:
    """The maximum of each result and -1: of the absolute values of an image, and a kernel of 3 x 3."""
    batch, height, width, channels = image
    out = (batch, (height - 3) // stride + 1, (width - 3) // stride + 1)
    types = [
        tensor(shape, dtype) for shape in (image, (3, 3, channels, columns), (*out, channels, 3, 3), (*out, columns))
    ]
    steps = f"dilations = array<i64: 1, 1>, sizes = array<i64: 3, 3>, strides = array<i64: {stride}, {stride}>"
    dims = "#stablehlo.dot<lhs_contracting_dimensions = [4, 5, 3], rhs_contracting_dimensions = [0, 1, 2]>"
    lines = [
        f"%p = {apply('abs', '%a0', '', types[:1], types[0])}",
        f'%w = "flow.windows"(%p) <{{axes = array<i64: 1, 2>, {steps}}}> : ({types[0]}) -> {types[2]}',
        f"%d = {apply('dot_general', '%w, %a1', f'dot_dimension_numbers = {dims}', types[2:0:-1], types[3])}",
        f'%c = "stablehlo.constant"() <{{value = dense<-1.0> : {types[3]}}}> : () -> {types[3]}',
        f"%r = {apply('maximum', '%d, %c', '', [types[3]] * 2, types[3])}",
    ]
    return main(types[:2], lines, [("%r", types[3])])


def expected(image: np.ndarray, kernel: np.ndarray) -> np.ndarray:
    windows = np.lib.stride_tricks.sliding_window_view(np.abs(image), (3, 3), (1, 2))
    return np.maximum(np.einsum("bhwcuv,uvco->bhwo", windows, kernel), -1)


def operands(shape: tuple[int, ...], dtype: type = np.float32) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(sum(shape))
    *image, columns = shape
    kernel = random.standard_normal((3, 3, image[-1], columns)).astype(dtype)
    return random.standard_normal(image).astype(dtype), kernel


def check(got: np.ndarray, want: np.ndarray) -> None:
    """The bounds of docs/numerics.md."""
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6 * np.abs(want[np.isfinite(want)]).max())


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_convolutions_of_any_size(computes: Any, entry: Any, shape: tuple[int, ...]) -> None:
    """By the schedule of the machine."""
    text = convolution(shape[:4], shape[4])
    (body,) = (Body.of_entry(op) for op in entry(text).walk() if isinstance(op, Entry))
    assert "stage(out, winograd, 16)" in str(choose(body, MACHINES["cpu"]).schedule)
    x, y = operands(shape)
    (got,) = computes(text, "cpu", x, y)
    check(got, expected(x.astype(np.float64), y.astype(np.float64)))


def test_the_highest_precision_takes_plain_sums(entry: Any) -> None:
    text, axes = convolution((1, 10, 10, 16), 32), "rhs_contracting_dimensions = [0, 1, 2]>"
    precision = "#stablehlo<precision HIGHEST>"
    highest = text.replace(axes, f"{axes}, precision_config = [{precision}, {precision}]")
    assert highest != text
    (body,) = (Body.of_entry(op) for op in entry(highest).walk() if isinstance(op, Entry))
    assert "winograd" not in str(choose(body, MACHINES["cpu"]).schedule)


def test_smaller_blocks_in_f64(computes: Any) -> None:
    """One of the tiles is moved back along the columns."""
    x, y = operands((1, 9, 12, 32, 40), np.float64)
    steps = schedule(3, 16, 16, guards="guard(m, clamp), guard(n, shift)")
    (got,) = computes(convolution((1, 9, 12, 32), 40, dtype="f64"), "cpu", x, y, schedule=steps)
    np.testing.assert_allclose(got, expected(x, y), rtol=1e-12, atol=1e-13)


def test_numbers_that_are_not_finite_affect_the_results_that_read_them_alone(computes: Any) -> None:
    """A block with one is computed by plain sums; the others are not. Large numbers overflow in no transform."""
    shape = (1, 40, 30, 16, 32)
    x, y = operands(shape)
    x[0, 3, 4, 5], x[0, 20, 7, 0], x[0, 39, 29, 15] = np.inf, np.nan, 3e38
    y[..., 7] = 0.0
    y[2, 2, 15, 7] = 0.5
    (got,) = computes(convolution(shape[:4], shape[4]), "cpu", x, y)
    with np.errstate(over="ignore"):
        want = expected(x.astype(np.float64), y.astype(np.float64)).astype(np.float32)
    np.testing.assert_array_equal(np.isnan(got), np.isnan(want))
    rows = np.r_[0:30]  # the last number is far larger than the results in front of it
    finite = np.isfinite(want)
    np.testing.assert_array_equal(got[np.isinf(want)], want[np.isinf(want)])
    np.testing.assert_allclose(got[:, rows][finite[:, rows]], want[:, rows][finite[:, rows]], rtol=1e-5, atol=1e-4)
    assert got[0, 37, 27, 7] == np.float32(1.5e38)


@pytest.mark.parametrize(
    ("text", "steps", "problem"),
    [
        (((1, 8, 8, 16), 32), schedule(4, 32, 12), "slices of a multiple of 16 channels divide 16"),
        (((1, 8, 8, 24), 32), schedule(4, 32, 16), "slices of a multiple of 16 channels divide 24"),
        (((1, 8, 8, 16), 32), schedule(4, 32, 16, local=8), "16 invocations of a workgroup share rows"),
        (((1, 9, 9, 16), 32, 2), schedule(4, 32, 16), "only convolutions of floats by windows of 3 x 3, side by side"),
        (((1, 8, 8, 16), 64), schedule(4, 64, 16, guards="guard(m, shift)"), "the last tile is moved back along n"),
        (((1, 8, 8, 16), 32, 1, "f64"), schedule(8, 32, 16), "factors and sums take 268416 bytes; the machine has"),
    ],
)
def test_refused(lowered: Any, text: tuple[Any, ...], steps: str, problem: str) -> None:
    with pytest.raises(CompileError, match=problem):
        lowered(convolution(*text), "cpu", schedule=steps)
