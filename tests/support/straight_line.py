"""SPIR-V that takes its compiler long, as text for the assembler of the tests: much arithmetic and no loop."""

import random

from shader_text import head

_HEAD = (
    head(buffers=("a",), size="1 1 1", lane=False, numbers=(0,))
    + """%place = OpAccessChain %p_word %a %0 %0
%v0 = OpLoad %u32 %place
"""
)
_TAIL = """
OpStore %place %v{last}
OpReturn
OpFunctionEnd
"""
_OPS = ("OpIMul", "OpIAdd", "OpBitwiseXor", "OpShiftRightLogical", "OpUDiv", "OpUMod")


def straight_line(instructions: int) -> str:
    """An entry `main` with one binding of `u32`, whose first value goes through so many instructions of five words."""
    chosen = random.Random(instructions)
    lines = [
        f"%v{i + 1} = {chosen.choice(_OPS)} %u32 %v{i} %v{chosen.randrange(max(i - 40, 0), i + 1)}"
        for i in range(instructions)
    ]
    return _HEAD + "\n".join(lines) + _TAIL.format(last=instructions)
