"""Moves the parameters of verified SPIR-V from push constants into a uniform buffer, before the driver sees it.

A recorded command holds its push constants for ever; a buffer may hold others at each submission. The block of
parameters, a struct of u32 members at offsets 0, 4, 8 ..., is a valid uniform block as it is. So only storage classes
change, and the variable becomes binding `PARAMETER_BINDING` of descriptor set `PARAMETER_SET`. Modules without
parameters are given back as they are. Work is linear in the words.
"""

from __future__ import annotations

import struct
from typing import Final

from orchestrion.schema.spirv import DECORATIONS, OP_BY_NAME, STORAGE_CLASSES

#: where the driver puts an entry's parameters; its bindings are set 0
PARAMETER_SET: Final = 1
PARAMETER_BINDING: Final = 0
#: storage class that only the loader writes
UNIFORM: Final = 2
_HEADER_WORDS: Final = 5
_PUSH_CONSTANT = STORAGE_CLASSES["PushConstant"]
_POINTER, _VARIABLE, _DECORATE = (OP_BY_NAME[name].code for name in ("OpTypePointer", "OpVariable", "OpDecorate"))
_SET, _BINDING = DECORATIONS["DescriptorSet"][0], DECORATIONS["Binding"][0]
#: position of the storage class in an instruction
_CLASS_AT = {_POINTER: 2, _VARIABLE: 3}
#: annotations end where the first type is declared
_FIRST_TYPE, _LAST_TYPE = 19, 39


def buffer_parameters(code: bytes) -> bytes:
    """The words with parameters in a uniform buffer, little endian. `code` is verified and hardened."""
    words = list(struct.unpack(f"<{len(code) // 4}I", code))
    blocks, types_at = [], 0
    at = _HEADER_WORDS
    while at < len(words):
        opcode, count = words[at] & 0xFFFF, words[at] >> 16
        if not types_at and _FIRST_TYPE <= opcode <= _LAST_TYPE:
            types_at = at
        place = _CLASS_AT.get(opcode)
        if place is not None and words[at + place] == _PUSH_CONSTANT:
            words[at + place] = UNIFORM
            if opcode == _VARIABLE:
                blocks.append(words[at + 2])
        at += count
    if not blocks:
        return code
    added: list[int] = []
    for id in blocks:
        added += (*_decoration(id, _SET, PARAMETER_SET), *_decoration(id, _BINDING, PARAMETER_BINDING))
    words[types_at:types_at] = added
    return struct.pack(f"<{len(words)}I", *words)


def _decoration(id: int, kind: int, value: int) -> tuple[int, int, int, int]:
    return 4 << 16 | _DECORATE, id, kind, value
