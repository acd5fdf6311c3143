"""Real and imaginary parts, for formulas over real or complex values. A real value has one part, itself."""

from __future__ import annotations

from collections.abc import Sequence

from orchestrion.compiler.ir.core import Value
from orchestrion.compiler.ir.rewriter import Rewriter
from orchestrion.compiler.ir.types import TensorType
from orchestrion.compiler.stablehlo.builders.real import Real
from orchestrion.compiler.stablehlo.builders.shape_builders import transpose, zeros
from orchestrion.compiler.stablehlo.ops.base import is_complex, part_type, tensor_of
from orchestrion.compiler.stablehlo.ops.elementwise import OPS


def parts_of(rewriter: Rewriter, value: Value) -> list[Real]:
    """The real and the imaginary part of a complex value; a real value alone."""
    if not is_complex(value):
        return [Real(rewriter, value)]
    out = [part_type(tensor_of(value))]
    return [Real(rewriter, rewriter.insert(OPS[f"stablehlo.{name}"]([value], out)).result) for name in ("real", "imag")]


def value_of_parts(rewriter: Rewriter, type: TensorType, parts: Sequence[Real]) -> Value:
    """The value with these parts; a missing imaginary part is zero."""
    real, *imaginary = (part.value for part in parts)
    if real.type == type:
        return real
    both = [real, *(imaginary or [zeros(rewriter, tensor_of(real))])]
    return rewriter.insert(OPS["stablehlo.complex"](both, [type])).result


def scaled_by(rewriter: Rewriter, value: Value, factor: Real) -> Value:
    """Multiplies each element by a real number."""
    return value_of_parts(rewriter, tensor_of(value), [part * factor for part in parts_of(rewriter, value)])


def squared(rewriter: Rewriter, value: Value) -> Real:
    """The square of the magnitude."""
    return sum_of([part * part for part in parts_of(rewriter, value)])


def magnitude(rewriter: Rewriter, value: Value) -> Real:
    """The magnitude of each element."""
    if not is_complex(value):
        return abs(Real(rewriter, value))
    return Real(rewriter, rewriter.insert(OPS["stablehlo.abs"]([value], [part_type(tensor_of(value))])).result)


def greatest(rewriter: Rewriter, value: Value, axes: Sequence[int]) -> Real:
    """The greatest magnitude of any part along axes."""
    first, *others = [abs(part).reduce(axes, "maximum") for part in parts_of(rewriter, value)]
    return first.op("maximum", *others) if others else first


def sum_of(parts: Sequence[Real]) -> Real:
    """The sum of several reals."""
    first, *others = parts
    for other in others:
        first = first + other
    return first


def adjoint(rewriter: Rewriter, value: Value) -> Value:
    """The conjugate transpose of matrices [batch, m, n]."""
    return transpose(rewriter, conjugate(rewriter, value), (0, 2, 1))


def conjugate(rewriter: Rewriter, value: Value) -> Value:
    """The complex conjugate; a real value unchanged."""
    real, *imaginary = parts_of(rewriter, value)
    return value_of_parts(rewriter, tensor_of(value), [real, *(-part for part in imaginary)])
