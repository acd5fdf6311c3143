"""Loops are not unrolled in code that has many of them."""

import numpy as np
import pytest

from orchestrion.hal.vulkan.spirv_module import CODES
from orchestrion.hal.vulkan.spirv_unrolling import MANY_LOOPS, keep_loops


@pytest.mark.parametrize("count", [0, 1, MANY_LOOPS - 1, MANY_LOOPS, 3 * MANY_LOOPS])
def test_many_loops_are_kept(count: int) -> None:
    label = [2 << 16 | CODES["OpLabel"], 4 << 16 | CODES["OpLoopMerge"]]  # an operand that looks like an instruction
    loop = [*label, 4 << 16 | CODES["OpLoopMerge"], 7, 8, 0]
    before = np.array([0x07230203, 0x00010300, 0, 9, 0, *loop * count, *label], "<u4")
    after = np.frombuffer(keep_loops(before.tobytes()), "<u4")
    (changed,) = np.nonzero(before != after)
    assert list(changed) == ([10 + 6 * number for number in range(count)] if count >= MANY_LOOPS else [])
    assert set(after[changed]) <= {2}
