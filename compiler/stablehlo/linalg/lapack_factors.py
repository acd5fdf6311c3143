"""Calls of LAPACK for QR factors, eigenvalues and singular values, as loops: checks shapes, then calls `householder`
and others.

Each function returns the results of a call, or None if the call is malformed.
"""

from __future__ import annotations

from collections.abc import Sequence

from orchestrion.compiler.ir.core import Operation, Value
from orchestrion.compiler.ir.dims import Dim
from orchestrion.compiler.ir.rewriter import Rewriter
from orchestrion.compiler.stablehlo.builders.shape_builders import reshape
from orchestrion.compiler.stablehlo.complex.parts import adjoint
from orchestrion.compiler.stablehlo.ops.base import tensor_of

from .householder import apply_q, identity, qr_factors
from .jacobi_eigen import eigenvalues
from .jacobi_svd import singular_values
from .triangular import batch_of_matrices

Flags = dict[str, bool]
Shape = tuple[int, ...]


def matrix_shape(value: Value) -> tuple[Shape, int, int] | None:
    """Batch, rows and columns of matrices of static size with elements; None for others. The batch may be symbolic."""
    type = tensor_of(value)
    if type.rank < 2 or type.num_elements == 0 or any(isinstance(size, Dim) for size in type.shape[-2:]):
        return None
    *batch, rows, columns = type.shape
    return tuple(batch), rows, columns


def have_shapes(values: Sequence[Value], *shapes: Shape) -> bool:
    """Whether the values have these shapes."""
    return [tensor_of(value).shape for value in values] == [*shapes]


def batch_of_vectors(rewriter: Rewriter, value: Value) -> Value:
    """Vectors with one batch axis."""
    *batch, size = tensor_of(value).shape
    count = tensor_of(value).num_elements // size
    return reshape(rewriter, value, (count, size))


def geqrf(op: Operation, rewriter: Rewriter, flags: Flags) -> list[Value] | None:
    """LAPACK's geqrf: packed QR factors. None if the call is malformed."""
    shape = matrix_shape(op.operands[0]) if len(op.operands) == 1 else None
    if shape is None:
        return None
    batch, rows, columns = shape
    taus = (*batch, min(rows, columns))
    if not have_shapes(op.results, (*batch, rows, columns), taus):
        return None
    packed, found = qr_factors(rewriter, batch_of_matrices(rewriter, op.operands[0]))
    return [reshape(rewriter, packed, (*batch, rows, columns)), reshape(rewriter, found, taus)]


def orgqr(op: Operation, rewriter: Rewriter, flags: Flags) -> list[Value] | None:
    """LAPACK's orgqr: Q from packed reflections. None if the call is malformed."""
    shape = matrix_shape(op.operands[0]) if len(op.operands) == 2 else None
    if shape is None or not _are_reflections(op.operands):
        return None
    batch, rows, columns = shape
    if columns > rows or not have_shapes(op.results, (*batch, rows, columns)):
        return None
    packed = batch_of_matrices(rewriter, op.operands[0])
    made = apply_q(rewriter, packed, batch_of_vectors(rewriter, op.operands[1]), identity(rewriter, tensor_of(packed)))
    return [reshape(rewriter, made, (*batch, rows, columns))]


def ormqr(op: Operation, rewriter: Rewriter, flags: Flags) -> list[Value] | None:
    """c Q is (Q^H c^H)^H."""
    shape = matrix_shape(op.operands[2]) if len(op.operands) == 3 else None
    if shape is None or not _are_reflections(op.operands[:2]):
        return None
    batch, rows, columns = shape
    left = flags["left"]
    order = rows if left else columns
    if tensor_of(op.operands[0]).shape[:-1] != (*batch, order) or not have_shapes(op.results, (*batch, rows, columns)):
        return None
    packed, c = (batch_of_matrices(rewriter, op.operands[index]) for index in (0, 2))
    taus = batch_of_vectors(rewriter, op.operands[1])
    c = c if left else adjoint(rewriter, c)
    made = apply_q(rewriter, packed, taus, c, transposed=flags["trans"] == left)
    made = made if left else adjoint(rewriter, made)
    return [reshape(rewriter, made, (*batch, rows, columns))]


def syevd(op: Operation, rewriter: Rewriter, flags: Flags) -> list[Value] | None:
    """Three results include eigenvectors."""
    shape = matrix_shape(op.operands[0]) if len(op.operands) == 1 else None
    if shape is None or shape[1] != shape[2]:
        return None
    batch, order, _ = shape
    wanted = [(*batch, order, order)] if len(op.results) == 3 else []
    if not have_shapes(op.results, *wanted, (*batch, order), batch):
        return None
    vectors, values, info = eigenvalues(
        rewriter, batch_of_matrices(rewriter, op.operands[0]), flags["lower"], bool(wanted)
    )
    return [_shaped(rewriter, *both) for both in zip((*vectors, values, info), op.results, strict=True)]


def gesdd(op: Operation, rewriter: Rewriter, flags: Flags) -> list[Value] | None:
    """Four results include singular vectors: all of them if their matrices are square."""
    shape = matrix_shape(op.operands[0]) if len(op.operands) == 1 else None
    if shape is None:
        return None
    batch, rows, columns = shape
    least, with_vectors = min(rows, columns), len(op.results) == 4
    full = with_vectors and have_shapes(op.results[1:3], (*batch, rows, rows), (*batch, columns, columns))
    left, right = (rows, columns) if full else (least, least)
    wanted = [(*batch, rows, left), (*batch, right, columns)] if with_vectors else []
    if not have_shapes(op.results, (*batch, least), *wanted, batch):
        return None
    vectors, values, info = singular_values(rewriter, batch_of_matrices(rewriter, op.operands[0]), with_vectors, full)
    return [_shaped(rewriter, *both) for both in zip((values, *vectors, info), op.results, strict=True)]


def _shaped(rewriter: Rewriter, value: Value, result: Value) -> Value:
    return reshape(rewriter, value, tensor_of(result).shape)


def _are_reflections(given: Sequence[Value]) -> bool:
    """Whether these are packed reflections and one factor for each."""
    shape, taus = matrix_shape(given[0]), tensor_of(given[1]).shape
    if shape is None or tensor_of(given[0]).element != tensor_of(given[1]).element or not taus:
        return False
    batch, rows, columns = shape
    return taus[:-1] == batch and 0 < taus[-1] <= min(rows, columns)
