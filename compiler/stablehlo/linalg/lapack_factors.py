"""Calls of LAPACK for QR factors, eigenvalues and singular values, as loops by `householder` and others.

Operands and results have one batch axis (`lapack_loops.py`). A function returns None for a malformed call.
"""

from __future__ import annotations

from orchestrion.compiler.ir.core import Operation
from orchestrion.compiler.stablehlo.builders.tensors import Tensor
from orchestrion.compiler.stablehlo.complex.parts import adjoint
from orchestrion.compiler.stablehlo.ops.base import tensor_of

from .householder import apply_q, identity, qr_factors
from .jacobi_eigen import eigenvalues
from .jacobi_svd import singular_values

Flags = dict[str, bool]


def geqrf(op: Operation, flags: Flags, a: Tensor) -> list[Tensor]:
    """LAPACK's geqrf: packed QR factors."""
    return [*qr_factors(a)]


def orgqr(op: Operation, flags: Flags, packed: Tensor, taus: Tensor) -> list[Tensor] | None:
    """LAPACK's orgqr: Q from packed reflections. None if the call is malformed."""
    _, rows, columns = packed.shape
    if columns > rows or not _are_reflections(packed, taus):
        return None
    return [apply_q(packed, taus, identity(packed))]


def ormqr(op: Operation, flags: Flags, packed: Tensor, taus: Tensor, c: Tensor) -> list[Tensor] | None:
    """LAPACK's ormqr and unmqr: Q c, or c Q, which is (Q^H c^H)^H. None if the call is malformed."""
    left = flags["left"]
    if len(c.shape) != 3 or not _are_reflections(packed, taus) or packed.shape[1] != c.shape[1 if left else 2]:
        return None
    made = apply_q(packed, taus, c if left else adjoint(c), transposed=flags["trans"] == left)
    return [made if left else adjoint(made)]


def syevd(op: Operation, flags: Flags, a: Tensor) -> list[Tensor] | None:
    """LAPACK's syevd and heevd. Three results include eigenvectors. None if the call is malformed."""
    if a.shape[1] != a.shape[2]:
        return None
    vectors, values, info = eigenvalues(a, flags["lower"], len(op.results) == 3)
    return [*vectors, values, info]


def gesdd(op: Operation, flags: Flags, a: Tensor) -> list[Tensor]:
    """LAPACK's gesdd. Four results include singular vectors: all of them if their matrices are square."""
    with_vectors = len(op.results) == 4
    full = with_vectors and all(
        tensor_of(x).shape[-2:] == (n, n) for x, n in zip(op.results[1:3], a.shape[1:], strict=True)
    )
    vectors, values, info = singular_values(a, with_vectors, full)
    return [values, *vectors, info]


def _are_reflections(packed: Tensor, taus: Tensor) -> bool:
    """Whether these are packed reflections and one factor for each."""
    return len(packed.shape) == 3 and len(taus.shape) == 2 and 0 < taus.shape[1] <= min(packed.shape[1:])
