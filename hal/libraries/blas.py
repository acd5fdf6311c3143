"""BLAS through SciPy, for f32 and f64 matrices in row-major order.

The `doc` of each row of `FUNCTIONS` lists the operands and attributes; an operand in brackets is optional. No
transposed copies are made: a row-major matrix is the transpose of a column-major one, which BLAS expects.
"""

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np

from .registry import Array, Function, Spec
from .signature import Attributes, Call, Shape, same, scipy_module, settings

_GEMM = {"alpha": 1.0, "beta": 0.0, "trans_a": False, "trans_b": False}
_GEMV = {"alpha": 1.0, "beta": 0.0, "trans_a": False}
_SCALED = {"alpha": 1.0}
_TRSM = {"alpha": 1.0, "left": True, "lower": True, "trans_a": False, "unit_diagonal": False}
#: NumPy's type character -> the prefix of BLAS routines
_LETTERS = {"f": "s", "d": "d", "F": "c", "D": "z"}


@cache
def routine(name: str, dtype: np.dtype[Any], package: str = "linalg.blas") -> Callable[..., Any]:
    """SciPy's routine for an element type: `gemm` becomes `sgemm`, `dgemm`, `cgemm` or `zgemm`."""
    found: Callable[..., Any] = getattr(scipy_module(package), _LETTERS[dtype.char] + name)
    return found


def store(out: Array, made: Array) -> None:
    """Copy a routine's result into `out`, unless SciPy computed it there."""
    if not np.may_share_memory(out, made):
        out[...] = made


def _transposed_shape(shape: Shape, transposed: bool) -> Shape:
    return shape[::-1] if transposed else shape


def _checked(inputs: Sequence[Spec], outputs: Sequence[Spec], least: int, most: int) -> Call:
    scipy_module("linalg.blas")
    call = Call(inputs, outputs)
    call.count(least, most)
    call.floats((*inputs, *outputs))
    return call


def _check_added(call: Call, place: int, beta: float, wanted: Shape) -> None:
    """Check the result's shape and the optional addend, which is required if `beta` is not 0."""
    same("the result", call.outputs[0].shape, wanted)
    if len(call.inputs) > place:
        same(f"operand {place}", call.inputs[place].shape, wanted)
    elif beta:
        raise ValueError(f"beta is {beta}, and there is no operand {place} to add")


def _check_gemm(inputs: Sequence[Spec], outputs: Sequence[Spec], attributes: Attributes) -> None:
    call, given = _checked(inputs, outputs, 2, 3), settings(attributes, _GEMM)
    rows, depth = _transposed_shape(call.rank("a", inputs[0], 2), given["trans_a"])
    inner, columns = _transposed_shape(call.rank("b", inputs[1], 2), given["trans_b"])
    if depth != inner:
        raise ValueError(f"{depth} columns of a, {inner} rows of b")
    _check_added(call, 2, given["beta"], (rows, columns))


def _gemm(inputs: Sequence[Array], outputs: Sequence[Array], attributes: Attributes) -> None:
    given, out = settings(attributes, _GEMM), outputs[0]
    a, b = inputs[:2]
    beta = given["beta"] if len(inputs) > 2 else 0.0
    if beta:
        out[...] = inputs[2]
    # in column-major order, out = a b reads out^T = b^T a^T
    made = routine("gemm", out.dtype)(
        given["alpha"], b.T, a.T, beta, out.T, trans_a=given["trans_b"], trans_b=given["trans_a"], overwrite_c=1
    )
    store(out.T, made)


def _check_gemv(inputs: Sequence[Spec], outputs: Sequence[Spec], attributes: Attributes) -> None:
    call, given = _checked(inputs, outputs, 2, 3), settings(attributes, _GEMV)
    rows, columns = _transposed_shape(call.rank("a", inputs[0], 2), given["trans_a"])
    same("x", inputs[1].shape, (columns,))
    _check_added(call, 2, given["beta"], (rows,))


def _gemv(inputs: Sequence[Array], outputs: Sequence[Array], attributes: Attributes) -> None:
    given, out = settings(attributes, _GEMV), outputs[0]
    beta = given["beta"] if len(inputs) > 2 else 0.0
    if beta:
        out[...] = inputs[2]
    made = routine("gemv", out.dtype)(
        given["alpha"], inputs[0].T, inputs[1], beta, out, trans=not given["trans_a"], overwrite_y=1
    )
    store(out, made)


def _check_ger(inputs: Sequence[Spec], outputs: Sequence[Spec], attributes: Attributes) -> None:
    call = _checked(inputs, outputs, 2, 3)
    settings(attributes, _SCALED)
    _check_added(call, 2, 0.0, (*call.rank("x", inputs[0], 1), *call.rank("y", inputs[1], 1)))


def _ger(inputs: Sequence[Array], outputs: Sequence[Array], attributes: Attributes) -> None:
    out = outputs[0]
    out[...] = inputs[2] if len(inputs) > 2 else 0
    alpha = settings(attributes, _SCALED)["alpha"]
    store(out.T, routine("ger", out.dtype)(alpha, inputs[1], inputs[0], a=out.T, overwrite_a=1))


def _check_axpy(inputs: Sequence[Spec], outputs: Sequence[Spec], attributes: Attributes) -> None:
    call = _checked(inputs, outputs, 2, 2)
    settings(attributes, _SCALED)
    wanted = call.rank("x", inputs[0], 1)
    same("y", inputs[1].shape, wanted)
    same("the result", outputs[0].shape, wanted)


def _axpy(inputs: Sequence[Array], outputs: Sequence[Array], attributes: Attributes) -> None:
    out = outputs[0]
    out[...] = inputs[1]
    store(out, routine("axpy", out.dtype)(inputs[0], out, a=settings(attributes, _SCALED)["alpha"]))


def _check_dot(inputs: Sequence[Spec], outputs: Sequence[Spec], attributes: Attributes) -> None:
    call = _checked(inputs, outputs, 2, 2)
    settings(attributes, {})
    same("y", inputs[1].shape, call.rank("x", inputs[0], 1))
    same("the result", outputs[0].shape, ())


def _dot(inputs: Sequence[Array], outputs: Sequence[Array], attributes: Attributes) -> None:
    outputs[0][...] = routine("dot", outputs[0].dtype)(*inputs)


def _check_norm(inputs: Sequence[Spec], outputs: Sequence[Spec], attributes: Attributes) -> None:
    call = _checked(inputs, outputs, 1, 1)
    settings(attributes, {})
    call.rank("x", inputs[0], 1)
    same("the result", outputs[0].shape, ())


def _nrm2(inputs: Sequence[Array], outputs: Sequence[Array], attributes: Attributes) -> None:
    outputs[0][...] = routine("nrm2", outputs[0].dtype)(inputs[0])


def _asum(inputs: Sequence[Array], outputs: Sequence[Array], attributes: Attributes) -> None:
    outputs[0][...] = routine("asum", outputs[0].dtype)(inputs[0])


def _check_trsm(inputs: Sequence[Spec], outputs: Sequence[Spec], attributes: Attributes) -> None:
    _checked(inputs, outputs, 2, 2)
    given = settings(attributes, _TRSM)
    if len(inputs[1].shape) < 2:
        raise ValueError(f"b has shape {list(inputs[1].shape)}, expected rank 2 at least")
    *batch, rows, columns = inputs[1].shape
    order = rows if given["left"] else columns
    same("a", inputs[0].shape, (*batch, order, order))
    same("the result", outputs[0].shape, inputs[1].shape)


def _trsm(inputs: Sequence[Array], outputs: Sequence[Array], attributes: Attributes) -> None:
    given, out = settings(attributes, _TRSM), outputs[0]
    out[...] = inputs[1]
    solve = routine("trsm", out.dtype)
    for index in np.ndindex(out.shape[:-2]):
        # in column-major order, a x = b reads x^T a^T = b^T: side and triangle change, the transposition does not
        made = solve(
            given["alpha"],
            inputs[0][index].T,
            out[index].T,
            side=int(given["left"]),
            lower=int(not given["lower"]),
            trans_a=int(given["trans_a"]),
            diag=int(given["unit_diagonal"]),
            overwrite_b=1,
        )
        store(out[index].T, made)


FUNCTIONS: dict[str, Function] = {
    "asum": Function(_asum, _check_norm, "(x) -> sum of |x|"),
    "axpy": Function(_axpy, _check_axpy, "(x, y) -> alpha x + y"),
    "dot": Function(_dot, _check_dot, "(x, y) -> sum of x y"),
    "gemm": Function(_gemm, _check_gemm, "(a, b[, c]) -> alpha a b + beta c; trans_a, trans_b"),
    "gemv": Function(_gemv, _check_gemv, "(a, x[, y]) -> alpha a x + beta y; trans_a"),
    "ger": Function(_ger, _check_ger, "(x, y[, a]) -> alpha x y^T + a"),
    "nrm2": Function(_nrm2, _check_norm, "(x) -> square root of the sum of x^2"),
    "trsm": Function(
        _trsm,
        _check_trsm,
        "(a, b) -> the x of a x = alpha b, or of x a = alpha b with left = false; a is triangular, its other triangle "
        "is not read; lower, trans_a, unit_diagonal; leading axes are batches",
    ),
}
