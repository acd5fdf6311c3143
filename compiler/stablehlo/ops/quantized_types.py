"""Quantized types, `!quant.uniform<i8:f32, 0.5:3>`: parsing, and conversion of elements to numbers and back.

A quantized element is an integer of its storage type, and represents the number (integer - zero point) * scale of its
expressed type. There is one scale and zero point per tensor, or one per index along an axis. Source: StableHLO's
specification, "Quantization", with the same order of roundings.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from orchestrion.compiler.ir.attributes import DenseArray, DenseElements
from orchestrion.compiler.ir.core import Value
from orchestrion.compiler.ir.rewriter import Rewriter
from orchestrion.compiler.ir.types import DialectType, TensorType, Type, scalar
from orchestrion.compiler.stablehlo.builders.basic import constant, convert, elementwise
from orchestrion.schema.dtypes import BY_NAME, FLOAT, FLOAT_FORMATS, SIGNED, UNSIGNED

from .base import tensor_of
from .structural import BroadcastInDim, Constant

_NUMBER: Final = r"[-+]?[0-9]+(?:\.[0-9]*)?(?:[eE][-+]?[0-9]+)?"
_BODY: Final = re.compile(
    r"\s*(?P<kind>[su]?)i?(?P<bits>[0-9]+)\s*(?:<\s*(?P<least>-?[0-9]+)\s*:\s*(?P<most>-?[0-9]+)\s*>)?"
    rf"\s*:\s*(?P<expressed>\w+)\s*(?::\s*(?P<axis>[0-9]+)\s*)?,\s*"
    rf"(?P<points>\{{[^{{}}]*\}}|{_NUMBER}(?:\s*:\s*-?[0-9]+)?)\s*"
)
_POINT: Final = re.compile(rf"\s*({_NUMBER})(?:\s*:\s*(-?[0-9]+))?\s*")


@dataclass(frozen=True, slots=True)
class Quantized:
    """Names of the storage type and of the expressed type, the least and the greatest integer, and the axis of scales
    and zero points (None: one for all).
    """

    storage: str
    expressed: str
    least: int
    most: int
    axis: int | None
    scales: tuple[float, ...]
    zero_points: tuple[int, ...]

    def problem(self, type: TensorType) -> str:
        """Why a tensor of this shape cannot have such elements; empty if it can."""
        if self.axis is None:
            return ""
        if self.axis >= type.rank or type.shape[self.axis] != len(self.scales):
            return f"{len(self.scales)} scales do not fit axis {self.axis} of {type}"
        return ""


def quantization_of(type: Type) -> Quantized | None:
    """The quantization of a tensor type's elements; None if they are not quantized, or in an unknown way."""
    element = type.element if isinstance(type, TensorType) else None
    return parse_quantized(element) if isinstance(element, DialectType) and element.name == "quant.uniform" else None


def parse_quantized(element: DialectType) -> Quantized | None:
    """The quantization that a type states; None if its form is unknown."""
    match = _BODY.fullmatch(element.body)
    if match is None:
        return None
    storage = f"{'u' if match['kind'] == 'u' else ''}i{match['bits']}"
    row, expressed = BY_NAME.get(storage), BY_NAME.get(match["expressed"])
    if row is None or row.kind not in (SIGNED, UNSIGNED) or row.bits > 32 or expressed is None:
        return None
    lowest = -(1 << row.bits - 1) if row.kind == SIGNED else 0
    highest = lowest + (1 << row.bits) - 1
    least, most = int(match["least"] or lowest), int(match["most"] or highest)
    points = [_POINT.fullmatch(item) for item in match["points"].strip("{}").split(",")]
    axis = int(match["axis"]) if match["axis"] else None
    if (
        expressed.kind != FLOAT
        or not lowest <= least < most <= highest
        or (axis is None) != (match["points"][0] != "{")
    ):
        return None
    found = [(float(point[1]), int(point[2] or 0)) for point in points if point is not None]
    if len(found) != len(points) or any(scale <= 0 or not least <= zero <= most for scale, zero in found):
        return None
    scales, zeros = tuple(scale for scale, _ in found), tuple(zero for _, zero in found)
    return Quantized(storage, expressed.name, least, most, axis, scales, zeros)


def dequantize(rewriter: Rewriter, stored: Value, row: Quantized) -> Value:
    """The numbers that integers of the storage type represent."""
    type = tensor_of(stored)
    if any(row.zero_points):
        wide = "i64" if BY_NAME[row.storage].bits > 16 else "i32"
        points = DenseElements(TensorType((len(row.zero_points),), scalar(wide)), _packed(row.zero_points, wide))
        spread = _spread(rewriter, points, row, type)
        stored = elementwise(rewriter, "subtract", convert(rewriter, stored, wide), spread)
    return elementwise(rewriter, "multiply", convert(rewriter, stored, row.expressed), _scales(rewriter, row, type))


def quantize(rewriter: Rewriter, number: Value, row: Quantized) -> Value:
    """The integers of the storage type for numbers of the expressed type, rounded to even after the zero point is
    added.
    """
    type = tensor_of(number)
    scaled = elementwise(rewriter, "divide", number, _scales(rewriter, row, type))
    if any(row.zero_points):
        scaled = elementwise(rewriter, "add", scaled, _numbers(rewriter, row, row.zero_points, type))
    above = elementwise(rewriter, "maximum", scaled, constant(rewriter, row.least, type))
    inside = elementwise(rewriter, "minimum", above, constant(rewriter, row.most, type))
    # the conversion saturates
    return convert(rewriter, elementwise(rewriter, "round_nearest_even", inside), row.storage)


def _scales(rewriter: Rewriter, row: Quantized, type: TensorType) -> Value:
    """The scale of each element of a tensor of this shape."""
    return _numbers(rewriter, row, row.scales, type)


def _numbers(rewriter: Rewriter, row: Quantized, values: Sequence[float], type: TensorType) -> Value:
    """One of the values, in the expressed type, for each element of a tensor of this shape."""
    elements = DenseElements(TensorType((len(values),), scalar(row.expressed)), _packed(values, row.expressed))
    return _spread(rewriter, elements, row, type)


def _packed(values: Sequence[float], element: str) -> bytes:
    import numpy as np

    if element in FLOAT_FORMATS:
        size = BY_NAME[element].itemsize
        return b"".join(FLOAT_FORMATS[element].rounded(value).to_bytes(size, "little") for value in values)
    return np.array(values, BY_NAME[element].numpy).tobytes()


def _spread(rewriter: Rewriter, elements: DenseElements, row: Quantized, type: TensorType) -> Value:
    out = type.with_element(elements.type.element)
    if row.axis is None:
        splat = DenseElements(elements.type.with_shape(()), elements.data)
        made = rewriter.build(Constant, value=splat, out=splat.type).result
        return rewriter.build(BroadcastInDim, operand_=made, broadcast_dimensions=DenseArray(()), out=out).result
    made = rewriter.build(Constant, value=elements, out=elements.type).result
    axes = DenseArray((row.axis,))
    return rewriter.build(BroadcastInDim, operand_=made, broadcast_dimensions=axes, out=out).result
