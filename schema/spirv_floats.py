"""The execution mode with which drivers keep NaN, infinities and the signs of zeros, added to valid SPIR-V.

Without the execution mode `SignedZeroInfNanPreserve` a driver may assume that floats are never NaN: NVIDIA's turns a
comparison and a select into an instruction that drops it. The mode needs a capability and, up to SPIR-V 1.3, an
extension. It is added for the widths of floats that a module declares and the device has the mode for. Other modules
are returned unchanged. Time is linear in the words.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence, Set
from typing import Final

from .spirv import OP_BY_NAME

EXTENSION: Final = "SPV_KHR_float_controls"
CAPABILITY_PRESERVE: Final = 4466
MODE_PRESERVE: Final = 4461
_HEADER_WORDS: Final = 5
_CAPABILITY, _EXTENSION, _ENTRY_POINT, _MODE, _FLOAT = (
    OP_BY_NAME[name].code for name in ("OpCapability", "OpExtension", "OpEntryPoint", "OpExecutionMode", "OpTypeFloat")
)


def preserve_special(code: bytes, supported: Set[int]) -> bytes:
    """The words with the mode for each entry, little endian. `supported`: the widths of floats, in bits, that the
    device has the mode for.
    """
    words = list(struct.unpack(f"<{len(code) // 4}I", code))
    rows = additions(words, supported)
    if not rows:
        return code
    for at, added in reversed(rows):
        words[at:at] = added
    return struct.pack(f"<{len(words)}I", *words)


def additions(words: Sequence[int], supported: Set[int]) -> list[tuple[int, list[int]]]:
    """The words to add, and in front of which word, in order: the capability, the extension, and the modes. Empty if
    the module declares no float of a supported width.
    """
    entries: list[int] = []
    widths: list[int] = []
    end = dict.fromkeys((_CAPABILITY, _EXTENSION, _MODE), 0)  # opcode -> where the last one ends
    at = _HEADER_WORDS
    while at < len(words):
        opcode, count = words[at] & 0xFFFF, words[at] >> 16
        if opcode in end:
            end[opcode] = at + count
        elif opcode == _ENTRY_POINT:
            entries.append(words[at + 2])
        elif opcode == _FLOAT and words[at + 2] in supported:
            widths.append(words[at + 2])
        at += count
    if not widths:
        return []
    modes = [word for entry in entries for width in widths for word in (4 << 16 | _MODE, entry, MODE_PRESERVE, width)]
    text = EXTENSION.encode() + b"\0" * (4 - len(EXTENSION) % 4)
    extension = [(1 + len(text) // 4) << 16 | _EXTENSION, *struct.unpack(f"<{len(text) // 4}I", text)]
    return [
        (end[_CAPABILITY], [2 << 16 | _CAPABILITY, CAPABILITY_PRESERVE]),
        (end[_EXTENSION] or end[_CAPABILITY], extension),
        (end[_MODE], modes),
    ]
