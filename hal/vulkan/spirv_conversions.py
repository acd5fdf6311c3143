"""Writes conversions of u32 to f32 in verified SPIR-V by halves, for drivers that round them wrongly.

Both halves convert exactly, as they have 16 bits, and so does the product of the upper one and 65,536. Only the sum of
the two is rounded, once, to nearest even. Time is linear in the words.
"""

from __future__ import annotations

import struct
from typing import Final

from .spirv_module import CODES, EditableModule, Instruction

_HALF_BITS: Final = 16
_SCALE: Final[int] = struct.unpack("<I", struct.pack("<f", 1 << _HALF_BITS))[0]


def halve_conversions(code: bytes) -> bytes:
    """Returns the words of a verified payload, or of a hardened one, without conversions of a whole u32 to f32."""
    converter = _Converter(code)
    return converter.code() if converter.halve() else code


class _Converter(EditableModule):
    def halve(self) -> bool:
        """Halve the conversions of all functions. Returns whether there are any."""
        f32 = self._declared.get((CODES["OpTypeFloat"], 32))
        halved = False
        for function in self._functions if f32 else ():
            u32s, body = self._of_type(self._u32(), function), list[Instruction]()
            for row in function.body:
                if row[0] == CODES["OpConvertUToF"] and row[1] == f32 and row[3] in u32s:
                    body += self._halved(row)
                    halved = True
                else:
                    body.append(row)
            function.body = body
        return halved

    def _halved(self, row: Instruction) -> list[Instruction]:
        _, f32, result, value = row
        u32, (high, low, upper, lower, scaled) = self._u32(), (self._new() for _ in range(5))
        return [
            [CODES["OpShiftRightLogical"], u32, high, value, self._constant(_HALF_BITS)],
            [CODES["OpBitwiseAnd"], u32, low, value, self._constant((1 << _HALF_BITS) - 1)],
            [CODES["OpConvertSToF"], f32, upper, high],
            [CODES["OpConvertSToF"], f32, lower, low],
            [CODES["OpFMul"], f32, scaled, upper, self._constant(_SCALE, f32)],
            [CODES["OpFAdd"], f32, result, scaled, lower],
        ]
