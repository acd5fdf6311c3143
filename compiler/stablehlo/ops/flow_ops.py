"""Ops of the dialect `flow` that legalisation makes already: sizes, Fourier transforms, triangular solves.

Every `fft` becomes transforms of lines that fit into the shared memory of a workgroup. A complex number is two
neighbouring real numbers along the last axis. One dispatch transforms a line in passes, one for each factor of its
length (`radices`). The length therefore has small prime factors only, and is at most `longest`. A solve is for a matrix
of at most `BLOCK` rows; larger ones are solved by blocks.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Final

from orchestrion.compiler.ir import dims
from orchestrion.compiler.ir.attributes import BoolAttr, DenseArray, IntegerAttr
from orchestrion.compiler.ir.declare import attr, operand
from orchestrion.compiler.ir.types import TensorType
from orchestrion.schema.dtypes import FLOAT, SIGNED, UNSIGNED

from .base import OperandOp, PureOp, ShapeError, dtype_of, tensor_of

#: bytes of shared memory of a workgroup that every device has, as Vulkan guarantees
SHARED_BYTES: Final = 16 << 10
#: greatest factor of a pass that is no prime
MAX_RADIX: Final = 8
#: supported prime factors
PRIMES: Final = (2, 3, 5, 7, 11, 13)
#: most rows and columns of the matrix: a workgroup has that many invocations, one per row
BLOCK: Final = 32


class Size(PureOp):
    """A size as a scalar of an integer type, modulo its range. Devices compute with it."""

    name = "flow.size"
    value = attr(DenseArray)

    @property
    def size(self) -> dims.Size:
        return self.value.sizes[0]

    def infer(self) -> Sequence[TensorType]:
        type = tensor_of(self.out)
        if len(self.value) != 1 or dtype_of(self.out).kind not in (SIGNED, UNSIGNED):
            raise ShapeError(f"value {self.value} must be one size, the result {type} a scalar of integers")
        return [type.with_shape(())]


class LineFft(OperandOp):
    """Transforms the lines along axis `dimension` into frequencies, or back if `inverse`, divided by the length n.

    The last axis holds the parts of a number: two, or one for real numbers. The imaginary parts of real operands are
    zero; a real result has the real parts only. If the result is shorter along the axis, it has the first numbers.
    `roots` holds e^(-2 pi i k / n) for every k below n, conjugated if `inverse`.
    """

    name = "flow.fft"
    roots = operand(TensorType)
    dimension = attr(IntegerAttr)
    inverse = attr(BoolAttr)

    @property
    def axis(self) -> int:
        return self.dimension.value

    @property
    def length(self) -> int:
        """Numbers of a line."""
        return int(tensor_of(self.operand_).shape[self.axis])

    def infer(self) -> Sequence[TensorType]:
        source, out = tensor_of(self.operand_), tensor_of(self.out)
        if dtype_of(self.operand_).kind != FLOAT or source.rank < 2 or source.shape[-1] not in (1, 2):
            raise ShapeError(f"takes floats, one or two in the last of several axes, not {source}")
        if not 0 <= self.axis < source.rank - 1:
            raise ShapeError(f"dimension {self.axis} is no axis of {source} but the last")
        length, most = source.shape[self.axis], longest(dtype_of(self.operand_).itemsize)
        if length not in range(2, most + 1) or not radices(int(length)):
            primes = ", ".join(map(str, PRIMES))
            raise ShapeError(f"lines of {length} are not of 2 to {most} numbers with prime factors of {primes}")
        if tensor_of(self.roots) != source.with_shape((self.length, 2)):
            raise ShapeError(f"roots must be {source.with_shape((self.length, 2))}, are {self.roots.type}")
        shape = list(source.shape)
        if out.rank == source.rank:  # how much is wanted, the result says
            shape[self.axis] = min(max(out.shape[self.axis], 1), self.length)
            shape[-1] = 1 if out.shape[-1] == 1 else 2
        return [source.with_shape(tuple(shape))]


def longest(itemsize: int) -> int:
    """Greatest length of a line, in complex numbers, if a part of a number has `itemsize` bytes."""
    return SHARED_BYTES // (2 * itemsize)


@cache
def radices(length: int) -> tuple[int, ...] | None:
    """Factors of a length, descending: as few, then as small, as possible. None for an unsupported prime factor."""
    if length == 1:
        return ()
    found: list[tuple[int, ...]] = []
    for radix in sorted({*range(2, MAX_RADIX + 1), *PRIMES}):
        rest = radices(length // radix) if length % radix == 0 else None
        if rest is not None:
            found.append(tuple(sorted((radix, *rest), reverse=True)))
    return min(found, key=lambda row: (len(row), sum(row)), default=None)


class RowSolve(PureOp):
    """Computes, per batch, the rows x with x L^T = a row of `rows`. L is the lower triangle of `matrix`, or, if
    `factor`, the lower Cholesky factor of the symmetric matrix with that lower triangle. The upper triangle is not
    read.

    `matrix` [batch, n, n], `rows` and the result [batch, m, n]; n is at most `BLOCK`.
    """

    name = "flow.solve_rows"
    matrix = operand(TensorType)
    rows = operand(TensorType)
    factor = attr(BoolAttr)

    def infer(self) -> Sequence[TensorType]:
        matrix, rows = tensor_of(self.matrix), tensor_of(self.rows)
        if dtype_of(self.rows).kind != FLOAT or rows.rank != 3:
            raise ShapeError(f"takes rows of floats per batch, not {rows}")
        batch, _, columns = rows.shape
        if columns not in range(1, BLOCK + 1):
            raise ShapeError(f"rows of {columns} elements, not of 1 to {BLOCK}")
        if matrix != rows.with_shape((batch, columns, columns)):
            raise ShapeError(f"matrix must be {rows.with_shape((batch, columns, columns))}, is {matrix}")
        return [rows]
