"""Real and imaginary parts, for formulas over values that are real or complex: a real one has one part, itself."""

from __future__ import annotations

from collections.abc import Sequence

from orchestrion.compiler.ir.core import Value
from orchestrion.compiler.ir.rewriter import Rewriter
from orchestrion.compiler.ir.types import TensorType

from .base import is_complex, part_type, tensor_of
from .elementwise import OPS
from .movement import zeros
from .real import Real


def parts_of(rewriter: Rewriter, value: Value) -> list[Real]:
    if not is_complex(value):
        return [Real(rewriter, value)]
    out = [part_type(tensor_of(value))]
    return [Real(rewriter, rewriter.insert(OPS[f"stablehlo.{name}"]([value], out)).result) for name in ("real", "imag")]


def joined(rewriter: Rewriter, type: TensorType, parts: Sequence[Real]) -> Value:
    """The value of these parts; what a complex one lacks is zero."""
    real, *imaginary = (part.value for part in parts)
    if real.type == type:
        return real
    both = [real, *(imaginary or [zeros(rewriter, tensor_of(real))])]
    return rewriter.insert(OPS["stablehlo.complex"](both, [type])).result


def conjugate(rewriter: Rewriter, value: Value) -> Value:
    real, *imaginary = parts_of(rewriter, value)
    return joined(rewriter, tensor_of(value), [real, *(-part for part in imaginary)])
