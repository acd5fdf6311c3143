"""Roots of unity computed by ops when a module is loaded, for tables that are too large for the module.

Angles are reduced with integers to an eighth of a turn, so that the error of a root is at most half a unit larger than
that of a rounded one.
"""

from __future__ import annotations

from math import pi

from orchestrion.compiler.ir.rewriter import Rewriter
from orchestrion.compiler.stablehlo.builders.tensors import Tensor, iota


def generated_roots(rewriter: Rewriter, element: str, rows: int, columns: int, sign: int) -> tuple[Tensor, Tensor]:
    """e^(sign 2 pi i row column / (rows columns)), as real and imaginary parts."""
    length = rows * columns
    integer = "i32" if 5 * length < 2**31 else "i64"
    row, column = (iota(rewriter, (rows, columns), axis, integer) for axis in range(2))
    turns = row * column * 4
    quarter = (turns + length // 2) / length
    angle = (turns - quarter * length).convert(element) * (pi / 2 / length)
    cosine, sine = angle.op("cosine"), angle.op("sine")
    odd = (quarter & 1).ne(0)
    across, up = odd.select(-sine, cosine), odd.select(cosine, sine)
    half = (quarter & 2).ne(0)
    real, imag = (half.select(-x, x) for x in (across, up))
    return real, imag if sign > 0 else -imag
