"""Lines of results of depthwise convolutions: the results of other schedules bit for bit, at any size."""

from typing import Any

import numpy as np
import pytest
from stablehlo_text import apply, main, tensor

pytest.importorskip("llvmlite")

from orchestrion.compiler.kernel.body import Body
from orchestrion.compiler.kernel.choose import choose
from orchestrion.compiler.sequencer.ll_seq import Entry
from orchestrion.compiler.targets.cpu.target import MACHINES

Pair = tuple[int, int]
#: batch, rows, columns and channels of the image; window, strides, dilations, rows in front and behind, columns in
#: front and behind: groups of results that divide the columns and not, one block and several, few channels, padding
#: on no side, on one, wider than a window
CASES: list[tuple[tuple[int, ...], Pair, Pair, Pair, Pair, Pair]] = [
    ((1, 7, 7, 32), (3, 3), (1, 1), (1, 1), (1, 1), (1, 1)),
    ((2, 30, 13, 48), (3, 3), (1, 1), (1, 1), (0, 0), (0, 0)),
    ((1, 33, 20, 16), (3, 3), (2, 2), (1, 1), (0, 1), (0, 1)),
    ((1, 16, 17, 24), (5, 5), (1, 1), (1, 1), (2, 2), (2, 2)),
    ((1, 19, 11, 4), (5, 3), (2, 1), (1, 2), (4, 3), (2, 5)),
    ((3, 9, 3, 8), (2, 2), (3, 3), (1, 1), (0, 0), (1, 1)),
    ((1, 40, 10, 16), (7, 7), (1, 2), (2, 1), (6, 6), (3, 3)),
]


def convolution(
    image: tuple[int, ...], window: Pair, strides: Pair, dilations: Pair, rows: Pair, columns: Pair, dtype: str = "f32"
) -> str:
    """The maximum of each result and -1: of the absolute values of an image, padded with 2, and a kernel."""
    batch, height, width, channels = image
    padded = (batch, height + sum(rows), width + sum(columns), channels)
    sizes = zip(padded[1:3], window, strides, dilations, strict=True)
    out = (batch, *((size - (k - 1) * gap - 1) // step + 1 for size, k, step, gap in sizes), channels)
    shapes = image, (*window, channels), padded, (*out, *window), (*out[:3], *window, channels), out, ()
    a, k, p, w, r, o, s = (tensor(shape, dtype) for shape in shapes)
    ends = [f"edge_padding_{end} = array<i64: 0, {rows[n]}, {columns[n]}, 0>" for n, end in enumerate(("low", "high"))]
    attributes = {"axes": (1, 2), "sizes": window, "strides": strides, "dilations": dilations}
    steps = ", ".join(f"{name} = array<i64: {x}, {y}>" for name, (x, y) in sorted(attributes.items()))
    dims = (
        "#stablehlo.dot<lhs_batching_dimensions = [0, 1, 2, 3], rhs_batching_dimensions = [0, 1, 2, 5], "
        "lhs_contracting_dimensions = [4, 5], rhs_contracting_dimensions = [3, 4]>"
    )
    lines = [
        f"%b = {apply('abs', '%a0', '', [a], a)}",
        f'%z = "stablehlo.constant"() <{{value = dense<2.0> : {s}}}> : () -> {s}',
        f"%p = {apply('pad', '%b, %z', ', '.join([*ends, 'interior_padding = array<i64: 0, 0, 0, 0>']), [a, s], p)}",
        f'%w = "flow.windows"(%p) <{{{steps}}}> : ({p}) -> {w}',
        f"%r = {apply('broadcast_in_dim', '%a1', 'broadcast_dimensions = array<i64: 3, 4, 5>', [k], r)}",
        f"%d = {apply('dot_general', '%w, %r', f'dot_dimension_numbers = {dims}', [w, r], o)}",
        f'%c = "stablehlo.constant"() <{{value = dense<-1.0> : {o}}}> : () -> {o}',
        f"%m = {apply('maximum', '%d, %c', '', [o, o], o)}",
    ]
    return main([a, k], lines, [("%m", o)])


def operands(image: tuple[int, ...], window: Pair, dtype: type = np.float32) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(sum(image))
    return random.standard_normal(image).astype(dtype), random.standard_normal((*window, image[-1])).astype(dtype)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_lines_have_the_bits_of_single_results(computes: Any, entry: Any, case: tuple[Any, ...]) -> None:
    text = convolution(*case)
    (body,) = (Body.of_entry(op) for op in entry(text).walk() if isinstance(op, Entry))
    assert "stage(out, windows, " in str(choose(body, MACHINES["cpu"]).schedule)
    x, y = operands(*case[:2])
    (got,) = computes(text, "cpu", x, y)
    (single,) = computes(text, "cpu", x, y, schedule="[bind(grid, invocation, 64)]")
    np.testing.assert_array_equal(got, single)
    image, window, strides, dilations, rows, columns = case
    padded = np.pad(np.abs(x.astype(np.float64)), ((0, 0), rows, columns, (0, 0)), constant_values=2)
    spans = [(size - 1) * gap + 1 for size, gap in zip(window, dilations, strict=True)]
    views = np.lib.stride_tricks.sliding_window_view(padded, spans, (1, 2))
    views = views[:, :: strides[0], :: strides[1], :, :: dilations[0], :: dilations[1]]
    want = np.maximum(np.einsum("bhwcuv,uvc->bhwc", views, y.astype(np.float64)), -1)
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(("results", "channels", "rows"), [(3, 4, 5), (1, 2, 1)])
def test_other_blocks_in_f64(computes: Any, results: int, channels: int, rows: int) -> None:
    case = ((2, 14, 11, 12), (3, 3), (1, 1), (1, 1), (1, 1), (1, 1))
    x, y = operands(*case[:2], np.float64)
    text = convolution(*case, dtype="f64")
    bind = f"bind(b, local, {channels}), bind(grid, workgroup)"
    steps = f"[tile(b, {results}), {bind}, stage(out, windows, {rows})]"
    (got,) = computes(text, "cpu", x, y, schedule=steps)
    (single,) = computes(text, "cpu", x, y, schedule="[bind(grid, invocation, 64)]")
    np.testing.assert_array_equal(got, single)


def test_few_channels_and_long_windows_have_no_lines(entry: Any) -> None:
    short = ((1, 12, 12, 16), (9, 8), (1, 1), (1, 1), (0, 0), (0, 0))
    for case in (((1, 9, 9, 3), *CASES[0][1:]), short):
        (body,) = (Body.of_entry(op) for op in entry(convolution(*case)).walk() if isinstance(op, Entry))
        assert "windows" not in str(choose(body, MACHINES["cpu"]).schedule)
