"""Quantized types, `!quant.uniform<i8:f32, 0.5:3>`.

A quantized element is an integer of its storage type, and represents the number (integer - zero point) * scale of its
expressed type. There is one scale and zero point per tensor, or one per index along an axis. Source: StableHLO's
specification, "Quantization".
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from orchestrion.compiler.ir.types import DialectType, TensorType, Type
from orchestrion.schema.dtypes import BY_NAME, FLOAT, SIGNED, UNSIGNED

from .base import integer_limits

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
    lowest, highest = integer_limits(row)
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
