"""Asks drivers not to unroll the loops of a function that has many.

Mesa unrolls loops of a few known iterations, inner ones first. In a kernel that runs the loop of a program, these are
loops over small tensors, one in another: the code grows by the product of their lengths, and so does the time of its
compilation.
"""

import numpy as np

from .spirv_module import CODES

#: loops from which on none is unrolled: kernels of single ops have fewer
MANY_LOOPS = 10
_DONT_UNROLL = 2


def keep_loops(code: bytes) -> bytes:
    """Returns the words of a verified payload, or of a hardened one, with the loop control DontUnroll if it has many
    loops.
    """
    words = np.frombuffer(code, "<u4").copy()
    merges, at = [], 5
    while at < len(words):
        if words[at] & 0xFFFF == CODES["OpLoopMerge"]:
            merges.append(at)
        at += int(words[at] >> 16)
    if len(merges) < MANY_LOOPS:
        return code
    words[np.array(merges) + 3] = _DONT_UNROLL
    return words.tobytes()
