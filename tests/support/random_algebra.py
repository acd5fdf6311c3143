"""Rules of random programs (see `random_ops.py`) on matrices, signals and batches, in floats: all of it is near.

Operands are small numbers, matrices to be inverted have large diagonals, so that a tolerance fits the results.
"""

from math import prod

import numpy as np
from random_body import Body, Value
from random_ops import Rule
from random_types import FLOATS
from stablehlo_text import ints


def _matrix(b: Body, dtype: str) -> tuple[Value, int]:
    """A batch of square matrices with small elements off the diagonal, and their size."""
    n = b.rng.choice((1, 2, 3, 4, 6))
    shape = (*b.rng.choice(((), (), (2,), (1, 3))), n, n)
    x = b.tame(b.of(dtype, shape, near=False))
    tenth = b.op("stablehlo.multiply", [x, b.number(0.1, dtype, shape)], shape, dtype)
    diagonal = np.broadcast_to(2.0 * np.eye(n), shape)
    return b.op("stablehlo.add", [tenth, b.constant(diagonal, dtype)], shape, dtype, near=True), n


def _cholesky(b: Body) -> None:
    dtype = b.rng.choice(FLOATS)
    x, n = _matrix(b, dtype)
    rank = len(x.shape)
    batch = list(range(rank - 2))
    given = f"lhs_batching_dimensions = {batch}, rhs_batching_dimensions = {batch}, " if batch else ""
    numbers = f"{given}lhs_contracting_dimensions = [{rank - 1}], rhs_contracting_dimensions = [{rank - 1}]"
    square = b.op(
        "stablehlo.dot_general", [x, x], x.shape, dtype, f"dot_dimension_numbers = #stablehlo.dot<{numbers}>", near=True
    )
    lower = b.rng.random() < 0.5
    y = b.op("stablehlo.cholesky", [square], x.shape, dtype, f"lower = {str(lower).lower()}", near=True)
    b.values.remove(y)  # the other triangle is left open
    rows, columns = (b.op("stablehlo.iota", [], x.shape, "i32", f"iota_dimension = {rank - i} : i64") for i in (2, 1))
    kept = b.compare(rows, columns, "GE" if lower else "LE")
    b.op("stablehlo.select", [kept, y, b.like(y, 0)], x.shape, dtype, near=True)


def _triangular_solve(b: Body) -> None:
    rng, dtype = b.rng, b.rng.choice(FLOATS)
    a, n = _matrix(b, dtype)
    left = rng.random() < 0.5
    m = rng.choice((1, 2, 5))
    y = b.tame(b.of(dtype, (*a.shape[:-2], *((n, m) if left else (m, n))), near=False))
    words = {"left_side": left, "lower": rng.random() < 0.5, "unit_diagonal": rng.random() < 0.3}
    given = ", ".join(f"{name} = {str(value).lower()}" for name, value in words.items())
    transposed = rng.choice(("NO_TRANSPOSE", "TRANSPOSE", "ADJOINT"))
    b.op(
        "stablehlo.triangular_solve", [a, y], y.shape, dtype,
        f"{given}, transpose_a = #stablehlo<transpose {transposed}>", near=True,
    )  # fmt: skip


def _fft(b: Body) -> None:
    """One to three last axes of any length, forward and back, complex and real."""
    rng, real = b.rng, b.rng.choice(FLOATS)
    kind = rng.choice(("FFT", "IFFT", "RFFT", "IRFFT"))
    axes = rng.randint(1, 3)
    lengths = [rng.choice((1, 2, 3, 4, 5, 8, 12)) for _ in range(axes)]
    batch = rng.choice(((), (2,), (3,)))
    half = [*lengths[:-1], lengths[-1] // 2 + 1]
    ins = half if kind == "IRFFT" else lengths
    out = half if kind == "RFFT" else lengths
    x = b.of(real if kind == "RFFT" else f"complex<{real}>", (*batch, *ins), near=False)
    made = real if kind == "IRFFT" else f"complex<{real}>"
    attributes = f"fft_type = #stablehlo<fft_type {kind}>, fft_length = {ints(lengths)}"
    b.op("stablehlo.fft", [b.tame(x)], (*batch, *out), made, attributes, near=True)


def _batch_norm(b: Body) -> None:
    rng, dtype = b.rng, b.rng.choice(FLOATS)
    x = b.pick(lambda v: v.dtype == dtype and 2 <= len(v.shape) <= 4 and 1 < v.size < 500 and not v.near)
    if x is None:
        return
    axis = rng.randrange(len(x.shape))
    count, features = x.size // x.shape[axis], (x.shape[axis],)
    scale, offset, mean = (b.tame(b.of(dtype, features, near=False)) for _ in range(3))
    attributes = f"epsilon = 5.000000e-01 : f32, feature_index = {axis} : i64"
    x = b.tame(x)
    if rng.random() < 0.5:
        square = b.op("stablehlo.multiply", [mean, mean], features, dtype)
        b.op("stablehlo.batch_norm_inference", [x, scale, offset, mean, square], x.shape, dtype, attributes, near=True)
    elif count > 1:
        outs = [Value(b.fresh(), shape, dtype, True) for shape in (x.shape, features, features)]
        b.emit("stablehlo.batch_norm_training", [x, scale, offset], outs, attributes)


def _dynamic(b: Body) -> None:
    """Ops with shapes as operands, which are constants here."""
    rng = b.rng
    x = b.pick(lambda v: 0 < v.size < 200 and len(v.shape) < 4)
    if x is None:
        return
    index = rng.choice(("i32", "i64"))
    kind = rng.choice(("reshape", "broadcast", "iota", "pad", "slice"))
    rank = len(x.shape)
    if kind == "reshape":
        shape = (x.size,) if rng.random() < 0.5 else (*reversed(x.shape), 1)
        b.op("stablehlo.dynamic_reshape", [x, b.constant(np.array(shape), index)], shape, x.dtype, near=x.near)
    elif kind == "broadcast":
        shape = (*rng.choice(((), (2,), (3, 1))), *x.shape)
        to = ints(range(len(shape) - rank, len(shape)))
        b.op(
            "stablehlo.dynamic_broadcast_in_dim", [x, b.constant(np.array(shape, int), index)], shape, x.dtype,
            f"broadcast_dimensions = {to}", near=x.near,
        )  # fmt: skip
    elif kind == "iota" and rank:
        shape = x.shape
        b.op(
            "stablehlo.dynamic_iota", [b.constant(np.array(shape), index)], shape, "i32",
            f"iota_dimension = {rng.randrange(rank)} : i64", near=False,
        )  # fmt: skip
    elif kind == "pad" and rank:
        parts = [[rng.randint(0, 2) for _ in x.shape] for _ in range(3)]
        shape = tuple(p + n + max(n - 1, 0) * i + q for n, p, q, i in zip(x.shape, *parts, strict=True))
        if prod(shape) < 5000:
            operands = [b.constant(np.array(part), index) for part in parts]
            b.op("stablehlo.dynamic_pad", [x, b.of(x.dtype, (), near=x.near), *operands], shape, x.dtype, near=x.near)
    elif rank:
        starts = [rng.randrange(n) for n in x.shape]
        limits = [rng.randint(start + 1, n) for start, n in zip(starts, x.shape, strict=True)]
        strides = [rng.choice((1, 1, 2)) for _ in x.shape]
        shape = tuple(-(-(z - a) // s) for a, z, s in zip(starts, limits, strides, strict=True))
        operands = [b.constant(np.array(part), index) for part in (starts, limits, strides)]
        b.op("stablehlo.real_dynamic_slice", [x, *operands], shape, x.dtype, near=x.near)


ALGEBRA: tuple[Rule, ...] = (_cholesky, _triangular_solve, _fft, _fft, _batch_norm)
DYNAMIC: tuple[Rule, ...] = (_dynamic,)
