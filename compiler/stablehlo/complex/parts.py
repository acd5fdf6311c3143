"""Real and imaginary parts, for formulas over real or complex tensors. A real tensor has one part, itself."""

from __future__ import annotations

from collections.abc import Sequence

from orchestrion.compiler.ir.types import TensorType
from orchestrion.compiler.stablehlo.builders.tensors import Tensor, concatenate
from orchestrion.compiler.stablehlo.ops.base import part_type
from orchestrion.compiler.stablehlo.ops.elementwise import OPS, Complex, Imag, Real


def parts_of(x: Tensor) -> list[Tensor]:
    """The real and the imaginary part of a complex tensor; a real tensor alone."""
    maker = x.value.defining_op
    if not x.is_complex:
        return [x]
    if isinstance(maker, Complex):
        return [Tensor(x.rewriter, part) for part in maker.operands]
    return [x.build(cls, operand_=x, out=part_type(x.type)) for cls in (Real, Imag)]


def tensor_of_parts(type: TensorType, parts: Sequence[Tensor]) -> Tensor:
    """The tensor with these parts; a missing imaginary part is zero."""
    real, *imaginary = parts
    if real.type == type:
        return real
    (imag,) = imaginary or [real.zeros()]
    return real.build(Complex, lhs=real, rhs=imag, out=type)


def interleaved(parts: Sequence[Tensor]) -> Tensor:
    """Numbers as real tensors: their parts along a new last axis."""
    lines = [x.reshape(*x.shape, 1) for x in parts]
    return concatenate(lines, len(parts[0].shape)) if len(lines) > 1 else lines[0]


def separated(x: Tensor) -> tuple[Tensor, Tensor]:
    """The parts of numbers, which lie along the last axis."""
    last = len(x.shape) - 1
    real, imag = (x.cut(last, at, at + 1).reshape(*x.shape[:-1]) for at in range(2))
    return real, imag


def scaled_by(x: Tensor, factor: Tensor) -> Tensor:
    """Multiplies each element by a real number."""
    return tensor_of_parts(x.type, [part * factor for part in parts_of(x)])


def squared(x: Tensor) -> Tensor:
    return sum_of([part * part for part in parts_of(x)])


def magnitude(x: Tensor) -> Tensor:
    return x.build(OPS["stablehlo.abs"], operand_=x, out=part_type(x.type)) if x.is_complex else abs(x)


def greatest(x: Tensor, axes: Sequence[int]) -> Tensor:
    """The greatest magnitude of any part along axes."""
    first, *others = [abs(part).reduce(axes, "maximum") for part in parts_of(x)]
    return first.op("maximum", *others) if others else first


def sum_of(parts: Sequence[Tensor]) -> Tensor:
    first, *others = parts
    for other in others:
        first = first + other
    return first


def conjugate(x: Tensor) -> Tensor:
    """The complex conjugate; a real tensor unchanged."""
    real, *imaginary = parts_of(x)
    return tensor_of_parts(x.type, [real, *(-part for part in imaginary)])


def transposed(x: Tensor) -> Tensor:
    """The transpose of matrices [batch, m, n]."""
    return x.transpose(0, 2, 1)


def triangle(x: Tensor, lower: bool) -> Tensor:
    """Mask of one triangle, with the diagonal, of matrices [batch, m, n]."""
    return x.iota(1).compare("GE" if lower else "LE", x.iota(2))


def adjoint(x: Tensor) -> Tensor:
    """The conjugate transpose of matrices [batch, m, n]."""
    return transposed(conjugate(x))
