"""LAPACK's condensed forms through SciPy: eigenvalues of general matrices, Schur, Hessenberg and tridiagonal form, QR
with column pivoting, and tridiagonal solves. Complex operands and results are pairs of real arrays. The rules of
`lapack` apply; its table includes these rows.
"""

from collections.abc import Sequence

import numpy as np

from .lapack_calls import TRIANGLE, batches, checked, give_up, lapack, matrix, results, square
from .registry import Array, Function, Spec
from .signature import Attributes, Shape, same, settings

_SIDES = {"left": False, "right": False}
_ROWS = {"low": 1, "high": 1}


def _check_geev(inputs: Sequence[Spec], outputs: Sequence[Spec], attributes: Attributes) -> None:
    given = settings(attributes, _SIDES)
    sides = given["left"] + given["right"]
    batch, order = _matrices(inputs, outputs, 3 + 2 * sides)
    results(outputs, *[(*batch, order)] * 2, *[inputs[0].shape] * 2 * sides, batch)


def _geev(inputs: Sequence[Array], outputs: Sequence[Array], attributes: Attributes) -> None:
    given, (*parts, info) = settings(attributes, _SIDES), outputs
    left, right = given["left"], given["right"]
    for index in batches(inputs[0]):
        a = _complex_matrix(inputs, index)
        if not np.isfinite(a).all():
            give_up(parts, info, index)
            continue
        *values, lv, rv, info[index] = lapack("geev", a.dtype)(a, compute_vl=left, compute_vr=right)
        found = [vectors for wanted, vectors in ((left, lv), (right, rv)) if wanted]
        if len(inputs) > 1:
            values, vectors = _real_and_imaginary(values), _real_and_imaginary(found)
        else:
            vectors = [part for packed in found for part in _parts(values[1], packed)]
        for out, made in zip(parts, (*values, *vectors), strict=True):
            out[index] = made


def _matrices(inputs: Sequence[Spec], outputs: Sequence[Spec], count: int) -> tuple[Shape, int]:
    """The batch shape and order of a, which is one real operand, or two: its real and its imaginary parts."""
    parts = 2 if len(inputs) > 1 else 1
    checked(inputs, outputs, parts, count, whole=1)
    for spec in inputs[1:]:
        same("the imaginary part", spec.shape, inputs[0].shape)
    return square(inputs[0])


def _complex_matrix(inputs: Sequence[Array], index: tuple[int, ...]) -> Array:
    """One matrix of the batch."""
    real, *imaginary = (part[index] for part in inputs)
    whole: Array = np.empty(real.shape, np.result_type(real, np.complex64)) if imaginary else real
    if imaginary:
        whole.real, whole.imag = real, *imaginary
    return whole


def _real_and_imaginary(values: Sequence[Array]) -> list[Array]:
    """The real and the imaginary part of each value."""
    return [part for value in values for part in (value.real, value.imag)]


def _parts(imaginary: Array, packed: Array) -> tuple[Array, Array]:
    """The real and imaginary parts of eigenvectors. LAPACK stores those of a conjugate pair in two columns: the real
    part, then the imaginary part of the first vector.
    """
    real, other, first = packed.copy(), np.zeros_like(packed), np.flatnonzero(imaginary > 0)
    other[:, first], other[:, first + 1] = packed[:, first + 1], -packed[:, first + 1]
    real[:, first + 1] = packed[:, first]
    return real, other


def _check_gees(inputs: Sequence[Spec], outputs: Sequence[Spec], attributes: Attributes) -> None:
    settings(attributes, {})
    with_vectors = len(outputs) > 3 + len(inputs)
    matrices = len(inputs) * (1 + with_vectors)
    batch, order = _matrices(inputs, outputs, matrices + 3)
    results(outputs, *[inputs[0].shape] * matrices, *[(*batch, order)] * 2, batch)


def _gees(inputs: Sequence[Array], outputs: Sequence[Array], attributes: Attributes) -> None:
    (*floats, info), with_vectors = outputs, len(outputs) > 3 + len(inputs)
    for index in batches(inputs[0]):
        a = _complex_matrix(inputs, index)
        if not np.isfinite(a).all():
            give_up(floats, info, index)
            continue
        form, _, *values, found, _, info[index] = lapack("gees", a.dtype)(_unsorted, a, compute_v=with_vectors)
        made = [form, *[found] * with_vectors, *values]
        for out, value in zip(floats, _real_and_imaginary(made) if len(inputs) > 1 else made, strict=True):
            out[index] = value


def _unsorted(*_: float) -> bool:
    """The selection callback that SciPy requires; it is not called without sorting."""
    return False


def _check_gehrd(inputs: Sequence[Spec], outputs: Sequence[Spec], attributes: Attributes) -> None:
    given = settings(attributes, _ROWS)
    checked(inputs, outputs, 1, 3, whole=1)
    batch, order = square(inputs[0])
    if not 1 <= given["low"] <= given["high"] <= order:
        raise ValueError(f"rows {given['low']} to {given['high']} of {order}")
    results(outputs, inputs[0].shape, (*batch, order - 1), batch)


def _gehrd(inputs: Sequence[Array], outputs: Sequence[Array], attributes: Attributes) -> None:
    given, (form, tau, info) = settings(attributes, _ROWS), outputs
    for index in batches(form):
        form[index], tau[index], info[index] = lapack("gehrd", form.dtype)(
            inputs[0][index], lo=given["low"] - 1, hi=given["high"] - 1
        )


def _check_sytrd(inputs: Sequence[Spec], outputs: Sequence[Spec], attributes: Attributes) -> None:
    settings(attributes, TRIANGLE)
    checked(inputs, outputs, 1, 5, whole=1)
    batch, order = square(inputs[0])
    results(outputs, inputs[0].shape, (*batch, order), *[(*batch, order - 1)] * 2, batch)


def _sytrd(inputs: Sequence[Array], outputs: Sequence[Array], attributes: Attributes) -> None:
    lower = settings(attributes, TRIANGLE)["lower"]
    for index in batches(inputs[0]):
        made = lapack("sytrd", inputs[0].dtype)(inputs[0][index], lower=lower)
        for out, value in zip(outputs, made, strict=True):
            out[index] = value


def _check_geqp3(inputs: Sequence[Spec], outputs: Sequence[Spec], attributes: Attributes) -> None:
    settings(attributes, {})
    call = checked(inputs[:1], (*outputs[::2], *outputs[1:2]), 1, 3, whole=1)
    batch, rows, columns = matrix(call.inputs[0])
    results(outputs, inputs[0].shape, (*batch, columns), (*batch, min(rows, columns)))


def _geqp3(inputs: Sequence[Array], outputs: Sequence[Array], attributes: Attributes) -> None:
    packed, order, tau = outputs
    for index in batches(packed):
        packed[index], order[index], tau[index], *_ = lapack("geqp3", packed.dtype)(inputs[0][index])


def _check_gtsv(inputs: Sequence[Spec], outputs: Sequence[Spec], attributes: Attributes) -> None:
    settings(attributes, {})
    checked(inputs, outputs, 4, 2, whole=1)
    batch, order, _ = matrix(inputs[3])
    for what, spec in zip(("dl", "d", "du"), inputs, strict=False):
        same(what, spec.shape, (*batch, order))
    results(outputs, inputs[3].shape, batch)


def _gtsv(inputs: Sequence[Array], outputs: Sequence[Array], attributes: Attributes) -> None:
    (below, diagonal, above, b), (x, info) = inputs, outputs
    if b.shape[-2] == 1:  # SciPy takes no diagonals without elements
        info[...] = diagonal[..., 0] == 0
        x[...] = b / np.where(diagonal == 0, 1, diagonal)[..., None]
        return
    for index in batches(b):
        *_, x[index], info[index] = lapack("gtsv", b.dtype)(
            below[index][1:], diagonal[index], above[index][:-1], b[index]
        )


FUNCTIONS: dict[str, Function] = {
    "gees": Function(
        _gees,
        _check_gees,
        "(a) -> (Schur form, vectors, real and imaginary parts of eigenvalues, info), or without vectors; "
        "of real and imaginary parts of a each result in two parts",
        workspace=4,
    ),
    "geev": Function(
        _geev,
        _check_geev,
        "(a) -> (real and imaginary parts of eigenvalues, then of left and of right vectors where wanted, info); "
        "left, right (false); a may be two operands, its real and its imaginary parts",
        workspace=8,
    ),
    "gehrd": Function(
        _gehrd,
        _check_gehrd,
        "(a) -> (Hessenberg form above Householder vectors, their factors tau, info); low, high: rows, counted from 1",
        workspace=2,
    ),
    "geqp3": Function(_geqp3, _check_geqp3, "(a) -> (as geqrf, the columns' order counted from 1, tau)", workspace=4),
    "gtsv": Function(
        _gtsv, _check_gtsv, "(lower, main, upper diagonal, b) -> (x of a x = b, info); all of the order's length", 2
    ),
    "sytrd": Function(
        _sytrd,
        _check_sytrd,
        "(a) -> (Householder vectors beside a tridiagonal form, its diagonals, their factors tau, info); lower",
        workspace=2,
    ),
}
