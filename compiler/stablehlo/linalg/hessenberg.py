"""Hessenberg form by Householder reflections from both sides, tridiagonal for Hermitian matrices: gehrd, sytrd of
LAPACK.

Each iteration computes the reflection that zeroes a column below its subdiagonal. It applies the reflection to the
columns to the right from the left, then to all rows from the right: two matrix-vector products and an elementwise
update. The reflection vectors are stored below the subdiagonal. A Hermitian matrix is completed from the given
triangle; an upper triangle is handled as the lower one of the reversed matrix. Source: Golub and Van Loan, Matrix
Computations, 7.4.2 and 8.3.1.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from orchestrion.compiler.ir.attributes import DictAttr, IntegerAttr
from orchestrion.compiler.ir.core import Operation
from orchestrion.compiler.ir.dims import Size
from orchestrion.compiler.stablehlo.builders.loops import counted_loop
from orchestrion.compiler.stablehlo.builders.tensors import Tensor
from orchestrion.compiler.stablehlo.complex.parts import adjoint, conjugate, parts_of, tensor_of_parts, triangle
from orchestrion.compiler.stablehlo.ops.contraction import DotDimensions

from .householder import along_last_axis, reduce_column

#: The rows of a matrix times a vector, per batch.
_BY_ROWS: Final = DotDimensions((0,), (0,), (2,), (1,))


def gehrd(op: Operation, flags: dict[str, bool], a: Tensor) -> list[Tensor] | None:
    """LAPACK's gehrd: the Hessenberg form and the reflections. None if the call is malformed."""
    batch, order, columns = a.shape
    if order != columns or not _are_all_rows(op, order):
        return None
    return [*_reduced(a), a.int32(0, (batch,))]


def sytrd(op: Operation, flags: dict[str, bool], given: Tensor) -> list[Tensor] | None:
    """LAPACK's sytrd and hetrd: the tridiagonal form and the reflections. None if the call is malformed."""
    batch, order, columns = given.shape
    if order != columns:
        return None
    lower = flags["lower"]
    packed, taus = _reduced(_filled(given if lower else given.reverse(1, 2)))
    made = [packed, _diagonal(packed, 0), _diagonal(packed, 1), taus]
    if not lower:
        made = [made[0].reverse(1, 2), *(x.reverse(1) for x in made[1:])]
    return [triangle(given, lower).select(made[0], given), *made[1:], given.int32(0, (batch,))]


def _are_all_rows(op: Operation, order: Size) -> bool:
    config = op.get_as("backend_config", DictAttr)
    given = {key: value.value for key, value in config.items if isinstance(value, IntegerAttr)} if config else {}
    return given == {"low": 1, "high": order}


def _reduced(a: Tensor) -> list[Tensor]:
    """The Hessenberg form above the reflection vectors, and tau, of matrices [batch, n, n]."""
    batch, order, _ = a.shape
    inits = [a, a.zeros((batch, order - 1))]
    return inits if order == 1 else counted_loop(order - 1, inits, _reflect)


def _reflect(iteration: Tensor, carried: list[Tensor]) -> Sequence[Tensor]:
    return reduce_column(carried, iteration, iteration + 1, _from_right)


def _from_right(a: Tensor, vector: Tensor, tau: Tensor) -> Tensor:
    """a - tau (a v) v^H."""
    product = a.dot(vector, _BY_ROWS) * along_last_axis(tau, a.shape[:2])
    return a - along_last_axis(product, a.shape) * conjugate(vector).broadcast(a.shape, (0, 2))


def _filled(a: Tensor) -> Tensor:
    """The Hermitian matrix with this lower triangle; only the real parts of the diagonal count."""
    real = tensor_of_parts(a.type, parts_of(a)[:1])
    return a.iota(1).eq(a.iota(2)).select(real, triangle(a, True).select(a, adjoint(a)))


def _diagonal(a: Tensor, below: int) -> Tensor:
    """The real parts of the diagonal that is `below` places below the main one."""
    batch, order, _ = a.shape
    square = parts_of(a)[0].slice((0, below, 0), (batch, order, order - below))
    return square.iota(1).eq(square.iota(2)).select(square, square.zeros()).reduce((2,))
