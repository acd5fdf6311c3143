"""Limits on the size of code that a driver's compiler gets, checked first of all for a SPIR-V module.

Compilers take more than linear time: lavapipe takes 0.04 s for 2 KiB of straight-line arithmetic, 1.2 s for 28 KiB and
17 s for 83 KiB. The counts below determine that time. Each limit is about 16 times the largest count observed from the
emitter. The stack is what the compiled code takes at run time (`spirv_stack`); its limit is 4 times the observed
maximum, and half of what SwiftShader supports. The nesting of constructs is limited where they are checked
(`spirv_flow`). Two passes over the instructions; a module that is malformed otherwise may pass.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NoReturn

import numpy as np
import numpy.typing as npt

from orchestrion.schema.errors import ModuleError
from orchestrion.schema.spirv import OP_BY_NAME

from .spirv_stack import HEADER_WORDS, count_slots, is_shallow


@dataclass(frozen=True, slots=True)
class SpirvLimit:
    """A count, its limit, and the largest observed value.

    Observed in the 22 programs of `tests/support/real_programs.py`, with fixed and symbolic batches, a ResNet-18 for
    224 x 224 images, and a 12-layer transformer of width 768; 900 modules in total.
    """

    what: str
    most: int
    seen: int


LIMITS: dict[str, SpirvLimit] = {
    "module": SpirvLimit("words in the module", 320_000, 19_632),
    "functions": SpirvLimit("functions", 64, 2),
    "function": SpirvLimit("instructions in a function", 48_000, 2_841),
    "blocks": SpirvLimit("blocks in a function", 2_500, 154),
    "block": SpirvLimit("instructions in a block", 40_000, 2_415),
    "phis": SpirvLimit("OpPhi in a block", 1_000, 65),
    "stack": SpirvLimit("slots of stack in a function", 16_000, 3_965),
}

_NAMES = ("OpFunction", "OpLabel", "OpPhi")
_FUNCTION, _LABEL, _PHI = (OP_BY_NAME[name].code for name in _NAMES)
_CODES = frozenset((_FUNCTION, _LABEL, _PHI))


def check_limits(words: npt.NDArray[np.uint32]) -> None:
    """Raises ModuleError, which names the count that exceeds its limit, and both numbers."""
    if _is_small(words):
        return
    for name, (count, at) in count_words(words.tolist()).items():
        if count > LIMITS[name].most:
            _refuse(LIMITS[name], count, at)


def _refuse(row: SpirvLimit, count: int, at: int) -> NoReturn:
    raise ModuleError(f"SPIR-V: {count} {row.what}, the limit is {row.most}", 4 * at)


def _is_small(words: npt.NDArray[np.uint32]) -> bool:
    """Whether no count can exceed its limit, because few words look like the start of a counted instruction.

    Takes a tenth of the time of counting.
    """
    if len(words) > min(LIMITS[name].most for name in ("module", "function", "block")):
        return False
    codes = words[words > 0xFFFF] & 0xFFFF
    found = {name: int(np.count_nonzero(codes == OP_BY_NAME[name].code)) for name in _NAMES}
    return (
        found["OpFunction"] <= LIMITS["functions"].most
        and found["OpLabel"] <= LIMITS["blocks"].most
        and found["OpPhi"] <= LIMITS["phis"].most
        and is_shallow(codes, LIMITS["stack"].most)
    )


def count_words(words: Sequence[int]) -> dict[str, tuple[int, int]]:
    """The largest value of each count of LIMITS, with the word where it ends."""
    most = dict.fromkeys(LIMITS, (0, 0))
    most["module"] = len(words), 0
    most["stack"] = count_slots(words)
    at, end, instructions, counted = HEADER_WORDS, len(words), 0, _CODES
    function = block = blocks = phis = functions = 0

    def note(name: str, value: int) -> None:
        if value > most[name][0]:
            most[name] = value, min(at, end)

    while at < end:
        word = words[at]
        if (code := word & 0xFFFF) in counted:
            if code == _PHI:
                phis += 1
                note("phis", phis)
            elif code == _LABEL:
                if blocks:
                    note("block", instructions - block)
                block, blocks, phis = instructions, blocks + 1, 0
                note("blocks", blocks)
            else:
                if functions:
                    note("block", instructions - block)
                    note("function", instructions - function)
                function = block = instructions
                functions, blocks = functions + 1, 0
                note("functions", functions)
        instructions += 1
        if word < 0x10000:  # a word count of 0; the checker reports it
            break
        at += word >> 16
    if functions:
        note("block", instructions - block)
        note("function", instructions - function)
    return most
