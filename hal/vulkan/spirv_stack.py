"""Bounds the stack that a driver's code for one SPIR-V function takes, before the driver gets the words.

Drivers that run shaders on the CPU keep values on a stack of fixed size. SwiftShader's compiler gives each value
without a register its own slot in the function's frame, even if two values are never live together, and fails when the
frame exceeds 512 KiB. It reports no error then: the process crashes at the first dispatch. So the bound counts all
values of a function. It also limits the values that are live at one point, which are a subset.

A *slot* is 16 bytes: 32 bits of four invocations. The costs below exceed what was measured for each instruction where
hundreds of values are live; temporaries and the clamps of `spirv_harden` are included (docs/decisions/spirv-subset.md
has the measurements). Time is linear in the words.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from orchestrion.schema.spirv import OP_BY_CODE, OP_BY_NAME, OPS

HEADER_WORDS = 5
#: the most 32-bit components of a vector, and of a number
VECTOR, NUMBER = 8, 2

#: rule of an instruction (`schema.spirv.Op.rule`) -> slots, if they are not one for each component of the result
_BY_RULE = {
    "shift": 5,
    "float_to_int": 3,
    "int_to_float": 2,
    "ext_inst": 3,
    "access_chain": 2,
    "phi": 2,
    "control_barrier": 1,
    "label": 1,
}
_BY_NAME = {"OpUDiv": 4, "OpSDiv": 4, "OpUMod": 4}
#: slots for each loaded or stored component: each access has separate code for each invocation
_ACCESS = 2

_CODES = {name: row.code for name, row in OP_BY_NAME.items()}
_FUNCTION, _STORE, _VECTOR = _CODES["OpFunction"], _CODES["OpStore"], _CODES["OpTypeVector"]
_TYPES = (_CODES["OpTypeInt"], _CODES["OpTypeFloat"], _VECTOR)


def _slots(name: str, layout: str, rule: str) -> int:
    """Slots of an instruction in a function, for each 32-bit component."""
    if name in ("OpLoad", "OpStore"):
        return _ACCESS
    return _BY_NAME.get(name, _BY_RULE.get(rule, 1 if layout.startswith("T R") else 0))


#: opcode -> slots for each component, for the instructions of functions
SLOTS = {row.code: _slots(row.name, row.layout, row.rule) for row in OPS if row.section == "function"}
SLOTS[_FUNCTION] = 0

#: opcode -> the most slots that one instruction takes; arithmetic operates on numbers, not on vectors
_MOST = np.zeros(1 << 16, np.int64)
for _code, _each in SLOTS.items():
    _MOST[_code] = _each * (VECTOR if OP_BY_CODE[_code].rule in ("load", "store", "composite_construct") else NUMBER)


def is_shallow(codes: npt.NDArray[Any], limit: int) -> bool:
    """Whether no function can exceed the limit, whatever the types of its values.

    `codes`: the opcodes of all first words, or of more words. Takes a tenth of the time of counting.
    """
    return int(_MOST[codes].sum()) <= limit


def count_slots(words: Sequence[int]) -> tuple[int, int]:
    """The slots of the function that takes the most, and the word where it ends. The module may be malformed."""
    most, ended = 0, 0
    slots, at, end = 0, HEADER_WORDS, len(words)
    wide: dict[int, int] = {}  # type or value -> its components, where they are more than one
    while at < end and (count := words[at] >> 16) and at + count <= end:
        code = words[at] & 0xFFFF
        if code == _FUNCTION:
            slots = 0
        elif code in _TYPES and count >= 3:
            wide[words[at + 1]] = _components(wide, words[at : at + count])
        elif (each := SLOTS.get(code)) is not None and count >= 3:
            components = wide.get(words[at + 2 if code == _STORE else at + 1], 1)
            slots += each * components
            if components > 1:
                wide[words[at + 2]] = components
        elif each:
            slots += each
        at += count
        if slots > most:
            most, ended = slots, at
    return most, ended


def _components(wide: Mapping[int, int], words: Sequence[int]) -> int:
    """The number of 32-bit components of a value of the type that an instruction declares."""
    if words[0] & 0xFFFF != _VECTOR:
        return 2 if words[2] == 64 else 1
    return min(VECTOR, wide.get(words[2], 1) * words[-1])
