"""`fft`: the discrete Fourier transform of the last axes, of four kinds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from orchestrion.compiler.ir.attributes import DenseArray, DialectAttr
from orchestrion.compiler.ir.declare import attr
from orchestrion.compiler.ir.types import TensorType, scalar
from orchestrion.schema.dtypes import COMPLEX, FLOAT

from .base import OperandOp, ShapeError, dtype_of, tensor_of

#: Kind -> whether the operand is complex, whether the result is complex.
KINDS: Final = {"FFT": (True, True), "IFFT": (True, True), "RFFT": (False, True), "IRFFT": (True, False)}


class Fft(OperandOp):
    """Transforms the last axes, of lengths `fft_length`, to frequencies, or (`IFFT`, `IRFFT`) back, divided by the
    product of the lengths. The spectrum of real numbers has only the first half of the last axis: `n / 2 + 1` elements.
    """

    name = "stablehlo.fft"
    fft_type = attr(DialectAttr)
    fft_length = attr(DenseArray)

    @property
    def kind(self) -> str:
        """A key of `KINDS`."""
        return self.fft_type.body.split()[-1]

    def infer(self) -> Sequence[TensorType]:
        type, dtype, lengths = tensor_of(self.operand_), dtype_of(self.operand_), self.fft_length.sizes
        if self.kind not in KINDS:
            raise ShapeError(f"fft_type {self.kind} is not one of {', '.join(KINDS)}")
        if not 1 <= len(lengths) <= min(3, type.rank):
            raise ShapeError(f"fft_length has {len(lengths)} numbers for {type}, may have 1 to {min(3, type.rank)}")
        of_complex, to_complex = KINDS[self.kind]
        if dtype.kind != (COMPLEX if of_complex else FLOAT) or not dtype.computed and not of_complex:
            wanted = "complex numbers" if of_complex else "f32 or f64"
            raise ShapeError(f"{self.kind} takes {wanted}, not {dtype}")
        half = (*lengths[:-1], lengths[-1] // 2 + 1 if lengths[-1] else 0)
        taken, given = half if self.kind == "IRFFT" else lengths, half if self.kind == "RFFT" else lengths
        if type.shape[type.rank - len(lengths) :] != taken:
            raise ShapeError(f"{self.kind} of lengths {list(lengths)} takes last axes {list(taken)}, not {type}")
        part = dtype.storage if of_complex else dtype.name
        shape = (*type.shape[: type.rank - len(lengths)], *given)
        return [TensorType(shape, scalar(f"complex<{part}>" if to_complex else part))]
