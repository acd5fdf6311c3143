"""Roots of unity computed by ops when a module is loaded, for tables that are too large for the module.

Angles are reduced with integers to an eighth of a turn, so that the error of a root is at most half a unit larger than
that of a rounded one.
"""

from __future__ import annotations

from math import pi

from orchestrion.compiler.ir.attributes import IntegerAttr
from orchestrion.compiler.ir.core import Value
from orchestrion.compiler.ir.rewriter import Rewriter
from orchestrion.compiler.ir.types import tensor
from orchestrion.compiler.stablehlo.builders.basic import compare, constant, convert, elementwise
from orchestrion.compiler.stablehlo.ops.base import tensor_of
from orchestrion.compiler.stablehlo.ops.structural import Iota


def generated_roots(
    rewriter: Rewriter, element: str, shape: tuple[int, int], length: int, sign: int
) -> tuple[Value, Value]:
    """e^(sign 2 pi i row column / length), as real and imaginary parts."""
    rows, columns = shape
    type = tensor(shape, "i32" if 4 * rows * columns + length < 2**31 else "i64")

    def op(name: str, *operands: Value | int) -> Value:
        values = [constant(rewriter, x, type) if isinstance(x, int) else x for x in operands]
        return elementwise(rewriter, name, *values)

    lines = [rewriter.build(Iota, iota_dimension=IntegerAttr(axis), out=type).result for axis in range(2)]
    turns = op("multiply", op("multiply", *lines), 4)
    quarter = op("divide", op("add", turns, length // 2), length)
    rest = convert(rewriter, op("subtract", turns, op("multiply", quarter, length)), element)
    angle = elementwise(rewriter, "multiply", rest, constant(rewriter, pi / 2 / length, tensor_of(rest)))
    cosine, sine = (elementwise(rewriter, name, angle) for name in ("cosine", "sine"))
    odd = compare(rewriter, "NE", op("and", quarter, 1), constant(rewriter, 0, type))
    across = elementwise(rewriter, "select", odd, elementwise(rewriter, "negate", sine), cosine)
    up = elementwise(rewriter, "select", odd, cosine, sine)
    half = compare(rewriter, "NE", op("and", quarter, 2), constant(rewriter, 0, type))
    real, imag = (elementwise(rewriter, "select", half, elementwise(rewriter, "negate", x), x) for x in (across, up))
    return real, imag if sign > 0 else elementwise(rewriter, "negate", imag)
