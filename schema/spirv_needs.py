"""The least minor version of the SPIR-V subset (`spirv.py`) that contains every row that a shader uses."""

import struct

from .spirv import (
    BUILTINS,
    CAPABILITY_BY_CODE,
    DECORATIONS,
    ENUMERANTS_SINCE,
    EXT_BY_CODE,
    OP_BY_CODE,
    OP_BY_NAME,
    STORAGE_CLASSES,
)

_HEADER_WORDS = 5
_DECORATION_NAMES = {code: name for name, (code, _, _) in DECORATIONS.items()}
_BUILTIN_NAMES = {code: name for name, code in BUILTINS.items()}
_CLASS_NAMES = {code: name for name, code in STORAGE_CLASSES.items()}
_CAPABILITY, _EXT = OP_BY_NAME["OpCapability"].code, OP_BY_NAME["OpExtInst"].code
#: instruction -> word of a decoration, whose literal is the next one
_DECORATE = {OP_BY_NAME["OpDecorate"].code: 2, OP_BY_NAME["OpMemberDecorate"].code: 3}
#: instruction -> word of a storage class
_CLASSED = {OP_BY_NAME["OpVariable"].code: 3, OP_BY_NAME["OpTypePointer"].code: 2}
#: instructions that have enumerants among their operands, and words in place of operands that are missing
_ENUMERATED = frozenset({_CAPABILITY, _EXT, *_DECORATE, *_CLASSED})
_MISSING = (0,) * 5


def least_minor(payload: memoryview) -> int:
    """The least minor version; 0 for code that is not a sequence of complete instructions of the subset, which the
    checker reports.
    """
    words = struct.unpack(f"<{len(payload) // 4}I", payload[: len(payload) // 4 * 4])
    at, found, seen = _HEADER_WORDS, 0, set[int]()
    while at < len(words):
        head = words[at]
        if head not in seen:
            row = OP_BY_CODE.get(head & 0xFFFF)
            if row is None or head < 1 << 16:
                return 0
            found = max(found, row.since)
            if row.code in _ENUMERATED:
                found = max(found, _operands_since(row.code, (*words[at : at + (head >> 16)], *_MISSING)))
            else:
                seen.add(head)
        at += head >> 16
    return found if at == len(words) else 0


def _operands_since(code: int, words: tuple[int, ...]) -> int:
    """The least minor version of the enumerants among the operands."""
    if code == _CAPABILITY:
        row = CAPABILITY_BY_CODE.get(words[1])
        return row.since if row else 0
    if code == _EXT:
        instruction = EXT_BY_CODE.get(words[4])
        return instruction.since if instruction else 0
    names = []
    if code in _DECORATE:
        names.append(_DECORATION_NAMES.get(words[_DECORATE[code]], ""))
        if names[0] == "BuiltIn":
            names.append(_BUILTIN_NAMES.get(words[_DECORATE[code] + 1], ""))
    elif code in _CLASSED:
        names.append(_CLASS_NAMES.get(words[_CLASSED[code]], ""))
    return max((ENUMERANTS_SINCE.get(name, 0) for name in names), default=0)
