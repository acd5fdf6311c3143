"""`flow.fft`: Fourier transforms of lines that the shared memory of a workgroup holds. What every `fft` is made of.

Complex numbers are two real ones side by side, the last axis. A line is transformed in passes, one for each factor of
its length (`radices`), all of them in one dispatch: so a length has small factors only, and is `longest` at most.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Final

from orchestrion.compiler.ir.attributes import BoolAttr, IntegerAttr
from orchestrion.compiler.ir.core import Trait
from orchestrion.compiler.ir.declare import attr, operand, result
from orchestrion.compiler.ir.types import TensorType
from orchestrion.compiler.stablehlo.ops.base import ShapeError, StablehloOp, dtype_of, tensor_of
from orchestrion.schema.dtypes import FLOAT

#: the shared memory of a workgroup on every device: what Vulkan guarantees
SHARED_BYTES: Final = 16 << 10
#: the most numbers that an invocation transforms at once, but for a prime factor
MAX_RADIX: Final = 8
#: prime factors that a pass takes
PRIMES: Final = (2, 3, 5, 7, 11, 13)


class LineFft(StablehloOp):
    """The lines along axis `dimension` transformed, into frequencies or (`inverse`) back, divided by their length n.

    Numbers lie side by side in the last axis: two, or the real one only. Of real operands the imaginary parts are
    zero; a real result has the real parts; a result that is shorter along the axis has the first numbers. `roots` has
    the parts of e^(-2 pi i k / n) for every k below n, or conjugate for `inverse`.
    """

    name = "flow.fft"
    operand_ = operand(TensorType)
    roots = operand(TensorType)
    dimension = attr(IntegerAttr)
    inverse = attr(BoolAttr)
    out = result(TensorType)
    traits = frozenset({Trait.PURE})

    @property
    def axis(self) -> int:
        return self.dimension.value

    @property
    def length(self) -> int:
        return tensor_of(self.operand_).shape[self.axis]

    def infer(self) -> Sequence[TensorType]:
        source, out = tensor_of(self.operand_), tensor_of(self.out)
        if dtype_of(self.operand_).kind != FLOAT or source.rank < 2 or source.shape[-1] not in (1, 2):
            raise ShapeError(f"takes floats, one or two in the last of several axes, not {source}")
        if not 0 <= self.axis < source.rank - 1:
            raise ShapeError(f"dimension {self.axis} is no axis of {source} but the last")
        if self.length not in range(2, longest(dtype_of(self.operand_).itemsize) + 1) or not radices(self.length):
            most, primes = longest(dtype_of(self.operand_).itemsize), ", ".join(map(str, PRIMES))
            raise ShapeError(f"lines of {self.length} are not of 2 to {most} numbers with prime factors of {primes}")
        if tensor_of(self.roots) != source.with_shape((self.length, 2)):
            raise ShapeError(f"roots must be {source.with_shape((self.length, 2))}, are {self.roots.type}")
        shape = list(source.shape)
        if out.rank == source.rank:  # how much is wanted, the result says
            shape[self.axis] = min(max(out.shape[self.axis], 1), self.length)
            shape[-1] = 1 if out.shape[-1] == 1 else 2
        return [source.with_shape(tuple(shape))]


def longest(itemsize: int) -> int:
    """Numbers of a line, by the bytes of a part."""
    return SHARED_BYTES // (2 * itemsize)


@cache
def radices(length: int) -> tuple[int, ...] | None:
    """Factors of a length, the largest first: as few as possible, of these as small ones. None: it has a prime that no
    pass takes.
    """
    if length == 1:
        return ()
    found: list[tuple[int, ...]] = []
    for radix in sorted({*range(2, MAX_RADIX + 1), *PRIMES}):
        rest = radices(length // radix) if length % radix == 0 else None
        if rest is not None:
            found.append(tuple(sorted((radix, *rest), reverse=True)))
    return min(found, key=lambda row: (len(row), sum(row)), default=None)
