"""One body of each kind, for tests that write its schedules by hand."""

import random
from collections.abc import Callable

import numpy as np
from stablehlo_text import DTYPES
from structured_bodies import REDUCERS, Case, Draft, Value


def dot(
    rows: int = 8, depth: int = 12, columns: int = 20, dtype: str = "f32", dynamic: str = "", result: str = ""
) -> Case:
    """A product of matrices. `dynamic`: the dimensions, of m and k, that are symbols; `result`: its type, if that is
    not the type of the operands.
    """
    draft = Draft(random.Random(0))
    m, k = (draft.symbol(size) if dim in dynamic else size for dim, size in (("m", rows), ("k", depth)))
    x, y = draft.argument((m, k), dtype), draft.argument((k, columns), dtype)
    attributes = "#stablehlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>"
    type = result or dtype
    array = x.array.astype(DTYPES[type]) @ y.array.astype(DTYPES[type])
    attributes = f"dot_dimension_numbers = {attributes}"
    draft.result(draft.op("stablehlo.dot_general", [x, y], (m, columns), type, array, attributes))
    return draft.case("dot")


def dot_of_two_axes() -> Case:
    """A dot along two axes, which are not contiguous in the left operand."""
    draft = Draft(random.Random(0))
    x, y = draft.argument((5, 8, 3), "f32"), draft.argument((5, 3, 20), "f32")
    attributes = "#stablehlo.dot<lhs_contracting_dimensions = [0, 2], rhs_contracting_dimensions = [0, 1]>"
    array = np.einsum("kmj,kjn->mn", x.array, y.array)
    draft.result(
        draft.op("stablehlo.dot_general", [x, y], (8, 20), "f32", array, f"dot_dimension_numbers = {attributes}")
    )
    return draft.case("dot of two axes")


def dot_of_bf16(rows: int, depth: int, columns: int, inner: int = 1) -> Case:
    """A product of bf16, which are widened, along `depth` places and along `inner` places behind the rows."""
    draft = Draft(random.Random(0))
    operands = []
    for shape in ((depth, rows, inner), (depth, inner, columns)):
        bits = draft.argument(shape, "ui16", draft.data(shape, "f32").view(np.uint32).astype(np.uint16) % 0x4000)
        numbers = (bits.array.astype(np.uint32) << np.uint32(16)).view(np.float32)
        operands.append(draft.op("flow.decode_bf16", [bits], shape, "f32", numbers))
    attributes = "#stablehlo.dot<lhs_contracting_dimensions = [0, 2], rhs_contracting_dimensions = [0, 1]>"
    array = np.einsum("kmj,kjn->mn", *(one.array for one in operands))
    attributes = f"dot_dimension_numbers = {attributes}"
    draft.result(draft.op("stablehlo.dot_general", operands, (rows, columns), "f32", array, attributes))
    return draft.case("dot of bf16")


def convolution(channels: int = 32) -> Case:
    """A dot of windows of 3 x 3, side by side, and a kernel of 32 columns."""
    draft = Draft(random.Random(0))
    x, y = draft.argument((1, 10, 10, channels), "f32"), draft.argument((3, 3, channels, 32), "f32")
    windows = np.lib.stride_tricks.sliding_window_view(x.array, (3, 3), (1, 2))
    steps = "dilations = array<i64: 1, 1>, sizes = array<i64: 3, 3>, strides = array<i64: 1, 1>"
    w = draft.op("flow.windows", [x], windows.shape, "f32", windows, f"axes = array<i64: 1, 2>, {steps}")
    axes = "#stablehlo.dot<lhs_contracting_dimensions = [4, 5, 3], rhs_contracting_dimensions = [0, 1, 2]>"
    array = np.einsum("bhwcuv,uvco->bhwo", windows, y.array)
    draft.result(
        draft.op("stablehlo.dot_general", [w, y], (1, 8, 8, 32), "f32", array, f"dot_dimension_numbers = {axes}")
    )
    return draft.case("convolution")


def depthwise() -> Case:
    """A dot of windows of 3 x 3 of each of 24 channels."""
    draft = Draft(random.Random(0))
    x, y = draft.argument((1, 10, 11, 24), "f32"), draft.argument((3, 3, 24), "f32")
    windows = np.lib.stride_tricks.sliding_window_view(x.array, (3, 3), (1, 2))
    steps = "dilations = array<i64: 1, 1>, sizes = array<i64: 3, 3>, strides = array<i64: 1, 1>"
    w = draft.op("flow.windows", [x], windows.shape, "f32", windows, f"axes = array<i64: 1, 2>, {steps}")
    k = draft.broadcast(y, (1, 8, 9, 3, 3, 24), (3, 4, 5))
    axes = (
        "#stablehlo.dot<lhs_batching_dimensions = [0, 1, 2, 3], rhs_batching_dimensions = [0, 1, 2, 5], "
        "lhs_contracting_dimensions = [4, 5], rhs_contracting_dimensions = [3, 4]>"
    )
    array = np.einsum("bhwcuv,uvc->bhwc", windows, y.array)
    draft.result(
        draft.op("stablehlo.dot_general", [w, k], (1, 8, 9, 24), "f32", array, f"dot_dimension_numbers = {axes}")
    )
    return draft.case("depthwise convolution")


def outer() -> Case:
    """A dot that contracts no axis."""
    draft = Draft(random.Random(0))
    x, y = draft.argument((8,), "f32"), draft.argument((20,), "f32")
    array, attributes = np.outer(x.array, y.array), "dot_dimension_numbers = #stablehlo.dot<>"
    draft.result(draft.op("stablehlo.dot_general", [x, y], (8, 20), "f32", array, attributes))
    return draft.case("outer product")


def elements(more: bool = False) -> Case:
    """60 elements, and 3 in another result."""
    draft = Draft(random.Random(0))
    for shape in ((6, 10), (3,)) if more else ((6, 10),):
        draft.result(draft.apply("negate", draft.argument(shape, "f32")))
    return draft.case("elements")


def transposed() -> Case:
    """An argument of 24 x 40, transposed."""
    draft = Draft(random.Random(0))
    draft.result(draft.apply("negate", draft.transpose(draft.argument((24, 40), "f32"), (1, 0))))
    return draft.case("elements")


def padded() -> Case:
    """An argument of 6 x 10 between zeros."""
    draft = Draft(random.Random(0))
    operands = draft.argument((6, 10), "f32"), draft.constant(0, "f32")
    edges = "edge_padding_low = array<i64: 0, 3>, edge_padding_high = array<i64: 1, 2>"
    array = np.pad(operands[0].array, ((0, 1), (3, 2)))
    attributes = f"{edges}, interior_padding = array<i64: 0, 0>"
    draft.result(draft.op("stablehlo.pad", operands, array.shape, "f32", array, attributes))
    return draft.case("elements")


def reduction(length: int = 100, dynamic: bool = False, wide: bool = False, sums: int = 4) -> Case:
    """Sums; `wide`: they are also written several times."""
    draft = Draft(random.Random(0))
    x = draft.argument((sums, draft.symbol(length) if dynamic else length), "f32")
    (out,) = draft.reduce([x], [draft.constant(0, "f32")], [1], REDUCERS["add"])
    draft.result(out)
    if wide:
        draft.result(draft.broadcast(out, (7, 4), (1,)))
    return draft.case("reduction")


def rows(length: int = 100, dynamic: bool = False, less: int = 0) -> Case:
    """Four rows, less their sums. `less`: what is subtracted from a dynamic length."""
    draft = Draft(random.Random(0))
    k = draft.symbol(length) - less if dynamic else length
    x = draft.argument((4, k), "f32")
    (out,) = draft.reduce([x], [draft.constant(0, "f32")], [1], REDUCERS["add"])
    draft.result(draft.apply("subtract", x, draft.broadcast(out, (4, k), (0,))))
    return draft.case("rows")


def many_reductions(count: int = 30, length: int = 300) -> Case:
    """Four rows, each reduced many times, less the maximum before."""
    draft = Draft(random.Random(0))
    x = draft.argument((4, length), "f32")
    for _ in range(count):
        (out,) = draft.reduce([x], [draft.constant(0, "f32")], [1], REDUCERS["maximum"])
        x = draft.apply("subtract", x, draft.broadcast(out, (4, length), (0,)))
    draft.result(x)
    return draft.case("rows")


def attention(
    batches: int = 2, rows: int = 20, length: int = 24, depth: int = 8, columns: int = 12,
    dtype: str = "f32", weights: str = "",
) -> Case:  # fmt: skip
    """Products of rows, a softmax of each, and products of that. `weights`: the type of the softmax, if another."""
    draft, kind = Draft(random.Random(0)), weights or dtype
    q, k = draft.argument((batches, rows, depth), dtype), draft.argument((batches, length, depth), dtype)
    v = draft.argument((batches, length, columns), kind)
    scores = batched(draft, q, k, 2, 2, (batches, rows, length), np.einsum("bmd,bkd->bmk", q.array, k.array))
    shape = scores.shape
    if kind != dtype:
        scores = draft.op("stablehlo.convert", [scores], shape, kind, scores.array)
    (most,) = draft.reduce([scores], [draft.constant(-np.inf, kind)], [2], REDUCERS["maximum"])
    near = draft.apply("exponential", draft.apply("subtract", scores, draft.broadcast(most, shape, (0, 1))), near=True)
    (total,) = draft.reduce([near], [draft.constant(0, kind)], [2], REDUCERS["add"])
    p = draft.apply("divide", near, draft.broadcast(total, shape, (0, 1)))
    out = batched(draft, p, v, 2, 1, (batches, rows, columns), np.einsum("bmk,bkn->bmn", p.array, v.array))
    draft.result(draft.apply("negate", out))
    return draft.case("attention")


def batched(
    draft: Draft, x: Value, y: Value, left: int, right: int, shape: tuple[int, ...], array: np.ndarray
) -> Value:
    """A dot of matrices along these axes, of each batch."""
    axes = (
        "#stablehlo.dot<lhs_batching_dimensions = [0], rhs_batching_dimensions = [0], "
        f"lhs_contracting_dimensions = [{left}], rhs_contracting_dimensions = [{right}]>"
    )
    attributes = f"dot_dimension_numbers = {axes}"
    return draft.op("stablehlo.dot_general", [x, y], shape, x.dtype, array, attributes, near=True)


def scatter() -> Case:
    draft = Draft(random.Random(0))
    draft.scattered_in_place(1, 4, 4, 2, "i32")
    return draft.case("scatter")


BODIES: dict[str, Callable[[], Case]] = {
    "dot": dot,
    "dot of integers": lambda: dot(dtype="i32"),
    "dot of bytes": lambda: dot(8, 12, 20, "i8", result="i32"),
    "large dot of f64": lambda: dot(64, 64, 64, "f64"),
    "dot of bf16": lambda: dot_of_bf16(8, 12, 20),
    "dot of bf16 along two axes": lambda: dot_of_bf16(8, 12, 20, 4),
    "large dot of bf16": lambda: dot_of_bf16(128, 2048, 128),
    "dot of dynamic length": lambda: dot(dynamic="k"),
    "dot of two axes": dot_of_two_axes,
    "convolution": convolution,
    "depthwise convolution": depthwise,
    "outer product": outer,
    "dynamic dot": lambda: dot(dynamic="mk"),
    "elements": elements,
    "elements of two sizes": lambda: elements(True),
    "transposed elements": transposed,
    "padded elements": padded,
    "reduction": reduction,
    "reduction of many": lambda: reduction(sums=64),
    "reduction of two sizes": lambda: reduction(wide=True),
    "reduction of nothing": lambda: reduction(0),
    "dynamic reduction": lambda: reduction(dynamic=True),
    "rows": rows,
    "long rows": lambda: rows(3000),
    "very long rows": lambda: rows(30_000),
    "dynamic rows": lambda: rows(dynamic=True),
    "rows with many reductions": many_reductions,
    "rows that may be empty": lambda: rows(dynamic=True, less=1),
    "attention": attention,
    "attention of two types": lambda: attention(weights="f64"),
    "attention of long rows": lambda: attention(1, 16, 5000),
    "scatter": scatter,
}
