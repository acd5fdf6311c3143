"""Moves the parameters of verified SPIR-V from push constants into a read-only buffer, before the driver gets it.

A recorded command keeps its push constants; a buffer may hold other values at each submission. The block of parameters,
a struct of u32 members at offsets 0, 4, 8 ..., is already a valid buffer block. So only storage classes change, and the
variable becomes binding `PARAMETER_BINDING` of descriptor set `PARAMETER_SET`. Modules without parameters are returned
unchanged. Time is linear in the words.

It is a storage buffer, because lavapipe compiles the values of uniform buffers that branches depend on into the code,
and recompiles it for each dispatch. On devices with few storage buffers it is a uniform buffer.
"""

from __future__ import annotations

import struct
from typing import Final

from orchestrion.schema.spirv import DECORATIONS, OP_BY_NAME, STORAGE_CLASSES

#: descriptor set and binding of an entry's parameters; its other bindings are in set 0
PARAMETER_SET: Final = 1
PARAMETER_BINDING: Final = 0
_HEADER_WORDS: Final = 5
#: the storage class that only the loader writes
_UNIFORM: Final = 2
_PUSH_CONSTANT, _STORAGE_BUFFER = STORAGE_CLASSES["PushConstant"], STORAGE_CLASSES["StorageBuffer"]
_POINTER, _VARIABLE, _DECORATE = (OP_BY_NAME[name].code for name in ("OpTypePointer", "OpVariable", "OpDecorate"))
_SET, _BINDING, _NON_WRITABLE = (DECORATIONS[name][0] for name in ("DescriptorSet", "Binding", "NonWritable"))
#: position of the storage class in an instruction
_CLASS_AT = {_POINTER: 2, _VARIABLE: 3}
#: annotations end where the first type is declared
_FIRST_TYPE, _LAST_TYPE = 19, 39


def buffer_parameters(code: bytes, uniform: bool = False) -> bytes:
    """The words with parameters in a storage or `uniform` buffer, little endian. `code` is verified and hardened."""
    storage = _UNIFORM if uniform else _STORAGE_BUFFER
    words = list(struct.unpack(f"<{len(code) // 4}I", code))
    blocks, types_at = [], 0
    at = _HEADER_WORDS
    while at < len(words):
        opcode, count = words[at] & 0xFFFF, words[at] >> 16
        if not types_at and _FIRST_TYPE <= opcode <= _LAST_TYPE:
            types_at = at
        place = _CLASS_AT.get(opcode)
        if place is not None and words[at + place] == _PUSH_CONSTANT:
            words[at + place] = storage
            if opcode == _VARIABLE:
                blocks.append(words[at + 2])
        at += count
    if not blocks:
        return code
    added: list[int] = []
    for id in blocks:
        added += (*_decoration(id, _SET, PARAMETER_SET), *_decoration(id, _BINDING, PARAMETER_BINDING))
        added += (3 << 16 | _DECORATE, id, _NON_WRITABLE)
    words[types_at:types_at] = added
    return struct.pack(f"<{len(words)}I", *words)


def _decoration(id: int, kind: int, value: int) -> tuple[int, int, int, int]:
    return 4 << 16 | _DECORATE, id, kind, value
