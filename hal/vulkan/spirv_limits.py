"""Limits on what a driver's compiler gets, checked before anything else of a SPIR-V module.

Compilers take more than linear time: lavapipe takes 0.1 s for 2 KiB of straight-line arithmetic, 1.1 s for 28 KiB and
8 s and more for 83 KiB. The counts below are what that time grows with. Each limit is about 16 times the largest count
that the emitter was seen to write. One pass over the instructions; a module that is malformed elsewhere may pass.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NoReturn

from orchestrion.schema.errors import ModuleError
from orchestrion.schema.spirv import OP_BY_NAME

from .spirv_flow import NESTING

HEADER_WORDS = 5


@dataclass(frozen=True, slots=True)
class SpirvLimit:
    """A count, the most that is accepted, and the largest that was seen.

    Seen in: the 22 programs of `tests/support/real_programs.py`, with fixed and symbolic batches, a ResNet-18 for
    224 x 224 images and a 12-layer transformer of width 768; 900 modules in all.
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
    "constructs": SpirvLimit("constructs in one another", NESTING, 5),
}

_NAMES = ("OpFunction", "OpLabel", "OpPhi", "OpLoopMerge", "OpSelectionMerge")
_CODES = frozenset(OP_BY_NAME[name].code for name in _NAMES)
_FUNCTION, _LABEL, _PHI = (OP_BY_NAME[name].code for name in _NAMES[:3])


def check_limits(words: Sequence[int]) -> None:
    """`ModuleError` names the count that exceeds its limit, and both numbers."""
    for name, (count, at) in count_words(words).items():
        if count > LIMITS[name].most:
            _refuse(LIMITS[name], count, at)


def _refuse(row: SpirvLimit, count: int, at: int) -> NoReturn:
    raise ModuleError(f"SPIR-V: {count} {row.what}, the limit is {row.most}", 4 * at)


def count_words(words: Sequence[int]) -> dict[str, tuple[int, int]]:
    """Each count of LIMITS at its largest, with the word where that ends."""
    most = dict.fromkeys(LIMITS, (0, 0))
    most["module"] = len(words), 0
    at, end, instructions, counted = HEADER_WORDS, len(words), 0, _CODES
    function = block = blocks = phis = functions = 0
    merges: list[int] = []

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
                while merges and at + 1 < end and words[at + 1] == merges[-1]:
                    merges.pop()
            elif code == _FUNCTION:
                if functions:
                    note("block", instructions - block)
                    note("function", instructions - function)
                function = block = instructions
                functions, blocks = functions + 1, 0
                note("functions", functions)
                merges.clear()
            elif at + 1 < end:
                merges.append(words[at + 1])
                note("constructs", len(merges))
        instructions += 1
        if word < 0x10000:  # the checker says what is wrong with it
            break
        at += word >> 16
    if functions:
        note("block", instructions - block)
        note("function", instructions - function)
    return most
