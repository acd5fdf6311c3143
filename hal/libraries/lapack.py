"""LAPACK for f32 and f64 matrices in row-major order; leading axes are batches. `syevd` and `gesdd` are those of NumPy,
the others come from SciPy.

The `doc` of each row of `FUNCTIONS` lists operands, results and attributes. `info` is LAPACK's, an i32 per matrix: 0 on
success, above 0 if the matrix is singular, not positive definite, or the algorithm does not converge. Where LAPACK may
not terminate for a matrix with NaN or infinity (`syevd`, `gesdd`), the result is NaN and `info` is 1. SciPy allocates
workspaces, and makes copies as it needs.
"""

from collections.abc import Sequence
from typing import Literal

import numpy as np

from . import lapack_forms
from .blas import store
from .lapack_calls import TRIANGLE, batches, checked, give_up, lapack, matrix, results, square
from .registry import Array, Function, Spec
from .signature import Attributes, Shape, same, settings

_PRODUCT = {"left": True, "trans": False}


def _check_potrf(inputs: Sequence[Spec], outputs: Sequence[Spec], attributes: Attributes) -> None:
    checked(inputs, outputs, 1, 2, whole=1)
    settings(attributes, TRIANGLE)
    results(outputs, inputs[0].shape, square(inputs[0])[0])


def _potrf(inputs: Sequence[Array], outputs: Sequence[Array], attributes: Attributes) -> None:
    lower, (out, info) = settings(attributes, TRIANGLE)["lower"], outputs
    out[...] = inputs[0]
    for index in batches(out):
        # the lower triangle in row-major order is the upper one in column-major order
        made, info[index] = lapack("potrf", out.dtype)(out[index].T, lower=not lower, clean=0, overwrite_a=1)
        store(out[index].T, made)


def _check_getrf(inputs: Sequence[Spec], outputs: Sequence[Spec], attributes: Attributes) -> None:
    checked(inputs, outputs, 1, 3, whole=2)
    settings(attributes, {})
    batch, rows, columns = matrix(inputs[0])
    results(outputs, inputs[0].shape, (*batch, min(rows, columns)), batch)


def _getrf(inputs: Sequence[Array], outputs: Sequence[Array], attributes: Attributes) -> None:
    out, pivots, info = outputs
    for index in batches(out):
        out[index], found, info[index] = lapack("getrf", out.dtype)(inputs[0][index])
        pivots[index] = found + 1  # SciPy counts from 0


def _check_gesv(inputs: Sequence[Spec], outputs: Sequence[Spec], attributes: Attributes) -> None:
    checked(inputs, outputs, 2, 2, whole=1)
    settings(attributes, {})
    batch, order = square(inputs[0])
    same("b", inputs[1].shape, (*batch, order, *inputs[1].shape[-1:]))
    results(outputs, inputs[1].shape, batch)


def _gesv(inputs: Sequence[Array], outputs: Sequence[Array], attributes: Attributes) -> None:
    out, info = outputs
    for index in batches(out):
        _, _, out[index], info[index] = lapack("gesv", out.dtype)(inputs[0][index], inputs[1][index])


def _check_geqrf(inputs: Sequence[Spec], outputs: Sequence[Spec], attributes: Attributes) -> None:
    checked(inputs, outputs, 1, 2)
    settings(attributes, {})
    batch, rows, columns = matrix(inputs[0])
    results(outputs, inputs[0].shape, (*batch, min(rows, columns)))


def _geqrf(inputs: Sequence[Array], outputs: Sequence[Array], attributes: Attributes) -> None:
    out, tau = outputs
    for index in batches(out):
        out[index], tau[index], *_ = lapack("geqrf", out.dtype)(inputs[0][index])


def _check_orgqr(inputs: Sequence[Spec], outputs: Sequence[Spec], attributes: Attributes) -> None:
    checked(inputs, outputs, 2, 1)
    settings(attributes, {})
    batch, rows, columns = matrix(inputs[0])
    same("tau", inputs[1].shape, (*batch, *inputs[1].shape[-1:]))
    if not inputs[1].shape or not inputs[1].shape[-1] <= columns <= rows:
        raise ValueError(f"tau of shape {list(inputs[1].shape)} for {rows} rows and {columns} columns")
    results(outputs, inputs[0].shape)


def _orgqr(inputs: Sequence[Array], outputs: Sequence[Array], attributes: Attributes) -> None:
    for index in batches(outputs[0]):
        outputs[0][index] = lapack("orgqr", outputs[0].dtype)(inputs[0][index], inputs[1][index])[0]


def _check_ormqr(inputs: Sequence[Spec], outputs: Sequence[Spec], attributes: Attributes) -> None:
    checked(inputs, outputs, 3, 1)
    left = settings(attributes, _PRODUCT)["left"]
    batch, rows, columns = matrix(inputs[2])
    order = rows if left else columns
    same("a", inputs[0].shape, (*batch, order, *inputs[0].shape[-1:]))
    same("tau", inputs[1].shape, (*batch, *inputs[1].shape[-1:]))
    if not inputs[1].shape or not inputs[1].shape[-1] <= min(order, inputs[0].shape[-1]):
        raise ValueError(f"tau of shape {list(inputs[1].shape)} for a of shape {list(inputs[0].shape)}")
    results(outputs, inputs[2].shape)


def _ormqr(inputs: Sequence[Array], outputs: Sequence[Array], attributes: Attributes) -> None:
    given, (a, tau, c) = settings(attributes, _PRODUCT), inputs
    side, trans = "L" if given["left"] else "R", "T" if given["trans"] else "N"
    for index in batches(c):
        made, _, info = lapack("ormqr", c.dtype)(
            side, trans, a[index][:, : tau.shape[-1]], tau[index], c[index], _ormqr_workspace(c.shape)
        )
        if info:
            raise ValueError(f"ormqr gives info {info}")
        outputs[0][index] = made


def _ormqr_workspace(shape: Shape) -> int:
    """The least workspace of LAPACK in elements: the larger of rows and columns, for blocks of 32 columns."""
    return 32 * max(shape[-2:])


def _check_syevd(inputs: Sequence[Spec], outputs: Sequence[Spec], attributes: Attributes) -> None:
    checked(inputs, outputs, 1, 3 if len(outputs) > 2 else 2, whole=1, scipy=False)
    settings(attributes, TRIANGLE)
    batch, order = square(inputs[0])
    vectors = [inputs[0].shape] if len(outputs) > 2 else []
    results(outputs, *vectors, (*batch, order), batch)


def _syevd(inputs: Sequence[Array], outputs: Sequence[Array], attributes: Attributes) -> None:
    lower, (*vectors, values, info) = settings(attributes, TRIANGLE)["lower"], outputs
    for index in batches(inputs[0]):
        if not np.isfinite(inputs[0][index]).all():
            give_up((*vectors, values), info, index)
            continue
        triangle: Literal["L", "U"] = "L" if lower else "U"
        try:
            if vectors:
                values[index], vectors[0][index] = np.linalg.eigh(inputs[0][index], triangle)
            else:
                values[index] = np.linalg.eigvalsh(inputs[0][index], triangle)
            info[index] = 0
        except np.linalg.LinAlgError:  # it does not converge
            give_up((*vectors, values), info, index)


def _check_gesdd(inputs: Sequence[Spec], outputs: Sequence[Spec], attributes: Attributes) -> None:
    checked(inputs, outputs, 1, 4 if len(outputs) > 2 else 2, whole=1, scipy=False)
    settings(attributes, {})
    batch, rows, columns = matrix(inputs[0])
    least = min(rows, columns)
    if len(outputs) == 2:
        results(outputs, (*batch, least), batch)
        return
    full = outputs[1].shape == (*batch, rows, rows) and outputs[2].shape == (*batch, columns, columns)
    left, right = (rows, columns) if full else (least, least)
    results(outputs, (*batch, least), (*batch, rows, left), (*batch, right, columns), batch)


def _gesdd(inputs: Sequence[Array], outputs: Sequence[Array], attributes: Attributes) -> None:
    values, *vectors, info = outputs
    full = (
        bool(vectors) and vectors[0].shape[-1] == vectors[0].shape[-2] and vectors[1].shape[-1] == vectors[1].shape[-2]
    )
    for index in batches(inputs[0]):
        if not np.isfinite(inputs[0][index]).all():
            give_up((values, *vectors), info, index)
            continue
        try:
            if vectors:
                vectors[0][index], values[index], vectors[1][index] = np.linalg.svd(inputs[0][index], full)
            else:
                values[index] = np.linalg.svd(inputs[0][index], compute_uv=False)
            info[index] = 0
        except np.linalg.LinAlgError:  # it does not converge
            give_up((values, *vectors), info, index)


FUNCTIONS: dict[str, Function] = {
    **lapack_forms.FUNCTIONS,
    "geqrf": Function(_geqrf, _check_geqrf, "(a) -> (r above Householder vectors, their factors tau)", 2),
    "gesdd": Function(
        _gesdd,
        _check_gesdd,
        "(a) -> (singular values, u, v^T, info) or (singular values, info); u, v^T whole or thin",
        workspace=6,
    ),
    "gesv": Function(_gesv, _check_gesv, "(a, b) -> (the x of a x = b, info)", 1),
    "getrf": Function(_getrf, _check_getrf, "(a) -> (l below u, rows exchanged counted from 1, info)", 1),
    "orgqr": Function(_orgqr, _check_orgqr, "(what geqrf gives, tau) -> the q of a = q r", 2),
    "ormqr": Function(
        _ormqr,
        _check_ormqr,
        "(what geqrf gives, tau, c) -> q c, or c q with left = false; q transposed with trans",
        workspace=3,
    ),
    "potrf": Function(
        _potrf, _check_potrf, "(a) -> (Cholesky factor, info); lower; the other triangle stays what it was"
    ),
    "syevd": Function(
        _syevd,
        _check_syevd,
        "(a) -> (eigenvectors, eigenvalues, info) or (eigenvalues, info) of a symmetric a; lower",
        workspace=4,
    ),
}
